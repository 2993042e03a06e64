//! Whether the server lives, and whether it can serve.

use crate::cli::fence_shown;
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::Visit;
use app::ward::Status;
use axum::extract::{Extension, State};
use axum::response::Response;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use store::moving::marks::{Leave, Marks};

/// `GET /healthz`: alive.
pub async fn alive() -> Response {
    reply::json(StatusCode::OK, "{\"status\":\"alive\"}")
}

/// What is refused, and until when.
fn fenced(status: &Status) -> String {
    let mut nodes: Vec<&str> = status.waiting().collect();
    nodes.sort_unstable();
    nodes.dedup();
    let until = match nodes.as_slice() {
        [] => "all nodes have said again what they had acknowledged".to_owned(),
        nodes => format!("these nodes have said again what they had acknowledged: {}", nodes.join(", ")),
    };
    format!(
        "the database failed over: sessions and tokens from before are refused until {until} (portiere fence status)"
    )
}

/// Whether the audit log is what it was, and goes on. What is wrong with it is not for everybody.
fn doubtful(site: &Site) -> impl Iterator<Item = String> {
    let wrong = !site.app.audit_alarms().is_empty();
    let wrong = wrong.then_some("the audit log is not what this node saw or sealed (portiere audit status)");
    let idle = site.app.audit_idle().map(
        |_| "this node does not seal the audit log: its audit key is missing or another one (portiere audit status)",
    );
    wrong.into_iter().chain(idle).map(str::to_owned)
}

/// Whether everybody's password can be verified.
fn unverifiable(site: &Site) -> Option<String> {
    let accounts = site.app.unverifiable_hashes();
    (accounts > 0).then(|| {
        format!(
            "passwords of {accounts} accounts cannot be verified with these settings, and their owners are told that they are wrong: \
             the log names them as they come (hash.memory is too small, or a key is missing)"
        )
    })
}

/// Of those who ask the database several say the same of it, some with a word before.
fn each_once(problems: Vec<String>) -> Vec<String> {
    let mut told: Vec<String> = Vec::with_capacity(problems.len());
    for problem in problems {
        if !told.iter().any(|known| known.ends_with(&problem) || problem.ends_with(known.as_str())) {
            told.push(problem);
        }
    }
    told
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

/// For how long an answer is good for others who ask.
const GOOD_FOR: Duration = Duration::from_millis(100);

/// What `/readyz` answered last.
#[derive(Clone)]
pub struct Readiness {
    at: Instant,
    seen: [bool; 3],
    ready: bool,
    /// JSON, for who may know.
    told: Arc<str>,
}

/// `GET /readyz`: can serve; otherwise says why not, to whoever asks from this machine, a listed proxy or a trusted network:
/// how full the queues are helps whoever fills them. However many ask, the database is asked once at a time.
pub async fn ready(State(site): State<Site>, Extension(visit): Extension<Visit>) -> Response {
    let Some(now) = current(&site).await else {
        return reply::json(StatusCode::SERVICE_UNAVAILABLE, json!({ "status": word(false) }).to_string());
    };
    let status = if now.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    match site.admission.trusts(&visit.client) {
        true => reply::json(status, now.told.to_string()),
        false => reply::json(status, json!({ "status": word(now.ready) }).to_string()),
    }
}

/// What is answered now; nothing where a look came to no end.
#[allow(
    clippy::disallowed_methods,
    reason = "it is awaited here; whoever disappears leaves one look behind, which ends"
)]
async fn current(site: &Site) -> Option<Readiness> {
    let last = still_good(site, site.readiness.lock().await.as_ref());
    if last.is_some() {
        return last;
    }
    // In a task of its own: whoever comes after somebody who went away waits for that look, and does not begin another.
    tokio::spawn(looked(site.clone())).await.ok()
}

/// What was seen last, or is seen now by the only one who looks.
async fn looked(site: Site) -> Readiness {
    let mut last = site.readiness.lock().await;
    if let Some(meanwhile) = still_good(&site, last.as_ref()) {
        return meanwhile;
    }
    let now = look(&site).await;
    *last = Some(now.clone());
    now
}

