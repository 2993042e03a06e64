//! Servers of our own: a folder that goes away, people, a client, cores.
