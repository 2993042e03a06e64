//! A database that has no room for anything new: existing rows can still be changed.

use super::{NOW, PASSWORD, database, newcomer, node, sign_in};
use crate::App;
use crate::account::PasswordChange;
use crate::browser::Browser;
use crate::clock::Clock;
use crate::fault::Fault;
use crate::flow::{Flow, Place, To};
use crate::sign_in::{SignedIn, Typed};
use rules::login::attempt::Refusal;
use rules::login::throttle::account_key;
use rules::people::{Role, User};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use store::engine::{Answer, Around, CommitError, Engine, Write};
use store::tables::counters::Each;

/// An engine in which, while it is full, only batches are committed that begin with a change of a counter.
struct Full {
    inner: Arc<dyn Engine>,
    full: AtomicBool,
}

impl Around for Full {
    fn inside(&self) -> &dyn Engine {
        &*self.inner
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        let counts = writes.first().is_some_and(|write| write.sql.text().starts_with("UPDATE counters"));
        if self.full.load(SeqCst) && !counts {
            return Box::pin(async { Err(CommitError::Unavailable("no space is left (53100)".to_owned())) });
        }
        self.inner.commit(writes)
    }
}

async fn tries(app: &App, password: &[u8]) -> Result<Result<SignedIn, Refusal>, Fault> {
    let flow = Flow::new(To::Place(Place::Account), NOW);
    app.sign_in(flow, Typed::new("ada", password), &Browser::default()).await
}

/// Returns the failures that are counted for a user.
async fn failures(app: &App, user: &User) -> i64 {
    let key = account_key(&app.keyring.lookup, user.id.as_str(), None);
    app.ask(Each(&[key])).await.unwrap()[0].map_or(0, |counter| counter.count)
}

#[tokio::test]
async fn a_right_password_is_no_failure_where_the_database_has_no_room_and_a_wrong_one_is() {
    // Red without unless_right in sign_in.rs: the sixth right password was told to wait. If it gave wrong ones back:
    // free guesses.
    let folder = tempfile::tempdir().unwrap();
    let engine = Arc::new(Full { inner: database(folder.path()).await, full: AtomicBool::new(false) });
    let app = node(Arc::clone(&engine) as Arc<_>, Clock::fixed(NOW)).await;
    app.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
    let mut browser = Browser::default();
    sign_in(&app, Flow::new(To::Place(Place::Account), NOW), &mut browser).await;
    let (session, ada) = app.session(&browser).await.unwrap().expect("signed in");
    // From now on there is a row to count in.
    assert_eq!(tries(&app, b"wrong").await.unwrap().err(), Some(Refusal::Wrong));
    engine.full.store(true, SeqCst);
    for _ in 0..8 {
        assert!(matches!(tries(&app, PASSWORD).await, Err(Fault::Unavailable(_))));
        let change = PasswordChange::new(PASSWORD, b"quite another one 7");
        let changed = app.change_password((&session, &ada), change, &Browser::default()).await;
        assert!(matches!(changed, Err(Fault::Unavailable(_))));
        assert_eq!(failures(&app, &ada).await, 1);
    }
    for counted in 2..=3 {
        assert!(matches!(tries(&app, b"wrong").await, Err(Fault::Unavailable(_))));
        assert_eq!(failures(&app, &ada).await, counted);
    }
    engine.full.store(false, SeqCst);
    assert!(tries(&app, PASSWORD).await.unwrap().is_ok());
    assert_eq!(failures(&app, &ada).await, 0);
}
