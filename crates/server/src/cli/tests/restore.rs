//! A restored copy has the accounts and the applications, and revives nothing.

mod bare;

use super::super::restore::Restore;
use super::*;
use app::browser::Browser;
use app::sign_up::NewPerson;
use rules::events::{Event, Kind};
use rules::oauth::code::{Code, Granted};
use rules::oauth::consent::Consent;
use rules::oauth::device::{Device, Stage};
use rules::oauth::family::{Family, Refresh};
use rules::oauth::scope::Scope;
use rules::oauth::token::{AccessClaims, Audience, Opaque};
use rules::worker::Worker;
use rules::{Change, Handle, Span};
use serde_json::json;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use store::dialect::moving::REFUSAL;
use store::engine::Engine as _;
use store::migrations::MIGRATIONS;
use store::moving::fence;
use store::sqlite::{Options, Sqlite};
use store::tables::{ask, changes, codes, consents, devices, families, sessions, tokens};
use tempfile::TempDir;

/// A folder with a live realm: an owner who is signed in, and one of everything that can be issued.
struct House {
    folder: TempDir,
    session: rules::id::SessionId,
    user: rules::id::UserId,
}

const FAMILY: &str = "0000000000000000000000fam1";

fn granted(now: rules::Time) -> Granted {
    Granted {
        scope: Scope::parse("openid").unwrap(),
        resources: vec![],
        auth_time: now,
        amr: vec![],
        acr: String::new(),
        nonce: None,
        claims: Default::default(),
        session: None,
    }
}

impl House {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let instance = instance(&folder.path().join("old")).await;
        let app = &instance.app;
        let link = app.offer_setup(true).await.unwrap().unwrap();
        let person = NewPerson::new("ada", "ada@example.test", PASSWORD.trim().as_bytes());
        let started = app.set_up(link.reveal(), &person, &Browser::default()).await.unwrap().unwrap();
        let user = app.find_user("ada").await.unwrap().unwrap().unwrap();
        let session = app.home(&user).await.unwrap().sessions[0].id.clone();
        drop(started);
        let now = app.clock.now();
        let later = now + Span::hours(1);
        let granted = granted(now);
        let family = Family {
            id: FAMILY.into(),
            client: "shop".into(),
            life: None,
            user: user.id.clone(),
            session: None,
            granted: granted.clone(),
            refresh: Some(Refresh { current: Handle::of("refresh"), previous: None, turn: 0 }),
            created: now,
            idle_until: later,
            expires: later,
            revoked_at: None,
        };
        let code = Code {
            handle: Handle::of("code"),
            client: "shop".into(),
            life: None,
            user: user.id.clone(),
            session: session.clone(),
            family: FAMILY.into(),
            by_consent: None,
            redirect_uri: "https://shop.test/cb".into(),
            challenge: None,
            granted,
            expires: later,
            redeemed_at: None,
        };
        let consent = Consent { user: user.id.clone(), client: "shop".into(), scope: Scope::default(), granted: now };
        let mut changes = worker(now).to_vec();
        changes.extend([
            Change::StartFamily(Box::new(family)),
            Change::IssueCode(Box::new(code)),
            Change::IssueOpaque(Box::new(opaque(later))),
            Change::AskDevice(Box::new(device(now, later))),
            Change::GrantConsent { consent: Box::new(consent), seen: None },
        ]);
        let batch = changes::batch(&app.realm.id, &changes, now, &app::entropy::fresh().unwrap());
        app.engine.commit(batch).await.unwrap();
        let copy = folder.path().join("copy.db");
        app.engine.backup(&copy).await.unwrap();
        instance.close().await;
        House { folder, session, user: user.id }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a new data folder with the master key in it.
    fn fresh(&self) -> PathBuf {
        let data = self.path("new");
        std::fs::create_dir(&data).unwrap();
        std::fs::copy(self.path("old/master.key"), data.join("master.key")).unwrap();
        data
    }

    fn asked(&self, file: &str, force: bool, target_is_gone: bool) -> Restore {
        Restore { file: Some(self.path(file)), force, target_is_gone, raw_copy: false, in_place: false, yes: false }
    }

