//! An application that is changed between a decision and its commit: the request is judged by what the application is
//! by then, and is not told to come again.

use super::coming::Coming;
use super::shop::{REDIRECT, code, params, request};
use super::{NOW, PASSWORD, application, database, hashing_node, newcomer, node, sign_in};
use crate::account::{NotSaved, ProfileForm};
use crate::admin::clients::ClientSecret;
use crate::api::{Caller, Entered, NotIn};
use crate::authorize::Outcome;
use crate::browser::Browser;
use crate::clock::Clock;
use crate::flow::{Flow, Place, To};
use crate::sign_in::{Next, Typed};
use crate::token::Handed;
use crate::{App, Fault};
use hasher::{Policy, Settings as Hashing};
use rules::Span;
use rules::events::Kind;
use rules::id::ClientId;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::client_auth::{Means, Proof};
use rules::oauth::error::{Code, Error};
use rules::oauth::scope::Scope;
use rules::people::Role;
use rules::secret::Secret;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use store::engine::{Answer, Around, CommitError, Engine, Read, Row, Unavailable, Value, Write};
use tempfile::TempDir;

/// An engine in which something happens before one of its commits, or before one that issues tokens.
pub(super) struct Interrupted {
    inner: Arc<dyn Engine>,
    pub(super) coming: Coming,
    pub(super) issuing: Coming,
    /// Whether it answers no question any more once tokens were issued.
    pub(super) falls_silent: AtomicBool,
    is_silent: AtomicBool,
}

impl Around for Interrupted {
    fn inside(&self) -> &dyn Engine {
        &*self.inner
    }
    fn fetch_around<'a>(&'a self, reads: &'a [Read]) -> Answer<'a, Vec<Vec<Row>>, Unavailable> {
        match self.is_silent.load(SeqCst) {
            true => Box::pin(async { Err(Unavailable("it is silent".to_owned())) }),
            false => self.inner.fetch(reads),
        }
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move {
            self.coming.now().await.map_err(CommitError::Unavailable)?;
            let line = Value::Text(Kind::TokensIssued.name().to_owned());
            let issues = writes.iter().any(|write| write.args.contains(&line));
            if issues {
                self.issuing.now().await.map_err(CommitError::Unavailable)?;
            }
            let done = self.inner.commit(writes).await;
            if issues && done.is_ok() && self.falls_silent.load(SeqCst) {
                self.is_silent.store(true, SeqCst);
            }
            done
        })
    }
}

/// A node whose commits can be interrupted, another node on the same database, and an application.
pub(super) struct Two {
    _folder: TempDir,
    pub(super) interrupted: Arc<Interrupted>,
    pub(super) here: App,
    pub(super) there: App,
    pub(super) shop: ClientId,
    pub(super) secret: Secret,
    pub(super) clock: Clock,
}

impl Two {
    pub(super) async fn start() -> Self {
        Two::hashing(Hashing::default()).await
    }

    /// Sets up both; the other node hashes passwords like this.
    async fn hashing(elsewhere: Hashing) -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
        let engine = database(folder.path()).await;
        let interrupted = Arc::new(Interrupted {
            inner: Arc::clone(&engine),
            coming: Coming::default(),
            issuing: Coming::default(),
            falls_silent: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
        });
        let there = hashing_node(engine, clock.clone(), elsewhere).await;
        let here = node(Arc::clone(&interrupted) as Arc<_>, clock.clone()).await;
        there.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
        let shop = Client {
            redirect_uris: vec![REDIRECT.into()],
            grants: vec![Grant::AuthorizationCode, Grant::RefreshToken, Grant::ClientCredentials, Grant::DeviceCode],
            scope: Scope::from("openid read".to_owned()),
            auth_methods: vec![AuthMethod::Post],
            trusted: true,
            first_party: true,
            ..application("shop")
        };
        let (_, secret) = there.add_client(shop, ClientSecret::Generated).await.unwrap().unwrap();
        let secret = secret.expect("it was generated");
        Two { _folder: folder, interrupted, here, there, shop: "shop".into(), secret, clock }
    }

    /// Lets the other node make this change to the application after so many commits of this node.
    fn edited(&self, after: usize, edit: fn(&mut Client)) {
        let (there, shop) = (self.there.clone(), self.shop.clone());
        self.meanwhile(after, async move {
            let edited = there.edit_client(&shop, |client| {
                edit(client);
                Ok(())
            });
            edited.await.map(drop).map_err(|fault| fault.to_string())
        });
    }

    pub(super) fn meanwhile(&self, after: usize, event: impl Future<Output = Result<(), String>> + Send + 'static) {
        self.interrupted.coming.after(after, event);
    }

    /// The same, with a change that has nothing to do with what is asked.
    fn renamed(&self, after: usize) {
        self.edited(after, |client| client.name.push('!'));
    }

    async fn token(&self, pairs: &[(&str, &str)]) -> Result<Result<Handed, Error>, Fault> {
        self.here.token(&params(pairs), self.proof()).await
    }

    /// The proof of the application.
    pub(super) fn proof(&self) -> Proof {
        Proof { client: self.shop.clone(), means: Means::Post(self.secret.clone()) }
    }

    /// Returns the application as a caller of the account API.
    pub(super) async fn caller(&self) -> Caller {
        self.here.first_party(self.proof(), None).await.unwrap().unwrap()
    }

    /// Returns the tokens of a request whose client is renamed in the middle.
    async fn renamed_meanwhile(&self, pairs: &[(&str, &str)]) -> Handed {
        self.renamed(0);
        let handed = self.token(pairs).await.unwrap().unwrap();
        assert!(self.interrupted.coming.is_over(), "it was renamed");
        handed
    }
}

