//! Databases that versions left which were released: today's program serves the people and applications that are in them, and the
//! workers that were enrolled. `tests/versions` has a folder for each, and says how it is made and when another one is added.

use crate::audit::tamper;
use crate::support::*;
use crate::workers::{Worker, connected, doors};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use store::engine::Engine;
use store::sqlite::{Options, Sqlite};

/// The master key and what seals the audit log; then what passwords were hashed with.
const KEYS: [&str; 4] = ["master.key", "audit.key", "pepper-p1", "binding-b1"];
/// The hash that another system stored for `correct horse 1`.
const DJANGO: &str = "pbkdf2_sha256$1000$saltsalt$x74/eLoFuG1b9SwCoUbGr8vyg2cKlbteE/sweaLyNOQ=";
/// How people in these databases sign in: hashed by this server, with a pepper and bound, and by another system.
const PEOPLE: [(&str, &str); 3] =
    [("ada", "made-up gorse 41"), ("bob", "made-up violet 42"), ("cleo", "correct horse 1")];
/// What ada allowed the application that asks.
const ALLOWED: &str = "openid email offline_access";
/// Where the worker's folder says that its server is.
const DOOR: &str = "127.0.0.1:8444";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/versions")
}

/// That of this version: those that differ in their last number have files of one form.
fn ours() -> PathBuf {
    folder().join(env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap().0)
}