    /// Copies the backup as if it had been made while the database was moved, and then does `more` to it.
    async fn fenced(&self, name: &str, left: bool, more: &[&str]) {
        let moving = self.path(&format!("moving-{name}"));
        std::fs::copy(self.path("copy.db"), &moving).unwrap();
        let sqlite = Sqlite::open(Options::at(moving), MIGRATIONS).unwrap();
        fence::raise(&sqlite, "move-1", "postgres://u@there/new").await.unwrap();
        if left {
            fence::left(&sqlite, "move-1").await.unwrap();
        }
        sqlite.alter(more.iter().map(|sql| (*sql).to_owned()).collect()).await.unwrap();
        drop(std::fs::remove_file(self.path(name)));
        sqlite.backup(&self.path(name)).await.unwrap();
        sqlite.close();
    }

    async fn restore(&self, data: &Path, file: &str, force: bool) -> Reply {
        self.asked(file, force, false).run(&config(data)).await
    }

    /// Returns the answer about a database that was put there by other means.
    async fn in_place(&self, data: &Path) -> Reply {
        Restore { file: None, force: false, target_is_gone: false, raw_copy: false, in_place: true, yes: true }
            .run(&config(data))
            .await
    }

    /// Returns which of session, family, code, opaque token, device and consent are in the database of `data`.
    async fn alive(&self, data: &Path) -> [bool; 6] {
        let instance = instance(data).await;
        let (engine, realm) = (&*instance.app.engine, &instance.app.realm.id);
        let (family, shop) = (FAMILY.into(), "shop".into());
        let questions = (
            sessions::WithUser(Some(&self.session)),
            families::InContext(Some(&family)),
            codes::InContext(Some(&family)),
            tokens::ByHandle(Handle::of("opaque")),
            devices::ByUserCode(Handle::of("user code")),
            consents::Between(&self.user, &shop),
        );
        let (session, family, code, opaque, device, consent) = ask(engine, realm, questions).await.unwrap();
        instance.close().await;
        [session.is_some(), family.is_some(), code.is_some(), opaque.is_some(), device.is_some(), consent.is_some()]
    }
}

fn worker(now: rules::Time) -> [Change; 2] {
    let (key, name, token) = (Handle::of("worker"), "rack1".to_owned(), Handle::of("worker token"));
    let worker = Worker { key, name, enrolled: now, address: String::new(), quarantine: None };
    let offer = Change::OfferWorkerToken { token, now, expires: now + Span::minutes(1) };
    [offer, Change::EnrollWorker { worker: Box::new(worker), token, now }]
}

fn opaque(expires: rules::Time) -> Opaque {
    let claims = AccessClaims {
        iss: "x".into(),
        sub: "shop".into(),
        aud: Audience::One("x".into()),
        exp: expires.seconds(),
        iat: 0,
        jti: "chance".into(),
        client_id: "shop".into(),
        scope: String::new(),
        auth_time: None,
        acr: None,
        amr: vec![],
    };
    Opaque { handle: Handle::of("opaque"), claims, expires }
}

fn device(asked: rules::Time, expires: rules::Time) -> Device {
    Device {
        handle: Handle::of("device"),
        user_code: Handle::of("user code"),
        client: "tv".into(),
        life: None,
        scope: Scope::default(),
        resources: vec![],
        address: String::new(),
        asked,
        expires,
        interval_s: 5,
        polled: None,
        stage: Stage::Pending,
    }
}

fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_restored_copy_revives_nothing() {
    let house = House::new().await;
    assert_eq!(house.alive(&house.path("old")).await, [true; 6], "or the test shows nothing");
    let data = house.fresh();
    let told = house.restore(&data, "copy.db", false).await.unwrap();
    let ended = json!({ "sessions": 1, "families": 1, "codes": 1, "opaque_tokens": 1, "devices": 1, "consents": 1, "workers": 1 });
    assert_eq!((&told.json["ended"], &told.json["kept"]), (&ended, &json!(null)));
    assert_eq!(files(&data), ["audit.key", "master.key", "node.lock", "portiere.db", "portiere.db.lock"]);
    assert_eq!(told.notes, [""; 0]);
    assert_eq!(house.alive(&data).await, [false; 6]);

    let config = config(&data);
    let mut operator = Operator::new(&config);
    assert_eq!(operator.does("user show ada").await.json["role"], "owner");
    // Red without the event in app/admin/restore.rs.
    let lines = operator.does("audit list --kind realm.restored").await.json;
    assert_eq!((lines.as_array().map(Vec::len), &lines[0]["detail"]["sessions"]), (Some(1), &json!(1)), "{lines}");
    assert_eq!(lines[0]["detail"]["by"], "operator");
    assert!(told.text.contains("1 hash worker is not used until"), "{}", told.text);
    assert_eq!(operator.does("keys list").await.json.as_array().unwrap().len(), 3, "the same keys");
}

