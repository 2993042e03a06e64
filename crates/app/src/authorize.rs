//! From an authorization request to a code, page by page.

use crate::browser::Browser;
use crate::flow::{Flow, Named, Place, Question, Sealed, To};
use crate::guest::Guest;
use crate::settle::Ahead;
use crate::{App, Fault};
use rules::decision::Decision;
use rules::id::{SessionId, UserId};
use rules::jose::{Expect, Times, Typ};
use rules::login::session::{Origin, Session, Started};
use rules::oauth::authorize::{self, Back, Request};
use rules::oauth::client::Client;
use rules::oauth::consent::{self, Consent};
use rules::oauth::error::Error;
use rules::oauth::logout::Hint;
use rules::oauth::params::Params;
use rules::oauth::redirect::Response;
use rules::oauth::scope::Scope;
use rules::oauth::step::{self, Facts, Progress, Step};
use rules::people::User;
use rules::{Fresh, Time};
use std::borrow::Cow;
use std::sync::Arc;
use store::tables::consents::Between;
use store::tables::realms::AtEpoch;
use store::tables::sessions::WithConsent;
use store::tables::users;

/// What to show or send.
#[derive(Debug)]
pub enum Outcome {
    /// An authorization response.
    Respond(Response),
    /// The sign-in page.
    SignIn(Box<SignIn>),
    /// The sign-up page.
    SignUp(Box<SignIn>),
    /// The choice between this account and another.
    Choose(Box<Asked>),
    /// The consent page.
    Consent(Box<Asked>, Scope),
    /// Our own error page; with a way back to the client, where that is known.
    Refused(Error, Option<Box<WayBack>>),
}

/// What a sign-in page shows.
#[derive(Debug)]
pub struct SignIn {
    /// The flow for the form.
    pub flow: Sealed,
    /// The application's name, where there is one.
    pub client: Option<String>,
    /// Whether the user is on the way to connecting a device.
    pub device: bool,
    /// The user whom the request names.
    pub login: String,
    /// Whether it has to be the user who is signed in already.
    pub again: bool,
    /// The user who is signed in already, if any user will do: one who signs in takes their place.
    pub already: Option<String>,
}

/// What a page about a signed-in person shows.
#[derive(Debug)]
pub struct Asked {
    /// The flow for the form.
    pub flow: Sealed,
    /// The application's name.
    pub client: String,
    /// Where an answer goes.
    pub destination: String,
    /// The user of the session.
    pub user: User,
    /// The session.
    pub session: Session,
}

/// A way back to an application.
#[derive(Debug)]
pub struct WayBack {
    /// The application's name.
    pub client: String,
    /// The response that tells the application.
    pub response: Response,
}

/// Everything that is known when a request is judged.
pub(crate) struct Scene {
    pub(crate) request: Request,
    pub(crate) client: Arc<Client>,
    pub(crate) hint: Option<UserId>,
}

/// The session and user that are signed in, and the user's consent to the application.
type Known = (Option<(Session, User)>, Option<Consent>);

/// One turn of a flow: the flow, whether its consent page was just answered with yes, and its browser.
struct Turn<'a> {
    flow: Flow,
    consented: bool,
    browser: &'a Browser,
}

impl Turn<'_> {
    /// Returns how far the flow has come with this request. A yes covers what the consent page has shown: the
    /// application may have more by now, or be another one.
    fn progress(&self, scene: &Scene, session: Option<&SessionId>) -> Progress {
        let shown = || self.flow.shown.as_ref().is_some_and(|shown| scene.request.asked().is_within(shown));
        let named = || self.flow.named == Some(Named::of(&scene.client));
        self.flow.progress(session, self.consented && shown() && named())
    }
}

/// The outcome of a flow that carries no request.
fn lost() -> Outcome {
    Outcome::Refused(Error::request("the sign-in has to start again from the application"), None)
}

