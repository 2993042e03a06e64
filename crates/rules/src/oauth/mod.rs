//! The protocol: RFC 6749, RFC 9700, OpenID Connect Core 1.0 and the specifications around them.

pub mod authorize;
pub mod claims;
pub mod client;
pub mod client_auth;
pub mod code;
pub mod consent;
pub mod device;
pub mod discovery;
pub mod error;
pub mod family;
pub mod first_party;
pub mod introspect;
pub mod logout;
pub mod params;
pub mod redirect;
pub mod refresh;
pub mod registration;
pub mod resource;
pub mod revoke;
pub mod scope;
pub mod step;
pub mod token;
pub mod userinfo;

pub use error::{Code as ErrorCode, Error};
