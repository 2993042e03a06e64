//! The account API: what first-party applications do on their own screens. Every step goes through the same gates as
//! the pages: an attempt is counted and hashed where the pages count and hash, a session begins where theirs begin, and
//! tokens come from the issuance gate.

use crate::account::{Changing, NotChanged, PasswordChange};
use crate::browser::Browser;
use crate::flow::{Flow, Place, To};
use crate::introspect::Live;
use crate::pledge::to_the_end;
use crate::settle::Ahead;
use crate::sign_in::{SignedIn, Typed};
use crate::sign_up::{NewPerson, NotMade, Problem};
use crate::tally::Issued;
use crate::token::Handed;
use crate::{App, Fault};
use rules::Decision;
use rules::decision::{Change, Single, Standing};
use rules::id::FamilyId;
use rules::login::attempt::Refusal;
use rules::login::session::Session;
use rules::oauth::client::Client;
use rules::oauth::client_auth::{self, Means, Proof};
use rules::oauth::error::Error;
use rules::oauth::family::RefreshToken;
use rules::oauth::first_party;
use rules::oauth::refresh::Renewal;
use rules::oauth::scope::Scope;
use rules::oauth::token::family_of;
use rules::oauth::userinfo;
use rules::people::User;
use rules::secret::{Secret, base64url, mac, same};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::tables::families;
use store::tables::realms::Epoch;
use store::tables::sessions::WithUser;

/// Scopes whose claims an account is shown about itself.
const ABOUT_ONESELF: &str = "profile email address phone groups";

/// Why an application is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotServed {
    /// It is unknown, disabled, not a first-party client, or was not authenticated. It is not told which.
    Client,
    /// The browser shows a page of another origin.
    Origin,
}

/// The caller: a first-party client, and how it proved that it is. The proof is judged again if the client has changed
/// by the time that something is issued to it.
#[derive(Clone, Debug)]
pub struct Caller {
    client: Arc<Client>,
    proof: Proof,
    origin: Option<String>,
}

/// Why a user was not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotIn {
    /// The attempt was refused.
    Attempt(Refusal),
    /// The new account is not acceptable.
    Person(Vec<Problem>),
    /// The client or the account may no longer be used.
    Tokens(Error),
}

/// A user who was let in, or who goes on after a new password.
#[derive(Debug)]
pub struct Entered {
    /// The tokens.
    pub handed: Handed,
    /// By which this browser, or the application on its device, is known from now on.
    pub device: Secret,
}

/// The account that a live token opens, and the client through which it does.
pub struct Opened {
    /// The client.
    pub client: Arc<Client>,
    /// The person.
    pub user: User,
    /// The session that the token lives in.
    pub session: Session,
    /// The token family that the token descends from.
    pub family: FamilyId,
    /// The person's groups.
    pub groups: Vec<String>,
    /// The token, and what is kept of it.
    token: (Secret, Single),
}

/// The live token family that a browser's cookies carry on, by a refresh token of the account API.
pub struct KeptLine {
    /// The client.
    pub client: Arc<Client>,
    /// The session that the family lives in.
    pub session: Session,
    /// Whether the token is the family's current one, or the one before that.
    pub is_recent: bool,
    /// The family.
    pub family: FamilyId,
}

impl App {
    /// Returns the first-party client that a request comes from: a browser proves it by the origin of its page, any
    /// other caller in the way that the client registered. A foreign origin is refused whatever else was proved.
    pub async fn first_party(&self, proof: Proof, origin: Option<&str>) -> Result<Result<Caller, NotServed>, Fault> {
        let epoch = self.epoch().await?;
        let claimed = self.client(&proof.client, epoch).await?;
        let Some(client) = claimed.clone().filter(|client| first_party::is_admitted(client)) else {
            return Ok(Err(self.not_served(claimed.as_deref()).await));
        };
        if origin.is_some_and(|origin| !first_party::lives_at(&client, origin)) {
            return Ok(Err(NotServed::Origin));
        }
        let caller = Caller { client, proof: proof.clone(), origin: origin.map(str::to_owned) };
        match (&proof.means, origin) {
            (Means::Name, Some(_)) => Ok(Ok(caller)),
            // Outside a browser a name alone proves nothing, and no more does a secret that every copy of a program has.
            (_, None) if !caller.client.proves_itself() => Ok(Err(self.not_served(Some(&caller.client)).await)),
            (Means::Name, None) => Ok(Err(self.not_served(Some(&caller.client)).await)),
            _ => Ok(self.authenticate(proof).await?.map(|_| caller).map_err(|_| NotServed::Client)),
        }
    }

