//! D2 to D5, decision by decision: what a node does when another server answers, or one that has lost something.
#![allow(clippy::disallowed_methods, reason = "tasks of a test end with it")]

mod addresses;
mod bounds;
mod issuers;
mod large;
mod leaving;
mod lines;
mod passwords;
mod retired;
mod server;
mod twice;

use crate::clock::Clock;
use crate::keyring::Keyring;
use crate::ward::{Journal as _, Ward};
use crate::{App, entropy};
use hasher::{Hasher, Settings as Hashing};
use rules::events::{Event, Kind};
use rules::id::{FamilyId, SessionId};
use rules::login::session::Session;
use rules::oauth::claims::ClaimsRequest;
use rules::oauth::code::{Code, Granted};
use rules::oauth::scope::Scope;
use rules::people::User;
use rules::realm::{Realm, Settings};
use rules::{Change, Fresh, Handle, Span, Time};
use server::{Paper, Server};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::engine::{CommitError, Durability, Engine};
use store::tables::codes::InContext;
use store::tables::families::OfToken;
use store::tables::fences::{self, Fence, Newest, State};
use store::tables::realms::AtEpoch;
use store::tables::users::ById;
use store::tables::{ask, nodes};

const NOW: Time = Time(1_000_000_000);
/// Younger than every fence.
const LATER: Time = Time(2 * NOW.0);

/// A node over a server that other nodes use, too.
struct Node {
    app: App,
    journal: Arc<Paper>,
    clock: Clock,
}

impl Node {
    async fn start(server: &Arc<Server>, name: &str) -> Node {
        Node::at(server, Paper::of(name), NOW).await
    }

    /// A node that starts with what it had on its disk.
    async fn at(server: &Arc<Server>, journal: Arc<Paper>, now: Time) -> Node {
        Node::under("http://a", server, journal, now).await
    }

    /// The same, under this public URL.
    async fn under(issuer: &str, server: &Arc<Server>, journal: Arc<Paper>, now: Time) -> Node {
        let realm = Realm { id: "main".into(), issuer: issuer.to_owned(), settings: Settings::default() };
        let ward = Ward::new(Arc::clone(server) as Arc<dyn Engine>, Arc::clone(&journal) as Arc<_>);
        let hasher = Hasher::start(Hashing::default()).unwrap();
        let clock = Clock::fixed(now);
        let app = App::warded(realm, ward, hasher, Keyring::new(&[7; 32]).unwrap(), clock.clone()).unwrap();
        Node { app, journal, clock }
    }

    /// A node that was started, and has let the server in.
    async fn ready(server: &Arc<Server>, name: &str) -> Node {
        let node = Node::start(server, name).await;
        node.app.meet().await.unwrap();
        node.app.prepare().await.unwrap();
        node
    }

    /// Revokes a token, with an audit entry, as a use case does.
    async fn revokes(&self, jti: &str) -> Result<(), CommitError> {
        let (now, fresh) = (self.clock.now(), entropy::fresh().unwrap());
        let revoke = Change::RevokeToken { jti: jti.to_owned(), expires: now + Span::hours(1) };
        let noted = Change::Record(Event::new(Kind::TokensRevoked, now));
        self.app.commit(vec![revoke, noted], now, &fresh).await
    }

    /// Disables a user, or enables them again.
    async fn disables(&self, user: &str, disabled_at: Option<Time>) {
        let (now, fresh) = (self.clock.now(), entropy::fresh().unwrap());
        let set = Change::SetDisabled { user: user.into(), disabled_at, at: now };
        let noted = Change::Record(Event::new(Kind::UserChanged, now));
        self.app.commit(vec![set, noted], now, &fresh).await.unwrap();
    }

    async fn is_disabled(&self, user: &str) -> bool {
        let found = ask(&**self.app.below(), &self.app.realm.id, ById(&user.into())).await.unwrap();
        found.unwrap().disabled_at.is_some()
    }

    async fn is_revoked(&self, jti: &str) -> bool {
        let leans = AtEpoch(OfToken { family: None, jti, issued: LATER, to_end: false });
        ask(&**self.app.below(), &self.app.realm.id, leans).await.unwrap().is_some_and(|(_, (_, revoked))| revoked)
    }

    async fn fences(&self) -> i64 {
        let newest = ask(&**self.app.below(), &self.app.realm.id, Newest).await.unwrap();
        newest.map_or(0, |fence| fence.number)
    }

    async fn is_open(&self, code: &FamilyId) -> bool {
        ask(&**self.app.below(), &self.app.realm.id, InContext(Some(code))).await.unwrap().is_some()
    }

    /// Whether requests reach the database.
    async fn serves(&self) -> bool {
        self.app.epoch().await.is_ok()
    }
}