impl App {
    /// Handles a request as it arrives.
    pub async fn authorize(&self, params: Params, browser: &Browser) -> Result<Outcome, Fault> {
        // A silent request is answered however busy we are; a claimed session is checked before we say that we are.
        let guest = !authorize::is_silent(&params);
        if guest && browser.session.is_none() {
            self.has_time_for(browser, Guest::Comes)?;
        }
        let flow = Flow::new(To::Client(params.pairs().to_vec()), self.clock.now());
        match self.stage(&params, browser).await? {
            Err(outcome) => Ok(*outcome),
            Ok((scene, known)) => {
                if guest && browser.session.is_some() && known.0.is_none() {
                    self.has_time_for(browser, Guest::Comes)?;
                }
                self.go_on(scene, known, Turn { flow, consented: false, browser }).await
            }
        }
    }

    /// Resumes a flow whose user or progress is known better by now: after a sign-in, after a choice.
    pub async fn resume(&self, flow: Flow, browser: &Browser) -> Result<Outcome, Fault> {
        let Some(params) = flow.params() else { return Ok(lost()) };
        match self.stage(&params, browser).await? {
            Err(outcome) => Ok(*outcome),
            Ok((scene, known)) => self.go_on(scene, known, Turn { flow, consented: false, browser }).await,
        }
    }

    /// Returns a judged request and what is known of the browser that sent it; or what to show instead.
    async fn stage(&self, params: &Params, browser: &Browser) -> Result<Result<(Scene, Known), Box<Outcome>>, Fault> {
        let client = match authorize::client_id(params) {
            Ok(client) => client,
            Err(error) => return Ok(Err(Box::new(Outcome::Refused(error, None)))),
        };
        let sid = browser.session.as_ref().map(|cookie| &cookie.id);
        let (epoch, (found, consent)) = self.epoch_of(self.ask(AtEpoch(WithConsent(sid, &client))).await?)?;
        let session = self.prove(browser, found, self.clock.now());
        let client = self.client(&client, epoch).await?;
        let scene = self.scene(params, client.as_ref(), epoch, session.is_some()).await?;
        Ok(scene.map(|scene| (scene, (session, consent))))
    }

    /// Judges the request. An error whose client and redirect URI are right goes to the client if a user is signed in
    /// or nothing may be shown; otherwise to a page of ours (RFC 9700 §4.11.2).
    pub(crate) async fn scene(
        &self,
        params: &Params,
        client: Option<&Arc<Client>>,
        epoch: i64,
        signed_in: bool,
    ) -> Result<Result<Scene, Box<Outcome>>, Fault> {
        let request = match authorize::read(params, client.map(|client| &**client), &self.realm) {
            Ok(request) => request,
            Err(authorize::Fault::Local(error)) => return Ok(Err(Box::new(Outcome::Refused(error, None)))),
            Err(authorize::Fault::Client { error, back, silent }) => {
                return Ok(Err(Box::new(self.tell(error, &back, client, signed_in || silent))));
            }
        };
        let Some(client) = client.cloned() else {
            return Ok(Err(Box::new(Outcome::Refused(authorize::UNKNOWN_CLIENT, None))));
        };
        let hint = match &request.id_token_hint {
            None => None,
            Some(token) => match self.hint(token, epoch).await? {
                Some(hint) if hint.client == client.id => Some(hint.user),
                _ => {
                    let error = Error::request("id_token_hint is not an ID token of this client");
                    let at_once = signed_in || request.prompt.none;
                    return Ok(Err(Box::new(self.tell(error, &request.back, Some(&client), at_once))));
                }
            },
        };
        Ok(Ok(Scene { request, client, hint }))
    }

    pub(crate) fn tell(&self, error: Error, back: &Back, client: Option<&Arc<Client>>, at_once: bool) -> Outcome {
        let response = back.error(&self.realm.issuer, error);
        match at_once {
            true => Outcome::Respond(response),
            false => {
                let client = client.map(|client| client.name.clone()).unwrap_or_default();
                Outcome::Refused(error, Some(Box::new(WayBack { client, response })))
            }
        }
    }

