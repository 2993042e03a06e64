//! A realm: an issuer with its own people, clients, keys and settings.

use crate::id::RealmId;
use crate::login::throttle;
use crate::time::{Span, Time};

/// An issuer and its rules of the house.
#[derive(Clone, Debug)]
pub struct Realm {
    /// The key of everything that belongs to it.
    pub id: RealmId,
    /// The issuer identifier, byte for byte as configured (OpenID Connect Core §2, `iss`).
    pub issuer: String,
    /// How long things live and what is allowed.
    pub settings: Settings,
}

/// What this is called wherever it runs.
pub const PRODUCT: &str = "Portiere";

/// How far a clock may be off.
pub const SKEW: Span = Span::seconds(60);

/// Whether `dated` can be the time of something that has happened, by a clock as far ahead as the one that says `now` may be
/// behind. What a clock dated that was wrong would be fresh until then, and outlive what it should.
pub fn is_believable(dated: Time, now: Time) -> bool {
    dated <= now + SKEW + SKEW
}

/// Whether what is good for `lives`, and ends then, is good now: no clock that was right gives one that ends later.
pub fn lasts(expires: Time, lives: Span, now: Time) -> bool {
    !expires.has_come(now) && is_believable(expires - lives, now)
}

/// What an operator may choose for a realm.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Lifetime of access tokens.
    pub access_ttl: Span,
    /// Lifetime of ID tokens.
    pub id_ttl: Span,
    /// Lifetime of authorization codes.
    pub code_ttl: Span,
    /// A refresh token unused for so long is dead.
    pub refresh_idle: Span,
    /// A family of refresh tokens is dead so long after its start, used or not.
    pub refresh_absolute: Span,
    /// How long the immediate predecessor of a refresh token still yields the same successor; zero: not at all.
    pub refresh_grace: Span,
    /// Lifetime of device codes.
    pub device_ttl: Span,
    /// A session unused for so long is dead.
    pub session_idle: Span,
    /// A session is dead so long after sign-in, used or not.
    pub session_absolute: Span,
    /// How long somebody may take over the pages between an authorization request and its answer.
    pub flow_ttl: Span,
    /// Whether confidential clients may leave PKCE out (RFC 9700 §2.1.1 recommends that they do not).
    pub pkce_optional: bool,
    /// Whether strangers may make accounts.
    pub signup: bool,
    /// What the realm calls itself on its pages.
    pub brand: String,
    /// Fewest characters of a new password.
    pub password_min: usize,
    /// How guessers are slowed.
    pub throttle: throttle::Policy,
    /// How often the last use of a session is written down.
    pub touch_every: Span,
    /// How far clocks of others may differ from ours.
    pub skew: Span,
    /// How long a sign-in may wait for its hash.
    pub hash_wait: Span,
    /// Requests a second of one client that authenticates; 0 for no limit.
    pub client_rate: u32,
    /// Whether a password hash that is older than today's policy is replaced when its owner signs in.
    pub hash_upgrade: bool,
}

impl Settings {
    /// Until when it has to be remembered that something is refused which nobody believes from `dead` on: the clock by which
    /// that is forgotten may be ahead, and the one by which it is believed behind.
    pub fn remembered(&self, dead: Time) -> Time {
        dead + self.skew + self.skew
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            access_ttl: Span::minutes(15),
            id_ttl: Span::minutes(15),
            code_ttl: Span::seconds(60),
            refresh_idle: Span::days(30),
            refresh_absolute: Span::days(90),
            refresh_grace: Span::seconds(10),
            device_ttl: Span::minutes(10),
            session_idle: Span::hours(24),
            session_absolute: Span::days(30),
            flow_ttl: Span::hours(1),
            pkce_optional: false,
            signup: false,
            brand: PRODUCT.to_owned(),
            password_min: 8,
            throttle: throttle::Policy::default(),
            touch_every: Span::minutes(5),
            skew: SKEW,
            hash_wait: Span::seconds(3),
            client_rate: 0,
            hash_upgrade: true,
        }
    }
}