    /// Returns the calling client as it is at `epoch`; `None` if it may no longer call, or would not be authenticated.
    async fn caller(&self, caller: &Caller, epoch: i64) -> Result<Option<Arc<Client>>, Fault> {
        let found = self.client(&caller.client.id, epoch).await?.filter(|client| first_party::is_admitted(client));
        Ok(found.filter(|client| client.epoch == caller.client.epoch || self.is_proved(caller, client)))
    }

    fn is_proved(&self, Caller { proof, origin, .. }: &Caller, client: &Client) -> bool {
        let place_fits = match origin {
            Some(origin) => first_party::lives_at(client, origin),
            None => client.proves_itself(),
        };
        place_fits
            && match proof.means {
                Means::Name => origin.is_some(),
                _ => client_auth::prove(proof, Some(client), &self.realm, self.clock.now()).reply.is_ok(),
            }
    }

    async fn not_served(&self, claimed: Option<&Client>) -> NotServed {
        self.not_proved(claimed, "the client is not served").await;
        NotServed::Client
    }

    /// Signs a user in on a first-party client's own screen. `before` is the refresh token in the browser's cookies,
    /// whose place the new one takes.
    pub async fn enter(
        &self,
        caller: &Caller,
        typed: Typed,
        browser: &Browser,
        before: Option<Secret>,
    ) -> Result<Result<Entered, NotIn>, Fault> {
        let (app, caller, browser) = (self.clone(), caller.clone(), on_screen_of(&caller.client, browser));
        to_the_end(|pledge| async move {
            match app.try_in(&pledge, app.own_flow(), &typed, &browser).await? {
                Ok(signed_in) => app.hand_over(&caller, signed_in, (&browser, before.as_ref())).await,
                Err(refusal) => Ok(Err(NotIn::Attempt(refusal))),
            }
        })
        .await
    }

    /// Makes an account on a first-party client's own screen, and signs its user in. The caller has checked that the
    /// realm allows it.
    pub async fn enroll(
        &self,
        caller: &Caller,
        typed: NewPerson,
        browser: &Browser,
        before: Option<Secret>,
    ) -> Result<Result<Entered, NotIn>, Fault> {
        let (app, caller, browser) = (self.clone(), caller.clone(), on_screen_of(&caller.client, browser));
        to_the_end(|pledge| async move {
            match app.make_account(&pledge, app.own_flow(), &typed, &browser).await? {
                Ok(signed_in) => app.hand_over(&caller, signed_in, (&browser, before.as_ref())).await,
                Err(NotMade::Wait(wait)) => Ok(Err(NotIn::Attempt(Refusal::Wait(wait)))),
                Err(NotMade::Problems(problems)) => Ok(Err(NotIn::Person(problems))),
            }
        })
        .await
    }

    /// Returns a login flow that leads only to the account itself.
    fn own_flow(&self) -> Flow {
        Flow::new(To::Place(Place::Account), self.clock.now())
    }

