//! Nodes that share a database file: what one learns, the others know.

mod at_home;
mod batches;
mod clocks;
mod coming;
mod consents;
mod devices;
mod edits;
mod endings;
mod epochs;
mod known_devices;
mod later_versions;
mod leases;
pub(crate) mod lines;
mod lists;
mod opened;
mod overtaken;
pub(crate) mod plans;
mod rejections;
mod restored;
mod revocations;
mod scattered;
mod secrets;
mod sessions;
mod setup;
mod shop;
mod sign_ups;
mod signed;
mod sizes;
mod standstill;
mod starts;
mod sweeps;
mod taken_back;
mod workers;

use crate::App;
use crate::browser::Browser;
use crate::clock::Clock;
use crate::flow::Flow;
use crate::keyring::Keyring;
use crate::sign_in::{Next, Typed};
use crate::sign_up::NewPerson;
use hasher::{Hasher, Settings as Hashing};
use rules::Time;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::scope::Scope;
use rules::people::User;
use rules::realm::{Realm, Settings};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use store::engine::Engine;

const NOW: Time = Time(1_700_000_000_000);

/// The database in `folder`, with its tables.
async fn database(folder: &Path) -> Arc<dyn Engine> {
    plans::planned(&folder.join("facts.db")).await
}

/// A node on that database whose clock is this one.
async fn node(engine: Arc<dyn Engine>, clock: Clock) -> App {
    hashing_node(engine, clock, Hashing::default()).await
}

/// The same, with this hashing, on one thread.
async fn hashing_node(engine: Arc<dyn Engine>, clock: Clock, hashing: Hashing) -> App {
    let realm = Realm { id: "main".into(), issuer: "http://localhost".into(), settings: Settings::default() };
    let hashing = Hashing { threads: std::num::NonZeroUsize::new(1), memory: Some(32 << 20), ..hashing };
    let hasher = Hasher::start(hashing).unwrap();
    let app = App::new(realm, engine, hasher, Keyring::new(&[1; 32]).unwrap(), clock).unwrap();
    app.prepare().await.unwrap();
    app
}

/// The password of everybody here who has one.
const PASSWORD: &[u8] = b"gorse violet anvil 41";

/// A person of that name and address who signs in with [`PASSWORD`].
fn newcomer(name: &str, email: &str) -> NewPerson {
    NewPerson::new(name, email, PASSWORD)
}

/// Signs `ada` in, and returns what comes next.
async fn sign_in(app: &App, flow: Flow, browser: &mut Browser) -> Next {
    let signed_in = app.sign_in(flow, Typed::new("ada", PASSWORD), browser).await.unwrap().unwrap();
    browser.session = Some(signed_in.started.cookie);
    signed_in.next
}

/// A user without a password.
fn ada() -> User {
    User::new("ada".into(), "ada", NOW)
}

/// An application that people sign in to.
pub(crate) fn shop() -> Client {
    Client {
        redirect_uris: vec!["https://shop.test/cb".into()],
        grants: vec![Grant::AuthorizationCode],
        scope: Scope::from("openid".to_owned()),
        auth_methods: vec![AuthMethod::None],
        ..application("shop")
    }
}

/// An application that has tokens of its own.
fn application(id: &str) -> Client {
    serde_json::from_value(json!({
        "id": id, "name": id, "grants": ["client_credentials"], "scope": "read",
        "auth_methods": ["client_secret_basic"],
        "id_token_alg": "RS256", "access_format": "jwt", "access_alg": "ES256",
    }))
    .unwrap()
}
