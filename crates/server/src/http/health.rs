//! Whether the server is alive, and whether it can serve.

use super::reply;
use super::site::Site;
use super::visit::Visit;
use crate::fence;
use app::ward::Status;
use axum::extract::{Extension, State};
use axum::response::Response;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use store::engine::Health;
use store::moving::marks::{Leave, Marks};
use tokio::time::timeout;

/// `GET /healthz`: the process is alive.
pub async fn alive() -> Response {
    reply::json(StatusCode::OK, "{\"status\":\"alive\"}")
}

/// Says what the fence refuses, and until when.
fn fenced(status: &Status, on_file: bool) -> String {
    let mut nodes: Vec<&str> = status.waiting().collect();
    nodes.sort_unstable();
    nodes.dedup();
    let until = match nodes.as_slice() {
        [] => "all nodes have replayed what they had acknowledged".to_owned(),
        nodes => format!("these nodes have replayed what they had acknowledged: {}", nodes.join(", ")),
    };
    // Of a database that was moved to a file: its nodes are not there any more.
    let given_up = if on_file { ", which none of them does on a file: portiere fence accept-loss" } else { "" };
    format!(
        "the database failed over: sessions and tokens from before are refused until {until}{given_up} (portiere fence \
         status)"
    )
}

/// Warns if the audit log differs from what this node saw, could do so unseen, or does not go on. The details are not
/// for everybody.
fn doubtful(site: &Site) -> impl Iterator<Item = String> {
    let wrong = !site.app.audit_alarms().is_empty();
    let wrong = wrong.then_some(
        "the audit log differs from what this node saw or sealed, or its mark (audit.mark) cannot be kept (portiere \
         audit status)",
    );
    let idle = site.app.audit_idle().map(
        |_| "this node does not seal the audit log: its audit key is missing or another one (portiere audit status)",
    );
    wrong.into_iter().chain(idle).map(str::to_owned)
}

/// Warns if the passwords of some accounts cannot be verified.
fn unverifiable(site: &Site) -> Option<String> {
    let whose = match site.app.unverifiable_hashes() {
        0 if site.app.met_unverifiable() => Some("some accounts".to_owned()),
        0 => None,
        accounts => Some(format!("{accounts} accounts")),
    };
    whose.map(|whose| {
        format!(
            "passwords of {whose} cannot be verified with these settings, and are refused as wrong: the log names the \
             accounts as they sign in (hash.memory is too small, or a key is missing)"
        )
    })
}

/// Drops repetitions: several checks ask the database and report the same, some with a word before it.
fn each_once(problems: Vec<String>) -> Vec<String> {
    let mut told: Vec<String> = Vec::with_capacity(problems.len());
    for problem in problems {
        if !told.iter().any(|known| known.ends_with(&problem) || problem.ends_with(known.as_str())) {
            told.push(problem);
        }
    }
    told
}

/// Reports whether the database is being moved.
async fn moving(site: &Site, problems: &mut Vec<String>, warnings: &mut Vec<String>) {
    match Marks::known(&*site.app.engine).await {
        Err(error) => problems.push(error.0),
        Ok(Marks { out: Some(out), .. }) => match out.state {
            // Another database has everything: requests are to go there.
            Leave::Left => problems.push(out.sentence()),
            // Reads go on.
            Leave::Fencing | Leave::Fenced | Leave::Lifting => warnings.push(out.sentence()),
        },
        Ok(_) => {}
    }
}

/// For how long an answer is reused for other probes.
const GOOD_FOR: Duration = Duration::from_millis(100);

/// The time within which a probe is answered. A database that hangs ends no connection, and the engines give it up only
/// after many seconds: probes do not wait for that.
const WITHIN: Duration = Duration::from_secs(2);

/// The last answer of `/readyz`.
#[derive(Clone)]
pub struct Readiness {
    at: Instant,
    seen: Flags,
    ready: bool,
    /// JSON, for clients that may see it.
    told: Arc<str>,
}

