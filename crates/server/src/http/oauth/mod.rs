//! The endpoints of the OAuth and OpenID Connect protocols.

pub mod authorize;
pub mod device;
pub mod introspect;
pub mod logout;
pub mod metadata;
pub mod revoke;
pub mod token;
pub mod userinfo;
