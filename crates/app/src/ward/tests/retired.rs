//! Records of which the audit log tells nothing any more: what told of them was removed.

use super::*;
use crate::audit::Terms;
use rules::audit::{Key, Keys};
use store::tables::audit::{Begins, Whole};

/// A node at which ada was disabled and enabled again, and whose audit log has no block left.
async fn long_ago(server: &Arc<Server>) -> Node {
    let node = Node::ready(server, "a").await;
    let keys = Keys { current: Some(Key::new([7; 32].into())), old: vec![] };
    node.app.open_books(Terms { keys, retention: Span::days(2), ..Terms::default() });
    let ada = Change::AddUser(Box::new(User::new("ada".into(), "ada", NOW)));
    node.app.commit(vec![ada], NOW, &entropy::fresh().unwrap()).await.unwrap();
    node.disables("ada", Some(NOW)).await;
    node.disables("ada", None).await;
    node.app.seal_once().await.unwrap();
    node.clock.advance(Span::days(3));
    node.app.meet().await.unwrap();
    assert_eq!(node.app.discard_audit(i64::MAX).await.unwrap(), Ok(1));
    let left = (Begins, Whole { number: 0, limit: 1 });
    let (begins, blocks) = ask(&**node.app.below(), &node.app.realm.id, left).await.unwrap();
    assert!(begins.is_some() && blocks.is_empty());
    // The parts of the journal before that day are gone.
    *node.journal.cut.lock().unwrap() = true;
    node
}

#[tokio::test]
async fn what_is_as_old_as_a_log_that_was_removed_as_a_whole_is_not_said() {
    // Red where `kept_since` in replay.rs is None without a block: the record would be taken for a lost one, and
    // nothing in the log would show that nothing before it was lost.
    let server = Server::start().await;
    let node = long_ago(&server).await;
    server.fail_over(server.standby().await, "second");
    node.app.meet().await.unwrap();
    assert_eq!((node.fences().await, node.is_disabled("ada").await), (1, false));
    let status = node.app.fences().await.unwrap();
    assert!(!status.up && status.nodes.iter().all(|node| node.state == State::Replayed), "{status:?}");
}

#[tokio::test]
async fn what_was_removed_is_not_said_because_an_older_line_came_back_since() {
    // Red with `block.oldest` in replay.rs, kept_since: of all that is younger than that line, what was removed would
    // be taken for lost.
    let server = Server::start().await;
    let node = long_ago(&server).await;
    let (before, fresh) = (NOW - Span::hours(1), entropy::fresh().unwrap());
    let back = Change::Record(Event::new(Kind::FenceReplayed, before));
    node.app.commit(vec![back], before, &fresh).await.unwrap();
    node.app.seal_once().await.unwrap();
    server.fail_over(server.standby().await, "second");
    node.app.meet().await.unwrap();
    assert_eq!((node.fences().await, node.is_disabled("ada").await), (1, false));
}

#[tokio::test]
async fn what_was_lost_since_is_said_although_nothing_older_is_told() {
    // Red where every record counts as one of which nobody can tell.
    let server = Server::start().await;
    let node = long_ago(&server).await;
    node.revokes("kept").await.unwrap();
    let standby = server.standby().await;
    node.revokes("lost").await.unwrap();
    server.fail_over(standby, "second");
    node.app.meet().await.unwrap();
    assert!(node.is_revoked("lost").await && !node.is_disabled("ada").await);
    assert!(!node.app.fences().await.unwrap().up);
}

/// A process on that server that has no journal (`store.journal = "off"`).
async fn without_journal(server: &Arc<Server>, terms: Terms) -> App {
    let realm = Realm { id: "main".into(), issuer: "http://a".to_owned(), settings: Settings::default() };
    let (hasher, keyring) = (Hasher::start(Hashing::default()).unwrap(), Keyring::new(&[7; 32]).unwrap());
    let engine = Arc::clone(server) as Arc<dyn Engine>;
    let app = App::new(realm, engine, hasher, keyring, Clock::fixed(NOW)).unwrap();
    app.prepare().await.unwrap();
    app.open_books(terms);
    app
}

#[tokio::test]
async fn what_the_journal_of_another_node_is_judged_by_stays_for_a_day() {
    // Red where the journal of the process that removes decides (audit/retire.rs, are_relied_on): the other node would
    // find that its entries are missing, and take what they tell of for lost.
    for journals in [true, false] {
        let server = Server::start().await;
        let _other = if journals { Some(Node::ready(&server, "a").await) } else { None };
        let keys = Keys { current: Some(Key::new([7; 32].into())), old: vec![] };
        let app = without_journal(&server, Terms { keys, max_lines: Some(1), ..Terms::default() }).await;
        for _ in 0..2 {
            for _ in 0..3 {
                let noted = vec![Change::Record(Event::new(Kind::TokensRevoked, NOW))];
                app.commit(noted, NOW, &entropy::fresh().unwrap()).await.unwrap();
            }
            app.seal_once().await.unwrap();
        }
        assert_eq!(app.discard_audit(i64::MAX).await.unwrap(), Ok(0), "it has not looked");
        app.show_once(&mut None).await;
        assert_eq!(app.discard_audit(i64::MAX).await.unwrap(), Ok(u64::from(!journals)));
        app.clock.advance(Span::hours(25));
        assert_eq!(app.discard_audit(i64::MAX).await.unwrap(), Ok(u64::from(journals)));
    }
}
