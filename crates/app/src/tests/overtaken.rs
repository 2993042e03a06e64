//! The stored hash of a password is replaced while a user proves another one.

use super::{NOW, PASSWORD, database, node};
use crate::App;
use crate::account::{NotChanged, PasswordChange};
use crate::browser::Browser;
use crate::clock::Clock;
use crate::flow::{Flow, Place, To};
use crate::sign_in::Typed;
use crate::sign_up::NewPerson;
use rules::events::Kind;
use rules::login::attempt::Refusal;
use rules::people::Role;
use rules::people::names::LoginKey;
use std::path::Path;
use std::sync::{Arc, Mutex};
use store::engine::{Answer, Around, CommitError, Engine, Write};
use store::tables::users::ByLogin;

/// An engine in which another hash is stored before the next commit, for as often as there is one.
struct Replacing {
    inner: Arc<dyn Engine>,
    hashes: Mutex<Vec<String>>,
}

impl Replacing {
    async fn store(&self, hash: &str) {
        self.inner.alter(vec![format!("UPDATE users SET password = '{hash}' WHERE username = 'ada'")]).await.unwrap();
    }
}

impl Around for Replacing {
    fn inside(&self) -> &dyn Engine {
        &*self.inner
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move {
            let next = self.hashes.lock().unwrap().pop();
            if let Some(hash) = next {
                self.store(&hash).await;
            }
            self.inner.commit(writes).await
        })
    }
}

/// Returns the hash of a password, which a new user of this name has from now on.
async fn hash_of(app: &App, name: &str, password: &[u8]) -> String {
    app.add_user(&NewPerson::new(name, "", password), Role::Member).await.unwrap().unwrap();
    let somebody = app.ask(ByLogin(LoginKey::of(name).as_ref())).await.unwrap().unwrap();
    somebody.password.unwrap()
}

/// A node over such an engine, and three hashes: of ada's password, of the same once more, and of another one.
async fn stage(folder: &Path) -> (Arc<Replacing>, App, [String; 3]) {
    let engine = Arc::new(Replacing { inner: database(folder).await, hashes: Mutex::default() });
    let app = node(Arc::clone(&engine) as Arc<_>, Clock::fixed(NOW)).await;
    let (first, second) = (hash_of(&app, "ada", PASSWORD).await, hash_of(&app, "ben", PASSWORD).await);
    let other = hash_of(&app, "cyd", b"quite another one 7").await;
    (engine, app, [first, second, other])
}

#[tokio::test]
async fn whoever_knows_the_password_is_let_in_although_it_is_hashed_anew_meanwhile() {
    // Red without the second try in sign_in.rs, tried: a right password was "wrong", and counted.
    let folder = tempfile::tempdir().unwrap();
    let (engine, app, [first, second, other]) = stage(folder.path()).await;
    let failures = async || {
        let lines = app.ask(store::tables::audit::Unsealed { limit: 1000 }).await.unwrap();
        lines.iter().filter(|line| line.kind == Kind::SignInFailed.name()).count()
    };
    let tried = async |hashes: &[&String]| {
        engine.store(&first).await;
        // The last one is taken first.
        *engine.hashes.lock().unwrap() = hashes.iter().rev().map(|hash| (*hash).clone()).collect();
        let flow = Flow::new(To::Place(Place::Account), NOW);
        app.sign_in(flow, Typed::new("ada", PASSWORD), &Browser::default()).await.unwrap().map(drop)
    };
    assert_eq!((tried(&[&second]).await, failures().await), (Ok(()), 0));
    // A new password is really another one. Red without `same`.
    assert_eq!((tried(&[&other]).await, failures().await), (Err(Refusal::Wrong), 1));
    // It does not go on for ever.
    let again = tried(&[&second, &first, &second, &first]).await;
    assert!(matches!(again, Err(Refusal::Wrong)), "{again:?}");
}

#[tokio::test]
async fn whoever_knows_the_password_changes_it_although_it_is_hashed_anew_meanwhile() {
    // Red without the second try in account.rs, set_new_password: a right password was "wrong".
    let folder = tempfile::tempdir().unwrap();
    let (engine, app, [first, second, other]) = stage(folder.path()).await;
    let changed = async |hashes: &[&String]| {
        engine.store(&first).await;
        let (flow, browser) = (Flow::new(To::Place(Place::Account), NOW), Browser::default());
        let entered = app.sign_in(flow, Typed::new("ada", PASSWORD), &browser).await.unwrap().unwrap();
        *engine.hashes.lock().unwrap() = hashes.iter().rev().map(|hash| (*hash).clone()).collect();
        let typed = PasswordChange::new(PASSWORD, b"a third one: 8 pears");
        app.change_password((&entered.started.session, &entered.user), typed, &browser).await.unwrap().map(drop)
    };
    assert!(matches!(changed(&[&second]).await, Ok(())));
    // A new password is really another one.
    assert!(matches!(changed(&[&other]).await, Err(NotChanged::Current(Refusal::Wrong))));
    // It does not go on for ever.
    let again = changed(&[&second, &first, &second, &first]).await;
    assert!(matches!(again, Err(NotChanged::Current(Refusal::Wrong))));
}
