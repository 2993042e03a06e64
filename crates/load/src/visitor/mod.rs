//! One virtual user, and what it does in an iteration.

mod account;
mod answer;
mod button;
mod entity;
mod errand;
mod field;
mod fieldset;
mod flow;
pub mod form;
mod grant;
pub mod html;
mod id_token;
mod jwt;
mod label;
pub mod page;
mod patience;
mod provider;
mod setback;
mod tokens;
mod unseen;
mod words;
mod zipf;

pub use account::AccountApi;
pub(crate) use account::WRONG_CREDENTIALS;
pub use grant::{NO_REFRESH_TOKEN, NOT_ACTIVE};
pub use provider::Provider;
pub use setback::{Cause, Reason, Setback};

use crate::plan::{Client, Plan, User, Workload};
use crate::schedule::Schedule;
use crate::wire::{Jar, Reply, Request, Wire};
pub(crate) use flow::{DESPITE, NO_ACCESS};
use grant::Granted;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use zipf::Zipf;

/// A part of an iteration that is timed and counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// GET of the authorization endpoint, up to the sign-in page (or the code, with a session).
    Authorize,
    /// POST of the sign-in form, with redirects and consent, up to the code.
    Login,
    /// POST of the code and its verifier to the token endpoint.
    Token,
    /// POST of the access token to the introspection endpoint.
    Introspect,
    /// POST of the refresh token.
    Refresh,
    /// GET of the key set.
    Jwks,
    /// GET of the claims.
    Userinfo,
    /// POST of the client's own credentials.
    ClientCredentials,
    /// GET of the metadata.
    Discovery,
    /// POST to the device authorization endpoint.
    Device,
    /// POST of a device code that nobody has approved.
    Poll,
    /// POST of a new account to the account API.
    SignUp,
    /// POST of a password to the account API.
    SignIn,
    /// GET of the account from the account API.
    Account,
}

impl Step {
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Authorize => "authorize",
            Step::Login => "login",
            Step::Token => "token",
            Step::Introspect => "introspect",
            Step::Refresh => "refresh",
            Step::Jwks => "jwks",
            Step::Userinfo => "userinfo",
            Step::ClientCredentials => "client_credentials",
            Step::Discovery => "discovery",
            Step::Device => "device",
            Step::Poll => "poll",
            Step::SignUp => "sign_up",
            Step::SignIn => "sign_in",
            Step::Account => "account",
        }
    }
}

impl Step {
    /// Returns true for a request to the token endpoint.
    const fn asks_for_tokens(self) -> bool {
        matches!(self, Step::Token | Step::Refresh | Step::ClientCredentials | Step::Poll)
    }
}

/// What all visitors of a measurement share; only the counter of the users' turns changes.
pub struct Scene {
    /// What to do.
    pub plan: Plan,
    /// When the iterations of an open loop start.
    pub schedule: Option<Arc<Schedule>>,
    /// The provider that is measured.
    pub provider: Provider,
    /// The account API, if it let the client in.
    pub account: Option<AccountApi>,
    /// What the report should say about how this was measured.
    pub notes: Vec<String>,
    /// How long the first iteration took, alone, before anything counted; `None` where it ran every kind of iteration.
    pub first: Option<Duration>,
    /// The `Authorization` headers of the client, and of the client that introspects tokens.
    authorization: [Option<String>; 2],
    turn: AtomicUsize,
    activity: Option<Zipf>,
}

impl Scene {
    /// Builds the scene for a plan and a provider.
    pub fn new(plan: Plan, provider: Provider) -> Self {
        let activity = (plan.workload == Workload::Day).then(|| Zipf::new(plan.users.len()));
        let introspector = plan.introspector.as_ref().unwrap_or(&plan.client);
        let authorization = [&plan.client, introspector].map(Client::authorization);
        let turn = AtomicUsize::new(0);
        let (schedule, notes) =
            (Schedule::of(&plan).map(Arc::new), plan.scarcity().into_iter().chain(plan.place()).collect());
        let mut scene =
            Scene { account: None, first: None, schedule, notes, authorization, plan, provider, turn, activity };
        if scene.cannot_ask() {
            scene.notes.push("without introspection: the provider has no such endpoint, nor userinfo".to_owned());
        } else if scene.asks_the_user_endpoint() {
            let why = match scene.plan.without_introspection {
                true => "as it was asked for",
                false => "the provider has no introspection endpoint",
            };
            scene.notes.push(format!("userinfo in place of introspection: {why}"));
        } else if scene.plan.introspector.is_some() && scene.plan.workload.steps().contains(&Step::Introspect) {
            scene.notes.push("introspection by a client of its own (--introspect-client)".to_owned());
        }
        scene
    }

