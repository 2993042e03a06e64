//! What programs are told of failovers of the database: by the command `fence`, and on the readiness page.

use app::ward::Status;
use rules::utc::iso;
use serde_json::{Value, json};

/// Describes the fences.
pub fn shown(status: &Status) -> Value {
    let waiting: Vec<&str> = status.waiting().collect();
    json!({
        "node": Some(&status.node).filter(|node| !node.is_empty()),
        "up": status.up,
        "fence": status.fence.as_ref().map(|fence| json!({
            "number": fence.number,
            "raised_at": iso(fence.at),
            "server": fence.identity,
        })),
        "waiting_for": waiting,
        "nodes": status.nodes.iter().map(|node| json!({
            "fence": node.number,
            "node": node.node,
            "state": node.state.name(),
            "since": iso(node.at),
        })).collect::<Vec<_>>(),
    })
}