/// A file of these, where only its owner can read it.
fn lay(file: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(file, to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A folder for a server with the keys of a version.
fn house(version: &Path) -> PathBuf {
    let folder = tempfile::Builder::new().prefix("portiere-http-").tempdir().unwrap().keep();
    KEYS.iter().for_each(|key| lay(&version.join(key), &folder.join("data").join(key)));
    fs::set_permissions(folder.join("data"), fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

/// A server on such a folder; with workers, and so with a pepper and a binding key, or without.
fn serve(house: PathBuf, with_workers: bool) -> &'static Server {
    let of = |name: &str, key: &str| format!("{name}:{}", house.join("data").join(key).display());
    let (pepper, binding) = (of("p1", "pepper-p1"), of("b1", "binding-b1"));
    let settings = [
        // What was written down then is old by now.
        ("PORTIERE_AUDIT_RETENTION", "36500d"),
        ("PORTIERE_HASH_PEPPERS", &*pepper),
        ("PORTIERE_HASH_BINDING_KEYS", &*binding),
        ("PORTIERE_WORKERS_LISTEN", "127.0.0.1:0"),
    ];
    let settings = if with_workers { &settings[..] } else { &settings[..1] };
    Box::leak(Box::new(Server::over(house, settings)))
}

fn person((name, password): (&str, &str)) -> Person {
    Person { name: name.into(), email: format!("{name}@example.test"), password: password.into() }
}

fn json_of(server: &Server, arguments: &[&str]) -> Value {
    serde_json::from_str(&server.must(&[arguments, &["--json"]].concat(), "")).unwrap()
}

/// What a list is made of, by one field.
fn names(list: &Value, field: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_each_version_left_is_served_by_this_one() {
    // red where a column, a name in it or the form of anything that is kept changes, and what was there before is not read.
    if !on_file() {
        return;
    }
    for version in fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let house = house(&version);
        load(&version.join("database.sql"), &house.join("data/portiere.db"));
        let server = serve(house.clone(), true);
        lists(server);
        people_and_applications(server);
        a_worker(server, &version, &house);
        server.must(&["audit", "verify"], "");
        server.kill();
    }
}

/// The database that statements make.
fn load(statements: &Path, file: &Path) {
    let text = fs::read_to_string(statements).unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let engine = Sqlite::open(Options::at(file), &[]).unwrap();
        engine.alter(vec![text]).await.unwrap();
        engine.close();
    });
}

/// What operators see.
fn lists(server: &Server) {
    let users = json_of(server, &["user", "list"]);
    let mut people = names(&users, "username");
    people.sort();
    assert_eq!(people, ["ada", "bob", "cleo", "dora"]);
    let owner = users.as_array().unwrap().iter().find(|user| user["role"] == "owner").unwrap();
    assert_eq!((&owner["username"], &owner["email_verified"]), (&json!("ada"), &json!(true)));
    let ada = json_of(server, &["user", "show", "ada"]);
    assert_eq!((&ada["groups"], &ada["claims"]["name"]), (&json!(["staff"]), &json!("Ada of version 0.1")));
    let clients = json_of(server, &["client", "list"]);
    let ids = names(&clients, "client_id");
    for id in ["api", "device", "house", "off", "signed", "spa", "web"] {
        assert!(ids.iter().any(|known| known == id), "{ids:?}");
    }
    assert!(clients.as_array().unwrap().iter().all(|client| client.get("not_understood").is_none()), "{clients}");
    let kinds = names(&json_of(server, &["events", "list", "--limit", "1000"]), "event");
    for kind in ["user.added", "session.started", "tokens.issued", "consent.granted", "worker.enrolled"] {
        assert!(kinds.iter().any(|known| known == kind), "{kind}: {kinds:?}");
    }
    assert!(!json_of(server, &["keys", "list"]).as_array().unwrap().is_empty());
    let refused = names(&json_of(server, &["audit", "strangers", "--since", "36500d"]), "what");
    assert!(refused.iter().any(|what| what == "client") && refused.iter().any(|what| what == "name"), "{refused:?}");
}

fn people_and_applications(server: &'static Server) {
    for known in PEOPLE.map(person) {
        let mut browser = Browser::new(server);
        browser.sign_in(&known);
        assert!(browser.is_signed_in(), "{}", known.name);
        let mut stranger = Browser::new(server);
        let page = stranger.sign_in_page();
        stranger.log_in_on(&page, &known.name, "another password").must_be(422);
        assert!(!stranger.is_signed_in(), "{}", known.name);
        for app in [web(server), house_app(server)] {
            let tokens = app.tokens(&mut browser, &known);
            assert!(app.is_active(&tokens.access), "{} of {}", app.id, known.name);
            Tokens::of(&app.refresh(&tokens.refresh));
        }
    }
    // What ada allowed then is not asked again.
    let (app, ada) = (web(server), person(PEOPLE[0]));
    let ask = app.ask().with("scope", ALLOWED);
    let landed = Browser::of(server, &ada).get(&ask.target()).landed();
    assert!(landed.contains_key("code"), "{landed:?}");
    let off = App { id: "off".into(), ..web(server) };
    off.post("/oauth2/token", &[("grant_type", "client_credentials")]).must_be(401);
}

/// The worker that was enrolled then is let in by the key that it has, and knows the server by its.
fn a_worker(server: &Server, version: &Path, house: &Path) {
    for file in ["worker.key", "worker.json"] {
        lay(&version.join("worker").join(file), &house.join("worker").join(file));
    }
    fs::set_permissions(house.join("worker"), fs::Permissions::from_mode(0o700)).unwrap();
    let post = house.join("worker/worker.json");
    let text = fs::read_to_string(&post).unwrap();
    assert!(text.contains(DOOR), "{text}");
    fs::write(&post, text.replace(DOOR, &doors(server)[0])).unwrap();
    let _worker = Worker::start(house, "worker");
    until("the worker is here", || connected(server) == 1);
}

/// A confidential one that asks for consent.
fn web(server: &'static Server) -> App {
    App { server, id: "web".into(), secret: Some(SECRET), redirect: "https://web.example.test/cb".into() }
}

/// One of the house that may use every grant.
fn house_app(server: &'static Server) -> App {
    App { id: "house".into(), redirect: "https://house.example.test/cb".into(), ..web(server) }
}

#[test]
fn an_application_of_a_later_version_is_listed_and_refused_and_keeps_nobody_else_out() {
    // red without `take_unknown` in rules/oauth/client/stored.rs: no list could be read, and requests of pages of all applications
    // were told to come back.
    let server = Server::leaked(&[]);
    let (later, other) = (App::trusted(server), App::trusted(server));
    let begins = "\"grants\":[";
    let stored = format!(
        "UPDATE clients SET data = REPLACE(data, '{begins}', '{begins}\"urn:later:grant\",') WHERE id = '{}'",
        later.id
    );
    tamper(server, &[&stored, "UPDATE realms SET epoch = epoch + 1"]);

    let shown = || json_of(server, &["client", "show", &later.id]);
    let before = shown();
    assert_eq!(
        (&before["grant_types"][0], &before["not_understood"]),
        (&json!("urn:later:grant"), &json!(["grant_types"]))
    );
    let listed = server.must(&["client", "list"], "");
    let line = listed.lines().find(|line| line.starts_with(&later.id)).unwrap();
    assert!(line.contains("urn:later:grant") && line.contains("refused here"), "{listed}");
    assert!(listed.lines().any(|line| line.starts_with(&other.id) && line.contains("enabled")), "{listed}");

    let asked = [("grant_type", "client_credentials"), ("scope", "api")];
    assert_eq!(later.post("/oauth2/token", &asked).must_be(401).json()["error"], "invalid_client");
    other.post("/oauth2/token", &asked).must_be(200);
    let page = server.get(&later.ask().target());
    assert!(page.location().is_none() && page.text().contains("settings that only a newer version knows"), "{page:?}");
    let ada = Person::add(server);
    let mut browser = Browser::of(server, &ada);
    assert!(other.is_active(&other.tokens(&mut browser, &ada).access));
    browser.get("/account").must_be(200);
    let told = |line: &str| line.contains("an application is refused here") && line.contains("urn:later:grant");
    until("the log names the value", || server.log().lines().any(told));

    // What is done to it here leaves it as it is.
    for edit in [&["client", "set", &later.id, "--trusted=no"][..], &["client", "rotate-secret", &later.id]] {
        let refused = server.command(edit, "");
        let why = "only a newer version knows (grants: urn:later:grant)";
        assert!(refused.code == 1 && refused.err.contains(why), "{edit:?}: {}", refused.err);
    }
    later.change("disable");
    assert_eq!((&shown()["disabled"], &shown()["grant_types"]), (&json!(true), &before["grant_types"]));
    later.change("enable");
    assert_eq!(shown(), before);
    later.post("/oauth2/token", &asked).must_be(401);
    later.change("remove");
    server.kill();
}

/// How `tests/versions` gets the database and the worker of a version.
#[test]
#[ignore = "writes files of this version: tests/versions/README.md says when"]
fn write_the_database_of_this_version() {
    let (version, plain) = (ours(), serve(house(&ours()), false));
    people_without_pepper(plain);
    applications(plain);
    plain.stop();
    let house = plain.folder.clone();
    let server = serve(house.clone(), true);
    server.must(&["user", "add", "bob", "--email", "bob@example.test", "--password-stdin"], PEOPLE[1].1);
    lay(&version.join("worker/worker.key"), &house.join("worker/worker.key"));
    fs::set_permissions(house.join("worker"), fs::Permissions::from_mode(0o700)).unwrap();
    enrolled(server, &house);
    used(server);
    until("everything is sealed", || json_of(server, &["audit", "status"])["unsealed"] == 0);
    assert_eq!(server.stop(), Some(0));
    let post = fs::read_to_string(house.join("worker/worker.json")).unwrap();
    fs::write(version.join("worker/worker.json"), post.replace(&doors(server)[0], DOOR)).unwrap();
    fs::write(version.join("database.sql"), dumped(&house.join("data/portiere.db"))).unwrap();
}

fn people_without_pepper(server: &Server) {
    let ada = ["user", "add", "ada", "--email", "ada@example.test", "--role", "owner", "--password-stdin"];
    server.must(&ada, PEOPLE[0].1);
    server.must(&["user", "set", "ada", "name=Ada of version 0.1", "locale=en-GB"], "");
    server.must(&["user", "add", "cleo", "--email", "cleo@example.test", "--password-hash-stdin"], DJANGO);
    server.must(&["user", "add", "dora", "--password-stdin"], "made-up anvil 43");
    server.must(&["user", "disable", "dora"], "");
    server.must(&["group", "add", "staff"], "");
    server.must(&["group", "member", "staff", "ada"], "");
}

/// Of each kind one.
fn applications(server: &Server) {
    let scopes = ["--scope", "openid profile email offline_access groups api"];
    let add = |line: &[&str]| server.must(&[&["client", "add", "--id"], line, &scopes].concat(), SECRET);
    let web = "https://web.example.test/cb";
    add(&[
        "web",
        "--redirect-uri",
        web,
        "--post-logout-redirect-uri",
        "https://web.example.test/bye",
        "--secret-stdin",
    ]);
    let grants = ["authorization_code", "refresh_token", "client_credentials", "device_code"];
    let grants: Vec<&str> = grants.iter().flat_map(|grant| ["--grant", grant]).collect();
    let house = ["house", "--redirect-uri", "https://house.example.test/cb", "--trusted", "--secret-stdin"];
    add(&[&house[..], &["--access-token", "opaque", "--resource", "https://api.example.test"], &grants].concat());
    add(&["spa", "--redirect-uri", "https://spa.example.test/cb", "--public", "--first-party"]);
    add(&["device", "--public", "--grant", "device_code", "--grant", "refresh_token"]);
    let api = ["api", "--resource-server", "--resource", "https://api.example.test", "--secret-stdin"];
    add(&api);
    let keys = server.folder.join("made-up.jwks");
    let key = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    fs::write(&keys, key).unwrap();
    let (keys, by_key) = (keys.to_str().unwrap(), ["--auth-method", "private_key_jwt", "--id-token-alg", "EdDSA"]);
    add(&[&["signed", "--grant", "client_credentials", "--jwks", keys], &by_key[..]].concat());
    add(&["off", "--redirect-uri", "https://off.example.test/cb", "--secret-stdin"]);
    server.must(&["client", "disable", "off"], "");
}

fn enrolled(server: &Server, house: &Path) {
    let token = json_of(server, &["verifier", "token"])["token"].as_str().unwrap().to_owned();
    let (door, worker) = (doors(server).remove(0), house.join("worker"));
    let line = ["verifier", "enroll", "--name", "made-up-worker", "--token-stdin", "--server", &door, "--folder"];
    let made = run(&worker, &[&line[..], &[worker.to_str().unwrap()]].concat(), &token);
    assert_eq!(made.code, 0, "{}", made.err);
}

/// Somebody and something of everything that leaves a row.
fn used(server: &'static Server) {
    let ada = person(PEOPLE[0]);
    let mut browser = Browser::of(server, &ada);
    for app in [web(server), house_app(server)] {
        let ask = app.ask().with("scope", ALLOWED);
        let tokens = app.tokens_for(&mut browser, &ada, &ask);
        let tokens = Tokens::of(&app.refresh(&tokens.refresh));
        app.revoke(&tokens.access).must_be(200);
        app.tokens(&mut browser, &ada);
        // One that is never redeemed.
        app.code(&mut browser, &ada, &app.ask());
    }
    let device = App { id: "device".into(), secret: None, ..web(server) };
    device.post("/oauth2/device", &[("scope", "openid")]).must_be(200);
    let wrong = App { secret: Some("made up, and not the secret of this application"), ..web(server) };
    wrong.post("/oauth2/token", &[("grant_type", "client_credentials")]).must_be(401);
    for (name, password) in [("ada", "another password"), ("nobody", "any password")] {
        let mut browser = Browser::new(server);
        let page = browser.sign_in_page();
        browser.log_in_on(&page, name, password).must_be(422);
    }
}

/// The statements that make a database of SQLite, without what it knows of how its rows are spread.
fn dumped(file: &Path) -> String {
    let program = "import sqlite3, sys\n\
                   for line in sqlite3.connect(sys.argv[1]).iterdump():\n    \
                   if line not in ('BEGIN TRANSACTION;', 'COMMIT;') and 'sqlite_' not in line: print(line)";
    let dump = Command::new("python3").args(["-c", program]).arg(file).output().unwrap();
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    String::from_utf8(dump.stdout).unwrap()
}
