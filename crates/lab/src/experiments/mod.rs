//! `portiere lab`: named experiments.
