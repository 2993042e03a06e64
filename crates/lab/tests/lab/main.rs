//! What holds of the lab, without a server: those that need one are among the tests of the server.

mod capacity;