    /// Reads a hint (OpenID Connect Core §3.1.2.1): an ID token of ours. It may have expired, and so may the key that
    /// signed it, as long as that was not revoked. Sessions outlive both.
    pub(crate) async fn hint(&self, token: &str, epoch: i64) -> Result<Option<Hint>, Fault> {
        if let Some(hint) = self.carried(token) {
            return Ok(Some(hint));
        }
        let now = self.clock.now();
        let keys = self.keys(epoch).await?;
        let expect = Expect {
            required: &["iss", "sub", "aud", "exp", "iat"],
            times: Times::AllButExp,
            // With the groups of a user who has hundreds of them; as long as what may be posted.
            longest: 64 << 10,
            ..Expect::ours(&[Typ::Jwt], &self.realm.issuer, now)
        };
        // Only access tokens have client_id here: one of a client that wants `typ: JWT` is no hint (JW-16).
        let claims = rules::jose::verify(token, keys.ever(), &expect).ok();
        Ok(claims.filter(|claims| claims.text("client_id").is_none()).and_then(|claims| Hint::of(&claims)))
    }

    /// Goes on with a request. If its client was changed while a code was issued, or something ended that the code would
    /// have relied on, judges it once more, by what is known by then.
    async fn go_on(&self, scene: Scene, known: Known, mut turn: Turn<'_>) -> Result<Outcome, Fault> {
        let why = match self.step(&scene, known, &mut turn).await {
            Ok(Some(outcome)) => return Ok(outcome),
            Ok(None) => None,
            Err(Fault::Contended(why)) => Some(why),
            Err(fault) => return Err(fault),
        };
        let Some(params) = turn.flow.params() else { return Ok(lost()) };
        let (changed, known) = match self.stage(&params, turn.browser).await? {
            Err(outcome) => return Ok(*outcome),
            Ok(staged) => staged,
        };
        match why {
            Some(why) if changed.client.epoch == scene.client.epoch => Err(Fault::Contended(why)),
            _ => {
                let ended = || Fault::Contended("what a code relies on ended twice while it was issued".to_owned());
                self.step(&changed, known, &mut turn).await?.ok_or_else(ended)
            }
        }
    }

    /// `None` if more has to be asked by now than when it was decided that a code can be issued.
    async fn step(&self, scene: &Scene, known: Known, turn: &mut Turn<'_>) -> Result<Option<Outcome>, Fault> {
        let (session, consent) = &known;
        let progress = turn.progress(scene, session.as_ref().map(|(session, _)| &session.id));
        let facts = scene.facts(session.as_ref(), consent.as_ref());
        match step::next(&scene.request, &facts, progress, self.clock.now()) {
            Ok(Step::Issue) => self.issue(scene, progress, turn.browser, Ahead::of(known)).await,
            Ok(step) => self.show(scene, step, known.0, turn).map(Some),
            Err(error) => {
                let at_once = session.is_some() || scene.request.prompt.none;
                Ok(Some(self.tell(error, &scene.request.back, Some(&scene.client), at_once)))
            }
        }
    }