/// `GET /readyz`: can serve; otherwise says why not, but only to this machine, listed proxies and trusted networks:
/// queue lengths would help an attacker who fills them. The database is asked once at a time, however many probes ask.
pub async fn ready(State(site): State<Site>, Extension(visit): Extension<Visit>) -> Response {
    let Some(now) = current(&site, WITHIN).await else {
        return reply::json(StatusCode::SERVICE_UNAVAILABLE, json!({ "status": word(false) }).to_string());
    };
    let status = if now.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    match site.admission.trusts(&visit.client) {
        true => reply::json(status, now.told.to_string()),
        false => reply::json(status, json!({ "status": word(now.ready) }).to_string()),
    }
}

/// Returns whether the server is ready, with all that `/readyz` tells this machine; `None` if a look failed.
pub async fn readiness(site: &Site) -> Option<(bool, Arc<str>)> {
    current(site, WITHIN).await.map(|now| (now.ready, now.told))
}

/// Returns whether the server is ready, as a probe is told.
pub async fn is_ready(site: &Site) -> bool {
    current(site, WITHIN).await.is_some_and(|now| now.ready)
}

/// Returns the answer `within` this time; `None` if a look failed. If the database has not answered by then, the answer
/// says that, with all that is known without it; the look goes on, and probes meanwhile begin no other.
async fn current(site: &Site, within: Duration) -> Option<Readiness> {
    match timeout(within, seen_or_looked(site)).await {
        Ok(now) => now,
        Err(_) => Some(told(site, Found::late(site, within))),
    }
}

/// Returns the last look if it is still good, or else the result of a new one; only one runs at a time.
#[allow(
    clippy::disallowed_methods,
    reason = "it is awaited here; whoever disappears leaves one look behind, which ends"
)]
async fn seen_or_looked(site: &Site) -> Option<Readiness> {
    let mut last = Arc::clone(&site.readiness).lock_owned().await;
    if let Some(good) = still_good(site, last.as_ref()) {
        return Some(good);
    }
    let site = site.clone();
    // In a task of its own, which later probes wait for, even if the probe that began the look went away.
    let look = tokio::spawn(async move {
        let now = told(&site, look(&site).await);
        *last = Some(now.clone());
        now
    });
    look.await.ok()
}

/// Returns an answer that is good for one more probe.
fn still_good(site: &Site, last: Option<&Readiness>) -> Option<Readiness> {
    last.filter(|last| last.at.elapsed() < GOOD_FOR && last.seen == Flags::of(site)).cloned()
}

/// What is known without the database. An answer made before one of these changed is not reused.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Flags {
    /// The server is stopping.
    leaving: bool,
    /// A proxy is not listed.
    forgotten_proxy: bool,
    /// A proxy names nobody.
    silent_proxy: bool,
    /// The journal does not work.
    journal_fails: bool,
}

impl Flags {
    fn of(site: &Site) -> Flags {
        Flags {
            leaving: site.leaving.load(Ordering::Relaxed),
            forgotten_proxy: site.forgotten_proxy.load(Ordering::Relaxed),
            silent_proxy: site.silent_proxy.load(Ordering::Relaxed),
            journal_fails: matches!(site.app.guarded(), Some(Err(_))),
        }
    }
}

fn word(ready: bool) -> &'static str {
    if ready { "ready" } else { "not ready" }
}

/// Reports the state of password hashing.
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

/// What the database reports, or what there is to report of it. Warnings do not make the server unready.
struct Found {
    problems: Vec<String>,
    warnings: Vec<String>,
    durability: &'static str,
    outgrown: Option<String>,
    /// The fence of a node without a journal of its own; others know it from their last check.
    fence: Option<Status>,
    seen: Flags,
}

impl Found {
    /// The database did not answer in time.
    fn late(site: &Site, within: Duration) -> Found {
        Found {
            problems: vec![format!("the database did not answer within {} s", within.as_secs_f64())],
            warnings: Vec::new(),
            durability: "unknown",
            outgrown: None,
            fence: None,
            seen: Flags::of(site),
        }
    }
}

