//! The steps before a measurement: everything that an iteration may do is tried once, so that a mistake is one clear
//! line and not a table of failures; then the visitors prepare.

use crate::Refusal;
use crate::plan::{Plan, Proof, Workload};
use crate::run::runtime;
use crate::visitor::{
    AccountApi, Cause, DESPITE, NO_ACCESS, NO_REFRESH_TOKEN, NOT_ACTIVE, Provider, Reason, Scene, Setback, Step,
    Visitor, WRONG_CREDENTIALS,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How often a visitor that is refused while it prepares may try.
const PREPARE_TRIES: u32 = 20;
/// How often the first visitor may try.
const REHEARSAL_TRIES: u32 = 5;
/// The beginning of the line that says why nothing was measured.
const FIRST: &str = "the first iteration failed: ";
/// The note where the plan does without the account API.
const WITHOUT_API: &str =
    "userinfo and the sign-in pages in place of the account API: as it was asked for (--no-account-api)";
/// How often a recovering server is asked: often enough to lose little time, and seldom enough not to hinder its
/// recovery.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// Learns the endpoints and tries everything that an iteration may do; if the plan has a recovery, as soon as the
/// server answers.
pub fn rehearse(plan: &Plan) -> Result<Scene, Refusal> {
    let runtime = runtime().map_err(Refusal::Failure)?;
    let ready = async {
        match plan.recovery {
            None => rehearsed(plan).await,
            Some(recovery) => recovered(plan, recovery).await,
        }
    };
    let ready = runtime.block_on(plan.interrupt.unless(ready));
    ready.unwrap_or_else(|| Err(Refusal::Failure("interrupted".to_owned())))
}

/// Does the same, and retries until it succeeds: it has succeeded before, so whatever is wrong now may pass.
async fn recovered(plan: &Plan, within: Duration) -> Result<Scene, Refusal> {
    let deadline = Instant::now() + within;
    let mut last = "no response in time".to_owned();
    loop {
        match timeout_at(deadline, rehearsed(plan)).await {
            Ok(Ok(scene)) => return Ok(scene),
            Ok(Err(refusal)) => last = refusal.to_string(),
            Err(_) => {
                let last = last.strip_prefix(FIRST).unwrap_or(&last);
                let line =
                    format!("the server did not recover within {within:?} of what it was offered before: {last}");
                return Err(Refusal::Failure(line));
            }
        }
        sleep(ASK_AGAIN).await;
    }
}

async fn rehearsed(plan: &Plan) -> Result<Scene, Refusal> {
    let provider = Provider::discover(plan).await?;
    let mut scene = Scene::new(plan.clone(), provider);
    let clear = |setback: Setback| Refusal::Failure(format!("{FIRST}{setback}{}", remedy(&setback, plan)));
    if plan.workload.wants_account() {
        match plan.without_account_api {
            true => scene.notes.push(WITHOUT_API.to_owned()),
            false => scene = with_account(scene).await?,
        }
    }
    let scene = Arc::new(scene);
    let mut visitor = Visitor::new(Arc::clone(&scene));
    let mut tries = 0;
    while let Err(setback) = visitor.prepare().await {
        tries += 1;
        wait_if_refused(setback, tries, REHEARSAL_TRIES).await.map_err(clear)?;
    }
    let mut begun = Instant::now();
    while let Err(setback) = visitor.rehearse().await {
        tries += 1;
        wait_if_refused(setback, tries, REHEARSAL_TRIES).await.map_err(clear)?;
        begun = Instant::now();
    }
    let first = scene.is_always_alike().then(|| begun.elapsed());
    drop(visitor);
    let mut scene = Arc::into_inner(scene).unwrap_or_else(|| unreachable!("the visitor held the only other reference"));
    scene.first = first;
    Ok(scene)
}

/// Returns advice for a setback, if the answer itself does not give it.
fn remedy(setback: &Setback, plan: &Plan) -> &'static str {
    match setback {
        Setback { step: Step::Introspect, cause: Cause::Wrong(why) }
            if is_of(why, &["401", "403"]) || why.whole == NOT_ACTIVE =>
        {
            of_introspection(&why.whole, plan)
        }
        Setback { step: Step::Refresh, cause: Cause::Wrong(why) } if is_of(why, &[NO_REFRESH_TOKEN]) => {
            match plan.workload {
                Workload::Flow | Workload::Session => {
                    "; ask for one (--scope offline_access, --param prompt=consent), or go without (w1 --no-refresh)"
                }
                _ => "; ask for one (--scope offline_access, --param prompt=consent)",
            }
        }
        Setback { step: Step::Authorize, cause: Cause::Wrong(why) } if is_of(why, &["4"]) => {
            "; does the provider know this --client with this --redirect-uri?"
        }
        Setback { step: Step::Login, cause: Cause::Wrong(why) } if is_without_access(why) => {
            "; may this user use this client?"
        }
        Setback { step: Step::Login, cause: Cause::Wrong(why) } if is_of(why, &["4"]) => {
            "; if the password is right: does the provider know this --client with this --redirect-uri?"
        }
        Setback { step: Step::Authorize, cause: Cause::Wrong(why) } if is_of(why, &[DESPITE]) => {
            "; was the session kept, and if it was: does the client ask for consent each time, which is not given without a password?"
        }
        Setback { step, cause: Cause::Wrong(why) }
            if is_of_the_client(*step) && is_of(why, &["401", "400 invalid_client"]) =>
        {
            match plan.client.proof {
                Proof::Nothing => "; does this client have a secret (--client-secret-file)?",
                _ => {
                    "; is it this client's secret (--client-secret-file), and the way in which it authenticates (--auth)?"
                }
            }
        }
        _ => "",
    }
}