fn session(at: Time) -> Session {
    Session {
        id: SessionId(Fresh::new([7; 32]).ordered("session", at)),
        handle: Handle::of("session"),
        user: "ada".into(),
        auth_time: at,
        amr: vec![],
        created: at,
        last_seen: at,
        expires: at + Span::days(1),
        agent: String::new(),
        address: String::new(),
        ended_at: None,
    }
}

fn code(family: &FamilyId) -> Code {
    let (scope, claims) = (Scope::default(), ClaimsRequest::default());
    Code {
        handle: Handle::of("code"),
        client: "shop".into(),
        life: None,
        user: "ada".into(),
        session: "s".into(),
        family: family.clone(),
        by_consent: None,
        redirect_uri: String::new(),
        challenge: None,
        granted: Granted {
            scope,
            resources: vec![],
            auth_time: NOW,
            amr: vec![],
            acr: "1".into(),
            nonce: None,
            claims,
            session: None,
        },
        expires: NOW + Span::minutes(1),
        redeemed_at: None,
    }
}

#[tokio::test]
async fn another_server_is_believed_when_it_was_told_what_it_lost() {
    // Red without `memory.lossy` in watch.rs, moved; without say_again in watch.rs, answer.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    node.revokes("kept").await.unwrap();
    let standby = server.standby().await;
    let lost = ["one", "two", "three"];
    for jti in lost {
        node.revokes(jti).await.unwrap();
    }
    server.fail_over(standby, "second");
    assert!(!node.serves().await, "nobody is let in before");
    node.app.meet().await.unwrap();
    assert!(node.serves().await);
    for jti in lost.into_iter().chain(["kept"]) {
        assert!(node.is_revoked(jti).await, "{jti}");
    }
    let status = node.app.fences().await.unwrap();
    assert!(!status.up && status.nodes.iter().all(|node| node.state == State::Replayed), "{status:?}");
    // From then on this is the server that the node knows.
    node.app.meet().await.unwrap();
    assert_eq!(node.fences().await, 1);
}

#[tokio::test]
async fn another_member_of_the_same_cluster_raises_no_fence_and_any_other_server_does() {
    // Red without `came_from` in watch.rs, moved; or where it is believed of any server.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    node.revokes("kept").await.unwrap();
    *server.came_from.lock().unwrap() = Some("first".to_owned());
    server.fail_over(server.standby().await, "second");
    node.app.meet().await.unwrap();
    assert_eq!((node.fences().await, node.serves().await, node.is_revoked("kept").await), (0, true, true));
    // That holds for the way from that server, and from no other.
    server.fail_over(server.standby().await, "third");
    node.app.meet().await.unwrap();
    assert_eq!(node.fences().await, 1);
}

#[tokio::test]
async fn what_was_given_back_since_is_not_taken_away_by_a_later_fence() {
    // Red without the witness's line in store::tables::journal, replay.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    let ada = Change::AddUser(Box::new(User::new("ada".into(), "ada", NOW)));
    node.app.commit(vec![ada], NOW, &entropy::fresh().unwrap()).await.unwrap();
    let standby = server.standby().await;
    node.disables("ada", Some(NOW)).await;
    server.fail_over(standby, "second");
    node.app.meet().await.unwrap();
    assert!(node.is_disabled("ada").await);
    node.disables("ada", None).await;
    let standby = server.standby().await;
    server.fail_over(standby, "third");
    node.app.meet().await.unwrap();
    assert_eq!((node.fences().await, node.is_disabled("ada").await), (2, false));
}