    /// Builds the page that comes next.
    fn show(
        &self,
        scene: &Scene,
        step: Step,
        session: Option<(Session, User)>,
        turn: &mut Turn<'_>,
    ) -> Result<Outcome, Fault> {
        let Turn { flow, browser, .. } = turn;
        let destination = scene.request.back.to.origin().to_owned();
        let client = scene.client.name.clone();
        match (step, session) {
            (Step::Consent(scope), Some((session, user))) => {
                flow.asks = Some(Question::Consent(session.id.clone()));
                flow.shown = Some(scope.clone());
                flow.named = Some(Named::of(&scene.client));
                let asked = Asked { flow: self.seal(flow, browser)?, client, destination, user, session };
                Ok(Outcome::Consent(Box::new(asked), scope))
            }
            (Step::Choose, Some((session, user))) => {
                flow.asks = Some(Question::Choice(session.id.clone()));
                let asked = Asked { flow: self.seal(flow, browser)?, client, destination, user, session };
                Ok(Outcome::Choose(Box::new(asked)))
            }
            (step, session) => {
                // A user who only has to prove again who they are cannot become another on the way. A user who is to
                // make an account is nobody yet, and where another user was asked for, they have to.
                let again = scene.request.prompt.login || scene.request.max_age.is_some();
                let expected = again && step != Step::SignUp && !scene.request.prompt.select_account;
                let known = session.filter(|(_, user)| expected && !scene.asks_for_somebody_else_than(user));
                flow.asks = None;
                flow.expects = known.as_ref().map(|(_, user)| user.id.clone());
                let login = known.as_ref().map(|(_, user)| user.username.clone());
                let login = login.or_else(|| scene.request.login_hint.clone()).unwrap_or_default();
                let page = SignIn {
                    flow: self.seal(flow, browser)?,
                    client: Some(client),
                    device: false,
                    login,
                    again: known.is_some(),
                    already: None,
                };
                Ok(if step == Step::SignUp { Outcome::SignUp(Box::new(page)) } else { Outcome::SignIn(Box::new(page)) })
            }
        }
    }

    /// Returns the sign-in page of a flow, on the way to an application or to a page of ours.
    pub async fn sign_in_page(&self, flow: Flow, browser: &Browser) -> Result<SignIn, Fault> {
        let scene = self.scene_of(&flow).await?;
        let (flow, expected) = self.who_is_expected(&flow).await?;
        let expected = expected.map(|user| user.username);
        let again = expected.is_some();
        let hinted = || scene.as_ref().and_then(|scene| scene.request.login_hint.clone());
        let login = expected.or_else(hinted).unwrap_or_default();
        Ok(SignIn {
            flow: self.seal(&flow, browser)?,
            client: scene.as_ref().map(|scene| scene.client.name.clone()),
            device: matches!(flow.to, To::Place(Place::Device(_))),
            login,
            again,
            already: None,
        })
    }

