//! Applications.

use super::scope::Scope;
use crate::id::ClientId;
use crate::jose::{Alg, JwkSet};
use crate::secret::Handle;
use crate::time::Time;
use serde::{Deserialize, Serialize};

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }
        impl $name {
            /// Every one of them.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            /// Its registered name.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
            /// The one of that name.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.name() == name)
            }
        }
    };
}

named! {
    /// How an application comes to tokens (`grant_type`).
    Grant {
        /// RFC 6749 §4.1.
        AuthorizationCode = "authorization_code",
        /// RFC 6749 §6.
        RefreshToken = "refresh_token",
        /// RFC 6749 §4.4.
        ClientCredentials = "client_credentials",
        /// RFC 8628.
        DeviceCode = "urn:ietf:params:oauth:grant-type:device_code",
    }
}

named! {
    /// How an application proves who it is (`token_endpoint_auth_method`).
    AuthMethod {
        /// It does not: a public client.
        None = "none",
        /// RFC 6749 §2.3.1, in the header.
        Basic = "client_secret_basic",
        /// RFC 6749 §2.3.1, in the body.
        Post = "client_secret_post",
        /// RFC 7523 §2.2 with a key of its own.
        PrivateKeyJwt = "private_key_jwt",
    }
}

named! {
    /// What an access token looks like.
    AccessFormat {
        /// A signed JWT (RFC 9068).
        Jwt = "jwt",
        /// A random value that only introspection explains.
        Opaque = "opaque",
    }
}

/// An application as registered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Client {
    /// Its `client_id`.
    pub id: ClientId,
    /// What people know it as.
    pub name: String,
    /// The hash of its secret, if it has one. Kept in a column of its own.
    #[serde(skip)]
    pub secret: Option<Handle>,
    /// Where authorization responses may go.
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// Where the browser may go after sign-out.
    #[serde(default)]
    pub post_logout_redirect_uris: Vec<String>,
    /// The grants that it may use.
    pub grants: Vec<Grant>,
    /// The scopes that it may ask for.
    pub scope: Scope,
    /// The ways in which it may prove who it is.
    pub auth_methods: Vec<AuthMethod>,
    /// Its public keys, for `private_key_jwt`.
    #[serde(default)]
    pub jwks: Option<JwkSet>,
    /// A native application (RFC 8252): the port of its loopback URIs may vary.
    #[serde(default)]
    pub native: bool,
    /// Exempt from PKCE. Never true of a public client.
    #[serde(default)]
    pub pkce_optional: bool,
    /// What its ID tokens are signed with.
    pub id_token_alg: Alg,
    /// What its access tokens look like.
    pub access_format: AccessFormat,
    /// What its access tokens are signed with.
    pub access_alg: Alg,
    /// Says `JWT` instead of `at+jwt` in access tokens, for resource servers that know no better.
    #[serde(default)]
    pub access_typ_jwt: bool,
    /// Audiences of its access tokens; none: the issuer (RFC 8707).
    #[serde(default)]
    pub resources: Vec<String>,
    /// A resource server: may introspect tokens whose audience is one of `resources`.
    #[serde(default)]
    pub resource_server: bool,
    /// Skips the consent page.
    #[serde(default)]
    pub trusted: bool,
    /// May use the account API with screens of its own.
    #[serde(default)]
    pub first_party: bool,
    /// Puts the claims of e-mail, profile and groups into ID tokens too.
    #[serde(default)]
    pub claims_in_id_token: bool,
    /// Leaves the ID token out of refresh answers.
    #[serde(default)]
    pub no_id_token_on_refresh: bool,
    /// Accepts the token endpoint as audience of client assertions.
    #[serde(default)]
    pub assertion_aud_endpoint: bool,
    /// When it was last enabled again: what was issued before stays dead.
    #[serde(default)]
    pub revived_at: Option<Time>,
    /// Since when it may not be used. Kept in a column of its own.
    #[serde(skip)]
    pub disabled_at: Option<Time>,
    /// When it was registered. Kept in a column of its own.
    #[serde(skip, default = "epoch")]
    pub created: Time,
}

fn epoch() -> Time {
    Time(0)
}

impl Client {
    /// Whether it may use `grant`.
    pub fn may(&self, grant: Grant) -> bool {
        self.grants.contains(&grant)
    }
    /// RFC 6749 §2.1: it cannot keep a secret.
    pub fn is_public(&self) -> bool {
        self.auth_methods == [AuthMethod::None]
    }
    /// Since when it has been what it is: what was issued to its name before is none of its business.
    pub fn since(&self) -> Time {
        self.revived_at.map_or(self.created, |revived| revived.max(self.created))
    }
    /// Whether it may be used at all.
    pub fn is_enabled(&self) -> bool {
        self.disabled_at.is_none()
    }
    /// RFC 8252 §8.6: anybody on the same machine can receive at a loopback address or a private scheme, so consent
    /// without interaction proves nothing.
    pub fn is_unassured(&self, redirect: &str) -> bool {
        self.is_public() && !redirect.starts_with("https://")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn confidential(id: &str, redirect: &str) -> Client {
        Client {
            id: id.into(),
            name: id.into(),
            secret: Some(Handle::of("secret")),
            redirect_uris: vec![redirect.into()],
            post_logout_redirect_uris: vec![],
            grants: vec![Grant::AuthorizationCode, Grant::RefreshToken],
            scope: Scope::parse("openid profile email offline_access groups").expect("legal"),
            auth_methods: vec![AuthMethod::Basic, AuthMethod::Post],
            jwks: None,
            native: false,
            pkce_optional: false,
            id_token_alg: Alg::RS256,
            access_format: AccessFormat::Jwt,
            access_alg: Alg::ES256,
            access_typ_jwt: false,
            resources: vec![],
            resource_server: false,
            trusted: false,
            first_party: false,
            claims_in_id_token: false,
            no_id_token_on_refresh: false,
            assertion_aud_endpoint: false,
            revived_at: None,
            disabled_at: None,
            created: Time(0),
        }
    }

    pub(crate) fn native(id: &str, redirect: &str) -> Client {
        Client { secret: None, auth_methods: vec![AuthMethod::None], native: true, ..confidential(id, redirect) }
    }
}