#[tokio::test]
async fn who_restores_a_sealed_log_without_its_key_is_told() {
    // Red without without_audit_key in cli/restore.rs: the next start alone would say so, in its log.
    let house = House::new().await;
    let old = instance(&house.path("old")).await;
    old.app.seal_once().await.unwrap();
    old.close().await;
    let sealed = house.path("sealed.db");
    Operator::new(&config(&house.path("old"))).does(&format!("backup {}", sealed.display())).await;
    let data = house.fresh();
    let notes = house.restore(&data, "sealed.db", false).await.unwrap().notes;
    assert!(
        notes.len() == 1 && notes[0].starts_with("audit.key_file: ") && notes[0].contains("put it back"),
        "{notes:?}"
    );
    std::fs::copy(house.path("old").join("audit.key"), data.join("audit.key")).unwrap();
    assert_eq!(house.restore(&data, "sealed.db", true).await.unwrap().notes, [""; 0]);
}

#[tokio::test]
async fn a_copy_of_a_database_that_was_being_moved_is_written_to_again() {
    // red without fence::lift_in_copy, or its triggers in Soundness.
    let house = House::new().await;
    let data = house.fresh();
    house.fenced("moving.db", false, &[]).await;
    let told = house.restore(&data, "moving.db", false).await.unwrap();
    assert_eq!(
        (&told.json["moved_to"], &told.json["ended"]["sessions"]),
        (&json!("postgres://u@there/new"), &json!(1))
    );
    assert_eq!(house.alive(&data).await, [false; 6]);
    // Some of its tables may not be fenced any more, or not yet.
    house.fenced("half.db", false, &["DROP TRIGGER moving_users_insert"]).await;
    house.restore(&data, "half.db", true).await.unwrap();
    // A plain copy says nothing about a move.
    assert_eq!(house.restore(&data, "copy.db", true).await.unwrap().json["moved_to"], json!(null));
}

#[tokio::test]
async fn a_copy_of_a_database_that_had_been_moved_is_restored_once_its_target_is_said_to_be_gone() {
    // red without Leave::Left in cli/restore.rs, check.
    let house = House::new().await;
    let data = house.fresh();
    house.fenced("left.db", true, &[]).await;
    let Err(Failure::Failed(why)) = house.restore(&data, "left.db", false).await else { panic!("refused") };
    assert!(why.contains("moved to postgres://u@there/new") && why.contains("--target-is-gone"), "{why}");
    assert_eq!(files(&data), ["master.key", "portiere.db.lock"]);
    house.asked("left.db", false, true).run(&config(&data)).await.unwrap();
    assert_eq!(house.alive(&data).await, [false; 6]);
}

#[tokio::test]
async fn a_trigger_that_only_looks_like_a_fence_is_not_restored() {
    // red where OF_FILES compares only the name or only the text, and without is_unfenced in lift_in_copy.
    let house = House::new().await;
    let data = house.fresh();
    const DROP: &str = "DROP TRIGGER moving_users_insert";
    const ACTS: &str = "BEGIN UPDATE users SET role = 'owner'; END";
    let named = format!("CREATE TRIGGER moving_users_insert BEFORE insert ON users {ACTS}");
    let other = format!("CREATE TRIGGER moving_more_insert BEFORE insert ON users {ACTS}");
    let text = format!("CREATE TRIGGER more BEFORE insert ON users BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END");
    for (more, wanted) in [
        (vec![DROP, &named], "(it has a trigger of its own)"),
        (vec![&other], "(it has a trigger of its own)"),
        (vec![&text, &other], "(it has a trigger of its own)"),
        (vec!["DELETE FROM moves"], "does not say where to"),
    ] {
        house.fenced("strange.db", false, &more).await;
        let Err(Failure::Failed(why)) = house.restore(&data, "strange.db", false).await else { panic!("{more:?}") };
        assert!(why.contains(wanted), "{more:?}: {why}");
    }
    assert_eq!(files(&data), ["master.key", "portiere.db.lock"]);
}