/// An answer that is good for one more who asks.
fn still_good(site: &Site, last: Option<&Readiness>) -> Option<Readiness> {
    last.filter(|last| last.at.elapsed() < GOOD_FOR && last.seen == seen(site)).cloned()
}

/// What is known without asking the database: whether the server leaves, whether a proxy was forgotten, and whether the
/// journal works. No answer that was made before it changed is good.
fn seen(site: &Site) -> [bool; 3] {
    let [leaving, forgotten_proxy] = [&site.leaving, &site.forgotten_proxy].map(|flag| flag.load(Ordering::Relaxed));
    [leaving, forgotten_proxy, matches!(site.app.guarded(), Some(Err(_)))]
}

fn word(ready: bool) -> &'static str {
    if ready { "ready" } else { "not ready" }
}

/// How it stands with password hashing.
fn hashing(site: &Site) -> Value {
    let (hasher, state) = (&site.app.hasher, site.app.hasher.state());
    let side_by_side: BTreeMap<_, _> = hasher.kinds().into_iter().map(|kind| (kind.name, kind.lanes)).collect();
    json!({
        "waiting": state.waiting,
        "running": state.running,
        "expected_wait_ms": u64::try_from(state.expected_wait.as_millis()).unwrap_or(u64::MAX),
        "refused": state.refused_total,
        "memory_mib": state.memory >> 20,
        "side_by_side": side_by_side,
        "workers": hasher.workers().len(),
    })
}

/// Looks at everything. Warnings do not make it unready.
async fn look(site: &Site) -> Readiness {
    let seen @ [leaving, forgotten_proxy, _] = seen(site);
    let (mut problems, mut warnings): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let durability = match site.app.engine.health().await {
        Err(error) => {
            problems.push(error.0);
            "unknown"
        }
        Ok(health) => {
            problems.extend(health.writable.err());
            warnings.extend(site.database.contradiction(health.durability).map(str::to_owned));
            site.database.promise(health.durability)
        }
    };
    moving(site, &mut problems, &mut warnings).await;
    if let Err(fault) = site.app.jwks().await {
        problems.push(fault.to_string());
    }
    if let Some(what) = site.database.damage() {
        problems.push(format!("the database is damaged: {what}"));
    }
    if forgotten_proxy {
        let ignored = "forwarded headers come from a local address that proxy.trusted does not list: they are ignored";
        warnings.push(ignored.to_owned());
    }
    if leaving {
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
    warnings.extend(doubtful(site).chain(unverifiable(site)));
    warnings.extend(site.tls.as_ref().and_then(|tls| tls.outlived()));
    let fence = site.app.last_seen();
    warnings.extend(site.app.double());
    warnings.extend(fence.as_ref().filter(|fence| fence.up).map(fenced));
    let problems = each_once(problems);
    let body = json!({
        "status": word(problems.is_empty()),
        "problems": problems,
        "warnings": warnings,
        "durability": durability,
        "fence": fence.as_ref().map(fence_shown),
        "connections": { "open": site.caps.open(), "refused": site.caps.refused().iter().map(|(_, count)| count).sum::<u64>() },
        "hashing": hashing(site),
    });
    Readiness { at: Instant::now(), seen, ready: problems.is_empty(), told: body.to_string().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::tests::House;
    use std::future::Future;
    use std::pin::pin;
    use std::task::Poll;

    #[tokio::test]
    async fn a_look_goes_on_where_whoever_asked_went_away() {
        // Red without `spawn` in `current`: with each that goes, the next one would ask the database once more.
        let house = House::open(&[]).await;
        {
            let mut asked = pin!(current(&house.site));
            let begun = std::future::poll_fn(|context| Poll::Ready(asked.as_mut().poll(context).is_pending()));
            assert!(begun.await, "the look has begun");
        }
        let is_there = async {
            while house.site.readiness.lock().await.is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(100), is_there).await.expect("what was seen is there for others");
    }
}
