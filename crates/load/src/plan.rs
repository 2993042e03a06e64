//! What is to be measured, against whom, how hard and for how long.

use crate::Refusal;
use crate::visitor::Step;
use crate::wire::Url;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::time::Duration;

/// A whole measurement.
#[derive(Clone)]
pub struct Plan {
    /// The provider: the base of its `/.well-known/openid-configuration`. Loopback only.
    pub target: Url,
    /// What each visitor does over and over.
    pub workload: Workload,
    /// How visitors follow one another.
    pub pace: Pace,
    /// Runs before the window and is not counted.
    pub warmup: Duration,
    /// The window in which everything is counted.
    pub duration: Duration,
    /// The longest that a single request may take.
    pub timeout: Duration,
    /// True when a refused visitor stays away as long as it was asked to; otherwise it comes straight back.
    pub heeds_retry_after: bool,
    /// Threads of the generator; the visitors are divided among them.
    pub threads: usize,
    /// The client that the visitors use.
    pub client: Client,
    /// Who signs in, in turn.
    pub users: Vec<User>,
    /// Processes whose CPU time is the server's.
    pub server_pids: Vec<u32>,
}

/// One iteration of a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// W1: sign-in page, password, code, introspection, refresh; cookies cleared at each start.
    Flow,
    /// W1 with the session of one sign-in before it: no page and no password, four requests.
    Session,
    /// The key set.
    Jwks,
    /// RFC 7662 on one access token per visitor.
    Introspect,
    /// Userinfo with one access token per visitor.
    Userinfo,
    /// The client credentials grant.
    ClientCredentials,
    /// The refresh grant: one family per visitor, rotated each time.
    Refresh,
}

impl Workload {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Workload::Flow => "w1",
            Workload::Session => "w1 without password",
            Workload::Jwks => "jwks",
            Workload::Introspect => "introspect",
            Workload::Userinfo => "userinfo",
            Workload::ClientCredentials => "client_credentials",
            Workload::Refresh => "refresh",
        }
    }

    /// The steps of an iteration, in order.
    pub const fn steps(self) -> &'static [Step] {
        match self {
            Workload::Flow => &[Step::Authorize, Step::Login, Step::Token, Step::Introspect, Step::Refresh],
            Workload::Session => &[Step::Authorize, Step::Token, Step::Introspect, Step::Refresh],
            Workload::Jwks => &[Step::Jwks],
            Workload::Introspect => &[Step::Introspect],
            Workload::Userinfo => &[Step::Userinfo],
            Workload::ClientCredentials => &[Step::ClientCredentials],
            Workload::Refresh => &[Step::Refresh],
        }
    }

    /// True when somebody has to sign in, before or during an iteration.
    pub const fn has_people(self) -> bool {
        !matches!(self, Workload::Jwks | Workload::ClientCredentials)
    }
}

/// When the next iteration starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each visitor starts again when it has finished and paused: the server sets the rate.
    Closed {
        /// Virtual users.
        visitors: usize,
        /// Between the end of an iteration and the start of the next.
        pause: Duration,
    },
    /// Iterations start on a schedule whatever the answers do; latency counts from the scheduled start, so that a server that
    /// stalls is charged for everybody who waited (no coordinated omission).
    Open {
        /// Iterations a second.
        rate: f64,
        /// The most that may be under way at once; a start that finds nobody free waits, and its latency grows.
        visitors: usize,
    },
}

impl Pace {
    /// Virtual users.
    pub const fn visitors(self) -> usize {
        match self {
            Pace::Closed { visitors, .. } | Pace::Open { visitors, .. } => visitors,
        }
    }
}

impl std::fmt::Display for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Pace::Closed { visitors, pause } if pause.is_zero() => write!(f, "closed loop, {visitors} users, no pause"),
            Pace::Closed { visitors, pause } => write!(f, "closed loop, {visitors} users, pause {pause:?}"),
            Pace::Open { rate, visitors } => write!(f, "open loop, {rate}/s, at most {visitors} at once"),
        }
    }
}

/// Somebody who can sign in.
#[derive(Clone)]
pub struct User {
    /// What goes into the first field.
    pub login: String,
    /// What goes into the second.
    pub password: String,
}

