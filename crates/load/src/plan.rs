//! What to measure: the target, the work, how hard and for how long.

use crate::Refusal;
use crate::chance;
use crate::cpu;
use crate::interrupt::Interrupt;
use crate::schedule::Schedule;
use crate::visitor::Step;
use crate::wire::{Reach, Url};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::ValueEnum;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// A whole measurement.
#[derive(Clone)]
pub struct Plan {
    /// The provider: the base URL of its `/.well-known/openid-configuration`.
    pub target: Url,
    /// The addresses that load may go to: by default only this machine.
    pub reach: Arc<Reach>,
    /// What each visitor does over and over.
    pub workload: Workload,
    /// When a visitor starts its next iteration.
    pub pace: Pace,
    /// How the pace changes over the window.
    pub shape: Shape,
    /// How the starts of an open loop are spaced.
    pub arrivals: Arrivals,
    /// How long the load runs before the window; nothing in this time is counted.
    pub warmup: Duration,
    /// The window in which everything is counted.
    pub duration: Duration,
    /// The longest that a single request may take.
    pub timeout: Duration,
    /// True if a refused visitor stays away for as long as the server asked; otherwise it retries at once.
    pub heeds_retry_after: bool,
    /// The upper limit of generator threads; see [`Plan::threads`].
    pub threads: usize,
    /// The client that the visitors use.
    pub client: Client,
    /// The client that introspects tokens, if not `client`: an API that they are for. Only its id and proof are used.
    pub introspector: Option<Client>,
    /// The users who sign in, in turn.
    pub users: Vec<User>,
    /// The processes whose CPU time counts as the server's.
    pub server_pids: Vec<u32>,
    /// W1 ends before the refresh step.
    pub without_refresh: bool,
    /// Userinfo replaces introspection.
    pub without_introspection: bool,
    /// Userinfo and the pages replace the account API.
    pub without_account_api: bool,
    /// How long the server may take to answer again, where a similar plan ran before and the server may still be busy
    /// with its load. `None` where no such plan ran: what goes wrong at first is then a mistake.
    pub recovery: Option<Duration>,
    /// The handle through which the run may be ended early.
    pub interrupt: Interrupt,
}

/// What one iteration of a visitor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// W1: sign-in page, password, code, introspection, refresh; cookies are cleared at each start.
    Flow,
    /// W1 with the session of an earlier sign-in: no page and no password, four requests.
    Session,
    /// Fetches the key set.
    Jwks,
    /// Introspects one access token per visitor (RFC 7662).
    Introspect,
    /// Requests userinfo with one access token per visitor.
    Userinfo,
    /// Uses the client credentials grant.
    ClientCredentials,
    /// Uses the refresh grant: one token family per visitor, rotated each time.
    Refresh,
    /// Requests a device code and polls once.
    Device,
    /// Creates an account through Portiere's account API.
    SignUp,
    /// Signs in through that API, or through the pages where the provider has no such API.
    SignIn,
    /// Reads the account through that API, or userinfo where the provider has no such API.
    Profile,
    /// W2: 70 % userinfo, 20 % device authorization with a poll, 10 % account.
    Traffic,
    /// W5: sign-in 5 %, refresh 30 %, introspection 40 %, userinfo 15 %, keys and metadata 9 %, account 1 %, by users
    /// some of whom come far more often than others.
    Day,
}