    /// Issues tokens for a session that has just begun. If none are issued, the session ends: nobody holds its cookie.
    async fn hand_over(
        &self,
        caller: &Caller,
        signed_in: SignedIn,
        (browser, before): (&Browser, Option<&Secret>),
    ) -> Result<Result<Entered, NotIn>, Fault> {
        let session = &signed_in.started.session;
        let begun = match self.leave_before(before, browser).await {
            Ok(()) => self.begin_tokens(caller, (&signed_in.user, session)).await,
            Err(fault) => Err(fault),
        };
        let device = signed_in.device;
        let entered = begun.map(|begun| begun.map(|handed| Entered { handed, device }).map_err(NotIn::Tokens));
        if !matches!(entered, Ok(Ok(_))) {
            self.leave(session, browser).await?;
        }
        entered
    }

    /// SE-02: the session in the browser's cookies until now ends at once, as at a sign-in on our own pages.
    async fn leave_before(&self, before: Option<&Secret>, browser: &Browser) -> Result<(), Fault> {
        let Some(token) = before else { return Ok(()) };
        match self.kept_line(token).await? {
            Some(line) => self.leave(&line.session, browser).await,
            None => Ok(()),
        }
    }

    async fn begin_tokens(
        &self,
        caller: &Caller,
        (user, session): (&User, &Session),
    ) -> Result<Result<Handed, Error>, Fault> {
        let ahead = &Ahead::of(Some((session.clone(), user.clone())));
        let begun = self
            .settle(|now, fresh| async move {
                // A password was hashed meanwhile: the client as it is by now decides what it may have.
                let epoch = self.epoch().await?;
                let client = self.caller(caller, epoch).await?;
                let Some((session, user)) = ahead.or(|| self.ask(WithUser(Some(&session.id)))).await? else {
                    return Ok(Decision::refuse(Error::grant("the account may not be used")));
                };
                self.begun(client.as_deref(), (&user, &session), (now, &fresh), epoch).await
            })
            .await?;
        match begun {
            Ok(tokens) => self.handed(tokens, Issued::FirstParty).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Exchanges a refresh token of the account API.
    pub async fn renew_account(&self, caller: &Caller, token: &Secret) -> Result<Result<Handed, Error>, Fault> {
        let Some(token) = RefreshToken::read(token.reveal(), &self.keyring.sealing) else {
            return Ok(Err(Error::grant("the refresh token is not valid")));
        };
        let (token, family, ahead) = (&token, Some(&token.family), &Ahead::of(Some(Arc::clone(&caller.client))));
        let renewed = self
            .settle(|now, fresh| async move {
                // A retry judges by what the client is by then.
                let Some(client) = ahead.or(|| async { self.caller(caller, self.epoch().await?).await }).await? else {
                    return Ok(Decision::refuse(Error::client("the client may not be used")));
                };
                let (found, epoch) = self.ask((families::InContext(family), Epoch)).await?;
                self.unless_held(found.as_ref(), &token.family, (&client, now)).await?;
                let ask = Renewal { client: &client, token, scope: None, resources: Vec::new() };
                let renewed = first_party::renew(&ask, found.as_ref(), &self.context(), (now, &fresh));
                self.given(renewed, (now, self.epoch_of(epoch)?)).await
            })
            .await?;
        match renewed {
            Ok(tokens) => self.handed(tokens, Issued::Refresh).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Returns the account that an access token opens now, at the client that the token was issued to.
    pub async fn open_account(&self, token: &Secret) -> Result<Option<Opened>, Fault> {
        Ok(self.live(token.reveal()).await?.and_then(|live| self.opened(token, live)))
    }

    /// The same for signing out of the account: also while a fence holds the session.
    pub async fn open_account_to_end(&self, token: &Secret) -> Result<Option<Opened>, Fault> {
        Ok(self.live_to_end(token.reveal()).await?.and_then(|live| self.opened(token, live)))
    }

    fn opened(&self, token: &Secret, live: Live) -> Option<Opened> {
        if !first_party::opens(&live.claims, &live.client, &self.realm) {
            return None;
        }
        let (Some(family), Some(found)) = (family_of(&live.claims.jti), live.family) else { return None };
        let (Some(user), Some(session)) = (found.user, found.session) else { return None };
        let kept = match token.reveal().contains('.') {
            true => Single::Signed(live.claims.jti.clone()),
            false => Single::Opaque(token.handle()),
        };
        let token = (token.clone(), kept);
        Some(Opened { client: live.client, user, session, family, groups: found.groups, token })
    }

    /// Changes the password of an opened account. All else that its user had ends; this session goes on with new
    /// tokens, and anybody who may have copied the old ones is out.
    pub async fn change_account_password(
        &self,
        opened: Opened,
        typed: PasswordChange,
        browser: &Browser,
    ) -> Result<Result<Entered, NotChanged>, Fault> {
        let (app, browser) = (self.clone(), on_screen_of(&opened.client, browser));
        to_the_end(|pledge| async move {
            let who = Changing { session: &opened.session, user: &opened.user, token: Some(&opened.token.0) };
            let changed = match app.set_new_password(&pledge, &who, &typed, &browser).await? {
                Ok(changed) => changed,
                Err(why) => return Ok(Err(why)),
            };
            let tokens = changed.tokens.ok_or_else(|| Fault::Broken("a client got no tokens".into()))?;
            let handed = app.handed(tokens, Issued::FirstParty)?;
            Ok(Ok(Entered { handed, device: changed.device }))
        })
        .await
    }

    /// Returns the CSRF token that a request with cookies has to carry, for a token family.
    pub fn account_csrf(&self, family: &FamilyId) -> String {
        base64url(&mac(&*self.keyring.flow, &[b"account csrf", family.as_str().as_bytes()]))
    }

    /// Whether a request carries the CSRF token of its token family.
    pub fn account_csrf_holds(&self, family: &FamilyId, token: &str) -> bool {
        same(self.account_csrf(family).as_bytes(), token.as_bytes())
    }

    /// Returns the family of the account API that a refresh token carries on, while the family lives, or would but for
    /// a fence or the clock that dated it. Any token of the family does for ending it: nothing is issued for it.
    pub async fn kept_line(&self, refresh: &Secret) -> Result<Option<KeptLine>, Fault> {
        let Some(family) = self.line_of(refresh) else { return Ok(None) };
        let Some(found) = self.ask(families::ForEnding(&family)).await? else { return Ok(None) };
        let lasts = found.can_end(&self.realm.settings, self.clock.now());
        if !(lasts && first_party::is_for_accounts(&found, &self.realm)) {
            return Ok(None);
        }
        let client = self.client(&found.family.client, self.epoch().await?).await?;
        let client = client.filter(|client| first_party::is_admitted(client) && found.family.is_of(client));
        let is_recent = found.family.refresh.is_some_and(|newest| newest.is_recent(refresh));
        Ok(client.zip(found.session).map(|(client, session)| KeptLine { client, session, is_recent, family }))
    }

    /// Returns the family that a refresh token of ours carries on; `None` if the token is not ours.
    pub fn line_of(&self, refresh: &Secret) -> Option<FamilyId> {
        RefreshToken::read(refresh.reveal(), &self.keyring.sealing).map(|token| token.family)
    }
}

/// Returns the browser, or the application on its device, as one that shows a screen of this client.
fn on_screen_of(client: &Client, browser: &Browser) -> Browser {
    Browser { origin: browser.origin.by_way_of(Some(&client.id)), ..browser.clone() }
}

impl Opened {
    /// Requires that the token still opens the account. That its session, user and client are what they were is required
    /// where tokens are issued.
    pub(crate) fn stands(&self) -> Change {
        let (family, token) = (Some(self.family.clone()), Some(self.token.1.clone()));
        Change::Stands(Standing { family, token, ..Standing::default() })
    }

    /// Returns the account's claims about itself: those of OpenID Connect Core §5.1, with `sub`.
    pub fn claims(&self) -> Map<String, Value> {
        let scope = Scope::from(ABOUT_ONESELF.to_owned());
        let mut claims = userinfo::claims_of(&self.user, &self.groups, &scope, &[]);
        claims.insert("sub".into(), json!(self.user.id));
        claims
    }
}
