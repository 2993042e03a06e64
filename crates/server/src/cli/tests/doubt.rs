//! Commits of which nobody knows whether they stand.

use super::super::request::Place;
use super::*;
use crate::boot::{FIRST_REALM, make_folder};
use crate::database::Database;
use crate::hashing;
use app::App;
use app::clock::Clock;
use app::keyring::Keyring;
use clap::Subcommand as _;
use hasher::{Hasher, Key, KeyId, Keys};
use rules::id::RealmId;
use rules::realm::{Realm, Settings};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use store::engine::{Answer, Around, CommitError, Engine, Write};
use zeroize::Zeroizing;

/// A database whose connection breaks after a commit, before the answer.
struct Breaking {
    inner: Arc<dyn Engine>,
    breaks: AtomicBool,
}

impl Around for Breaking {
    fn inside(&self) -> &dyn Engine {
        &*self.inner
    }
    fn commit_around(&self, writes: Vec<Write>) -> Answer<'_, Vec<u64>, CommitError> {
        Box::pin(async move {
            let done = self.inner.commit(writes).await?;
            match self.breaks.load(SeqCst) {
                true => Err(CommitError::Unknown("connection closed".into())),
                false => Ok(done),
            }
        })
    }
}

/// What nothing of the command line makes on a file.
const ROWS: [&str; 4] = [
    "INSERT INTO nodes (realm, node, seen, mark) VALUES ('main', 'n1', 1, 4)",
    "INSERT INTO fences (realm, number, at, identity, epoch) VALUES ('main', 1, 1, '7', 1)",
    "INSERT INTO fence_nodes (realm, number, node, state, at) VALUES ('main', 1, 'n2', 'waiting', 1)",
    "INSERT INTO workers (realm, worker_key, name, enrolled, address, quarantined_at, why)
        VALUES ('main', x'00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff', 'w1', 1, '', 1, 'lied')",
];

/// Every command that commits what it was asked for, and what its failure ends with.
const CHANGES: [(&str, &str); 26] = [
    ("user add ada --email ada@example.test --password-stdin", ""),
    ("user add bob --if-absent --password-stdin", ""),
    ("user set ada name=Ada", ""),
    ("user set-password ada --password-stdin", ""),
    ("user disable ada", ""),
    ("user enable ada", ""),
    ("client add --id shop --redirect-uri https://shop.test/cb", "portiere client rotate-secret shop"),
    ("client add --id shop2 --if-absent --redirect-uri https://b.test/cb", "portiere client rotate-secret shop2"),
    ("client add --id app --public --redirect-uri https://app.test/cb", ""),
    ("client set shop --name Shop", ""),
    ("client set app --auth-method client_secret_basic", "portiere client rotate-secret app"),
    ("client rotate-secret shop", "portiere client rotate-secret shop"),
    ("client disable shop", ""),
    ("client enable shop", ""),
    ("client remove shop", ""),
    ("group add staff", ""),
    ("group member staff ada", ""),
    ("group remove staff", ""),
    ("keys rotate", ""),
    ("audit stream http --after-block now", ""),
    ("audit forget http", ""),
    ("fence accept-loss n2 --yes", ""),
    ("node forget n1 --yes", ""),
    ("verifier token", "portiere verifier token"),
    ("setup-link", "portiere setup-link"),
    ("user remove ada", ""),
];

/// As long as nothing in the database asks for it, these commit nothing; `migrate` and `backup` never do.
const IDLE: [&str; 6] = ["audit rekey", "audit accept", "audit discard", "audit skip", "migrate", "backup"];
/// On the worker's machine.
const ELSEWHERE: [&str; 2] = ["verifier enroll", "verifier serve"];
const QUESTIONS: [&str; 21] = [
    "user list",
    "user hashes",
    "user show ada",
    "client list",
    "client show shop",
    "group list",
    "group show staff",
    "keys list",
    "audit list",
    "audit export",
    "audit tail",
    "audit strangers",
    "audit verify",
    "audit head",
    "audit status",
    "fence status",
    "node list",
    "verifier status",
    "verifier list",
    "ready",
    "profile",
];