/// Returns true if a provider may have let the user sign in, but not to this client. Where something was pressed, that
/// may have been a no instead.
fn is_without_access(why: &Reason) -> bool {
    is_of(why, &["403", NO_ACCESS]) && !why.whole.contains(", after \"")
}

/// Returns true if a reason begins with one of these.
fn is_of(why: &Reason, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| why.whole.starts_with(beginning))
}

/// The same for an introspection that is refused, or that tells this client nothing about the token.
fn of_introspection(why: &str, plan: &Plan) -> &'static str {
    let alone = plan.workload == Workload::Introspect;
    match &plan.introspector {
        Some(_) if why.starts_with("401") => {
            "; is it the secret of --introspect-client (--introspect-secret-file), and the way in which it authenticates (--auth)?"
        }
        Some(_) => "; are the tokens for --introspect-client (--scope, --param audience=…)?",
        None if why.starts_with("401") && plan.client.proof == Proof::Nothing && !alone => {
            "; introspection needs a client with a secret (--client-secret-file, --introspect-client); --no-introspection asks for \
             userinfo in its place"
        }
        None if why.starts_with("401") && plan.client.proof == Proof::Nothing => {
            "; introspection needs a client with a secret (--client-secret-file, --introspect-client)"
        }
        None if !alone => {
            "; where the provider lets others ask, not this client, --introspect-client names one, and --no-introspection asks for \
             userinfo in its place"
        }
        None => "; where the provider lets others ask, not this client, --introspect-client names one",
    }
}

/// Whether the client authenticates in this step, unless it is public.
fn is_of_the_client(step: Step) -> bool {
    matches!(step, Step::Token | Step::Refresh | Step::ClientCredentials | Step::Device | Step::Poll)
}