#[tokio::test]
async fn a_server_that_has_all_that_was_acknowledged_raises_no_fence() {
    let server = Server::start().await;
    *server.durability.lock().unwrap() = Durability::ZeroLoss;
    let node = Node::ready(&server, "a").await;
    node.revokes("one").await.unwrap();
    assert!(node.journal.records.lock().unwrap().is_empty(), "nothing could be lost");
    let standby = server.standby().await;
    server.fail_over(standby, "second");
    node.app.meet().await.unwrap();
    assert!(node.serves().await && node.fences().await == 0);
    // From the moment at which something could be lost, the journal is kept.
    *server.durability.lock().unwrap() = Durability::Bounded;
    node.app.meet().await.unwrap();
    node.revokes("two").await.unwrap();
    assert_eq!(node.journal.records.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_server_that_knows_less_than_it_acknowledged_is_told_whatever_its_name() {
    // Red without the marks in watch.rs, moved; the second loss without `max(memory.mark)` in watch.rs, beat.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    for (loss, jti) in ["first", "second"].into_iter().enumerate() {
        let standby = server.standby().await;
        node.app.meet().await.unwrap();
        node.revokes(jti).await.unwrap();
        server.forget(standby);
        node.app.meet().await.unwrap();
        assert!(node.is_revoked(jti).await, "{jti}");
        assert_eq!(node.fences().await, loss as i64 + 1);
    }
    let listed = ask(&**node.app.below(), &node.app.realm.id, nodes::All).await.unwrap();
    assert_eq!(listed[0].mark, node.journal.memory().mark);
}

#[tokio::test]
async fn a_database_that_was_put_back_and_forth_is_missing_what_was_acknowledged_in_between() {
    // Red without `max(memory.mark)` in watch.rs, beat.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    let (first, standby) = (server.now(), server.standby().await);
    for _ in 0..5 {
        node.app.meet().await.unwrap();
    }
    server.forget(standby);
    node.app.meet().await.unwrap();
    node.revokes("in between").await.unwrap();
    server.forget(first);
    node.app.meet().await.unwrap();
    assert!(node.is_revoked("in between").await);
}

#[tokio::test]
async fn open_codes_of_before_are_void() {
    // Red without code_ttl and SLACK in fence.rs, fence_off.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    let (open, at) = (FamilyId(Fresh::new([7; 32]).ordered("code", NOW - Span::seconds(30))), NOW);
    let issued = vec![Change::IssueCode(Box::new(code(&open)))];
    node.app.commit(issued, at, &entropy::fresh().unwrap()).await.unwrap();
    assert!(node.is_open(&open).await);
    let standby = server.standby().await;
    server.fail_over(standby, "second");
    node.app.meet().await.unwrap();
    assert!(!node.is_open(&open).await);
}

#[tokio::test]
async fn a_fence_that_waits_for_nobody_is_lifted_by_whoever_looks() {
    // Red without the look at `up` in watch.rs, catch_up: a node stopped after its report and before the lifting.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    let epoch = node.app.epoch().await.unwrap();
    let fence = Fence { number: 1, at: NOW, identity: "first".into(), epoch };
    node.app.below().commit(fences::raise(&node.app.realm.id, &fence, NOW, &[])).await.unwrap();
    assert!(node.app.fences().await.unwrap().up);
    node.app.meet().await.unwrap();
    assert!(!node.app.fences().await.unwrap().up);
}

#[tokio::test]
async fn nobody_is_let_in_while_it_is_said_again() {
    // Red without `gate.close` in watch.rs, look_at_server.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    let standby = server.standby().await;
    node.app.meet().await.unwrap();
    node.revokes("lost").await.unwrap();
    let seen = Arc::new(std::sync::Mutex::new(None));
    let (ward, told) = (node.app.ward.clone().unwrap(), Arc::clone(&seen));
    *node.journal.on_read.lock().unwrap() = Some(Box::new(move || *told.lock().unwrap() = Some(ward.gate.passes())));
    // Its generation is the one that was let in.
    server.forget(standby);
    node.app.meet().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), Some(None));
    assert!(node.serves().await);
}

#[tokio::test]
async fn what_another_server_may_have_lost_before_it_was_in_the_journal_is_not_acknowledged() {
    // Red without the second look in mod.rs, commit_and_note.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    let standby = server.standby().await;
    let fails = Arc::clone(&server);
    let mut standby = Some(standby);
    *node.journal.on_append.lock().unwrap() =
        Some(Box::new(move || standby.take().into_iter().for_each(|to| fails.fail_over(to, "second"))));
    assert!(matches!(node.revokes("between").await, Err(CommitError::Unknown(_))));
    // It is in the journal all the same, and is ended.
    node.app.meet().await.unwrap();
    assert!(node.is_revoked("between").await);
}

