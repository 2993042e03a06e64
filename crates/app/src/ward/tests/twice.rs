//! A second failover before the first was answered, and what the first leaves open.

use super::*;
use crate::admin::clients::ClientSecret;
use crate::tests::shop;
use std::sync::atomic::Ordering::SeqCst;
use store::engine::Must;
use store::tables::{clients, sessions};

/// With a dump that is older than the journal, and whose fence no node can answer.
#[tokio::test]
async fn a_fence_that_a_node_could_not_answer_is_not_answered_by_its_next() {
    // Red without `short` in watch.rs, answer, or in store::tables::fences, replayed.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    let dump = server.standby().await;
    node.revokes("lost").await.unwrap();
    *node.journal.cut.lock().unwrap() = true;
    server.fail_over(dump, "second");
    node.app.meet().await.unwrap();
    // After a quarter of an hour of ordinary work, everything that the journal has is there.
    for _ in 0..2 {
        node.clock.advance(Span::minutes(16));
        node.app.meet().await.unwrap();
        node.revokes("kept").await.unwrap();
    }
    let standby = server.standby().await;
    server.fail_over(standby, "third");
    node.app.meet().await.unwrap();
    let status = node.app.fences().await.unwrap();
    let waiting: Vec<i64> =
        status.nodes.iter().filter(|node| node.state == State::Waiting).map(|node| node.number).collect();
    assert_eq!((status.up, waiting), (true, vec![1]));
    assert!(!node.app.accept_loss("a").await.unwrap().unwrap().up);
}

/// An application that one node removed, that was lost, and whose removal is replayed only to yet another server.
#[tokio::test]
async fn what_was_lost_before_two_fences_is_judged_by_the_first() {
    // Red with `fence.epoch` in place of `upto.has` in store::tables::journal, again.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    one.app.add_client(shop(), ClientSecret::Nothing).await.unwrap().unwrap();
    let standby = server.standby().await;
    other.app.remove_client(&"shop".into()).await.unwrap().unwrap();
    server.fail_over(standby, "second");
    one.clock.advance(Span::seconds(30));
    one.app.meet().await.unwrap();
    once_more(&server, &one, &other).await;
    let found = ask(&**one.app.below(), &one.app.realm.id, clients::ById(&"shop".into())).await.unwrap();
    assert!(found.is_none(), "it came back");
}

/// A node that an operator gave up, and that is back after one more failover.
#[tokio::test]
async fn what_was_lost_before_a_fence_that_waits_no_longer_is_judged_by_that_fence() {
    // Red with the fences alone that wait for the node, in store::tables::fences, Unanswered: by the second, the
    // session that was begun since the first is older than the sign-out.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    let commit = async |node: &Node, changes: Vec<Change>| {
        node.app.commit(changes, node.clock.now(), &entropy::fresh().unwrap()).await.unwrap();
    };
    let begins = |at: Time| {
        let begun = Session { handle: Handle::of(&at.0.to_string()), ..session(at) };
        Change::StartSession(Box::new(begun))
    };
    commit(&one, vec![Change::AddUser(Box::new(User::new("ada".into(), "ada", NOW))), begins(NOW)]).await;
    let standby = server.standby().await;
    let everywhere = Change::EndSessionsOf { user: "ada".into(), except: None, at: NOW };
    commit(&other, vec![everywhere, Change::Record(Event::new(Kind::UserChanged, NOW))]).await;
    server.fail_over(standby, "second");
    one.clock.advance(Span::seconds(30));
    one.app.meet().await.unwrap();
    assert!(!one.app.accept_loss("b").await.unwrap().unwrap().up);
    one.clock.advance(Span::seconds(1));
    let again = one.clock.now();
    commit(&one, vec![begins(again)]).await;
    once_more(&server, &one, &other).await;
    let page =
        sessions::Page { user: &"ada".into(), before: sessions::NEWEST, limit: 9, now: again, idle_since: Time(0) };
    let live = ask(&**one.app.below(), &one.app.realm.id, page).await.unwrap();
    assert_eq!(live.iter().map(|session| session.created).collect::<Vec<_>>(), [again], "{live:?}");
}

