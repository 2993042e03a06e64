//! Decision 0005 where the reads of a fetch are answered in any order: what changes meanwhile on another node is known
//! at the next request, and of two changes neither undoes the other.

use super::scattered::Scattered;
use super::{NOW, application, database, node};
use crate::admin::clients::ClientSecret;
use crate::clock::Clock;
use crate::{App, Fault};
use rules::id::ClientId;
use rules::oauth::client::Client;
use rules::oauth::scope::Scope;
use rules::oauth::token;
use rules::secret::Secret;
use rules::{Fresh, Span};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Instant;
use store::engine::{Around, Engine};
use tempfile::TempDir;

/// More reads than any of these use cases makes.
const PLACES: usize = 6;

const HASH: &str = "$2b$04$abcdefghijklmnopqrstuuHNKuUIXqaREYx17sVRwhfnnLPpB13yy";

/// A node whose reads are scattered, and another node on the same database.
struct Two {
    _folder: TempDir,
    scattered: Arc<Scattered>,
    clock: Clock,
    here: App,
    there: App,
    svc: ClientId,
}

impl Two {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = database(folder.path()).await;
        let (scattered, clock) = (Scattered::over(&engine), Clock::fixed(NOW));
        let there = node(engine, clock.clone()).await;
        there.add_client(application("svc"), ClientSecret::Generated).await.unwrap().unwrap();
        let here = node(Arc::clone(&scattered) as Arc<_>, clock.clone()).await;
        Two { _folder: folder, scattered, clock, here, there, svc: "svc".into() }
    }

    /// Returns the application as this node believes that it is.
    async fn believed(&self) -> Arc<Client> {
        self.here.client(&self.svc, self.here.epoch().await.unwrap()).await.unwrap().expect("registered")
    }
}

fn told<T, E: std::fmt::Debug>(done: Result<T, E>) -> Result<(), String> {
    done.map(drop).map_err(|error| format!("{error:?}"))
}

fn secret() -> Secret {
    Secret::new("a new secret that is as long as one should be, 0123456789")
}

#[tokio::test]
async fn a_secret_that_is_replaced_while_its_client_is_read_is_dead_at_the_next_request() {
    // Red where the client is kept under an epoch that is read beside it (cache.rs, client).
    for place in 0..PLACES {
        let two = Two::start().await;
        let (there, svc) = (two.there.clone(), two.svc.clone());
        two.scattered.coming.after(place, async move { told(there.rotate_secret(&svc, Some(secret())).await) });
        while !two.scattered.coming.is_over() {
            two.believed().await;
        }
        assert_eq!(two.believed().await.secret, Some(secret().handle()), "{place}");
    }
}

#[tokio::test]
async fn a_key_that_is_thrown_out_while_the_keys_are_read_is_dead_at_the_next_request() {
    // Red where the keys are kept under an epoch that is read beside them (cache.rs, keys).
    for place in 0..PLACES {
        let two = Two::start().await;
        // So that the keys have to be read.
        two.there.rotate_secret(&two.svc, None).await.unwrap().unwrap();
        let kid = two.there.signing_keys().await.unwrap()[0].0.kid.clone();
        let (there, gone) = (two.there.clone(), kid.clone());
        two.scattered.coming.after(place, async move { told(there.throw_out(&gone).await) });
        while !two.scattered.coming.is_over() {
            two.here.jwks().await.unwrap();
        }
        let (_, keys) = two.here.jwks().await.unwrap();
        assert!(!keys.contains(kid.as_str()), "{place}: {keys}");
    }
}

#[tokio::test]
async fn a_kind_of_hash_that_is_announced_while_they_are_read_is_waited_for_at_the_next_sign_in() {
    // Red where the kinds are kept under an epoch that is read beside them (passwords.rs, even_out).
    for place in 0..PLACES {
        let two = Two::start().await;
        let there = two.there.clone();
        two.scattered.coming.after(place, async move { told(there.expecting(HASH, async { Ok(Ok(())) }).await) });
        while !two.scattered.coming.is_over() {
            two.here.even_out((Instant::now(), Instant::now()), two.here.epoch().await.unwrap()).await.unwrap();
        }
        let epoch = two.here.epoch().await.unwrap();
        two.here.even_out((Instant::now(), Instant::now()), epoch).await.unwrap();
        let (at, works) = two.here.evening.held().expect("nobody has looked");
        let works = works.filter(|_| two.here.counts(at, epoch)).expect("it waits at this epoch");
        assert_eq!(works.len(), 1, "{place}");
    }
}

#[tokio::test]
async fn of_two_changes_to_a_client_neither_undoes_the_other() {
    // Red where the client is read together with the epoch that guards its change (admin/clients.rs, change_client).
    for place in 0..PLACES {
        let two = Two::start().await;
        let (there, svc) = (two.there.clone(), two.svc.clone());
        two.scattered.coming.after(place, async move { told(there.set_client_enabled(&svc, false).await) });
        two.here.rotate_secret(&two.svc, Some(secret())).await.unwrap().unwrap();
        while !two.scattered.coming.is_over() {
            two.here.epoch().await.unwrap();
        }
        let client = two.there.find_client(&two.svc).await.unwrap().expect("registered");
        assert_eq!((client.is_enabled(), client.secret), (false, Some(secret().handle())), "{place}");
    }
}

/// An engine behind which another server answers when a test says so.
struct Moved(Arc<dyn Engine>, AtomicU64);

