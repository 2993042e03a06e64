//! Reads with today's program what released versions left in files: `tests/versions` has a folder for each version, and
//! says how it is made and when another one is added. The tests of `tests/http/versions.rs` read their databases.

use crate::config::{Config, Source, Sources, declared};
use crate::journal;
use crate::verifier::Folder;
use app::ward::{Journal, Memory};
use hasher::Calibration;
use rules::ending::{Ending, Record};
use rules::id::SessionId;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::{Handle, Time};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Returns the folder of each version.
fn kept() -> Vec<PathBuf> {
    let all = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<_> = all.filter(|path| path.is_dir()).collect();
    assert!(!kept.is_empty());
    kept
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/versions")
}

/// Returns the folder of this version: versions that differ only in their last number have files of one form.
fn ours() -> PathBuf {
    folder().join(env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap().0)
}

/// Copies a folder so that it is its owner's alone, as a repository cannot keep it.
fn copied(from: &Path, to: &Path) {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let file = to.join(entry.file_name());
        fs::copy(entry.path(), &file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

#[test]
fn the_settings_of_each_version_are_read() {
    for version in kept() {
        let mut said = BTreeSet::new();
        for file in ["portiere.toml", "keys.toml"] {
            let sources = Sources { file: Some(version.join(file)), ..Sources::default() };
            let config = Config::load(sources).unwrap_or_else(|problems| panic!("{}: {problems:?}", version.display()));
            let of_file = config.show().into_iter().filter(|shown| shown.source == Source::File);
            said.extend(of_file.map(|shown| shown.name));
        }
        let missing: Vec<_> = declared().map(|option| option.name).filter(|name| !said.contains(name)).collect();
        assert!(version != ours() || missing.is_empty(), "{} has nothing for {missing:?}", version.display());
    }
}

#[tokio::test]
async fn the_journal_of_each_version_is_read() {
    // red where an ending has another name than before, or needs a field that it did not have then.
    for version in kept() {
        let data = tempfile::tempdir().unwrap();
        copied(&version.join("journal"), &data.path().join(journal::FOLDER));
        let opened = journal::Folder::open(data.path(), "another").await.unwrap();
        assert_eq!(opened.memory(), memory(), "{}", version.display());
        let parts = opened.parts().unwrap();
        let records: Vec<Record> = parts.into_iter().flat_map(|part| opened.read(part).unwrap()).collect();
        let [record] = &records[..] else { panic!("{}: {records:?}", version.display()) };
        assert_eq!((record.at, record.witness.as_deref()), (AT, Some(WITNESS)), "{}", version.display());
        // No ending in the file was skipped.
        let text = fs::read_to_string(version.join("journal/00000001.log")).unwrap();
        let written: Value = serde_json::from_str(text.split_once(' ').unwrap().1).unwrap();
        assert_eq!(kinds(&serde_json::to_value(record).unwrap()), kinds(&written), "{}", version.display());
        assert!(version != ours() || written == serde_json::to_value(self::record()).unwrap(), "{written}");
    }
}

/// Returns the names of the endings of a record.
fn kinds(record: &Value) -> Vec<&String> {
    let all = [&record["endings"], &record["later"]].into_iter().filter_map(Value::as_array).flatten();
    let mut kinds: Vec<_> = all.flat_map(|ending| ending.as_object().unwrap().keys()).collect();
    kinds.sort();
    kinds
}

#[test]
fn the_folder_of_a_worker_of_each_version_is_read() {
    for version in kept() {
        let root = tempfile::tempdir().unwrap();
        copied(&version.join("worker"), root.path());
        let folder = Folder::at(root.path());
        drop(folder.take().unwrap());
        folder.identity().unwrap();
        let post = folder.post().unwrap();
        assert_eq!((post.name.as_str(), post.servers.len()), ("made-up-worker", 1), "{}", version.display());
        assert!(post.pin().is_some() && folder.is_taken());
        fs::copy(version.join("hashing"), root.path().join("hashing")).unwrap();
        assert!(folder.learnt().is_some(), "{}", version.display());
    }
}

#[test]
fn what_each_version_learnt_of_a_machine_is_read() {
    for version in kept() {
        let text = fs::read_to_string(version.join("hashing")).unwrap();
        let learnt = Calibration::from_text(&text).unwrap();
        assert_eq!(learnt.machine(), "Made Up CPU, 2 threads, hasher 0.1.0", "{}", version.display());
        assert_eq!(learnt.to_text(), text, "{}: kept as it is", version.display());
    }
}

const AT: Time = Time(1_790_000_000_000);
const WITNESS: &str = "made-up-line";

/// Returns what the node of the journal knows about its database.
fn memory() -> Memory {
    Memory {
        node: "made-up-node".to_owned(),
        identity: Some("made-up server".to_owned()),
        fence: Some((3, AT)),
        short: Some(AT),
        mark: 7,
        seen: Some(AT),
        lossy: true,
    }
}

/// Returns a record with an ending of each kind.
fn record() -> Record {
    Record { at: AT, witness: Some(WITNESS.to_owned()), endings: [of_sign_ins(), of_tokens(), of_the_rest()].concat() }
}

fn of_sign_ins() -> Vec<Ending> {
    let session = || SessionId("made-up-session".to_owned());
    let (user, handle) = (|| "ada".into(), Handle::of("made up"));
    vec![
        Ending::Session { session: session(), at: AT },
        Ending::SessionsOf { user: user(), except: Some(session()), at: AT },
        Ending::SessionsOf { user: user(), except: None, at: AT },
        Ending::Secret { session: session(), handle, auth_time: AT, amr: vec!["pwd".to_owned()], last_seen: AT },
        Ending::Password { user: user(), seen: None, password: "made-up hash".into(), at: AT },
        Ending::Password { user: user(), seen: Some("made up".into()), password: "made-up hash".into(), at: AT },
        Ending::Email { user: user(), email: Some("ada@example.test".to_owned()), verified: true },
        Ending::Enabled { user: user(), at: AT },
        Ending::User { user: user() },
    ]
}

fn of_tokens() -> Vec<Ending> {
    let (family, client, handle) = (|| "made-up-family".into(), || "web".into(), Handle::of("made up"));
    let (current, was) = (Handle::of("made up, current"), Handle::of("made up, before"));
    let (user, jti) = (|| "ada".into(), || "made-up-token".to_owned());
    vec![
        Ending::Refresh { family: family(), turn: 2, current, was, until: AT, bridge: [7; 32], idle_until: AT },
        Ending::Family { family: family(), at: AT },
        Ending::FamiliesOf { user: user(), client: Some(client()), except: None, at: AT },
        Ending::Opaque { token: handle },
        Ending::Token { jti: jti(), expires: AT },
        Ending::Assertion { client: client(), jti: handle, expires: AT },
        Ending::Code { family: family(), at: AT },
        Ending::CodesOf { user: user(), since: AT, at: AT },
        Ending::Device { device: handle },
        Ending::ApprovalsOf { user: user(), client: Some(client()) },
        Ending::Consent { user: user(), client: client(), at: AT },
    ]
}

fn of_the_rest() -> Vec<Ending> {
    let client = Client {
        grants: vec![Grant::AuthorizationCode, Grant::RefreshToken],
        auth_methods: vec![AuthMethod::Basic],
        revived_at: Some(AT),
        ..Client::new("web", vec!["https://web.example.test/cb".to_owned()])
    };
    let (secret, life) = (Some(Handle::of("made-up secret")), Some("made-up-life".into()));
    vec![
        Ending::Member { group: "made-up-group".into(), user: "ada".into() },
        Ending::Group { group: "made-up-group".into() },
        Ending::Client { client: Box::new(client), secret, disabled_at: Some(AT), life, epoch: 4 },
        Ending::ClientItself { client: "web".into(), epoch: 5 },
        Ending::Key { kid: "made-up-key".into(), at: AT },
        Ending::SetUp { link: Handle::of("made-up link") },
    ]
}

/// Makes the journal of this version for `tests/versions`.
#[tokio::test]
#[ignore = "writes files of this version: tests/versions/README.md says when"]
async fn write_the_journal_of_this_version() {
    let (data, to) = (tempfile::tempdir().unwrap(), ours().join("journal"));
    let opened = journal::Folder::open(data.path(), "made-up-node").await.unwrap();
    opened.append(&record()).await.unwrap();
    crate::private::aside(move || opened.remember(&memory())).await.unwrap();
    fs::create_dir_all(&to).unwrap();
    for entry in fs::read_dir(data.path().join(journal::FOLDER)).unwrap().map(|entry| entry.unwrap()) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