/// The lost history has a fence of its own, by which its epochs got as far as those of the one that stays.
#[tokio::test]
async fn what_an_operator_changed_after_a_fence_is_not_overwritten_from_a_history_that_had_one_too() {
    // Red with the jump alone in store::tables::fences, after, or without `known` in fence.rs: the shop was enabled
    // again.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    one.app.add_client(shop(), ClientSecret::Nothing).await.unwrap().unwrap();
    let stays = server.standby().await;
    // A clock that was ahead dated the lost fence: the next one must not be before it. (Nodes really wait that long.)
    let (ahead, fresh) = (NOW + Span(900), entropy::fresh().unwrap());
    one.app.commit(vec![Change::StartSession(Box::new(session(ahead)))], NOW, &fresh).await.unwrap();
    let lost = server.standby().await;
    server.fail_over(lost, "second");
    one.app.meet().await.unwrap();
    other.app.meet().await.unwrap();
    for enabled in [false, true, false, true] {
        other.app.set_client_enabled(&"shop".into(), enabled).await.unwrap().unwrap();
    }
    server.fail_over(stays, "third");
    one.clock.advance(Span(300));
    one.app.meet().await.unwrap();
    one.app.set_client_enabled(&"shop".into(), false).await.unwrap().unwrap();
    other.clock.advance(Span(300));
    other.app.meet().await.unwrap();
    let found = ask(&**one.app.below(), &one.app.realm.id, clients::ById(&"shop".into())).await.unwrap();
    assert!(found.unwrap().disabled_at.is_some(), "what was lost came over what is");
}

#[tokio::test]
async fn a_clock_that_leaps_removes_nothing_of_the_journal() {
    // Red with `now` in place of `steady` in watch.rs, beat: removed parts do not come back when the clock is set
    // right.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    node.app.meet().await.unwrap();
    let before = *node.journal.forgotten.lock().unwrap();
    node.clock.set(Span::days(30));
    node.app.meet().await.unwrap();
    assert_eq!(*node.journal.forgotten.lock().unwrap(), before);
}

#[tokio::test]
async fn what_cannot_be_noted_is_not_done_once_that_is_known() {
    // Red without `works` in ward/mod.rs, commit_and_note: it was done, and a retry was told that it had been done.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    node.journal.broken.store(true, SeqCst);
    assert!(matches!(node.revokes("token").await, Err(CommitError::Unavailable(why)) if why.contains("no space")));
    assert!(!node.is_revoked("token").await);
    node.journal.broken.store(false, SeqCst);
    node.revokes("token").await.unwrap();
    assert!(node.is_revoked("token").await);
}