/// Returns the words of a line that name a command.
fn words(line: &str) -> String {
    let two = line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    if ["setup-link", "ready", "profile"].contains(&line) { line.to_owned() } else { two }
}

/// Returns a server on a new database.
async fn server(data: &Path) -> (App, Arc<Breaking>) {
    let config = config(data);
    make_folder(data).unwrap();
    let database = Database::open(&config).await.unwrap();
    database.begin().await.unwrap();
    let engine = Arc::new(Breaking { inner: database.engine(), breaks: AtomicBool::new(false) });
    let (id, issuer) = (RealmId::from(FIRST_REALM), "https://id.example.test".to_owned());
    let realm = Realm { id, issuer, settings: Settings::default() };
    // Workers need both.
    let id_of = |name: &[u8]| KeyId::new(name).unwrap();
    let keys =
        [Key::pepper(id_of(b"p1"), Zeroizing::new([1; 32])), Key::binding(id_of(b"b1"), Zeroizing::new([2; 32]))];
    let settings = hashing::settings(&config).unwrap();
    let hasher = Hasher::start(hasher::Settings { keys: Keys::new(keys).unwrap(), ..settings }).unwrap();
    let app = App::new(realm, Arc::clone(&engine) as _, hasher, Keyring::new(&[7; 32]).unwrap(), Clock::system());
    let app = app.unwrap();
    app.prepare().await.unwrap();
    (app, engine)
}

/// Red where From<CommitError> in app/src/fault.rs makes Unavailable of it: scripts try again after 75, and the secret
/// that was made the first time was seen by nobody.
#[tokio::test]
async fn what_may_have_been_done_is_not_done_again_by_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let (app, engine) = server(folder.path()).await;
    engine.alter(ROWS.map(str::to_owned).into()).await.unwrap();
    let place = Place { data: folder.path(), serves: true, hears_workers: false };
    let types = async |line: &str| {
        let stdin = if line.contains("stdin") { PASSWORD } else { "" };
        let done = Box::pin(request(line, stdin).unwrap().execute(&app, place));
        app::asked::by_operator(0, done).await
    };
    let kid = types("keys list").await.unwrap().json[0]["kid"].as_str().unwrap().to_owned();
    let more = ["verifier trust w1", "verifier rename w1 w2", "verifier revoke w2"].map(str::to_owned);
    let more = more.into_iter().chain([format!("keys rotate --revoke {kid}")]).map(|line| (line, ""));
    for (line, ends) in CHANGES.map(|(line, ends)| (line.to_owned(), ends)).into_iter().chain(more) {
        engine.breaks.store(true, SeqCst);
        let failure = types(&line).await.unwrap_err();
        engine.breaks.store(false, SeqCst);
        assert!(matches!(failure, Failure::InDoubt(_)) && failure.exit_code() == 1, "{line}: {failure:?}");
        let told = failure.told();
        assert!(told.contains("may or may not") && told.ends_with(ends), "{line}: {told}");
        assert_eq!(told.contains("make another"), !ends.is_empty(), "{line}: {told}");
        // Where it ended before its last commit, the rest is done now.
        drop(types(&line).await);
    }
    app.hasher.stop().await;
}

#[test]
fn every_command_is_a_question_or_tried_here() {
    let known = CHANGES.iter().map(|(line, _)| words(line)).chain(QUESTIONS.map(words));
    let mut known: BTreeSet<String> = known.chain(IDLE.into_iter().chain(ELSEWHERE).map(str::to_owned)).collect();
    known.extend(["verifier trust", "verifier rename", "verifier revoke"].map(str::to_owned));
    for line in QUESTIONS {
        assert!(request(line, "").unwrap().is_question(), "{line}");
    }
    for command in Request::augment_subcommands(clap::Command::new("portiere")).get_subcommands() {
        let name = command.get_name();
        let below = command.get_subcommands().map(|below| format!("{name} {}", below.get_name()));
        let leaves: Vec<_> = if command.has_subcommands() { below.collect() } else { vec![name.to_owned()] };
        for leaf in leaves {
            assert!(known.contains(&leaf), "{leaf}");
        }
    }
}