/// Returns Ada's browser, in which she signed in while the application was renamed, and the code that came of it.
async fn signed_in(two: &Two) -> (Browser, String) {
    let mut browser = Browser { flow: Some(Secret::new("the flow of this browser")), ..Browser::default() };
    let Outcome::SignIn(page) = two.here.authorize(request(), &browser).await.unwrap() else { panic!("no page") };
    let flow = two.here.open_flow(&page.flow.text, &browser).unwrap();
    two.clock.advance(Span::seconds(1));
    // The first commit counts the attempt.
    two.renamed(1);
    match sign_in(&two.here, flow, &mut browser).await {
        Next::Respond(answer) => (browser, code(&answer)),
        Next::GoOn(flow) => panic!("no code: {flow:?}"),
    }
}

#[tokio::test]
async fn whatever_is_issued_while_an_application_is_changed_is_issued_to_what_it_is_by_then() {
    // Red without `look_again` in app/token.rs, the second look in app/authorize.rs, go_on, or Ahead of the scene in
    // app/sign_in.rs, judged.
    let two = Two::start().await;
    let (browser, mut code) = signed_in(&two).await;
    for _ in 0..2 {
        let pairs = [
            ("grant_type", "authorization_code"),
            ("code", &*code),
            ("redirect_uri", REDIRECT),
            ("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        ];
        let first = two.renamed_meanwhile(&pairs).await.refresh_token.expect("a refresh token");
        let pairs = [("grant_type", "refresh_token"), ("refresh_token", first.reveal())];
        two.renamed_meanwhile(&pairs).await;
        // Once more, in a session that exists.
        two.renamed(0);
        code = match two.here.authorize(request(), &browser).await.unwrap() {
            Outcome::Respond(answer) => self::code(&answer),
            other => panic!("no code: {other:?}"),
        };
    }
    two.renamed_meanwhile(&[("grant_type", "client_credentials"), ("scope", "read")]).await;
    let names = two.there.find_client(&two.shop).await.unwrap().expect("registered").name;
    assert_eq!(names, format!("shop{}", "!".repeat(8)), "each of them met a change");
}

#[tokio::test]
async fn an_account_goes_on_while_its_application_is_changed() {
    // Red without Ahead in app/api.rs, renew_account.
    let two = Two::start().await;
    let shop = two.caller().await;
    let entered = two.here.enter(&shop, Typed::new("ada", PASSWORD), &Browser::default(), None).await.unwrap().unwrap();
    let mut refresh = entered.handed.refresh_token.expect("a refresh token");
    two.renamed(0);
    refresh = two.here.renew_account(&shop, &refresh).await.unwrap().unwrap().refresh_token.expect("the next");
    two.edited(0, |client| client.first_party = false);
    assert!(two.here.renew_account(&shop, &refresh).await.unwrap().is_err(), "it may not any more");
}

#[tokio::test]
async fn whoever_calls_for_an_account_is_still_who_they_proved_to_be_when_there_are_tokens() {
    // Red without is_proved in app/api.rs, or with tokens begun for the user from before the commit that met a change.
    let refused = |answer: Result<Result<Entered, NotIn>, Fault>| match answer.unwrap().map(drop).unwrap_err() {
        NotIn::Tokens(error) => error.code,
        other => panic!("{other:?}"),
    };
    for after in 0..3 {
        let two = Two::start().await;
        let shop = two.caller().await;
        let (there, id) = (two.there.clone(), two.shop.clone());
        two.meanwhile(after, async move {
            let secret = Secret::new("a new secret that is as long as one should be, 0123456789");
            there.rotate_secret(&id, Some(secret)).await.map(drop).map_err(|fault| fault.to_string())
        });
        let typed = Typed::new("ada", PASSWORD);
        let entered = two.here.enter(&shop, typed, &Browser::default(), None).await;
        assert!(two.interrupted.coming.is_over(), "{after}");
        assert_eq!(refused(entered), Code::InvalidClient, "{after}");
    }
    let two = Two::start().await;
    let shop = two.caller().await;
    let there = two.there.clone();
    // Between her session and its tokens.
    two.meanwhile(2, async move {
        let found = there.find_user("ada").await.map_err(|fault| fault.to_string())?;
        let user = found.map_err(|refused| refused.to_string())?.ok_or("no ada")?;
        there.set_user_enabled(&user, false).await.map(drop).map_err(|fault| fault.to_string())
    });
    let entered = two.here.enter(&shop, Typed::new("ada", PASSWORD), &Browser::default(), None).await;
    assert!(two.interrupted.coming.is_over());
    assert_eq!(refused(entered), Code::InvalidGrant);
}

#[tokio::test]
async fn a_device_asks_in_the_name_of_what_its_application_is() {
    // Red without Ahead in app/device.rs, device_ask: the device would be told to come again.
    let two = Two::start().await;
    let shop = two.there.find_client(&two.shop).await.unwrap().expect("registered");
    let scope = params(&[("scope", "openid")]);
    let (there, id) = (two.there.clone(), two.shop.clone());
    two.meanwhile(
        0,
        async move { there.set_client_enabled(&id, false).await.map(drop).map_err(|fault| fault.to_string()) },
    );
    let refused = two.here.device_ask(&shop, &scope, "192.0.2.1").await.unwrap().map(drop).unwrap_err();
    assert_eq!(refused.code, Code::InvalidClient);
}

#[tokio::test]
async fn who_is_no_longer_who_they_proved_to_be_meanwhile_gets_nothing() {
    // Red without the proof in app/token.rs, look_again.
    let own = [("grant_type", "client_credentials"), ("scope", "read")];
    let refused = |answer: Result<Result<Handed, Error>, Fault>| answer.unwrap().map(drop).unwrap_err().code;
    let two = Two::start().await;
    two.edited(0, |client| client.scope = Scope::from("openid".to_owned()));
    assert_eq!(refused(two.token(&own).await), Code::InvalidScope);
    let two = Two::start().await;
    let (there, shop) = (two.there.clone(), two.shop.clone());
    two.meanwhile(0, async move {
        let secret = Secret::new("a new secret that is as long as one should be, 0123456789");
        there.rotate_secret(&shop, Some(secret)).await.map(drop).map_err(|fault| fault.to_string())
    });
    assert_eq!(refused(two.token(&own).await), Code::InvalidClient);
}

#[tokio::test]
async fn a_browser_that_proved_the_password_of_before_is_not_known_by_the_one_of_now() {
    // Red where passwords.rs, rehash, returns what it found in place of what was proved: somebody with the old password
    // would be known for as long as the new one lasts.
    let two = Two::hashing(Hashing { policy: Policy::new(7168, 5, 1).unwrap(), ..Hashing::default() }).await;
    let there = two.there.clone();
    // Her session is there, and her password is hashed once more.
    two.meanwhile(2, async move {
        let found = there.find_user("ada").await.map_err(|fault| fault.to_string())?;
        let user = found.map_err(|refused| refused.to_string())?.ok_or("no ada")?;
        there.set_password(&user, b"another violet anvil 42").await.map(drop).map_err(|fault| fault.to_string())
    });
    let flow = Flow::new(To::Place(Place::Account), two.clock.now());
    let signed_in = two.here.sign_in(flow, Typed::new("ada", PASSWORD), &Browser::default()).await.unwrap().unwrap();
    assert!(two.interrupted.coming.is_over(), "her password was changed meanwhile");
    let now = two.there.find_user("ada").await.unwrap().unwrap().expect("ada");
    let browser = Browser { device: Some(signed_in.device), ..Browser::default() };
    assert_eq!(two.here.known_device(&browser, &now), None);
    assert!(two.here.known_device(&browser, &signed_in.user).is_some(), "by what was proved it was");
}

/// Returns Ada's browser, in which she signed in to her account.
pub(super) async fn at_home(two: &Two) -> Browser {
    let mut browser = Browser::default();
    sign_in(&two.here, Flow::new(To::Place(Place::Account), two.clock.now()), &mut browser).await;
    browser
}

#[tokio::test]
async fn asvs_7_5_1_an_address_that_was_verified_meanwhile_is_kept() {
    // Red without `seen` of Change::SetEmail.
    let two = Two::start().await;
    let browser = at_home(&two).await;
    two.clock.advance(Span::minutes(11));
    let (session, user) = two.here.session(&browser).await.unwrap().expect("signed in");
    let (there, ada) = (two.there.clone(), user.clone());
    two.meanwhile(0, async move {
        there.set_claims(&ada, &[("email", "ada@work.test")]).await.map(drop).map_err(|fault| fault.to_string())
    });
    let form = ProfileForm { claims: &[], email: Some("mallory@evil.test") };
    let saved = two.here.save_profile(&session, &form).await.unwrap();
    assert!(two.interrupted.coming.is_over(), "it was set in the middle");
    assert_eq!(saved, Err(NotSaved::SignInAgain));
}