/// Reads lines `login:password`; the password may hold colons, empty lines are skipped.
///
/// # Errors
/// [`Refusal::Use`] with the number of the line that has no colon.
pub fn users(text: &str) -> Result<Vec<User>, Refusal> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
    let read = |(at, line): (usize, &str)| {
        let (login, password) = line
            .split_once(':')
            .ok_or_else(|| Refusal::Use(format!("line {} of the users is not `login:password`", at + 1)))?;
        Ok(User { login: login.to_owned(), password: password.to_owned() })
    };
    lines.map(read).collect()
}

/// How the client proves itself (RFC 6749 §2.3.1).
#[derive(Clone, PartialEq, Eq)]
pub enum Proof {
    /// `client_secret_basic`.
    Basic(String),
    /// `client_secret_post`.
    Post(String),
    /// A public client: only its name.
    Nothing,
}

/// The relying party that the visitors come from.
#[derive(Clone)]
pub struct Client {
    /// `client_id`.
    pub id: String,
    /// How it authenticates at the token and introspection endpoints.
    pub proof: Proof,
    /// Where codes are to arrive; nothing listens there, the visitor stops before.
    pub redirect_uri: String,
    /// Asked at the authorization endpoint.
    pub scope: String,
}

impl Client {
    /// The `Authorization` header, for a client that uses one: id and secret are form-encoded first (RFC 6749 §2.3.1).
    pub fn authorization(&self) -> Option<String> {
        let Proof::Basic(secret) = &self.proof else { return None };
        let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        Some(format!("Basic {}", STANDARD.encode(format!("{}:{}", encode(&self.id), encode(secret)))))
    }

    /// The fields of the body that name or prove the client.
    pub fn fields(&self) -> Vec<(&str, &str)> {
        match &self.proof {
            Proof::Basic(_) => vec![],
            Proof::Post(secret) => vec![("client_id", &self.id), ("client_secret", secret)],
            Proof::Nothing => vec![("client_id", &self.id)],
        }
    }
}

impl Plan {
    /// Looks for what cannot work, before anything is sent.
    ///
    /// # Errors
    /// [`Refusal::Use`], the first thing found.
    pub fn check(&self) -> Result<(), Refusal> {
        let target = &self.target;
        target.addresses().map_err(|wrong| Refusal::Use(format!("{target}: {wrong}")))?;
        let open = match self.pace {
            Pace::Open { rate, .. } => Some(rate),
            Pace::Closed { .. } => None,
        };
        let problems = [
            (self.pace.visitors() == 0, "at least one virtual user is needed"),
            (self.threads == 0, "at least one thread is needed"),
            (self.duration.is_zero(), "the duration is zero"),
            (self.timeout.is_zero(), "the timeout is zero"),
            (open.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)), "the rate must be above zero"),
            (self.workload != Workload::Jwks && self.client.id.is_empty(), "this workload needs --client"),
            (self.workload.has_people() && self.client.redirect_uri.is_empty(), "this workload needs --redirect-uri"),
            (self.workload.has_people() && self.users.is_empty(), "this workload needs --users with at least one line"),
            (
                self.workload == Workload::ClientCredentials && self.client.proof == Proof::Nothing,
                "client_credentials needs a client secret",
            ),
        ];
        match problems.into_iter().find(|(wrong, _)| *wrong) {
            Some((_, why)) => Err(Refusal::Use(why.to_owned())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(proof: Proof) -> Client {
        Client { id: "a:b".to_owned(), proof, redirect_uri: String::new(), scope: String::new() }
    }

    #[test]
    fn a_basic_client_is_encoded_before_base64() {
        let basic = client(Proof::Basic("s/ü".to_owned()));
        assert_eq!(basic.authorization().unwrap(), format!("Basic {}", STANDARD.encode("a%3Ab:s%2F%C3%BC")));
        assert_eq!(basic.fields(), []);
    }

    #[test]
    fn other_clients_stand_in_the_body() {
        let post = client(Proof::Post("s".to_owned()));
        assert_eq!(post.authorization(), None);
        assert_eq!(post.fields(), [("client_id", "a:b"), ("client_secret", "s")]);
        assert_eq!(client(Proof::Nothing).fields(), [("client_id", "a:b")]);
    }

    #[test]
    fn users_are_split_at_the_first_colon() {
        let read = users("ann:a:b\n\nbob:c\n").unwrap();
        assert_eq!((read.len(), read[0].login.as_str(), read[0].password.as_str()), (2, "ann", "a:b"));
        assert!(users("ann:a\nbob\n").err().unwrap().to_string().starts_with("line 2 "));
    }
}