impl Workload {
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Workload::Flow => "w1",
            Workload::Session => "w1 without password",
            Workload::Jwks => "jwks",
            Workload::Introspect => "introspect",
            Workload::Userinfo => "userinfo",
            Workload::ClientCredentials => "client_credentials",
            Workload::Refresh => "refresh",
            Workload::Device => "device",
            Workload::SignUp => "sign_up",
            Workload::SignIn => "sign_in",
            Workload::Profile => "profile",
            Workload::Traffic => "w2",
            Workload::Day => "w5",
        }
    }

    /// Returns the steps of an iteration, in order.
    pub const fn steps(self) -> &'static [Step] {
        match self {
            Workload::Flow => &[Step::Authorize, Step::Login, Step::Token, Step::Introspect, Step::Refresh],
            Workload::Session => &[Step::Authorize, Step::Token, Step::Introspect, Step::Refresh],
            Workload::Jwks => &[Step::Jwks],
            Workload::Introspect => &[Step::Introspect],
            Workload::Userinfo => &[Step::Userinfo],
            Workload::ClientCredentials => &[Step::ClientCredentials],
            Workload::Refresh => &[Step::Refresh],
            Workload::Device => &[Step::Device, Step::Poll],
            Workload::SignUp => &[Step::SignUp],
            Workload::SignIn => &[Step::SignIn, Step::Authorize, Step::Login, Step::Token],
            Workload::Profile => &[Step::Account, Step::Userinfo],
            Workload::Traffic => &[Step::Userinfo, Step::Device, Step::Poll, Step::Account],
            Workload::Day => &[
                Step::Authorize,
                Step::Login,
                Step::Token,
                Step::Refresh,
                Step::Introspect,
                Step::Userinfo,
                Step::Jwks,
                Step::Discovery,
                Step::Account,
            ],
        }
    }

    /// Returns true if a visitor signs in before its first iteration, to hold tokens.
    pub const fn holds_tokens(self) -> bool {
        use Workload::{Day, Introspect, Profile, Refresh, Session, Traffic, Userinfo};
        matches!(self, Session | Introspect | Userinfo | Refresh | Profile | Traffic | Day)
    }

    /// Returns true if the account API is used where the provider has one.
    pub const fn wants_account(self) -> bool {
        matches!(self, Workload::SignUp | Workload::SignIn | Workload::Profile | Workload::Traffic | Workload::Day)
    }

    /// Returns true if iterations check passwords.
    const fn has_passwords(self) -> bool {
        matches!(self, Workload::Flow | Workload::SignIn | Workload::Day)
    }

    /// Returns true if a user has to sign in, before or during an iteration.
    const fn has_people(self) -> bool {
        !matches!(self, Workload::Jwks | Workload::ClientCredentials | Workload::Device)
    }
}

/// When the next iteration starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each visitor starts again when it has finished and paused: the server sets the rate.
    Closed {
        /// Virtual users.
        visitors: usize,
        /// The time between the end of an iteration and the start of the next.
        pause: Duration,
    },
    /// Iterations start on a schedule, whatever the answers do. Latency counts from the scheduled start, so a stall of
    /// the server counts for every iteration that waited (no coordinated omission).
    Open {
        /// Iterations a second.
        rate: f64,
        /// The most iterations in flight at once; a start that finds no free visitor waits, and its latency grows.
        visitors: usize,
    },
}

/// How the users or the rate of a [`Pace`] change over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Not at all.
    #[default]
    Steady,
    /// They climb for this long from the beginning of the window, then stay.
    Ramp(Duration),
    /// The window is a day with its peak in the morning; the rate is the mean. Only for open loops.
    Day,
}

/// How the starts of an open loop are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Arrivals {
    /// Evenly: each start follows the previous one by the interval of the rate
    #[default]
    Even,
    /// At random, as independent people come; the same starts in every run
    Poisson,
}

impl Pace {
    /// Returns the number of virtual users.
    pub const fn visitors(self) -> usize {
        match self {
            Pace::Closed { visitors, .. } | Pace::Open { visitors, .. } => visitors,
        }
    }

    /// Returns the time between the end of an iteration and the start of the next; zero in an open loop.
    pub const fn pause(self) -> Duration {
        match self {
            Pace::Closed { pause, .. } => pause,
            Pace::Open { .. } => Duration::ZERO,
        }
    }
}

