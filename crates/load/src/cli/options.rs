//! The flags that say what to measure and how, and the plan that they result in.

use super::values::{duration, parameter, read, token_parameter};
use crate::Refusal;
use crate::interrupt::Interrupt;
use crate::plan::{Arrivals, Client, Pace, Plan, Proof, Shape, Workload, users};
use crate::wire::{Reach, Url};
use clap::{Args, ValueEnum, ValueHint};
use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// A secret that is never shown.
#[derive(Clone)]
pub struct Typed(pub String);

impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// What to measure and how.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// What each virtual user does repeatedly; a search takes no w3, w4 or w6
    #[arg(required = true)]
    pub workload: Option<Choice>,
    /// Base URL of the provider
    #[arg(long, value_name = "URL", default_value = "http://localhost:8080", value_hint = ValueHint::Url)]
    pub target: String,
    /// The target is not this machine, but is yours and may be put under load. For endpoints on further hosts, name
    /// each: --i-own-this-host=HOST
    #[arg(long, value_name = "HOST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub i_own_this_host: Vec<String>,
    /// Connect to this address instead of the target's: one node of several, bypassing what is in front of them
    #[arg(long, value_name = "HOST:PORT")]
    pub connect_to: Option<String>,
    /// Trust the certificate authorities in this PEM file, instead of the machine's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ca: Option<PathBuf>,
    /// Client through which the users sign in
    #[arg(long, value_name = "ID")]
    pub client: Option<String>,
    /// Read the client's secret from standard input
    #[arg(long, conflicts_with = "client_secret_file")]
    pub client_secret_stdin: bool,
    /// What was read there, if the program around this has done so: it knows how to ask at a terminal.
    #[arg(skip)]
    pub client_secret: Option<Typed>,
    /// Read the client's secret from a file
    #[arg(long, value_name = "FILE")]
    pub client_secret_file: Option<PathBuf>,
    /// How the client sends its secret; a client without a secret is public
    #[arg(long, value_name = "METHOD", default_value = "basic")]
    pub auth: Auth,
    /// Client that introspects instead: an API that the tokens are for, if the provider lets no other client ask
    #[arg(long, value_name = "ID", requires = "introspect_secret_file", conflicts_with = "no_introspection")]
    pub introspect_client: Option<String>,
    /// Read the secret of that client from a file
    #[arg(long, value_name = "FILE", requires = "introspect_client")]
    pub introspect_secret_file: Option<PathBuf>,
    /// Registered redirect URI; nothing needs to listen there
    #[arg(long, value_name = "URI")]
    pub redirect_uri: Option<String>,
    /// Scope to ask for [default: openid, or with client_credentials what the provider gives by itself]
    #[arg(long)]
    pub scope: Option<String>,
    /// Further parameter for the authorization endpoint, such as prompt=consent; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    pub param: Vec<(String, String)>,
    /// Further parameter for the token endpoint, such as audience=… or resource=…; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = token_parameter)]
    pub token_param: Vec<(String, String)>,
    /// File with a line `login:password` for each user; the users sign in in turn
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// W1 with a session instead of a password
    #[arg(long)]
    pub no_password: bool,
    /// W1 without the refresh, for a client that gets no refresh token
    #[arg(long)]
    pub no_refresh: bool,
    /// Userinfo instead of introspection, for a client that may not introspect
    #[arg(long)]
    pub no_introspection: bool,
    /// Userinfo and the sign-in pages instead of the account API, for a gateway that fails at paths it does not know
    #[arg(long)]
    pub no_account_api: bool,
    /// W3 without sign-ups
    #[arg(long)]
    pub no_sign_ups: bool,
    /// Virtual users; in an open loop, the most at once [default: 20, or what the workload says]
    #[arg(long, value_name = "N")]
    pub vus: Option<usize>,
    /// Pause between iterations, such as 500ms or 1s [default: none, or what the workload says]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "rate")]
    pub pause: Option<Duration>,
    /// Open loop: start this many iterations per second, whatever the answers are
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<f64>,
    /// How the starts of an open loop are spaced
    #[arg(long, value_name = "HOW", default_value = "even")]
    pub arrivals: Arrivals,
    /// Ramp up to --vus users, or to --rate, over this time from the start of the window
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub ramp: Option<Duration>,
    /// Length of the window that is counted
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20s")]
    pub duration: Duration,
    /// Time before the window that is not counted
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "3s")]
    pub warmup: Duration,
    /// Measure this many times, and report how far apart the runs are
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Longest time for one request
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub timeout: Duration,
    /// Threads of the generator
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: usize,
    /// Wait as long as a 503 or 429 asks for, instead of retrying at once
    #[arg(long)]
    pub heed_retry_after: bool,
    /// Process of the server, to count its CPU time; may be given several times
    #[arg(long, value_name = "PID")]
    pub server_pid: Vec<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the result as JSON into a file, for `compare`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Write a report with charts into a file: one HTML page that needs nothing else
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
}

