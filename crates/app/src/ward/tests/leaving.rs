//! Nodes that stop, and nodes that nobody counts on any more.

use super::*;

#[tokio::test]
async fn a_node_that_stopped_can_be_forgotten_at_once_and_returns_without_a_fence() {
    // Red without `close_journal` in watch.rs: a failover within four minutes would wait for it.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    other.app.retire().await;
    let seen = one.app.nodes().await.unwrap();
    assert!(seen.iter().any(|shown| shown.node.node == "b" && !shown.lives && shown.node.has_stopped()), "{seen:?}");
    one.app.forget_node("b").await.unwrap().unwrap();
    let standby = server.standby().await;
    server.fail_over(standby, "second");
    one.app.meet().await.unwrap();
    assert!(!one.app.fences().await.unwrap().up, "nobody is waited for");
    let before = one.fences().await;
    other.app.meet().await.unwrap();
    assert_eq!(one.fences().await, before);
    assert!(one.app.nodes().await.unwrap().iter().any(|shown| shown.node.node == "b" && shown.lives));
}

#[tokio::test]
async fn a_node_that_was_forgotten_is_not_waited_for_and_returns_without_a_fence() {
    // Red without `gone` in fence.rs, there.
    let server = Server::start().await;
    let (one, other) = (Node::ready(&server, "a").await, Node::ready(&server, "b").await);
    assert!(one.app.forget_node("b").await.unwrap().is_err(), "it lives");
    one.clock.advance(Span::minutes(1));
    one.app.meet().await.unwrap();
    one.app.forget_node("b").await.unwrap().unwrap();
    assert_eq!(one.app.nodes().await.unwrap().len(), 1);
    let standby = server.standby().await;
    server.fail_over(standby, "second");
    one.app.meet().await.unwrap();
    assert!(!one.app.fences().await.unwrap().up, "nobody is waited for");
    other.clock.advance(Span::minutes(1));
    // On its own disk it finds another server than it knew: it joins, and replays what it had.
    other.app.meet().await.unwrap();
    assert_eq!((one.app.nodes().await.unwrap().len(), one.fences().await), (2, 1));
    assert!(!one.app.fences().await.unwrap().up);
}