    /// Returns the user who has to sign in, and the flow that says so. A user who was removed meanwhile is no longer
    /// expected: their session went with them, and the request is judged anew.
    pub(crate) async fn who_is_expected<'a>(&self, flow: &'a Flow) -> Result<(Cow<'a, Flow>, Option<User>), Fault> {
        let Some(who) = &flow.expects else { return Ok((Cow::Borrowed(flow), None)) };
        Ok(match self.ask(users::ById(who)).await? {
            Some(user) => (Cow::Borrowed(flow), Some(user)),
            None => (Cow::Owned(Flow { expects: None, ..flow.clone() }), None),
        })
    }

    /// Issues the code of a request for which nothing more has to be asked; `None` if something has to by then.
    async fn issue(
        &self,
        scene: &Scene,
        progress: Progress,
        browser: &Browser,
        ahead: Ahead<Known>,
    ) -> Result<Option<Outcome>, Fault> {
        let ahead = &ahead;
        let sid = browser.session.as_ref().map(|cookie| &cookie.id);
        let reply = self
            .settle(|now, fresh| async move {
                let asked = || async {
                    let known = self.ask(AtEpoch(WithConsent(sid, &scene.client.id))).await?;
                    let (_, (found, consent)) = self.epoch_of(known)?;
                    Ok((self.prove(browser, found, now), consent))
                };
                let (session, consent) = ahead.or(asked).await?;
                let facts = scene.facts(session.as_ref(), consent.as_ref());
                let Decision { changes, reply } =
                    step::issue(&scene.request, &facts, progress, &self.realm, (now, &fresh));
                let asks = matches!(step::next(&scene.request, &facts, progress, now), Ok(step) if step != Step::Issue);
                Ok(Decision { changes, reply: reply.map_err(|error| (!asks).then_some(error)) })
            })
            .await?;
        Ok(match reply {
            Ok(response) => Some(Outcome::Respond(response)),
            Err(None) => None,
            Err(Some(error)) => Some(Outcome::Respond(scene.request.back.error(&self.realm.issuer, error))),
        })
    }

    /// Handles the answer to the consent page, which is shown again if the application may have more by then than the
    /// page showed, or is not the one that it named. If the sign-in has grown too old for the request when a yes comes,
    /// that is not the end of the flow: the user proves again who they are.
    pub async fn consent(&self, flow: Flow, allow: bool, browser: &Browser) -> Result<Outcome, Fault> {
        let Some(params) = flow.params() else { return Ok(lost()) };
        match self.stage(&params, browser).await? {
            Err(outcome) => Ok(*outcome),
            Ok((scene, known)) if allow => self.go_on(scene, known, Turn { flow, consented: true, browser }).await,
            Ok((scene, known)) => {
                let (session, client) = (known.0.as_ref().map(|(session, _)| session), &scene.client.id);
                self.settle(|now, _| async move { Ok(consent::deny(session, client, now)) }).await?.ok();
                let error = Error::new(rules::oauth::ErrorCode::AccessDenied, "the person said no");
                Ok(Outcome::Respond(scene.request.back.error(&self.realm.issuer, error)))
            }
        }
    }

    /// Returns the authorization request of a flow, if it has one that is still right.
    pub(crate) async fn scene_of(&self, flow: &Flow) -> Result<Option<Scene>, Fault> {
        let Some((params, client, epoch)) = self.request_of(flow).await? else { return Ok(None) };
        Ok(self.scene(&params, Some(&client), epoch, true).await?.ok())
    }

    /// The same before it is judged: its parameters, and its application as it is at that epoch.
    async fn request_of(&self, flow: &Flow) -> Result<Option<(Params, Arc<Client>, i64)>, Fault> {
        let (To::Client(_), Some(params)) = (&flow.to, flow.params()) else { return Ok(None) };
        let Ok(client) = authorize::client_id(&params) else { return Ok(None) };
        let epoch = self.epoch().await?;
        Ok(self.client(&client, epoch).await?.map(|client| (params, client, epoch)))
    }

    /// Returns where a user on the way to `flow` comes from, by way of its application. Only the log says so: if the
    /// application cannot be read now, that keeps nobody from their answer.
    pub(crate) async fn origin_of(&self, flow: Option<&Flow>, browser: &Browser) -> Origin {
        let asked = match flow {
            Some(flow) => self.request_of(flow).await.ok().flatten(),
            None => None,
        };
        browser.origin.by_way_of(asked.as_ref().map(|(_, client, _)| &client.id))
    }

    /// Completes a flow in the very batch that starts its session: issues a code if nothing more has to be asked, so
    /// that a sign-in is one commit.
    pub(crate) async fn complete(
        &self,
        scene: &Scene,
        progress: Progress,
        (started, user): (&Started, &User),
        (now, fresh): (Time, &Fresh),
    ) -> Result<Result<Decision<Response, Error>, Step>, Fault> {
        let consent = self.ask(Between(&user.id, &scene.client.id)).await?;
        let session = (started.session.clone(), user.clone());
        let facts = scene.facts(Some(&session), consent.as_ref());
        Ok(match step::next(&scene.request, &facts, progress, now) {
            Ok(Step::Issue) => Ok(step::issue(&scene.request, &facts, progress, &self.realm, (now, fresh))),
            Ok(step) => Err(step),
            Err(error) => Ok(Decision::refuse(error)),
        })
    }
}

impl Scene {
    pub(crate) fn facts<'a>(&'a self, session: Option<&'a (Session, User)>, consent: Option<&'a Consent>) -> Facts<'a> {
        Facts { client: &self.client, session, consent, hint: self.hint.as_ref() }
    }

    fn asks_for_somebody_else_than(&self, user: &User) -> bool {
        step::is_somebody_else(&self.request, self.hint.as_ref(), user)
    }
}