#[tokio::test]
async fn what_was_put_back_by_other_means_revives_nothing_once_that_is_said() {
    // red without end_all in make_safe_in_place.
    let house = House::new().await;
    let data = house.fresh();
    let Err(Failure::Failed(why)) = house.in_place(&data).await else { panic!("there is nothing") };
    assert!(why.contains("there is no database"), "{why}");
    std::fs::copy(house.path("copy.db"), data.join("portiere.db")).unwrap();
    assert_eq!(house.alive(&data).await, [true; 6], "or the test shows nothing");
    let told = house.in_place(&data).await.unwrap();
    assert_eq!((&told.json["ended"]["sessions"], &told.json["waiting_for"]), (&json!(1), &json!([])));
    assert_eq!(house.alive(&data).await, [false; 6]);
    let server = instance(&data).await;
    let Err(Failure::Failed(why)) = house.in_place(&data).await else { panic!("refused") };
    assert!(why.contains("stop it first"), "{why}");
    server.close().await;
}

#[tokio::test]
async fn what_was_put_back_from_the_time_of_a_move_is_made_safe_once_that_is_given_up() {
    // red without or_given_up in cli/restore.rs: nothing says what to do if the target is lost.
    let house = House::new().await;
    let data = house.fresh();
    house.fenced("left.db", true, &[]).await;
    std::fs::copy(house.path("left.db"), data.join("portiere.db")).unwrap();
    let Err(Failure::Failed(why)) = house.in_place(&data).await else { panic!("refused") };
    assert!(why.contains("moved to postgres://u@there/new") && why.contains("--abort --target-is-gone"), "{why}");
    let Ok(Cli { command: Command::Move(give_up), .. }) = cli("move --abort --target-is-gone --yes") else {
        panic!("a command")
    };
    give_up.run(&config(&data)).await.unwrap();
    house.in_place(&data).await.unwrap();
    assert_eq!(house.alive(&data).await, [false; 6]);
}

#[test]
fn a_backup_or_the_place_is_named_and_not_both() {
    for line in [
        "restore",
        "restore --in-place copy.db",
        "restore --in-place --force",
        "restore --target-is-gone",
        "restore --yes copy.db",
    ] {
        assert!(matches!(cli(line), Err(NoCommand::Wrong { why: Failure::Use(_), .. })), "{line}");
    }
    for line in ["restore copy.db", "restore --force copy.db", "restore --in-place", "restore --in-place --yes"] {
        assert!(matches!(cli(line), Ok(Cli { command: Command::Restore(_), .. })), "{line}");
    }
}

#[tokio::test]
async fn a_database_is_replaced_only_by_force_and_kept() {
    let house = House::new().await;
    let old = house.path("old");
    let Err(Failure::Failed(why)) = house.restore(&old, "copy.db", false).await else { panic!("refused") };
    assert!(why.contains("--force"), "{why}");
    assert_eq!(house.alive(&old).await, [true; 6]);
    let told = house.restore(&old, "copy.db", true).await.unwrap();
    assert!(told.json["kept"].as_str().unwrap().ends_with("portiere.db.replaced-1"), "{}", told.json);
    assert_eq!(house.alive(&old).await, [false; 6]);
    assert!(old.join("portiere.db.replaced-1").exists());
}

/// A server was killed and its database removed, but not its log: SQLite would play the log into the restored file.
#[tokio::test]
async fn a_log_that_was_left_behind_is_put_aside() {
    // red where cli/restore.rs, put_aside, looks only at the database.
    let house = House::new().await;
    let data = house.fresh();
    let server = instance(&house.path("old")).await;
    let app = &server.app;
    let line = Change::Record(Event::new(Kind::SignedOut, app.clock.now()));
    let batch = changes::batch(&app.realm.id, &[line], app.clock.now(), &app::entropy::fresh().unwrap());
    app.engine.commit(batch).await.unwrap();
    let log = std::fs::read(house.path("old/portiere.db-wal")).unwrap();
    server.close().await;
    assert!(!log.is_empty());
    std::fs::write(data.join("portiere.db-wal"), &log).unwrap();
    let told = house.restore(&data, "copy.db", false).await.unwrap();
    assert_eq!(told.json["kept"], json!(null), "there was no database");
    assert_eq!(std::fs::read(data.join("portiere.db.replaced-1-wal")).unwrap(), log);
    assert_eq!(house.alive(&data).await, [false; 6]);
}