/// Asks the database.
async fn look(site: &Site) -> Found {
    let seen = Flags::of(site);
    let (mut problems, mut warnings): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let durability = match site.app.engine.health().await {
        Err(error) => {
            problems.push(error.0);
            "unknown"
        }
        // What it said before may be the very thing that is wrong now.
        Ok(Health { writable: Err(why), .. }) => {
            problems.push(why);
            "unknown"
        }
        Ok(health) => {
            warnings.extend(site.database.contradiction(health.durability).map(str::to_owned));
            warnings.extend(site.app.engine.warning());
            site.database.promise(health.durability)
        }
    };
    moving(site, &mut problems, &mut warnings).await;
    if let Err(fault) = site.app.jwks().await {
        problems.push(fault.to_string());
    }
    let outgrown = site.app.outgrown().await.ok().flatten();
    let fence = if site.app.last_seen().is_none() { site.app.fence_that_is_up().await } else { None };
    Found { problems, warnings, durability, outgrown, fence, seen }
}

/// Makes the answer of what was found, and of what is known without asking the database.
fn told(site: &Site, found: Found) -> Readiness {
    let Found { mut problems, mut warnings, durability, outgrown, fence, seen } = found;
    if let Some(what) = site.database.damage() {
        problems.push(format!("the database is damaged: {what}"));
    }
    if seen.forgotten_proxy {
        let ignored = "forwarded headers come from a local address that proxy.trusted does not list: they are ignored";
        warnings.push(ignored.to_owned());
    }
    if seen.silent_proxy {
        let uncounted = "a proxy that proxy.trusted lists passed on a request without the address of a client that it \
                         does not list: no limit per address counts it";
        warnings.push(uncounted.to_owned());
    }
    if seen.leaving {
        problems.push("this node is stopping".to_owned());
    }
    problems.extend(site.strain.problems());
    if let Some(Err(why)) = site.app.guarded() {
        problems.push(why);
    }
    // The loop that watches the gate has reported it already.
    let is_said = |why: &String| problems.iter().any(|problem| problem.ends_with(why));
    let outgrown = outgrown.filter(|why| !is_said(why));
    problems.extend(outgrown);
    warnings.extend(doubtful(site).chain(unverifiable(site)));
    warnings.extend(site.tls.as_ref().and_then(|tls| tls.outlived()));
    let (failover, on_file) = (site.app.last_seen().or(fence), site.app.engine.file().is_some());
    warnings.extend(site.app.double().into_iter().chain(site.app.elsewhere()));
    warnings.extend(failover.as_ref().filter(|status| status.up).map(|status| fenced(status, on_file)));
    let problems = each_once(problems);
    let body = json!({
        "status": word(problems.is_empty()),
        "problems": problems,
        "warnings": warnings,
        "durability": durability,
        "fence": failover.as_ref().map(fence::shown),
        "connections": { "open": site.caps.open(), "refused": site.caps.refused().iter().map(|(_, count)| count).sum::<u64>() },
        "hashing": hashing(site),
    });
    Readiness { at: Instant::now(), seen, ready: problems.is_empty(), told: body.to_string().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::tests::House;
    use app::browser::Browser;
    use app::flow::{Flow, Place, To};
    use app::sign_in::Typed;
    use app::sign_up::NewPerson;
    use rules::people::Role;
    use std::future::Future;
    use std::pin::pin;
    use std::task::Poll;

    /// A hash with a pepper that this server does not have.
    const FOREIGN: &str =
        "$pv1$m=64,t=2,p=1,keyid=azE,bindid=YjE$c2l4dGVlbiBieXRlIHNsdA$xCx6TzAjWZx7FnQVoBzb/MoX5N9ILT3QY0qhOXwGUj4";

    #[tokio::test]
    async fn a_look_goes_on_where_whoever_asked_went_away() {
        // Red without `spawn` in `seen_or_looked`: after each probe that left, the next would ask the database again.
        let house = House::open(&[]).await;
        {
            let mut asked = pin!(current(&house.site, WITHIN));
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

    /// Returns whether the server is ready now, and what it reports.
    async fn told_now(house: &House) -> (bool, Value) {
        house.site.readiness.lock().await.take();
        let now = current(&house.site, Duration::from_secs(100)).await.unwrap();
        (now.ready, serde_json::from_str(&now.told).unwrap())
    }

    #[tokio::test]
    async fn a_database_without_the_realm_is_not_ready() {
        // Red without `jwks` in `look`.
        let house = House::open(&[]).await;
        assert!(told_now(&house).await.0);
        house.site.app.engine.alter(vec!["DELETE FROM realms".to_owned()]).await.unwrap();
        let (ready, told) = told_now(&house).await;
        assert!(!ready && told["problems"].to_string().contains("is not in the database"), "{told}");
    }

    #[tokio::test]
    async fn a_fence_that_came_with_a_database_is_told_of_on_a_file() {
        // Red without `fence` in `look`: only a node with a journal of its own told of it.
        let house = House::open(&[]).await;
        assert_eq!(told_now(&house).await.1["fence"], Value::Null);
        let fenced = [
            "INSERT INTO fences (realm, number, at, identity, epoch) VALUES ('main', 1, 5, 'x', 1)",
            "INSERT INTO fence_nodes (realm, number, node, state, at) VALUES ('main', 1, 'n2', 'waiting', 5)",
            "UPDATE realms SET fenced = '0000000001'",
        ];
        house.site.app.engine.alter(fenced.map(str::to_owned).to_vec()).await.unwrap();
        house.site.app.meet().await.unwrap();
        let (ready, told) = told_now(&house).await;
        assert!(ready && told["fence"]["waiting_for"] == json!(["n2"]), "{told}");
        assert!(told["warnings"].to_string().contains("portiere fence accept-loss"), "{told}");
        // Red without `lift_if_answered` in app/ward/watch.rs, meet: nobody would lift it.
        let said = "UPDATE fence_nodes SET state = 'replayed'".to_owned();
        house.site.app.engine.alter(vec![said]).await.unwrap();
        house.site.app.meet().await.unwrap();
        assert_eq!(told_now(&house).await.1["fence"], Value::Null);
    }

    #[tokio::test]
    async fn a_password_that_cannot_be_verified_is_told_of_from_when_its_owner_came() {
        // Red without either `met` in app/sign_in.rs, hash: all hashes are checked only once an hour.
        let password = "gorse violet anvil 41";
        for stored in ["nothing that can be read", FOREIGN] {
            let house = House::open(&[]).await;
            let app = &house.site.app;
            app.add_user(&NewPerson::new("ada", "", password.as_bytes()), Role::Member).await.unwrap().unwrap();
            app.engine.alter(vec![format!("UPDATE users SET password = '{stored}'")]).await.unwrap();
            let warned = |told: &Value| told["warnings"].to_string().contains("of some accounts cannot be verified");
            assert!(!warned(&told_now(&house).await.1));
            let flow = Flow::new(To::Place(Place::Account), app.clock.now());
            let typed = Typed::new("ada", password.as_bytes());
            assert!(app.sign_in(flow, typed, &Browser::default()).await.unwrap().is_err());
            let (ready, told) = told_now(&house).await;
            assert!(ready && warned(&told), "{told}");
        }
    }

    #[tokio::test]
    async fn who_asks_is_answered_in_time_where_the_database_says_nothing() {
        // Red without `timeout` in `current`: a database that hangs would delay the answer for as long.
        let house = House::open(&[]).await;
        let looks = house.site.readiness.lock().await;
        let brief = Duration::from_millis(20);
        let late = current(&house.site, brief).await.unwrap();
        let told: Value = serde_json::from_str(&late.told).unwrap();
        assert!(!late.ready && told["status"] == "not ready" && told["durability"] == "unknown", "{told}");
        assert_eq!(told["problems"], json!(["the database did not answer within 0.02 s"]));
        assert!(told["hashing"].is_object(), "in its usual shape: {told}");
        assert!(looks.is_none(), "nobody keeps it for others");
        drop(looks);
        assert!(current(&house.site, Duration::from_secs(100)).await.unwrap().ready, "it answers again");
    }
}
