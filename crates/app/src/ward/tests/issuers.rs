//! Nodes under different public URLs.

use super::*;
use std::future::{pending, ready};

#[tokio::test]
async fn who_would_serve_under_another_url_than_a_node_that_runs_does_not() {
    // Red without served_elsewhere_by in issuer.rs: half of all requests would be answered with 421.
    let server = Server::start().await;
    let one = Node::ready(&server, "a").await;
    let other = Node::under("http://b", &server, Paper::of("b"), NOW).await;
    let speaks = async || one.app.meet().await.unwrap();
    let why = other.app.served_elsewhere_by(speaks()).await.unwrap().unwrap();
    assert!(why.contains("node a serves this database as http://a") && why.contains("this one is http://b"), "{why}");
    // The other node was stopped, or died.
    assert_eq!(other.app.served_elsewhere_by(ready(())).await.unwrap(), None);
    // The same node, started again: only other nodes are watched.
    let again = Node::under("http://b", &server, Arc::clone(&one.journal), NOW).await;
    assert_eq!(again.app.served_elsewhere_by(pending()).await.unwrap(), None);
    // For a node with the same URL nothing is waited for.
    let same = Node::start(&server, "d").await;
    assert_eq!(same.app.served_elsewhere_by(pending()).await.unwrap(), None);
    // A command, from another data folder.
    let command = Node::start(&server, "c").await;
    let comes_and_goes = async {
        command.app.meet().await.unwrap();
        command.app.retire().await;
    };
    assert_eq!(other.app.served_elsewhere_by(comes_and_goes).await.unwrap(), None);
}

#[tokio::test]
async fn who_comes_at_the_same_time_with_the_same_new_url_is_no_obstacle() {
    // Red without the second look at the URL in issuer.rs, served_elsewhere_by.
    let server = Server::start().await;
    drop(Node::ready(&server, "a").await);
    let [one, other] = ["b", "c"].map(|name| Node::under("http://b", &server, Paper::of(name), NOW));
    let (one, other) = (one.await, other.await);
    let starts = async {
        one.app.meet().await.unwrap();
        one.app.note_issuer().await.unwrap();
    };
    assert_eq!(other.app.served_elsewhere_by(starts).await.unwrap(), None);
}

#[tokio::test]
async fn nodes_that_run_under_different_urls_both_say_so() {
    // Red without the second half of mind_issuer in issuer.rs: the node whose URL was noted last would see nothing.
    let server = Server::start().await;
    let one = Node::ready(&server, "a").await;
    one.app.mind_issuer().await;
    assert_eq!(one.app.elsewhere(), None);
    let other = Node::under("http://b", &server, Paper::of("b"), NOW).await;
    other.app.meet().await.unwrap();
    other.app.note_issuer().await.unwrap();
    for node in [&one, &other] {
        node.app.mind_issuer().await;
    }
    let told = [&one, &other].map(|node| node.app.elsewhere().unwrap());
    assert!(told[0].contains("http://b:") && told[1].contains("http://a:"), "{told:?}");
    // One of them was stopped: the other's URL stays noted, for good.
    one.app.mind_issuer().await;
    one.clock.advance(Span::minutes(11));
    one.app.mind_issuer().await;
    assert_eq!(one.app.elsewhere(), None);
}