/// Finds out whether the provider has an account API that lets the client in. A plan without one does without it, and
/// the report says so. A wrong password is an error, and so is a server that cannot answer now: what is measured would
/// depend on the moment.
async fn with_account(scene: Scene) -> Result<Scene, Refusal> {
    let Some(api) = AccountApi::of(&scene.provider.issuer, &scene.plan.client) else { return Ok(scene) };
    let scene = Arc::new(scene);
    let mut visitor = Visitor::new(Arc::clone(&scene));
    let mut tries = 0;
    let refused = loop {
        let Err(setback) = visitor.knock(&api).await else { break None };
        match &setback.cause {
            Cause::Refused { .. } => {
                tries += 1;
                let told = wait_if_refused(setback, tries, REHEARSAL_TRIES).await;
                told.map_err(|setback| Refusal::Failure(format!("{FIRST}{setback}")))?;
            }
            Cause::Wrong(why) if is_of(why, &[WRONG_CREDENTIALS]) => {
                return Err(Refusal::Failure(format!("{FIRST}{setback}")));
            }
            Cause::Wrong(why) if !is_passing(&why.whole) => break Some(why.whole.clone()),
            Cause::Wrong(_) | Cause::Lost(_) => {
                // Some gateways fail at every path that they do not know.
                let goes_without = scene.plan.workload != Workload::SignUp;
                let advice = if goes_without { "; --no-account-api goes without the account API" } else { "" };
                return Err(Refusal::Failure(format!("{FIRST}{setback}{advice}")));
            }
        }
    };
    drop(visitor);
    let mut scene = Arc::into_inner(scene).unwrap_or_else(|| unreachable!("the visitor held the only other reference"));
    match refused {
        None => scene.account = Some(api),
        Some(why) if scene.plan.workload == Workload::SignUp => {
            let needed = "sign_up needs Portiere's account API and a client that is --first-party there";
            return Err(Refusal::Failure(format!("{needed}: it answers {why}; w3 goes without by --no-sign-ups")));
        }
        Some(why) => {
            scene.notes.push(format!("userinfo in place of the account: no account API lets this client in ({why})"));
        }
    }
    Ok(scene)
}

/// Returns true if a response says only that the server, or the proxy before it, cannot answer now. 501 is for a method
/// that a server does not know at all (RFC 9110 §15.6.2).
fn is_passing(why: &str) -> bool {
    let status = why.split(' ').next().unwrap_or_default();
    matches!(status, "408" | "425" | "429") || status.len() == 3 && status.starts_with('5') && status != "501"
}

/// Prepares a visitor, patient while the server is busy with the others, or for a time with what came before.
pub async fn prepared(visitor: &mut Visitor, recovery: Option<Duration>) -> Result<(), Setback> {
    let patience = recovery.map(|recovery| Instant::now() + recovery);
    let mut tries = 0;
    while let Err(setback) = visitor.prepare().await {
        if matches!(setback.cause, Cause::Lost(_)) && patience.is_some_and(|patience| Instant::now() < patience) {
            sleep(ASK_AGAIN).await;
            continue;
        }
        tries += 1;
        wait_if_refused(setback, tries, PREPARE_TRIES).await?;
    }
    Ok(())
}

async fn wait_if_refused(setback: Setback, tries: u32, most: u32) -> Result<(), Setback> {
    match setback.cause {
        Cause::Refused { retry_after, .. } if tries < most => {
            sleep(stay_away(retry_after, fastrand::f64())).await;
            Ok(())
        }
        Cause::Refused { status, retry_after, .. } => {
            let after = retry_after.as_secs();
            let after = if after > 0 { format!(", come back after {after} s") } else { String::new() };
            Err(setback.step.wrong(format!("still refused after {most} tries ({status}{after})")))
        }
        _ => Err(setback),
    }
}

/// Spreads the retries over twice the requested time, by a random number from 0 to 1, because all visitors are told the
/// same time. A server may ask for any time, even for one that cannot be doubled.
fn stay_away(asked: Duration, chance: f64) -> Duration {
    const LONGEST: Duration = Duration::from_secs(10);
    asked.min(LONGEST).mul_f64(1.0 + chance).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red where every answer but a refusal means that there is no account API: a proxy's 502 had userinfo measured.
    #[test]
    fn who_cannot_answer_now_has_not_said_that_there_is_no_such_api() {
        assert!(["500", "502 Bad Gateway", "503", "504 x", "429 slow down", "408"].into_iter().all(is_passing));
        let lasting = ["404 Nothing here", "405", "401 client-refused", "403", "501", "302", "200, but no JSON", ""];
        assert!(!lasting.into_iter().any(is_passing));
    }

    #[test]
    fn nobody_stays_away_for_long_whatever_was_asked() {
        let seconds = |asked, chance| stay_away(Duration::from_secs(asked), chance).as_secs_f64();
        assert_eq!([seconds(4, 0.5), seconds(9, 0.9), seconds(u64::MAX, 1.0), seconds(0, 1.0)], [6.0, 10.0, 10.0, 0.0]);
    }
}
