//! Where a fence stands in time, and for which nodes.

use super::*;
use store::tables::sessions;

#[tokio::test]
async fn what_a_wrong_clock_dated_keeps_no_fence_in_the_future() {
    // Red without `by` of Reach: nobody would be let in for a day, and what follows the fence would be taken for older.
    let server = Server::start().await;
    let (node, _other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    for at in [NOW + Span::days(1), NOW + Span(700)] {
        let dated = Session { id: SessionId(Fresh::new([at.0 as u8; 32]).ordered("session", at)), ..session(at) };
        let dated = Session { handle: Handle::of(&at.0.to_string()), ..dated };
        let started = vec![Change::StartSession(Box::new(dated))];
        node.app.commit(started, NOW, &entropy::fresh().unwrap()).await.unwrap();
    }
    let standby = server.standby().await;
    server.fail_over(standby, "second");
    node.app.meet().await.unwrap();
    let fence = ask(&**node.app.below(), &node.app.realm.id, Newest).await.unwrap().unwrap();
    assert!((NOW + Span(700)..NOW + Span::seconds(5)).contains(&fence.at), "{fence:?}");
    // Red without `end_later_than`: what ended the session may itself be lost, and no replay would end it again.
    let page =
        sessions::Page { user: &"ada".into(), before: sessions::NEWEST, limit: 9, now: NOW, idle_since: Time(0) };
    let live = ask(&**node.app.below(), &node.app.realm.id, page).await.unwrap();
    assert!(live.is_empty(), "one is behind the fence as long as that is up, the other has ended: {live:?}");
}

#[tokio::test]
async fn a_node_that_came_after_a_fence_does_not_take_it_for_that_of_a_later_loss() {
    // Red without the newest fence in `catch_up`: the node would join one that was lifted long ago, and its replay
    // would be judged by what that fence found.
    let server = Server::start().await;
    let one = Node::ready(&server, "a").await;
    let standby = server.standby().await;
    server.fail_over(standby, "second");
    one.app.meet().await.unwrap();
    assert_eq!((one.fences().await, one.app.fences().await.unwrap().up), (1, false));
    let late = Node::ready(&server, "b").await;
    late.app.meet().await.unwrap();
    let standby = server.standby().await;
    late.revokes("lost").await.unwrap();
    late.app.meet().await.unwrap();
    // A dump is restored: the same server, with less.
    server.forget(standby);
    late.app.meet().await.unwrap();
    assert_eq!(late.fences().await, 2);
    assert!(late.is_revoked("lost").await);
}

#[tokio::test]
async fn the_fence_is_behind_everything_and_what_is_issued_then_is_younger() {
    // Red without `reached.newest` in fence.rs, next; without wait_until_past.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    // A session of a node whose clock is ahead.
    let ahead = NOW + Span(1500);
    let started = vec![Change::StartSession(Box::new(session(ahead)))];
    node.app.commit(started, NOW, &entropy::fresh().unwrap()).await.unwrap();
    let standby = server.standby().await;
    server.fail_over(standby, "second");
    let began = Instant::now();
    node.app.meet().await.unwrap();
    let fence = ask(&**node.app.below(), &node.app.realm.id, Newest).await.unwrap().unwrap();
    assert!(fence.at >= ahead, "{fence:?}");
    assert!(
        began.elapsed() >= Duration::from_millis(1500),
        "what it issued before would be refused: {:?}",
        began.elapsed()
    );
}
