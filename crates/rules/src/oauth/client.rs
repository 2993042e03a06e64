//! Applications, the clients of OAuth.

mod stored;

use super::error::{Code, Error};
use super::scope::Scope;
use crate::Fresh;
use crate::fresh::time_of;
use crate::id::{ClientId, LifeId};
use crate::jose::{Alg, JwkSet};
use crate::realm::{Realm, SKEW};
use crate::secret::Handle;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }
        impl $name {
            /// Every variant.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            /// Its registered name.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
            /// Returns the variant of that name.
            pub fn parse(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.name() == name)
            }
        }
    };
}

named! {
    /// How a client obtains tokens (`grant_type`).
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
    /// How a client proves who it is (`token_endpoint_auth_method`).
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
    /// The format of an access token.
    AccessFormat {
        /// A signed JWT (RFC 9068).
        Jwt = "jwt",
        /// A random value that only introspection explains.
        Opaque = "opaque",
    }
}

/// Why a disabled client may not be used.
const DISABLED: &str = "the client is disabled";
/// Why a client may not be used of which this version knows only a part: the unknown part may be a restriction.
const LATER: &str = "the client has settings that only a newer version knows";

/// A client as registered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Client {
    /// Its `client_id`.
    pub id: ClientId,
    /// The name that people know it by.
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
    /// The algorithm that its ID tokens are signed with.
    pub id_token_alg: Alg,
    /// The format of its access tokens.
    pub access_format: AccessFormat,
    /// The algorithm that its access tokens are signed with.
    pub access_alg: Alg,
    /// Says `JWT` instead of `at+jwt` in access tokens, for resource servers that know no better.
    #[serde(default)]
    pub access_typ_jwt: bool,
    /// Audiences of its access tokens; none means the issuer (RFC 8707).
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
    /// When it was last enabled again: whatever was issued before stays dead.
    #[serde(default)]
    pub revived_at: Option<Time>,
    /// Its current life; none if a previous release registered it. Kept in a column of its own.
    #[serde(skip)]
    pub life: Option<LifeId>,
    /// Since when it is disabled. Kept in a column of its own.
    #[serde(skip)]
    pub disabled_at: Option<Time>,
    /// When it was registered. Kept in a column of its own.
    #[serde(skip, default = "epoch")]
    pub created: Time,
    /// The realm's epoch of its last change, which tells it from what it was before. Kept in a column of its own.
    #[serde(skip)]
    pub epoch: i64,
    /// Fields of a later version that this one does not know, as during an upgrade of the nodes: they stay as they are.
    #[serde(flatten)]
    pub later: Map<String, Value>,
    /// Fields with a value that only a later version knows (a grant, an algorithm), whole and as stored; they are
    /// written back like that. The fields above hold the known part, and the client [may not be used](Client::refusal).
    #[serde(skip)]
    pub unknown: Map<String, Value>,
}

fn epoch() -> Time {
    Time(0)
}

