//! `portiere capacity`: what this machine can carry.