#[tokio::test]
async fn a_database_with_a_log_beside_it_is_no_backup() {
    let house = House::new().await;
    let data = house.fresh();
    std::fs::write(house.path("copy.db-wal"), "what it knows last").unwrap();
    let Err(Failure::Failed(why)) = house.restore(&data, "copy.db", false).await else { panic!("refused") };
    assert!(why.contains("copy.db-wal") && why.contains("portiere backup"), "{why}");
    // Red without `canonicalize` in cli/restore.rs, make.
    std::os::unix::fs::symlink(house.path("copy.db"), house.path("link.db")).unwrap();
    let Err(Failure::Failed(why)) = house.restore(&data, "link.db", false).await else { panic!("refused") };
    assert!(why.contains("copy.db-wal") && why.contains("portiere backup"), "{why}");
    std::fs::write(house.path("copy.db-wal"), "").unwrap();
    house.restore(&data, "copy.db", false).await.unwrap();
}

/// An empty database in the place of one that was used looks like a new server.
#[tokio::test]
async fn nothing_begins_anew_where_a_database_was() {
    // red without left_of in boot/folder.rs.
    let house = House::new().await;
    for left in ["portiere.db-wal", "portiere.db.replaced-1", "audit.mark"] {
        let data = house.path(left);
        std::fs::DirBuilder::new().mode(0o700).create(&data).unwrap();
        std::fs::write(data.join(left), "x").unwrap();
        let why = match Instance::open(&config(&data), None).await {
            Err(why) => why.to_string(),
            Ok(_) => panic!("{left}"),
        };
        assert!(why.contains(left) && why.contains("portiere restore"), "{why}");
        std::fs::remove_file(data.join(left)).unwrap();
        instance(&data).await.close().await;
    }
}

#[tokio::test]
async fn a_running_server_is_not_replaced() {
    let house = House::new().await;
    let old = house.path("old");
    let server = instance(&old).await;
    let Err(Failure::Failed(why)) = house.restore(&old, "copy.db", true).await else { panic!("refused") };
    assert!(why.contains("stop it first"), "{why}");
    server.close().await;
}

#[tokio::test]
async fn what_cannot_be_used_leaves_the_folder_as_it_was() {
    let house = House::new().await;
    let data = house.fresh();
    std::fs::write(
        house.path("text"),
        "certainly no database, but longer than a header of one hundred bytes".repeat(9),
    )
    .unwrap();
    std::fs::write(house.path("empty"), "").unwrap();
    let copy = std::fs::read(house.path("copy.db")).unwrap();
    std::fs::write(house.path("cut"), &copy[..copy.len() / 2]).unwrap();
    let mut damaged = copy.clone();
    for byte in &mut damaged[8192..24_576] {
        *byte ^= 0x55;
    }
    std::fs::write(house.path("damaged"), damaged).unwrap();
    // Red, and without end, where cli/restore.rs opens a file that it has not looked at.
    rustix::fs::mknodat(rustix::fs::CWD, house.path("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    for file in ["text", "empty", "cut", "damaged", "missing", "pipe"] {
        let why = match house.restore(&data, file, false).await {
            Err(Failure::Use(why)) if file == "missing" => why,
            Err(Failure::Failed(why)) if file != "missing" => why,
            other => panic!("{file}: {other:?}"),
        };
        assert!(why.contains(file), "{file}: {why}");
        // Red without `lines` in cli/restore.rs, check.
        assert_eq!(why.lines().count(), 1, "{file}: {why}");
        assert_eq!(files(&data), ["master.key", "portiere.db.lock"], "{file}: {why}");
    }
    // Red where the folder is made before the copy is looked at.
    let nowhere = house.path("nowhere");
    assert!(house.restore(&nowhere, "missing", false).await.is_err());
    assert!(!nowhere.exists());
}

#[tokio::test]
async fn a_copy_needs_the_master_key_that_belongs_to_it() {
    let house = House::new().await;
    let data = house.fresh();
    std::fs::remove_file(data.join("master.key")).unwrap();
    let Err(Failure::Failed(why)) = house.restore(&data, "copy.db", false).await else { panic!("missing") };
    assert!(why.contains("master.key") && why.contains("is missing"), "{why}");
    assert_eq!(files(&data), ["portiere.db.lock"], "no key was made");
    let key = data.join("master.key");
    crate::private::aside(move || crate::private::create(&key, &[7; 32])).await.unwrap();
    let Err(Failure::Failed(why)) = house.restore(&data, "copy.db", false).await else { panic!("wrong") };
    assert!(why.contains("it belongs to another master key"), "{why}");
    assert!(!data.join("portiere.db").exists());
}