    /// Whether all iterations are the same, rather than one of several errands.
    pub fn is_always_alike(&self) -> bool {
        errand::errands(self.plan.workload).is_empty()
    }

    /// Returns the client that calls an endpoint directly, not through the browser.
    fn client(&self, step: Step) -> &Client {
        self.plan.introspector.as_ref().filter(|_| step == Step::Introspect).unwrap_or(&self.plan.client)
    }

    /// Returns that client's `Authorization` header, if it has one.
    fn authorization(&self, step: Step) -> Option<&str> {
        self.authorization[usize::from(step == Step::Introspect)].as_deref()
    }

    /// Whether userinfo replaces introspection because the provider has none or the plan says so: an application may
    /// ask either about a token. A plan that measures only introspection is told that there is none.
    pub fn asks_the_user_endpoint(&self) -> bool {
        let workload = self.plan.workload;
        workload != Workload::Introspect
            && workload.steps().contains(&Step::Introspect)
            && (self.plan.without_introspection || self.provider.endpoint(Step::Introspect).is_none())
    }

    /// Whether nobody can be asked about a token, so that a sign-in goes without.
    pub fn cannot_ask(&self) -> bool {
        let goes_on = matches!(self.plan.workload, Workload::Flow | Workload::Session);
        goes_on && self.asks_the_user_endpoint() && self.provider.endpoint(Step::Userinfo).is_none()
    }

    /// Returns the steps of an iteration, in order.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = self.plan.workload.steps().to_vec();
        steps.retain(|step| !(self.plan.without_refresh && *step == Step::Refresh));
        if self.cannot_ask() {
            steps.retain(|step| *step != Step::Introspect);
        } else if self.asks_the_user_endpoint() {
            let there = steps.contains(&Step::Userinfo);
            steps.retain(|step| !there || *step != Step::Introspect);
            steps.iter_mut().filter(|step| **step == Step::Introspect).for_each(|step| *step = Step::Userinfo);
        }
        steps
    }

    /// Returns the account API, if visitors hold its tokens between iterations.
    fn account_held(&self) -> Option<&AccountApi> {
        let reads = matches!(self.plan.workload, Workload::Traffic | Workload::Day | Workload::Profile);
        self.account.as_ref().filter(|_| reads)
    }

    /// Whether visitors hold tokens of the token endpoint between iterations.
    fn holds_tokens(&self) -> bool {
        let workload = self.plan.workload;
        workload.holds_tokens() && !(workload == Workload::Profile && self.account.is_some())
    }

    /// Returns the next user: everybody in turn, or some far more often than others.
    fn user(&self, rng: &mut fastrand::Rng) -> &User {
        let at = match &self.activity {
            Some(activity) => activity.pick(rng.f64()),
            None => self.turn.fetch_add(1, Ordering::Relaxed) % self.plan.users.len(),
        };
        &self.plan.users[at]
    }
}

/// What one iteration took.
#[derive(Clone, Debug, Default)]
pub struct Lap {
    /// Responses received.
    pub requests: u64,
    /// Connections made.
    pub connections: u64,
    /// The finished steps, in order.
    pub steps: Vec<(Step, Duration)>,
}

/// One virtual user: its own connection, cookies and tokens.
pub struct Visitor {
    scene: Arc<Scene>,
    wire: Wire,
    jar: Jar,
    /// Tokens of the token endpoint.
    held: Granted,
    /// Tokens of the account API.
    account: Granted,
    /// Why tokens could not be renewed: the next iteration ends with this setback.
    unrenewed: Option<Setback>,
    rng: fastrand::Rng,
    lap: Lap,
    /// Counts of responses and connections when the iteration began.
    before: (u64, u64),
}

impl Visitor {
    /// Creates a visitor that has done nothing yet.
    pub fn new(scene: Arc<Scene>) -> Self {
        let wire = Wire::new(scene.plan.timeout, Arc::clone(&scene.plan.reach));
        Visitor {
            scene,
            wire,
            jar: Jar::default(),
            held: Granted::default(),
            account: Granted::default(),
            unrenewed: None,
            rng: fastrand::Rng::new(),
            lap: Lap::default(),
            before: (0, 0),
        }
    }

    /// Runs one iteration.
    ///
    /// # Errors
    /// [`Setback`] at the first step that does not succeed. [`Visitor::lap`] holds what was done until then.
    pub async fn iterate(&mut self) -> Result<(), Setback> {
        self.lap.steps.clear();
        self.before = (self.wire.answered(), self.wire.opened());
        let outcome = match self.unrenewed.take() {
            Some(setback) => Err(setback),
            None => self.play().await,
        };
        if let Err(setback) = &outcome {
            self.lose(setback);
        }
        self.settle();
        outcome
    }

