//! The session of an account home ends while something is done there.

use super::PASSWORD;
use super::edits::{Two, at_home};
use crate::account::{NotChanged, NotEnded, NotSaved, NotTaken, PasswordChange, ProfileForm};
use crate::browser::Browser;
use crate::{App, Fault};
use rules::Change;
use rules::id::SessionId;
use rules::login::session::Session;
use rules::oauth::consent::Consent;
use rules::oauth::scope::Scope;
use rules::people::User;
use std::pin::Pin;

/// Who does something, and another session of theirs.
#[derive(Clone)]
struct Own {
    session: Session,
    user: User,
    other: SessionId,
}

type Doing<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;
type Act = fn(App, Own) -> Doing<Result<(), &'static str>>;
type Ending = fn(App, Own) -> Doing<()>;

const SIGNED_OUT: &str = "signed out";

/// Everything that a form below `/account` does, but signing out: that is done whatever became of the session.
const ACTS: [(&str, Act); 6] = [
    ("a profile is saved", |app, own| {
        Box::pin(async move {
            let form = ProfileForm { claims: &[("name", "Mallory")], email: Some("mallory@evil.test") };
            Ok(app.save_profile(&own.session, &form).await?.map_err(|why| match why {
                NotSaved::SignedOut => SIGNED_OUT,
                _ => "another",
            }))
        })
    }),
    ("a password is changed", |app, own| {
        Box::pin(async move {
            let typed = PasswordChange::new(PASSWORD, b"another violet anvil 42");
            let changed = app.change_password((&own.session, &own.user), typed, &Browser::default()).await?;
            Ok(changed.map(drop).map_err(|why| match why {
                NotChanged::SignedOut => SIGNED_OUT,
                _ => "another",
            }))
        })
    }),
    ("the own session is ended", |app, own| Box::pin(async move { left(&app, &own, &own.session.id).await })),
    ("another session is ended", |app, own| Box::pin(async move { left(&app, &own, &own.other).await })),
    ("all others are ended", |app, own| {
        Box::pin(async move { Ok(app.leave_everywhere_else(&own.session).await?.map(drop).map_err(said)) })
    }),
    ("access is taken away", |app, own| {
        Box::pin(async move {
            Ok(app.revoke_consent(&own.session, &"shop".into()).await?.map_err(|why| match why {
                NotTaken::SignedOut => SIGNED_OUT,
                NotTaken::Nothing => "another",
            }))
        })
    }),
];

fn said(why: NotEnded) -> &'static str {
    match why {
        NotEnded::SignedOut => SIGNED_OUT,
        NotEnded::Unknown | NotEnded::SignInAgain => "another",
    }
}

async fn left(app: &App, own: &Own, which: &SessionId) -> Result<Result<(), &'static str>, Fault> {
    Ok(app.leave_one((&own.session, &own.user), which, &Browser::default()).await?.map_err(said))
}

const ENDINGS: [(&str, Ending); 3] = [
    ("it ends", |app, own| Box::pin(async move { app.leave(&own.session, &Browser::default()).await })),
    ("it goes on under another cookie", |app, own| {
        Box::pin(async move { app.leave_everywhere_else(&own.session).await.map(drop) })
    }),
    ("its owner is disabled", |app, own| {
        Box::pin(async move { app.set_user_enabled(&own.user, false).await.map(drop) })
    }),
];

/// Ada at home, signed in elsewhere, too, and with an application that she let in.
async fn signed_in() -> (Two, Own) {
    let two = Two::start().await;
    let elsewhere = at_home(&two).await;
    let (other, _) = two.here.session(&elsewhere).await.unwrap().expect("signed in");
    let (session, user) = two.here.session(&at_home(&two).await).await.unwrap().expect("signed in");
    let scope = Scope::from("openid".to_owned());
    let consent = Consent { user: user.id.clone(), client: "shop".into(), scope, granted: two.clock.now() };
    let grant = vec![Change::GrantConsent { consent: Box::new(consent), seen: None }];
    two.there.commit(grant, two.clock.now(), &crate::entropy::fresh().unwrap()).await.unwrap();
    (two, Own { session, user, other: other.id })
}

#[tokio::test]
async fn rc_07_nothing_is_done_in_a_session_that_ended_meanwhile() {
    // Red without `stands` of the session in any of these: a copy of the cookie does as it likes with the account after
    // its owner has ended it, and shuts its owner out.
    for (what, act) in ACTS {
        for (how, end) in ENDINGS {
            // Before each of its commits, until there are no more.
            for after in 0.. {
                let (two, own) = signed_in().await;
                let ended = end(two.there.clone(), own.clone());
                two.meanwhile(after, async move { ended.await.map_err(|fault| fault.to_string()) });
                let done = act(two.here.clone(), own).await.unwrap();
                if !two.interrupted.coming.is_over() {
                    assert!(done.is_ok() && after > 0, "{what}: {done:?}");
                    break;
                }
                assert_eq!(done, Err(SIGNED_OUT), "{what}, {how}, {after}");
            }
        }
    }
}
