//! A realm: an issuer with its own people, clients, keys and settings.

use crate::id::RealmId;
use crate::login::throttle;
use crate::time::{Span, Time};

/// An issuer and its settings.
#[derive(Clone, Debug)]
pub struct Realm {
    /// The id by which everything that belongs to the realm is keyed.
    pub id: RealmId,
    /// The issuer identifier, byte for byte as configured (OpenID Connect Core §2, `iss`).
    pub issuer: String,
    /// Lifetimes, and what is allowed.
    pub settings: Settings,
}

/// The name of the product, the same wherever it runs.
pub const PRODUCT: &str = "Portiere";

/// How far a clock may be off.
pub const SKEW: Span = Span::seconds(60);

/// Whether `dated` can be the time of something that has happened, if the clock that set it is ahead by [`SKEW`] and
/// the clock that says `now` is as far behind. A later date comes from a wrong clock, and would outlive what it should.
pub fn is_believable(dated: Time, now: Time) -> bool {
    dated <= now + SKEW + SKEW
}

/// Whether something that is valid for `lives` and ends at `expires` is valid now; no correct clock sets a later end.
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
    /// How long a refresh token may go unused before it expires.
    pub refresh_idle: Span,
    /// How long after its start a family of refresh tokens expires, used or not.
    pub refresh_absolute: Span,
    /// How long the immediate predecessor of a refresh token still yields the same successor; zero: not at all.
    pub refresh_grace: Span,
    /// Lifetime of device codes.
    pub device_ttl: Span,
    /// How long a session may go unused before it expires.
    pub session_idle: Span,
    /// How long after sign-in a session expires, used or not.
    pub session_absolute: Span,
    /// How long a user may take over the pages between an authorization request and its answer.
    pub flow_ttl: Span,
    /// Whether confidential clients may omit PKCE (RFC 9700 §2.1.1 recommends that they do not).
    pub pkce_optional: bool,
    /// Whether strangers may create accounts.
    pub signup: bool,
    /// What the realm calls itself on its pages.
    pub brand: String,
    /// The least number of characters in a new password.
    pub password_min: usize,
    /// How guessers are slowed down.
    pub throttle: throttle::Policy,
    /// How often the last use of a session is written down.
    pub touch_every: Span,
    /// How far clocks of others may differ from ours.
    pub skew: Span,
    /// How long a sign-in may wait for its hash.
    pub hash_wait: Span,
    /// Rate limit for one client that authenticates, in requests per second; 0 for no limit.
    pub client_rate: u32,
    /// Whether a password hash older than today's policy is replaced when its owner signs in.
    pub hash_upgrade: bool,
}

impl Settings {
    /// Until when the server must remember to refuse something that is invalid by itself from `dead` on: the clock that
    /// lets it forget may be ahead, and the clock that judges the thing's age may be behind.
    pub fn remembered(&self, dead: Time) -> Time {
        dead + self.skew + self.skew
    }
    /// What the slowest clock may say when this one says `now`, if this one is ahead: what is over by that is over.
    pub fn by_the_slowest(&self, now: Time) -> Time {
        now - self.skew - self.skew
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