impl std::fmt::Display for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Pace::Closed { visitors, pause } if pause.is_zero() => write!(f, "closed loop, {visitors} users, no pause"),
            Pace::Closed { visitors, pause } => write!(f, "closed loop, {visitors} users, pause {pause:?}"),
            Pace::Open { rate, visitors } => {
                // One decimal, or two if the rate is below one.
                let unit = if *rate < 1.0 { 100.0 } else { 10.0 };
                write!(f, "open loop, {}/s, at most {visitors} at once", (rate * unit).round() / unit)
            }
        }
    }
}

/// A user who can sign in.
#[derive(Clone)]
pub struct User {
    /// The value of the first field.
    pub login: String,
    /// The value of the second field.
    pub password: String,
}

/// Reads lines `login:password`; the password may hold colons, empty lines are skipped. So is a byte order mark at the
/// beginning, which some editors write: nobody sees that it belongs to the first name.
///
/// # Errors
/// [`Refusal::Use`] with the number of the line that has no colon.
pub fn users(text: &str) -> Result<Vec<User>, Refusal> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
    let read = |(at, line): (usize, &str)| {
        let (login, password) = line
            .split_once(':')
            .ok_or_else(|| Refusal::Use(format!("line {} of the users is not `login:password`", at + 1)))?;
        Ok(User { login: login.to_owned(), password: password.to_owned() })
    };
    lines.map(read).collect()
}

/// How the client authenticates (RFC 6749 §2.3.1).
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Proof {
    /// `client_secret_basic`.
    Basic(String),
    /// `client_secret_post`.
    Post(String),
    /// A public client: it states only its id.
    #[default]
    Nothing,
}

/// The relying party that the visitors come from.
#[derive(Clone, Default)]
pub struct Client {
    /// `client_id`.
    pub id: String,
    /// How it authenticates at the token and introspection endpoints.
    pub proof: Proof,
    /// Where codes are sent; nothing listens there, because the visitor does not follow that redirect.
    pub redirect_uri: String,
    /// The scope requested at the authorization endpoint.
    pub scope: String,
    /// The scope requested with the client's own credentials, if any.
    pub own_scope: Option<String>,
    /// Further parameters for the authorization endpoint, such as `prompt` and `audience`.
    pub parameters: Vec<(String, String)>,
    /// Further parameters for the token endpoint, such as `audience` and `resource`.
    pub token_parameters: Vec<(String, String)>,
}

impl Client {
    /// The `Authorization` header, for a client that uses one: id and secret are form-encoded first (RFC 6749 §2.3.1).
    pub fn authorization(&self) -> Option<String> {
        let Proof::Basic(secret) = &self.proof else { return None };
        let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        Some(format!("Basic {}", STANDARD.encode(format!("{}:{}", encode(&self.id), encode(secret)))))
    }

    /// Returns the fields of the body that identify or authenticate the client.
    pub fn fields(&self) -> Vec<(&str, &str)> {
        match &self.proof {
            Proof::Basic(_) => vec![],
            Proof::Post(secret) => vec![("client_id", &self.id), ("client_secret", secret)],
            Proof::Nothing => vec![("client_id", &self.id)],
        }
    }

    /// Whether the scope asks for authentication, so that there is an ID token (OpenID Connect Core §3.1.2.1).
    pub fn asks_for_id_token(&self) -> bool {
        self.scope.split(' ').any(|scope| scope == "openid")
    }
}

/// Formats a number of accounts with its noun.
fn counted(accounts: usize) -> String {
    format!("{accounts} {}", if accounts == 1 { "account" } else { "accounts" })
}

impl Plan {
    /// Returns the name in reports: a plan that leaves out the refresh is another workload.
    pub fn name(&self) -> String {
        let refresh = if self.without_refresh { ", without refresh" } else { "" };
        format!("{}{refresh}", self.workload.name())
    }

    /// Returns the number of generator threads, which share visitors and starts: each of them has at least one visitor.
    pub fn threads(&self) -> usize {
        self.threads.min(self.pace.visitors())
    }