/// Workloads by their name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Choice {
    /// Sign-in page, password, code, introspection, refresh
    W1,
    /// 70 % userinfo, 20 % device authorization and a poll, 10 % account; pauses for 1 s
    W2,
    /// Sign-ups, sign-ins and reads of the account at constant rates
    W3,
    /// W1 offered at 0.5, 1, 2, 5 and 10 times what the server manages, with light requests beside it
    W4,
    /// A day: its mix of requests, some users far more active than others, and a peak in the morning
    W5,
    /// W1, then W5, on as much data as the server has
    W6,
    /// The key set
    Jwks,
    /// Introspection of an access token
    Introspect,
    /// Userinfo with an access token
    Userinfo,
    /// The client credentials grant
    ClientCredentials,
    /// The refresh grant, rotating
    Refresh,
    /// Device authorization, and a poll
    Device,
    /// A new account, through Portiere's account API
    SignUp,
    /// A sign-in through that API, or through the pages if there is none
    SignIn,
    /// The account through that API, or userinfo if there is none
    Profile,
}

/// Client authentication methods by their name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Auth {
    /// client_secret_basic
    Basic,
    /// client_secret_post
    Post,
    /// A public client
    None,
}

impl Options {
    /// Builds the plan for one workload; reads the files and, if told to, standard input.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn plan(&self) -> Result<Plan, Refusal> {
        let workload = self.workload()?;
        let visitors = self.vus.map_or_else(|| self.visitors(), Ok)?;
        let rate = self.rate.or((workload == Workload::Day).then_some(100.0));
        let pause = self.pause.unwrap_or(Duration::from_secs(u64::from(workload == Workload::Traffic)));
        let target = Url::parse(&self.target).map_err(|wrong| Refusal::Use(format!("{}: {wrong}", self.target)))?;
        let plan = Plan {
            reach: Arc::new(self.reach(&target)?),
            target,
            workload,
            pace: rate.map_or(Pace::Closed { visitors, pause }, |rate| Pace::Open { rate, visitors }),
            shape: match self.ramp {
                Some(time) => Shape::Ramp(time),
                None if workload == Workload::Day => Shape::Day,
                None => Shape::Steady,
            },
            arrivals: self.arrivals,
            warmup: self.warmup,
            duration: self.duration,
            timeout: self.timeout,
            heeds_retry_after: self.heed_retry_after,
            threads: self.threads,
            client: Client {
                id: self.client.clone().unwrap_or_default(),
                proof: self.proof()?,
                redirect_uri: self.redirect_uri.clone().unwrap_or_default(),
                scope: self.scope.clone().unwrap_or_else(|| "openid".to_owned()),
                own_scope: self.scope.clone(),
                parameters: self.param.clone(),
                token_parameters: self.token_param.clone(),
            },
            introspector: self.introspector()?,
            users: self.users.as_deref().map_or(Ok(Vec::new()), |path| users(&read(path)?))?,
            server_pids: self.server_pid.clone(),
            without_refresh: self.no_refresh,
            without_introspection: self.no_introspection,
            without_account_api: self.no_account_api,
            recovery: None,
            interrupt: Interrupt::default(),
        };
        plan.check().map(|()| plan)
    }

    /// Returns the workload that was asked for.
    ///
    /// # Errors
    /// [`Refusal::Use`] if there is none, which the parser does not allow.
    pub fn choice(&self) -> Result<Choice, Refusal> {
        self.workload.ok_or_else(|| Refusal::Use("name a workload".to_owned()))
    }

    fn reach(&self, target: &Url) -> Result<Reach, Refusal> {
        let mut reach = Reach::default();
        for host in &self.i_own_this_host {
            reach.own(if host.is_empty() { target.host() } else { host })?;
        }
        if let Some(place) = &self.connect_to {
            reach.connect_to(place, target)?;
        }
        if target.is_secure() || self.ca.is_some() {
            reach.speak_tls(self.ca.as_deref())?;
        }
        reach.lead_to(target);
        Ok(reach)
    }

    /// Checks for options that would have no effect with this workload, or in a search for the limit.
    ///
    /// # Errors
    /// [`Refusal::Use`] with the first one found.
    pub fn check(&self, is_search: bool) -> Result<(), Refusal> {
        use Choice::{Introspect, Profile, SignIn, W1, W2, W3, W4, W5, W6};
        let choice = self.choice()?;
        let (ramp, pause, repeat) = (self.ramp.is_some(), self.pause.is_some(), self.repeat > 1);
        let (vus, rate) = (self.vus.is_some(), self.rate.is_some());
        // W4 and W6 consist of open loops in part.
        let open = is_search || rate || [W3, W4, W5, W6].contains(&choice);
        let vain = [
            (is_search && [W3, W4, W6].contains(&choice), "a search takes no w3, w4 or w6: it runs a single workload"),
            (is_search && repeat, "a search takes no --repeat"),
            (is_search && ramp, "a search takes no --ramp: each of its rates is steady"),
            (is_search && pause, "a search takes no --pause: it runs open loops"),
            (choice != W1 && self.no_password, "--no-password is a variant of w1"),
            (choice != W1 && self.no_refresh, "--no-refresh is a variant of w1"),
            (choice == Introspect && self.no_introspection, "--no-introspection leaves nothing of introspect"),
            (
                self.introspect_client.is_some() && ![Introspect, W1, W4, W5, W6].contains(&choice),
                "--introspect-client is for what introspects: w1, w4, w5, w6 and introspect",
            ),
            (
                self.no_account_api && ![Profile, SignIn, W2, W3, W5, W6].contains(&choice),
                "--no-account-api is for what can go without: w2, w3, w5, w6, sign_in and profile",
            ),
            (
                self.no_account_api && choice == W3 && !self.no_sign_ups,
                "w3 signs up through the account API: --no-account-api takes --no-sign-ups, too",
            ),
            (choice != W3 && self.no_sign_ups, "--no-sign-ups is a variant of w3"),
            (choice == W3 && vus, "w3 takes no --vus: each of its streams has four connections"),
            (choice == W3 && pause, "w3 takes no --pause: it is made of open loops"),
            (choice == W4 && repeat, "w4 takes no --repeat: it is a sweep already"),
            (choice == W4 && rate, "w4 takes no --rate: its rates are multiples of what a closed loop reaches"),
            (choice == W4 && ramp, "w4 takes no --ramp: each of its rates is steady"),
            (choice == W4 && pause, "w4 takes no --pause: it measures capacity without pauses"),
            (choice == W5 && ramp, "w5 takes no --ramp: a day has its own shape"),
            (choice == W5 && pause, "w5 takes no --pause: it is an open loop"),
            (
                !open && self.arrivals != Arrivals::Even,
                "a closed loop takes no --arrivals: users start again when they are done; add --rate",
            ),
            (open && self.heed_retry_after, "an open loop takes no --heed-retry-after: each start goes to a free user"),
        ];
        let found = vain.into_iter().find(|(is_so, _)| *is_so);
        found.map_or(Ok(()), |(_, why)| Err(Refusal::Use(why.to_owned())))
    }

    /// Returns what a visitor does; of choices made of several workloads, the first one.
    fn workload(&self) -> Result<Workload, Refusal> {
        Ok(match self.choice()? {
            Choice::W1 if self.no_password => Workload::Session,
            Choice::W1 | Choice::W4 | Choice::W6 => Workload::Flow,
            Choice::W2 => Workload::Traffic,
            Choice::W3 | Choice::Profile => Workload::Profile,
            Choice::W5 => Workload::Day,
            Choice::Jwks => Workload::Jwks,
            Choice::Introspect => Workload::Introspect,
            Choice::Userinfo => Workload::Userinfo,
            Choice::ClientCredentials => Workload::ClientCredentials,
            Choice::Refresh => Workload::Refresh,
            Choice::Device => Workload::Device,
            Choice::SignUp => Workload::SignUp,
            Choice::SignIn => Workload::SignIn,
        })
    }

    /// Returns the default number of virtual users.
    fn visitors(&self) -> Result<usize, Refusal> {
        Ok(match self.choice()? {
            Choice::W4 => 40,
            Choice::W5 => 100,
            _ => 20,
        })
    }

    /// Returns the client that introspects, if another was named; it sends its secret in the same way as the client.
    fn introspector(&self) -> Result<Option<Client>, Refusal> {
        let named = self.introspect_client.as_ref().zip(self.introspect_secret_file.as_ref());
        let made = named.map(|(id, file)| {
            let secret = secret(&read(file)?)?;
            let proof = if self.auth == Auth::Post { Proof::Post(secret) } else { Proof::Basic(secret) };
            Ok(Client { id: id.clone(), proof, ..Client::default() })
        });
        made.transpose()
    }

    fn proof(&self) -> Result<Proof, Refusal> {
        let text = match &self.client_secret_file {
            Some(path) => read(path)?,
            None if let Some(Typed(secret)) = &self.client_secret => secret.clone(),
            None if self.client_secret_stdin => {
                let mut text = String::new();
                let outcome = std::io::stdin().read_to_string(&mut text);
                outcome.map_err(|error| Refusal::Use(format!("no secret on standard input: {error}")))?;
                text
            }
            None => return Ok(Proof::Nothing),
        };
        let secret = secret(&text)?;
        match self.auth {
            Auth::Basic => Ok(Proof::Basic(secret)),
            Auth::Post => Ok(Proof::Post(secret)),
            Auth::None => Err(Refusal::Use("--auth none takes no secret".to_owned())),
        }
    }
}

/// Returns the secret in a file, or on standard input.
fn secret(text: &str) -> Result<String, Refusal> {
    let secret = text.trim_end_matches(['\r', '\n']).to_owned();
    if secret.is_empty() { Err(Refusal::Use("the client secret is empty".to_owned())) } else { Ok(secret) }
}

#[cfg(test)]
mod tests;