impl Client {
    /// Returns a client that was granted nothing, and is otherwise as clients usually are.
    pub fn new(id: impl Into<ClientId>, redirect_uris: Vec<String>) -> Self {
        let id = id.into();
        Client {
            name: id.0.clone(),
            id,
            secret: None,
            redirect_uris,
            post_logout_redirect_uris: Vec::new(),
            grants: Vec::new(),
            scope: Scope::default(),
            auth_methods: Vec::new(),
            jwks: None,
            native: false,
            pkce_optional: false,
            id_token_alg: Alg::RS256,
            access_format: AccessFormat::Jwt,
            access_alg: Alg::ES256,
            access_typ_jwt: false,
            resources: Vec::new(),
            resource_server: false,
            trusted: false,
            first_party: false,
            claims_in_id_token: false,
            no_id_token_on_refresh: false,
            assertion_aud_endpoint: false,
            revived_at: None,
            life: None,
            disabled_at: None,
            created: Time(0),
            epoch: 0,
            later: Map::new(),
            unknown: Map::new(),
        }
    }
    /// Whether it may use `grant`.
    pub fn may(&self, grant: Grant) -> bool {
        self.grants.contains(&grant)
    }
    /// The same, as the token endpoint says it (RFC 6749 §5.2): before anything else, or a client would take a fault of
    /// its registration for one of what it presents.
    pub fn registered_for(&self, grant: Grant) -> Result<(), Error> {
        match self.may(grant) {
            true => Ok(()),
            false => Err(Error::new(Code::UnauthorizedClient, "the client is not registered for this grant")),
        }
    }
    /// Whether it cannot keep a secret (RFC 6749 §2.1).
    pub fn is_public(&self) -> bool {
        self.auth_methods == [AuthMethod::None]
    }
    /// Whether its proof says that it is the client, and no other program: not if it is public, nor with a secret that
    /// is in every copy of a native application (RFC 8252 §8.5).
    pub fn proves_itself(&self) -> bool {
        !self.is_public() && !self.native
    }
    /// Returns the client as newly registered: it owns nothing that was issued before to another client of this id.
    #[must_use]
    pub fn registered(self, now: Time, fresh: &Fresh) -> Self {
        Client { created: now, revived_at: None, life: Some(fresh.life(now)), ..self }
    }
    /// Returns the client enabled again: whatever was issued to it before stays dead.
    #[must_use]
    pub fn revived(self, now: Time, fresh: &Fresh) -> Self {
        let at = now.max(self.since() + Span(1));
        Client { disabled_at: None, revived_at: Some(at), life: Some(fresh.life(at)), ..self }
    }
    /// Returns the client, whose users are asked from now on: whatever was issued without asking them stays dead.
    #[must_use]
    pub fn distrusted(self, now: Time, fresh: &Fresh) -> Self {
        Client { disabled_at: self.disabled_at, ..self.revived(now, fresh) }
    }
    /// Since when it has been what it is now, by the clock of some node.
    fn since(&self) -> Time {
        self.revived_at.map_or(self.created, |revived| revived.max(self.created))
    }
    /// The life that everything issued to it belongs to. None if a previous release registered it, or was the last to
    /// enable it again.
    pub fn life(&self) -> Option<&LifeId> {
        self.life.as_ref().filter(|life| time_of(life.as_str()) == self.since())
    }
    /// Whether a token issued to its id was issued to the client as it is now: in its current life. If a previous
    /// release issued the token, the time decides: it must be later than any clock may have been when this life began.
    pub fn owns(&self, life: Option<&LifeId>, issued: Time) -> bool {
        match (self.life(), life) {
            (Some(own), Some(life)) => own == life,
            (Some(_), None) => issued > self.since() + SKEW + SKEW,
            (None, Some(_)) => false,
            (None, None) => issued >= self.since(),
        }
    }
    /// Whether somebody disabled it.
    pub fn is_disabled(&self) -> bool {
        self.disabled_at.is_some()
    }
    /// Whether it may send a request without a PKCE challenge (RFC 9700 §2.1.1).
    pub(crate) fn may_leave_out_pkce(&self, realm: &Realm) -> bool {
        self.proves_itself() && (self.pkce_optional || realm.settings.pkce_optional)
    }
    /// Why it may not be used at all, if that is so.
    pub fn refusal(&self) -> Option<&'static str> {
        match (self.is_disabled(), self.unknown.is_empty()) {
            (true, _) => Some(DISABLED),
            (false, false) => Some(LATER),
            (false, true) => None,
        }
    }
    /// Whether it may be used at all.
    pub fn is_enabled(&self) -> bool {
        self.refusal().is_none()
    }
    /// Whether consent without interaction would prove nothing: at a loopback address or a private scheme, anybody on
    /// the same machine can receive the answer (RFC 8252 §8.6).
    pub(crate) fn is_unassured(&self, redirect: &str) -> bool {
        !self.proves_itself() && !redirect.starts_with("https://")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn confidential(id: &str, redirect: &str) -> Client {
        Client {
            secret: Some(Handle::of("secret")),
            grants: vec![Grant::AuthorizationCode, Grant::RefreshToken],
            scope: Scope::parse("openid profile email offline_access groups").expect("legal"),
            auth_methods: vec![AuthMethod::Basic, AuthMethod::Post],
            ..Client::new(id, vec![redirect.into()])
        }
    }

    pub(crate) fn native(id: &str, redirect: &str) -> Client {
        Client { secret: None, auth_methods: vec![AuthMethod::None], native: true, ..confidential(id, redirect) }
    }

    const T: Time = Time(1_700_000_000_000);

    fn fresh(seed: u8) -> Fresh {
        Fresh::new([seed; 32])
    }

    #[test]
    fn what_was_issued_belongs_to_one_life_whatever_the_clocks_say() {
        // red where `owns` looks at the time although both have a life, or without what clocks may differ by.
        let first = confidential("svc", "https://svc.test/cb").registered(T, &fresh(1));
        let later = [
            // Enabled again, or removed and registered again, by a clock that is behind, the same or ahead.
            first.clone().revived(T - SKEW, &fresh(2)),
            first.clone().revived(T, &fresh(3)),
            first.clone().revived(T + SKEW, &fresh(4)),
            first.clone().registered(T - SKEW, &fresh(5)),
            first.clone().registered(T, &fresh(6)),
        ];
        let own = |client: &Client| client.life().cloned();
        for issued in [T - SKEW, T, T + SKEW, T + SKEW + SKEW] {
            assert!(first.owns(own(&first).as_ref(), issued));
            for next in &later {
                assert!(!next.owns(own(&first).as_ref(), issued), "{next:?}");
                assert!(!first.owns(own(next).as_ref(), issued));
                assert!(next.owns(own(next).as_ref(), issued));
            }
        }
    }

    #[test]
    fn what_a_later_version_keeps_is_still_there_once_this_one_has_changed_something() {
        // red without `later`: a setting that restricts a client would vanish with the first change at an older node.
        let text = serde_json::to_string(&confidential("svc", "https://svc.test/cb")).expect("json");
        let text = text.replacen('{', "{\"only_from\":[\"192.0.2.0/24\"],", 1);
        let read: Client = serde_json::from_str(&text).expect("known by its other fields");
        let kept = serde_json::to_value(Client { trusted: true, ..read }).expect("json");
        assert_eq!((&kept["only_from"][0], &kept["trusted"]), (&"192.0.2.0/24".into(), &true.into()));
    }

    #[test]
    fn what_programs_of_before_registered_and_issued_goes_on() {
        let old = Client { created: T, ..confidential("svc", "https://svc.test/cb") };
        assert!(old.owns(None, T) && !old.owns(None, T - Span(1)));
        // A previous release issues to a client that has a life.
        let new = old.clone().registered(T, &fresh(1));
        assert!(new.owns(None, T + SKEW + SKEW + Span(1)) && !new.owns(None, T + SKEW + SKEW));
        // A previous release enables such a client again: it leaves the column alone.
        let enabled = Client { revived_at: Some(T + Span::hours(1)), ..new.clone() };
        assert!(!enabled.owns(new.life(), T + Span::hours(2)), "what was issued before");
        assert!(enabled.owns(enabled.life(), T + Span::hours(2)), "what is issued since");
        assert!(!enabled.owns(None, T + Span::minutes(59)));
    }
}
