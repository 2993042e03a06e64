//! How long the batches are of what is done in steps: on some servers each statement of a long one is a round trip, and
//! all of them have the time of one batch.

use super::{NOW, application, database, newcomer, node};
use crate::App;
use crate::admin::clients::ClientSecret;
use crate::audit::Filter;
use crate::clock::Clock;
use rules::events::{Kind, Rejection};
use rules::id::SessionId;
use rules::login::session::Session;
use rules::oauth::consent::Consent;
use rules::oauth::scope::Scope;
use rules::people::Role;
use rules::{Change, Handle, Span};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use store::engine::{Answer, Around, CommitError, Engine, SENT_AT_ONCE, Write};

/// An engine that notes how many statements its longest batch had.
struct Measured(Arc<dyn Engine>, AtomicUsize);

impl Around for Measured {
    fn inside(&self) -> &dyn Engine {
        &*self.0
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        self.1.fetch_max(writes.len(), SeqCst);
        self.0.commit(writes)
    }
}

/// What is done in steps takes no longer batch than this, but some.
async fn in_steps(what: &str, engine: &Measured, work: impl Future<Output = ()>) {
    engine.1.store(0, SeqCst);
    work.await;
    let longest = engine.1.load(SeqCst);
    assert!((2..=SENT_AT_ONCE).contains(&longest), "{what}: {longest}");
}

async fn commit(app: &App, changes: Vec<Change>) {
    app.commit(changes, NOW, &crate::entropy::fresh().unwrap()).await.unwrap();
}

/// A group with so many members.
async fn grouped(app: &App, many: usize) {
    let group = app.add_group("staff").await.unwrap().unwrap();
    for number in 0..many {
        let user = app.add_user(&newcomer(&format!("user{number}"), ""), Role::Member).await.unwrap().unwrap();
        let into = Change::SetMember { group: group.id.clone(), user: user.id, member: true };
        commit(app, vec![into]).await;
    }
}

#[tokio::test]
async fn what_is_done_in_steps_has_no_step_that_is_sent_statement_by_statement() {
    // Red with a page of members in one batch (admin/groups.rs, take_all_out), or with more than so many uses of
    // sessions (uses.rs) or rows of refusals (audit/rejections.rs) in one.
    let folder = tempfile::tempdir().unwrap();
    let engine = Arc::new(Measured(database(folder.path()).await, AtomicUsize::new(0)));
    let app = node(Arc::clone(&engine) as Arc<_>, Clock::fixed(NOW)).await;
    let many = SENT_AT_ONCE + 5;

    grouped(&app, many).await;
    in_steps("a group is removed", &engine, async { drop(app.remove_group("staff").await.unwrap().unwrap()) }).await;
    assert!(app.find_group("staff").await.unwrap().is_none());
    let wanted = Filter { kinds: vec![Kind::GroupChanged.name().to_owned()], ..Filter::default() };
    let lines = app.audit_lines(&wanted, "", true, 1000).await.unwrap().lines;
    let left = lines.iter().filter(|line| line.detail.contains("left")).count();
    assert_eq!(left, many, "what each lost is told");

    app.add_client(application("svc"), ClientSecret::Generated).await.unwrap().unwrap();
    for number in 0..1005 {
        let (user, scope) = (format!("user {number}").as_str().into(), Scope::from("read".to_owned()));
        let consent = Consent { user, client: "svc".into(), scope, granted: NOW };
        commit(&app, vec![Change::GrantConsent { consent: Box::new(consent), seen: None }]).await;
    }
    in_steps("an application is removed", &engine, async { app.remove_client(&"svc".into()).await.unwrap().unwrap() })
        .await;

    for number in 0..2 * many {
        app.note_use(&session(&format!("session {number:03}"))).await;
    }
    in_steps("uses are noted", &engine, async { app.write_uses().await.unwrap() }).await;

    in_steps("refusals are counted", &engine, async {
        // The first of each row is written at once, and the others wait.
        for number in (0..many).chain(0..many) {
            let from = format!("192.0.2.{number}").parse().unwrap();
            app.within("r1".into(), from, app.reject(Rejection::Client(None))).await;
        }
        app.write_rejections().await.unwrap();
    })
    .await;
}

/// A session whose use is due to be noted.
fn session(id: &str) -> Session {
    Session {
        id: SessionId(id.to_owned()),
        handle: Handle::of(id),
        user: "ada".into(),
        auth_time: NOW - Span::hours(1),
        amr: vec![],
        created: NOW - Span::hours(1),
        last_seen: NOW - Span::hours(1),
        expires: NOW + Span::days(1),
        agent: String::new(),
        address: String::new(),
        ended_at: None,
    }
}
