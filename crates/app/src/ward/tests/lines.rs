//! What a replay leaves in the audit log.

use super::*;
use crate::audit::Filter;
use rules::fresh::time_of;
use rules::utc::iso_ms;

#[tokio::test]
async fn a_line_that_was_brought_back_is_found_at_its_own_time_and_counted() {
    // Red with `now` in place of `record.at` in store::tables::journal, replay: a window of the log is one by id and
    // one by time, and the line was in none. Red without `tally` in replay.rs.
    let server = Server::start().await;
    let node = Node::ready(&server, "a").await;
    let standby = server.standby().await;
    node.clock.advance(Span::minutes(5));
    let then = node.clock.now();
    for jti in ["one", "two"] {
        node.revokes(jti).await.unwrap();
    }
    server.fail_over(standby, "second");
    node.clock.advance(Span::minutes(5));
    node.app.meet().await.unwrap();
    let kinds = vec![Kind::FenceReplayed.name().to_owned()];
    let window = Filter { kinds, since: Some(then), until: Some(then + Span(1)), ..Filter::default() };
    let lines = node.app.audit_lines(&window, "", false, 100).await.unwrap().lines;
    assert_eq!(lines.len(), 2);
    for line in &lines {
        assert_eq!((line.at, time_of(&line.id)), (then, then));
        let detail: serde_json::Value = serde_json::from_str(&line.detail).unwrap();
        assert_eq!(detail, serde_json::json!({ "fence": 1, "replayed_at": iso_ms(node.clock.now()) }));
    }
    // These two, and that the node is done.
    let counted = node.app.tally.events.sums().find(|(kind, _)| *kind == Kind::FenceReplayed.name());
    assert_eq!(counted.map(|(_, times)| times), Some(3));
}
