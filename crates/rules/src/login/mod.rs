//! Signing in: passwords, throttling, sessions.

pub mod attempt;
pub mod cookie;
pub mod password;
pub mod session;
pub mod sign_up;
pub mod throttle;
