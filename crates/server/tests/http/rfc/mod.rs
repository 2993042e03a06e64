//! One module per specification; each test is named after its paragraph.

mod authorize;
mod bearer;
pub mod client_auth;
mod conformance;
mod device;
mod introspect;
mod login;
mod logout;
mod metadata;
mod token;