#[tokio::test]
async fn who_says_it_again_waits_for_what_is_on_its_way_into_the_journal() {
    // Red without `turn` in watch.rs, look_at_server.
    let server = Server::start().await;
    let node = Arc::new(Node::ready(&server, "a").await);
    let standby = server.standby().await;
    let slow = node.journal.slow.write().await;
    let committed = Arc::new(tokio::sync::Notify::new());
    let tells = Arc::clone(&committed);
    *node.journal.on_append.lock().unwrap() = Some(Box::new(move || tells.notify_one()));
    let revoking = tokio::spawn({
        let node = Arc::clone(&node);
        async move { node.revokes("on its way").await }
    });
    // The batch was committed, and waits for the journal.
    committed.notified().await;
    server.fail_over(standby, "second");
    let meeting = tokio::spawn({
        let node = Arc::clone(&node);
        async move { node.app.meet().await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!meeting.is_finished(), "it did not wait");
    drop(slow);
    meeting.await.unwrap().unwrap();
    drop(revoking.await);
    assert!(node.is_revoked("on its way").await);
}

#[tokio::test]
async fn nodes_that_see_the_same_server_share_a_fence_and_wait_for_each_other() {
    // Red without joining in fence.rs, fence_off; without `there`; without catch_up in watch.rs.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    let standby = server.standby().await;
    one.revokes("of one").await.unwrap();
    other.revokes("of the other").await.unwrap();
    server.fail_over(standby, "second");
    one.app.meet().await.unwrap();
    let status = one.app.fences().await.unwrap();
    assert_eq!((status.up, status.waiting().collect::<Vec<_>>()), (true, vec!["b"]));
    assert!(!one.is_revoked("of the other").await);
    other.app.meet().await.unwrap();
    assert!(other.is_revoked("of the other").await && other.is_revoked("of one").await);
    assert_eq!((other.fences().await, other.app.fences().await.unwrap().up), (1, false));
}

#[tokio::test]
async fn a_node_that_sees_nothing_of_a_failover_says_its_journal_when_others_wait_for_it() {
    // Red without catch_up.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    // In the copy, the marks of both are as good as their memory, but for what the first node reported since.
    let standby = server.standby().await;
    one.app.meet().await.unwrap();
    other.revokes("of the other").await.unwrap();
    server.forget(standby);
    one.app.meet().await.unwrap();
    assert_eq!(one.app.fences().await.unwrap().waiting().collect::<Vec<_>>(), ["b"]);
    other.app.meet().await.unwrap();
    assert!(other.is_revoked("of the other").await && !other.app.fences().await.unwrap().up);
}

#[tokio::test]
async fn yet_another_server_is_not_let_in_for_the_one_that_was_looked_at() {
    // Red without the comparison in watch.rs, let_in.
    let server = Server::start().await;
    let node = Node::start(&server, "a").await;
    node.app.commit(vec![], NOW, &entropy::fresh().unwrap()).await.unwrap();
    let stirs = Arc::clone(&server);
    *node.journal.on_remember.lock().unwrap() = Some(Box::new(move || stirs.stir()));
    assert!(node.app.meet().await.is_err());
    assert!(!node.serves().await);
    node.app.meet().await.unwrap();
}

#[tokio::test]
async fn a_journal_that_does_not_reach_back_far_enough_does_not_answer_the_fence() {
    // Red without `whole` in watch.rs, answer.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    let standby = server.standby().await;
    node.revokes("lost").await.unwrap();
    *node.journal.cut.lock().unwrap() = true;
    server.fail_over(standby, "second");
    node.app.meet().await.unwrap();
    let status = node.app.fences().await.unwrap();
    assert_eq!((status.up, status.waiting().collect::<Vec<_>>()), (true, vec!["a"]));
    assert!(node.is_revoked("lost").await, "what it has, it says");
    // An operator gives the rest up.
    assert!(node.app.accept_loss("b").await.unwrap().is_err());
    assert!(!node.app.accept_loss("a").await.unwrap().unwrap().up);
    // A replay tells a later fence nothing of what the journal does not have.
    let standby = server.standby().await;
    server.fail_over(standby, "third");
    node.app.meet().await.unwrap();
    assert!(node.app.fences().await.unwrap().up);
}

#[tokio::test]
async fn a_node_that_was_away_for_so_long_that_it_was_taken_out_has_lost_nothing() {
    // Red without may_be_swept in watch.rs, moved.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    one.clock.advance(Span::days(31));
    one.app.meet().await.unwrap();
    one.app.sweep_nodes().await.unwrap();
    assert_eq!(one.app.nodes().await.unwrap().len(), 1);
    let back = Node::at(&server, Arc::clone(&other.journal), NOW + Span::days(31)).await;
    back.app.meet().await.unwrap();
    assert_eq!((back.fences().await, back.app.nodes().await.unwrap().len()), (0, 2));
}

#[tokio::test]
async fn old_fences_go_but_for_the_newest_and_those_that_wait() {
    // Red without the conditions of fences::Before.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    for name in ["second", "third"] {
        let standby = server.standby().await;
        server.fail_over(standby, name);
        one.app.meet().await.unwrap();
        other.app.meet().await.unwrap();
    }
    one.clock.advance(Span::days(31));
    one.app.meet().await.unwrap();
    // Raised now, and waits for no other node.
    let standby = server.standby().await;
    server.fail_over(standby, "fourth");
    one.app.meet().await.unwrap();
    assert_eq!(one.fences().await, 3);
    one.app.sweep_nodes().await.unwrap();
    let left: Vec<i64> = one.app.fences().await.unwrap().nodes.iter().map(|concerned| concerned.number).collect();
    assert_eq!(left, [3]);
    one.app.sweep_nodes().await.unwrap();
    assert_eq!(one.fences().await, 3);
}