impl Around for Moved {
    fn inside(&self) -> &dyn Engine {
        &*self.0
    }
    fn generation_around(&self) -> u64 {
        self.1.load(SeqCst)
    }
}

#[tokio::test]
async fn what_was_read_from_another_server_does_not_count_whatever_the_number_of_its_epoch() {
    // Red without the generation in cache.rs, counts: a server that took over with less reached the same epoch.
    let folder = tempfile::tempdir().unwrap();
    let moved = Arc::new(Moved(database(folder.path()).await, AtomicU64::new(1)));
    let here = node(Arc::clone(&moved) as Arc<_>, Clock::fixed(NOW)).await;
    here.add_client(application("svc"), ClientSecret::Generated).await.unwrap().unwrap();
    let svc = ClientId::from("svc");
    let scope = async || here.client(&svc, here.epoch().await.unwrap()).await.unwrap().unwrap().scope.to_string();
    let before = scope().await;
    let other = |scope| format!("UPDATE clients SET data = REPLACE(data, '\"scope\":\"', '\"scope\":\"{scope} ')");
    moved.0.alter(vec![other("more")]).await.unwrap();
    assert_eq!(scope().await, before, "it is kept");
    let request = here.within("r1".into(), "192.0.2.1".parse().unwrap(), async {
        scope().await;
        moved.1.fetch_add(1, SeqCst);
        assert_eq!(scope().await, format!("more {before}"));
    });
    request.await;
    // A request that began before has left nothing that counts.
    moved.0.alter(vec![other("extra")]).await.unwrap();
    assert_eq!(scope().await, format!("extra more {before}"));
}

#[tokio::test]
async fn what_lasts_longer_than_a_request_is_of_the_server_that_was_asked_too() {
    // Red where the waits of sign-ins (passwords.rs), or a key set (keyring.rs), are kept by the epoch alone.
    let folder = tempfile::tempdir().unwrap();
    let moved = Arc::new(Moved(database(folder.path()).await, AtomicU64::new(1)));
    let here = node(Arc::clone(&moved) as Arc<_>, Clock::fixed(NOW)).await;
    let epoch = here.epoch().await.unwrap();
    let looks = async || {
        here.even_out((Instant::now(), Instant::now()), epoch).await.unwrap();
        [here.evening.held().unwrap().0, here.jwks().await.unwrap().0]
    };
    let before = looks().await;
    assert!(before.iter().all(|at| here.counts(*at, epoch)) && looks().await == before);
    for other in [epoch - 1, epoch + 1] {
        assert!(before.iter().all(|at| !here.counts(*at, other)), "another epoch");
    }
    moved.1.fetch_add(1, SeqCst);
    assert!(before.iter().all(|at| !here.counts(*at, epoch)), "another server reached the same epoch");
    assert!(looks().await.iter().all(|at| here.counts(*at, epoch)));
}

#[tokio::test]
async fn keys_that_another_node_brings_in_meanwhile_are_not_brought_in_again() {
    // Red where the keys are read together with the epoch that guards their change (admin/keys.rs, bring_in).
    for place in 0..PLACES {
        let two = Two::start().await;
        two.clock.advance(Span::days(100));
        let (before, there) = (two.there.signing_keys().await.unwrap().len(), two.there.clone());
        two.scattered.coming.after(place, async move { told(there.rotate_keys(true).await) });
        two.here.rotate_aged_keys(Span::days(90)).await.unwrap();
        while !two.scattered.coming.is_over() {
            two.here.epoch().await.unwrap();
        }
        let after = two.there.signing_keys().await.unwrap().len();
        // The other node always brings in successors; once this node is done, it does so again.
        assert_eq!(after, before * if place < 3 { 2 } else { 3 }, "{place}");
    }
}

#[tokio::test]
async fn rt_02_what_a_client_may_no_longer_have_is_not_issued_by_whoever_saw_it_before() {
    // Red without `registered` in rules/oauth/token.rs, standing, or in store/tables/changes.rs, stands.
    let two = Two::start().await;
    let here = &two.here;
    let issue = async |client: Arc<Client>| {
        let client = &client;
        let own = |now, fresh: Fresh| async move {
            Ok(token::own(client, Some("read"), Ok(Vec::new()), &here.context(), (now, &fresh)).map(drop))
        };
        here.settle(own).await
    };
    let before = two.believed().await;
    assert!(matches!(issue(before.clone()).await, Ok(Ok(()))));
    let other = |client: &mut Client| {
        client.scope = Scope::from("write".to_owned());
        Ok(())
    };
    assert!(two.there.edit_client(&two.svc, other).await.unwrap().is_ok());
    assert!(matches!(issue(before).await, Err(Fault::Contended(_))), "it is somebody else by now");
    assert!(matches!(issue(two.believed().await).await, Ok(Err(_))), "who looks again sees why");
}

#[tokio::test]
async fn applications_that_are_changed_all_at_once_are_all_changed() {
    // Red without `registering`: each change is a rival of all others, and most lose more often than they may try.
    let two = Two::start().await;
    let mut changes = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (there, id) = (two.there.clone(), two.svc.clone());
        changes.spawn(async move {
            let added = there.add_client(application(&format!("svc{number}")), ClientSecret::Generated).await;
            let named = there.edit_client(&id, |client| {
                client.name = format!("Name {number}");
                Ok(())
            });
            told(added).and(told(named.await))
        });
    }
    assert!(changes.join_all().await.iter().all(Result::is_ok));
    assert_eq!(two.there.clients("").await.unwrap().len(), 41);
}
