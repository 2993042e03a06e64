//! The front page, and "Try it": a walk through a whole sign-in, shown step by step.

/// Who looks at the front page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visitor<'a> {
    /// Nobody owns this server yet: set-up is the next step.
    BeforeSetup {
        /// Somebody can sign in nevertheless.
        inhabited: bool,
    },
    /// A user without a session.
    SignedOut,
    /// A user with a session.
    SignedIn {
        /// The display name, or else the username.
        name: &'a str,
        /// Whether this user owns the server.
        owner: bool,
    },
}

impl Visitor<'_> {
    fn is_before_setup(&self) -> bool {
        matches!(self, Visitor::BeforeSetup { .. })
    }

    /// Returns whether this may be the person who runs the server, and connects applications.
    fn may_run_it(&self) -> bool {
        matches!(self, Visitor::BeforeSetup { .. } | Visitor::SignedIn { owner: true, .. })
    }
}

/// `/`.
#[derive(Clone, Copy, Debug)]
pub struct HomePage<'a> {
    /// Who looks at it.
    pub visitor: Visitor<'a>,
    /// The public URL, which is also the issuer, byte for byte.
    pub issuer: &'a str,
    /// Whether "Try it" is offered.
    pub try_it: bool,
}

/// `/try` and `/try/callback`: the same page, on which a script makes the steps. The client is public, its redirect URI
/// is the issuer followed by `/try/callback`, its scopes are `openid profile email`.
#[derive(Clone, Copy, Debug)]
pub struct TryPage<'a> {
    /// The public URL, which is also the issuer, byte for byte.
    pub issuer: &'a str,
    /// The built-in client's id: `portiere-try`.
    pub client_id: &'a str,
}

super::page!(HomePage<'_>, "home.html");
super::page!(TryPage<'_>, "try.html");
