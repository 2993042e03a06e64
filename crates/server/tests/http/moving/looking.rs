//! Looking before anything is done: what would stop a move is told while the source serves.

use super::{servers, state};
use crate::support::*;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use store::engine::Engine as _;

/// Changes the file of a server that is stopped, as no program of ours would.
fn changed(server: &Server, statement: &str) {
    assert_eq!(server.stop(), Some(0));
    let options = store::sqlite::Options::at(server.data().join("portiere.db"));
    let file = store::sqlite::Sqlite::open(options, store::migrations::MIGRATIONS).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(file.alter(vec![statement.to_owned()])).unwrap();
    file.close();
    server.restart();
}

/// Red without `check::look` in `go`, cli/moving/mod.rs: the service stands still when it is found.
#[test]
fn what_the_target_does_not_take_is_named_while_the_source_serves() {
    if !on_file() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new.db");
    let to = format!("sqlite:{}", new.display());
    let server = Server::leaked(&[]);
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut tokens = app.tokens(&mut Browser::new(server), &person);
    changed(server, "INSERT INTO logins VALUES ('main', 'ada' || char(0), 'nobody')");
    for line in [&["move", "--check", "--to", &to][..], &["move", "--yes", "--to", &to]] {
        let refused = server.command(line, "");
        let why = "logins (realm \"main\", name \"ada\\0\"): name has a NUL character";
        assert!(refused.code == 1 && refused.err.contains(why), "{line:?}: {}", refused.err);
        assert!(refused.err.contains("a value in sqlite:") && refused.err.contains("nothing was changed"));
        assert_eq!((state(server), new.exists()), (Value::Null, false), "{line:?}");
        tokens = Tokens::of(&app.refresh(&tokens.refresh));
    }
    let nowhere = format!("sqlite:{}", folder.path().join("none/new.db").display());
    assert_eq!(server.command(&["move", "--check", "--to", &nowhere], "").code, 1);

    changed(server, "DELETE FROM logins WHERE user_id = 'nobody'");
    let told: Value = serde_json::from_str(&server.must(&["move", "--check", "--to", &to, "--json"], "")).unwrap();
    assert!(told["rows"].as_u64().unwrap() > 10 && told["tables"].as_u64().unwrap() > 20, "{told}");
    assert_eq!((state(server), new.exists()), (Value::Null, false));
    app.refresh(&tokens.refresh).must_be(200);
    server.must(&["move", "--to", &to, "--yes"], "");
    let late = server.command(&["move", "--check", "--to", &to], "");
    assert!(late.code == 1 && late.err.contains("was moved to"), "{}", late.err);
    server.kill();
}

/// A URL without its password, and a file that has it.
fn apart(folder: &Path, url: &str) -> (String, String) {
    let (account, place) = url.rsplit_once('@').unwrap();
    let (user, password) = account.rsplit_once(':').unwrap();
    let file = folder.join("password");
    std::fs::write(&file, format!("{password}\n")).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    (format!("{user}@{place}"), file.to_str().unwrap().to_owned())
}

#[test]
fn a_look_at_a_server_makes_nothing_there_and_its_password_comes_from_a_file() {
    // Red without `password_file` in `settings`, database.rs, or in `patient`, cli/moving/ends.rs.
    let folder = tempfile::tempdir().unwrap();
    for url in servers(folder.path()) {
        let server = Server::leaked(&[]);
        let person = Person::add(server);
        let (bare, file) = apart(folder.path(), &url);
        let to = ["--to", &bare, "--to-password-file", &file];
        let told = server.must(&[&["move", "--check"], &to[..]].concat(), "");
        assert!(told.contains(" can take everything in ") && told.contains("nothing was changed"), "{told}");
        let list = |name: &str| {
            let mut list = program();
            list.args(["user", "list", "--data"]).arg(folder.path().join(name)).stdin(Stdio::null());
            let listed = list.env("PORTIERE_STORE_URL", &bare).env("PORTIERE_STORE_PASSWORD_FILE", &file).output();
            String::from_utf8_lossy(&listed.unwrap().stderr).into_owned()
        };
        assert!(list("data").contains("there are no tables of Portiere in"), "{}", list("data"));
        server.must(&[&["move", "--yes"], &to[..]].concat(), "");
        assert_eq!(server.stop(), Some(0));
        server.set("PORTIERE_STORE_URL", &bare);
        server.set("PORTIERE_STORE_PASSWORD_FILE", &file);
        server.restart();
        let mut browser = Browser::new(server);
        let page = browser.get("/login").must_be(200);
        browser.log_in_on(&page, &person.name, &person.password);
        assert!(browser.is_signed_in());
        server.kill();
    }
}
