//! Whether the server lives, and whether it can serve.

use crate::cli::fence_shown;
use crate::http::reply;
use crate::http::site::Site;
use app::ward::Status;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use store::moving::marks::{Leave, Marks};

/// `GET /healthz`: alive.
pub async fn alive() -> Response {
    reply::json(StatusCode::OK, "{\"status\":\"alive\"}")
}

/// What is refused, and until when.
fn fenced(status: &Status) -> String {
    let nodes: Vec<&str> = status.waiting().collect();
    format!(
        "the database failed over: sessions and tokens from before are refused until these nodes have said again what they \
         had acknowledged: {} (portiere fence status)",
        nodes.join(", ")
    )
}

/// Whether the database is being moved.
async fn moving(site: &Site, problems: &mut Vec<String>, warnings: &mut Vec<String>) {
    match Marks::known(&*site.app.engine).await {
        Err(error) => problems.push(error.0),
        Ok(Marks { out: Some(out), .. }) => match out.state {
            // Another has everything: requests are to go there.
            Leave::Left => problems.push(out.sentence()),
            // Reads go on.
            Leave::Fencing | Leave::Fenced | Leave::Lifting => warnings.push(out.sentence()),
        },
        Ok(_) => {}
    }
}

/// `GET /readyz`: can serve; otherwise says why not. Warnings do not make it unready.
pub async fn ready(State(site): State<Site>) -> Response {
    let (mut problems, mut warnings): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let durability = match site.app.engine.health().await {
        Err(error) => {
            problems.push(error.0);
            "unknown"
        }
        Ok(health) => {
            problems.extend(health.writable.err());
            site.database.promise(health.durability)
        }
    };
    moving(&site, &mut problems, &mut warnings).await;
    if let Err(fault) = site.app.jwks().await {
        problems.push(fault.to_string());
    }
    if let Some(what) = site.database.damage() {
        problems.push(format!("the database is damaged: {what}"));
    }
    if site.forgotten_proxy.load(Ordering::Relaxed) {
        let ignored = "forwarded headers come from a local address that proxy.trusted does not list: they are ignored";
        warnings.push(ignored.to_owned());
    }
    if site.leaving.load(Ordering::Relaxed) {
        problems.push("this node stops".to_owned());
    }
    problems.extend(site.strain.problems());
    if let Some(Err(why)) = site.app.guarded() {
        problems.push(why);
    }
    match site.app.outgrown().await {
        // Whoever looks after the gate has said it already.
        Ok(Some(why)) if !problems.iter().any(|problem| problem.ends_with(&why)) => problems.push(why),
        _ => {}
    }
    let fence = site.app.last_seen();
    warnings.extend(fence.as_ref().filter(|fence| fence.up).map(fenced));
    let hashing = site.app.hasher.state();
    let side_by_side: BTreeMap<_, _> =
        site.app.hasher.kinds().into_iter().map(|kind| (kind.name, kind.lanes)).collect();
    let body = json!({
        "status": if problems.is_empty() { "ready" } else { "not ready" },
        "problems": problems,
        "warnings": warnings,
        "durability": durability,
        "fence": fence.as_ref().map(fence_shown),
        "connections": { "open": site.caps.open(), "refused": site.caps.refused() },
        "hashing": {
            "waiting": hashing.waiting,
            "running": hashing.running,
            "expected_wait_ms": u64::try_from(hashing.expected_wait.as_millis()).unwrap_or(u64::MAX),
            "refused": hashing.refused_total,
            "memory_mib": hashing.memory >> 20,
            "side_by_side": side_by_side,
            "workers": site.app.hasher.workers().len(),
        },
    });
    let status = if problems.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    reply::json(status, body.to_string())
}
