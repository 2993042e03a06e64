//! What an application holds of the account API ends while something is done with it.

use super::edits::Two;
use super::{PASSWORD, sign_in};
use crate::account::{NotChanged, PasswordChange};
use crate::admin::clients::ClientSecret;
use crate::browser::Browser;
use crate::flow::{Flow, Place, To};
use crate::sign_in::Typed;
use crate::{App, Fault};
use rules::oauth::client::{AccessFormat, Client};
use rules::secret::Secret;
use std::pin::Pin;

/// An access token and a refresh token of Ada's, and the secret of the application that holds them.
#[derive(Clone)]
struct Held {
    access: Secret,
    refresh: Secret,
    secret: Secret,
}

type Ending = fn(App, Held) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>;

async fn revoke(app: &App, token: &Secret) -> Result<(), Fault> {
    let client = app.find_client(&"shop".into()).await?.expect("registered");
    app.revoke(token.reveal(), &client).await.map(drop)
}

async fn made_first_party(app: &App, first_party: bool) -> Result<(), Fault> {
    let edit = |client: &mut Client| {
        client.first_party = first_party;
        Ok(())
    };
    app.edit_client(&"shop".into(), edit).await.map(drop)
}

/// Every way in which an application loses an account that it had opened, and whether its refresh token ends with that.
const ENDINGS: [(&str, bool, Ending); 5] = [
    ("its refresh token is revoked", true, |app, held| Box::pin(async move { revoke(&app, &held.refresh).await })),
    ("its access token is revoked", false, |app, held| Box::pin(async move { revoke(&app, &held.access).await })),
    ("it is disabled and enabled", true, |app, _| {
        Box::pin(async move {
            app.set_client_enabled(&"shop".into(), false).await?.unwrap();
            app.set_client_enabled(&"shop".into(), true).await.map(drop)
        })
    }),
    ("it is removed and added again", true, |app, held| {
        Box::pin(async move {
            let client = app.find_client(&"shop".into()).await?.expect("registered");
            app.remove_client(&client.id).await?.unwrap();
            app.add_client(client, ClientSecret::Given(held.secret)).await.map(drop)
        })
    }),
    ("it is none of the house for a moment", true, |app, _| {
        Box::pin(async move {
            made_first_party(&app, false).await?;
            made_first_party(&app, true).await
        })
    }),
];

/// An application whose access tokens are of that format, and what it holds.
async fn entered(format: AccessFormat) -> (Two, Held) {
    let two = Two::start().await;
    let edit = |client: &mut Client| {
        client.access_format = format;
        Ok(())
    };
    two.there.edit_client(&two.shop, edit).await.unwrap().unwrap();
    let entered = two.here.enter(&two.caller().await, Typed::new("ada", PASSWORD), &Browser::default(), None).await;
    let handed = entered.unwrap().unwrap().handed;
    let refresh = handed.refresh_token.expect("a refresh token");
    let held = Held { access: handed.access_token, refresh, secret: two.secret.clone() };
    (two, held)
}

fn ends(two: &Two, after: usize, end: Ending, held: &Held) {
    let ended = end(two.there.clone(), held.clone());
    two.meanwhile(after, async move { ended.await.map_err(|fault| fault.to_string()) });
}

#[tokio::test]
async fn a_password_is_not_changed_by_what_was_ended_meanwhile() {
    // Red without `ground` or `stands` in account.rs, replace_password: who had revoked a copied token, and was told so,
    // had handed out new ones.
    let new = b"another violet anvil 42";
    let opaque = ENDINGS.into_iter().filter(|(_, all, _)| !all).map(|ending| (ending, AccessFormat::Opaque));
    for ((what, _, end), format) in ENDINGS.into_iter().map(|ending| (ending, AccessFormat::Jwt)).chain(opaque) {
        // Before each of its commits but the first, which counts the attempt.
        for after in 1.. {
            let (two, held) = entered(format).await;
            let opened = two.here.open_account(&held.access).await.unwrap().expect("it is good");
            ends(&two, after, end, &held);
            let typed = PasswordChange::new(PASSWORD, new);
            let changed = two.here.change_account_password(opened, typed, &Browser::default()).await.unwrap();
            if !two.interrupted.coming.is_over() {
                assert!(changed.is_ok() && after > 1, "{what}: {changed:?}");
                break;
            }
            assert!(matches!(changed, Err(NotChanged::SignedOut)), "{what} {format:?} {after}: {changed:?}");
            let flow = Flow::new(To::Place(Place::Account), two.clock.now());
            sign_in(&two.there, flow, &mut Browser::default()).await;
        }
    }
}

#[tokio::test]
async fn a_line_of_the_account_api_does_not_go_on_that_was_ended_meanwhile() {
    for (what, all, end) in ENDINGS {
        let (two, held) = entered(AccessFormat::Jwt).await;
        let caller = two.caller().await;
        ends(&two, 0, end, &held);
        let renewed = two.here.renew_account(&caller, &held.refresh).await.unwrap();
        assert!(two.interrupted.coming.is_over(), "{what}");
        assert_eq!(renewed.is_err(), all, "{what}: {renewed:?}");
    }
}