#[tokio::test]
async fn a_token_that_a_client_got_for_itself_before_a_fence_is_void_while_that_is_up() {
    // Red without `r.fenced` in store::tables::families, of_token.
    let server = Server::start().await;
    let (one, _other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    let standby = server.standby().await;
    server.fail_over(standby, "second");
    one.app.meet().await.unwrap();
    let void = async |family: Option<&FamilyId>, issued, to_end| {
        let leans = AtEpoch(OfToken { family, jti: "token", issued, to_end });
        ask(&**one.app.below(), &one.app.realm.id, leans).await.unwrap().unwrap().1.1
    };
    let family = FamilyId(Fresh::new([7; 32]).ordered("family", NOW));
    assert!(void(None, NOW, false).await);
    assert!(!void(None, NOW, true).await, "it is looked at to be ended");
    assert!(!void(Some(&family), NOW, false).await, "its family tells");
    assert!(!void(None, one.clock.now() + Span::seconds(2), false).await, "it is younger");
    one.app.accept_loss("b").await.unwrap().unwrap();
    assert!(!void(None, NOW, false).await);
}

#[tokio::test]
async fn an_assertion_from_before_a_fence_is_not_taken_while_that_is_up() {
    // Red without `younger` in store::tables::tokens, use_assertion.
    let server = Server::start().await;
    let (one, _other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    one.app.add_client(shop(), ClientSecret::Nothing).await.unwrap().unwrap();
    let uses = async |jti, issued| {
        let (now, fresh) = (one.clock.now(), entropy::fresh().unwrap());
        let (client, expires) = ("shop".into(), now + Span::minutes(5));
        let used = Change::UseAssertion { client, jti: Handle::of(jti), issued, expires };
        one.app.commit(vec![used], now, &fresh).await
    };
    uses("before", NOW).await.unwrap();
    let standby = server.standby().await;
    server.fail_over(standby, "second");
    one.app.meet().await.unwrap();
    // The other node may have taken it, and the commit may be among those that were lost.
    assert!(matches!(uses("the other's", NOW).await, Err(CommitError::Conflict { at: 0, .. })));
    uses("younger", one.clock.now() + Span::seconds(2)).await.unwrap();
    one.app.accept_loss("b").await.unwrap().unwrap();
    uses("the other's", NOW).await.unwrap();
    assert!(matches!(uses("before", NOW).await, Err(CommitError::Conflict { at: 1, .. })), "that it was used is known");
}

#[tokio::test]
async fn a_fence_and_who_lets_go_of_a_node_see_each_other() {
    // Red where a node that is gone is counted on, or where let_go looks for fences before it holds the node's row.
    let server = Server::start().await;
    let (one, _other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    let (app, realm) = (&one.app, &one.app.realm.id);
    let known = ask(&**app.below(), realm, nodes::All).await.unwrap();
    let other = known.iter().find(|node| node.node == "b").unwrap();
    let counted = || vec![nodes::is_counted_on(realm, "b")];
    assert!(app.below().commit(counted()).await.is_ok());
    let let_go = nodes::let_go(realm, other, NOW);
    assert!(let_go[0].must == Must::Touch(1), "its row first: a batch that waits for it looks for fences afterwards");
    app.below().commit(let_go).await.unwrap();
    assert!(
        matches!(app.below().commit(counted()).await, Err(CommitError::Conflict { .. })),
        "and no fence waits for it"
    );
}

/// With a dump that was made and restored between two beats, so that no mark shows it.
#[tokio::test]
async fn what_was_acknowledged_since_a_backup_is_said_again_by_whoever_puts_it_back() {
    // Red without fence_in in watch.rs, fence_restored.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    let dump = server.standby().await;
    one.revokes("one").await.unwrap();
    other.revokes("other").await.unwrap();
    server.forget(dump);
    one.app.fence_restored().await.unwrap();
    assert!(one.is_revoked("one").await && !one.is_revoked("other").await);
    let waiting: Vec<String> = one.app.fences().await.unwrap().waiting().map(str::to_owned).collect();
    assert_eq!(waiting, ["b"]);
    // Once is enough: the fence stands until the other node has replayed.
    one.app.fence_restored().await.unwrap();
    assert_eq!(one.fences().await, 1);
    other.app.meet().await.unwrap();
    assert!(other.is_revoked("other").await && !other.app.fences().await.unwrap().up);
    // A new node remembers nothing, and does not make others wait.
    let stranger = Node::ready(&server, "c").await;
    stranger.app.fence_restored().await.unwrap();
    assert_eq!(stranger.fences().await, 1);
}

/// One failure of the storage takes the disk of a node and then the primary.
#[tokio::test]
async fn a_node_whose_disk_was_full_for_a_moment_is_not_taken_for_one_restored_from_a_copy() {
    // Red without the mark that this process has set in watch.rs, answer.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    node.revokes("one").await.unwrap();
    let standby = async || {
        let standby = server.standby().await;
        node.revokes("two").await.unwrap();
        standby
    };
    node.journal.full.store(true, SeqCst);
    for _ in 0..3 {
        assert!(node.app.meet().await.is_err());
    }
    node.journal.full.store(false, SeqCst);
    server.fail_over(standby().await, "second");
    node.app.meet().await.unwrap();
    assert!(node.is_revoked("two").await && !node.app.fences().await.unwrap().up);
}

/// A machine that was cloned with its data folder.
#[tokio::test]
async fn two_processes_that_share_a_name_are_told() {
    // Red without mind_double in watch.rs.
    let server = Server::start().await;
    let one = Node::ready(&server, "a").await;
    for _ in 0..3 {
        one.app.meet().await.unwrap();
    }
    assert_eq!(one.app.double(), None, "its own marks");
    let copy = Node::ready(&server, "a").await;
    assert_eq!(copy.app.double(), None, "it was started anew, as far as it knows");
    one.app.meet().await.unwrap();
    assert!(one.app.double().is_some_and(|why| why.contains("calls itself node a")));
    copy.app.meet().await.unwrap();
    assert!(copy.app.double().is_some());
    copy.clock.advance(Span::minutes(11));
    assert_eq!(copy.app.double(), None, "it was stopped since");
}

#[tokio::test]
async fn nodes_whose_clocks_differ_say_so_and_take_each_other_for_what_they_are() {
    // Red without mind_clocks in watch.rs, beat, or without `ahead.is_some()` in nodes.rs, shown.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    other.clock.set(Span::seconds(40));
    for _ in 0..4 {
        for node in [&other, &one] {
            node.clock.advance(Span::seconds(5));
            node.app.meet().await.unwrap();
        }
    }
    assert_eq!(one.app.clock_skews(), [("b".to_owned(), 40_000)]);
    assert_eq!(other.app.clock_skews(), [("a".to_owned(), -40_000)]);
    let seen = other.app.nodes().await.unwrap();
    assert!(seen.iter().any(|shown| shown.node.node == "a" && shown.lives && shown.ahead == Some(-40_000)), "{seen:?}");
}

/// Fails over a second time; then the other node comes back, and everything is answered.
async fn once_more(server: &Server, one: &Node, other: &Node) {
    let standby = server.standby().await;
    server.fail_over(standby, "third");
    one.clock.advance(Span::seconds(30));
    one.app.meet().await.unwrap();
    other.clock.advance(Span::seconds(90));
    other.app.meet().await.unwrap();
    assert!(!one.app.fences().await.unwrap().up);
}