    /// Returns the number of different accounts that people sign in with; `None` where nobody signs in.
    pub fn accounts(&self) -> Option<usize> {
        let logins = || self.users.iter().map(|user| user.login.as_str()).collect::<HashSet<_>>();
        // A sign-up creates an account: it uses none of these.
        let signs_in = self.workload.has_people() && self.workload != Workload::SignUp;
        signs_in.then(|| logins().len())
    }

    /// Says how too few accounts may distort the result, if they do: a server treats each account separately.
    pub fn scarcity(&self) -> Option<String> {
        /// Below this number of accounts, a server keeps far less data per account than for a real service.
        const MANY: usize = 1000;
        /// With more users per account than this, a server may make them wait for each other.
        const EACH: usize = 4;
        let accounts = self.accounts().filter(|_| self.workload.has_passwords())?;
        let (users, of) = (self.pace.visitors(), counted(accounts));
        if users > EACH * accounts {
            return Some(format!(
                "{users} users share {of}: where a server lets few attempts at a time through for each (Portiere {EACH}), that limit is \
                 measured, and not the machine's"
            ));
        }
        let few = format!(
            "{of} to sign in with: a server that keeps something by account has to do with few of them (--users with 1,000)"
        );
        (accounts < MANY).then_some(few)
    }

    /// Says which address the load goes to, if it is not the address that the target's name resolves to.
    pub fn place(&self) -> Option<String> {
        let address = self.reach.instead()?.first()?;
        Some(format!("connected to {address} in place of {}", self.target.authority()))
    }

    /// Returns when a visitor of a closed loop begins, counted from the beginning of the warm-up.
    pub fn joins(&self, visitor: usize) -> Duration {
        match self.shape {
            Shape::Ramp(time) if visitor > 0 => {
                self.warmup + time.mul_f64(visitor as f64 / self.pace.visitors() as f64)
            }
            _ => Duration::ZERO,
        }
    }

    /// Returns the CPU time that the server's processes have used so far; zero if none are named.
    ///
    /// # Errors
    /// [`Refusal::Use`] if it cannot be read for one of them.
    pub(crate) fn server_time(&self) -> Result<Duration, Refusal> {
        let pids = &self.server_pids;
        cpu::of_processes(pids)
            .ok_or_else(|| Refusal::Use(format!("cannot read the CPU time of {pids:?}: no such process, or no /proc")))
    }

    /// Checks for what cannot work, before anything is sent.
    ///
    /// # Errors
    /// [`Refusal::Use`] with the first problem found.
    pub fn check(&self) -> Result<(), Refusal> {
        let target = &self.target;
        self.reach.addresses(target).map_err(|wrong| Refusal::Use(format!("{target}: {wrong}")))?;
        self.server_time()?;
        let open = match self.pace {
            Pace::Open { rate, .. } => Some(rate),
            Pace::Closed { .. } => None,
        };
        let problems = [
            (self.pace.visitors() == 0, "at least one virtual user is needed"),
            (self.threads == 0, "at least one thread is needed"),
            (self.duration.is_zero(), "the duration is zero"),
            (self.timeout.is_zero(), "the timeout is zero"),
            (open.is_some_and(|rate| rate.is_nan() || rate <= 0.0), "the rate must be above zero"),
            // So that the starts of the longest run can be counted.
            (open.is_some_and(|rate| rate > chance::MOST), "the rate must be at most 100 million per second"),
            (self.workload != Workload::Jwks && self.client.id.is_empty(), "this workload needs --client"),
            (self.workload.has_people() && self.client.redirect_uri.is_empty(), "this workload needs --redirect-uri"),
            (self.workload.has_people() && self.users.is_empty(), "this workload needs --users with at least one line"),
            (
                matches!(self.shape, Shape::Ramp(time) if time.is_zero() || time > self.duration),
                "the ramp must be longer than zero and no longer than --duration",
            ),
            (self.shape == Shape::Day && open.is_none(), "w5 needs --rate"),
            (
                Schedule::is_beyond_chance(self),
                "--arrivals poisson takes at most 100 million starts: lower --rate, or shorten --duration",
            ),
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
pub(crate) mod tests;