    /// Updates the lap with the responses and connections so far, also when the iteration is abandoned.
    pub fn settle(&mut self) {
        self.lap.requests = self.wire.answered() - self.before.0;
        self.lap.connections = self.wire.opened() - self.before.1;
    }

    /// Runs everything that an iteration may do once: like an iteration, but without random choices.
    ///
    /// # Errors
    /// As [`Visitor::iterate`].
    pub async fn rehearse(&mut self) -> Result<(), Setback> {
        if self.scene.is_always_alike() { self.play().await } else { self.every_errand().await }
    }

    /// Returns what the last iteration took.
    pub fn lap(&self) -> &Lap {
        &self.lap
    }

    async fn play(&mut self) -> Result<(), Setback> {
        match self.scene.plan.workload {
            Workload::Flow => {
                self.arrive().await?;
                self.introspect().await?;
                self.refresh_if_asked().await
            }
            Workload::Session => {
                let pass = self.pass_by().await?;
                self.redeem(pass).await?;
                self.introspect().await?;
                self.refresh_if_asked().await
            }
            Workload::Jwks => self.keys().await,
            Workload::Introspect => self.introspect().await,
            Workload::Userinfo => self.userinfo().await,
            Workload::ClientCredentials => self.client_credentials().await,
            Workload::Refresh => self.refresh().await,
            Workload::Device => self.device().await,
            Workload::SignUp => self.sign_up().await,
            Workload::SignIn => self.sign_in_anyhow().await,
            Workload::Profile => self.profile().await,
            Workload::Traffic | Workload::Day => self.some_errand().await,
        }
    }

    /// Arrives without cookies, signs in, and gets tokens.
    async fn arrive(&mut self) -> Result<(), Setback> {
        self.jar.clear();
        let pass = self.sign_in().await?;
        self.redeem(pass).await
    }

    async fn refresh_if_asked(&mut self) -> Result<(), Setback> {
        if self.scene.plan.without_refresh { Ok(()) } else { self.refresh().await }
    }

    /// Signs in through the account API, or through the pages where there is no such API.
    async fn sign_in_anyhow(&mut self) -> Result<(), Setback> {
        let scene = Arc::clone(&self.scene);
        match &scene.account {
            Some(api) => {
                let user = scene.user(&mut self.rng);
                self.account_sign_in(api, user).await
            }
            None => self.arrive().await,
        }
    }

    /// Reads the account, or the userinfo claims where there is no account API.
    async fn profile(&mut self) -> Result<(), Setback> {
        let scene = Arc::clone(&self.scene);
        match &scene.account {
            Some(api) => self.account_read(api).await,
            None => self.userinfo().await,
        }
    }

    fn finish(&mut self, step: Step, begun: Instant) {
        self.lap.steps.push((step, begun.elapsed()));
    }
}

/// Sends a request as part of a step. For all steps, a polite refusal is distinguished from other outcomes here.
async fn ask<'w>(wire: &'w mut Wire, step: Step, request: &Request<'_>) -> Result<Reply<'w>, Setback> {
    let asked = Instant::now();
    let reply = wire.send(request).await.map_err(|fault| Setback { step, cause: Cause::Lost(fault) })?;
    let status = reply.status();
    match reply.header("retry-after") {
        Some(asked_for) if matches!(status, 429 | 503) => {
            let retry_after = patience::retry_after(asked_for, reply.header("date"));
            Err(Setback { step, cause: Cause::Refused { status, retry_after, took: asked.elapsed() } })
        }
        _ => Ok(reply),
    }
}

/// Describes an unexpected response: its status, and its error code (RFC 6749 §5.2, or a problem's) with its
/// description, or the title of its page and the beginning of the page's text.
fn describe(reply: Reply<'_>) -> Reason {
    #[derive(Deserialize)]
    struct Problem {
        #[serde(alias = "code")]
        error: String,
        error_description: Option<String>,
    }
    let status = reply.status();
    // A query may hold a code, and is another one each time.
    let leads = reply.header("location").filter(|_| (300..400).contains(&status));
    if let Some(place) = leads.and_then(|to| to.split(['?', '#']).next()) {
        return Reason::said(&format!("{status}, which leads to "), place);
    }
    let short = |text: &str| text.chars().take(160).collect::<String>();
    match serde_json::from_slice::<Problem>(reply.body()) {
        Ok(Problem { error, error_description: Some(about) }) if !about.is_empty() => {
            Reason::said(&format!("{status} {}: ", short(&error)), &short(&about))
        }
        Ok(Problem { error, .. }) => Reason::of(&format!("{status} {}", short(&error))),
        Err(_) => {
            let (title, text) = page::Page::of(&reply.text()).told_apart();
            Reason::said(&format!("{status} {}", short(&title)), &short(&text))
        }
    }
}
