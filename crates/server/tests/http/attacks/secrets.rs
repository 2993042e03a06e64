//! SR: secrets at rest, in logs, in answers, in addresses.

use crate::support::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::collections::BTreeMap;
use std::path::Path;

/// A secret in every form in which it could have been kept.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut forms = vec![
        secret.as_bytes().to_vec(),
        hex(secret.as_bytes()).into_bytes(),
        hex(secret.as_bytes()).to_uppercase().into_bytes(),
        STANDARD.encode(secret).trim_end_matches('=').as_bytes().to_vec(),
        URL_SAFE_NO_PAD.encode(secret).into_bytes(),
    ];
    // The random bytes behind the text; what stands before a dot is a public name.
    if let Some(raw) = secret.rsplit('.').next().and_then(|part| URL_SAFE_NO_PAD.decode(part).ok()) {
        forms.push(hex(&raw).into_bytes());
        forms.push(STANDARD.encode(&raw).trim_end_matches('=').as_bytes().to_vec());
        // Codes and refresh tokens begin with the 16 bytes of a family's name; the chance behind it is theirs alone.
        forms.extend(raw.get(16..48).map(<[u8]>::to_vec));
        forms.push(raw);
    }
    forms
}

/// Every file below `folder` with its content.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.is_file() {
            found.insert(path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap());
        }
    }
    found
}

fn holds(haystack: &[u8], needle: &[u8]) -> bool {
    needle.len() >= 8 && memchr::memmem::find(haystack, needle).is_some()
}

/// Goes through everything that hands out secrets; their names and texts.
fn full_scenario(server: &'static Server) -> Vec<(&'static str, String)> {
    let mut secrets: Vec<(&'static str, String)> = vec![("client secret", SECRET.into())];
    let mut keep = |name: &'static str, text: &str| {
        assert!(!text.is_empty(), "{name}");
        secrets.push((name, text.to_owned()));
    };
    let link = std::fs::read_to_string(server.data().join("setup-link")).unwrap();
    keep("set-up link", link.trim().rsplit('#').next().unwrap());
    let shown = server.must(&["client", "add", "--id", "made", "--redirect-uri", "https://made.test/cb", "--json"], "");
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    keep("generated client secret", shown["client_secret"].as_str().unwrap());
    let person = Person::add(server);
    keep("password", &person.password);
    for format in ["jwt", "opaque"] {
        let app = App::add(server, Grants::All, &["--access-token", format]);
        let mut browser = Browser::new(server);
        let page = browser.get(&app.ask().target());
        let login = Form::find(&page.text(), "/login").unwrap();
        keep("flow", login.value("flow"));
        let code = browser.go_through(page, &person).landed().remove("code").unwrap();
        keep("code", &code);
        let first = Tokens::of(&app.redeem(&code));
        let second = Tokens::of(&app.refresh(&first.refresh));
        for tokens in [&first, &second, &Tokens::of(&app.refresh(&first.refresh))] {
            keep("access token", &tokens.access);
            keep("refresh token", &tokens.refresh);
            keep("ID token", &tokens.id);
        }
        app.introspect(&second.access);
        server.send(&Call::get("/oauth2/userinfo").bearer(&second.access)).must_be(200);
        let offline = app.tokens_for(&mut browser, &person, &app.ask().with("scope", "openid offline_access"));
        keep("offline refresh token", &offline.refresh);
        let unused = app.code(&mut browser, &person, &app.ask());
        keep("unused code", &unused);
        let asked = app.post("/oauth2/device", &[("scope", "openid")]).must_be(200).json();
        keep("device code", asked["device_code"].as_str().unwrap());
        keep("user code", asked["user_code"].as_str().unwrap());
        let account = browser.account_form("/account/signout");
        keep("csrf", account.value("csrf"));
        app.revoke(&second.access).must_be(200);
        for (name, value) in browser.jar.iter() {
            // A session cookie is its public id and a secret; the id is kept as it is.
            let secret = if name.starts_with("sid-") { value.rsplit('.').next().unwrap() } else { value };
            keep("cookie", secret);
        }
        let mut wrong = Browser::new(server);
        let page = wrong.get("/login");
        wrong.log_in_on(&page, &person.name, "a wrong but secret guess");
    }
    keep("wrong password", "a wrong but secret guess");
    secrets
}

#[test]
fn sr_01_nothing_that_was_issued_lies_anywhere_in_clear() {
    // red if store/tables kept a secret instead of its Handle (try tables/families.rs or codes.rs), or if a door logged one.
    if !on_file() {
        return;
    }
    let server = Server::leaked(&[("PORTIERE_LOG_LEVEL", "debug")]);
    let secrets = full_scenario(server);
    assert!(secrets.len() > 30);
    let backup = server.folder.join("copy.db");
    server.must(&["backup", backup.to_str().unwrap()], "");
    let master = std::fs::read(server.data().join("master.key")).unwrap();
    let mut kept = files(&server.folder);
    kept.remove("setup-link");
    kept.remove("master.key");
    assert!(kept.keys().any(|name| name.ends_with("-wal")) && kept.contains_key("copy.db"), "{:?}", kept.keys());
    assert!(holds(&kept["copy.db"], b"example.test"), "the copy holds what it should");
    for (name, content) in &kept {
        for (kind, secret) in &secrets {
            for form in forms(secret) {
                assert!(!holds(content, &form), "{name} holds the {kind} {secret}");
            }
        }
        assert!(!holds(content, &master), "{name} holds the master key");
        for private in [b"PRIVATE KEY".as_slice(), b"\"d\":\""] {
            assert!(!holds(content, private), "{name} holds a private key");
        }
    }
    server.kill();
}

#[test]
fn sr_01_the_data_folder_is_its_owners_alone() {
    // red without the modes in server/boot/folder.rs, make, or in server/private.rs, create.
    use std::os::unix::fs::PermissionsExt;
    let server = Server::newcomer(&[]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&server.data()), 0o700);
    for name in ["master.key", "audit.key", "setup-link"] {
        assert_eq!(mode(&server.data().join(name)), 0o600, "{name}");
    }
}

#[test]
fn sr_02_secrets_are_told_once_and_never_again() {
    // red if cli/client.rs, metadata or shown, told the secret or its hash.
    let server = default_server();
    let shown = server.must(&["client", "add", "--id", "once", "--redirect-uri", "https://o.test/cb", "--json"], "");
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let secret = shown["client_secret"].as_str().unwrap().to_owned();
    let person = Person::add(server);
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(secret.as_bytes());
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    for line in [
        vec!["client", "show", "once", "--json"],
        vec!["client", "show", "once"],
        vec!["client", "list", "--json"],
        vec!["user", "show", &person.name, "--json"],
        vec!["user", "list", "--json"],
        vec!["keys", "list", "--json"],
    ] {
        let told = server.must(&line, "");
        for hidden in [secret.as_str(), &hash, &encode(digest), &person.password, "argon2", "$argon2id$"] {
            assert!(!told.contains(hidden), "{line:?} tells {hidden}");
        }
    }
    let rotated = server.must(&["client", "rotate-secret", "once", "--json"], "");
    let rotated: serde_json::Value = serde_json::from_str(&rotated).unwrap();
    assert_ne!(rotated["client_secret"].as_str().unwrap(), secret);
    let old =
        [("grant_type", "refresh_token"), ("refresh_token", "x"), ("client_id", "once"), ("client_secret", &secret)];
    server.post("/oauth2/token", &old).must_fail(401, "invalid_client");
}

#[test]
fn sr_05_weak_secrets_and_keys_are_refused() {
    // red without `strong` in app/admin/clients.rs, or master_key in config/checks.rs.
    let server = default_server();
    for secret in ["", "short", "0123456789012345678901234567890"] {
        let line = ["client", "add", "--id", "weak", "--redirect-uri", "https://w.test/cb", "--secret-stdin"];
        let output = server.command(&line, secret);
        assert_ne!(output.code, 0, "{secret}");
    }
    for key in ["", "c2hvcnQ=", "not base64 at all!", "AAAAAAAAAAAAAAAAAAAAAA=="] {
        let folder = tempfile::tempdir().unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_portiere"))
            .args(["config", "check", "--data"])
            .arg(folder.path())
            .env("PORTIERE_KEYS_MASTER_KEY", key)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(key.is_empty() || (!output.status.success() && !said.contains(key)), "{key:?}: {said}");
    }
}

#[test]
fn sr_05_a_lost_or_wrong_master_key_is_a_clear_refusal() {
    // red without the comparison with the sealed check value in app/keyring.rs, or master_key in server/boot/folder.rs.
    let server = Server::start(&[]);
    let file = server.data().join("master.key");
    server.stop();
    let good = std::fs::read(&file).unwrap();
    for bad in [None, Some(vec![0; 31]), Some(vec![7; 32])] {
        match &bad {
            None => std::fs::remove_file(&file).unwrap(),
            Some(bytes) => put(&file, bytes, 0o600),
        }
        let said = refusal(&server, &["serve", "--listen", "127.0.0.1:0"], &[]);
        assert!(said.contains("master.key") && !said.contains("open to others"), "{said}");
        assert_eq!(file.exists(), bad.is_some(), "a lost key is not replaced");
    }
    put(&file, &good, 0o600);
}

#[test]
fn sr_05_a_wrong_master_key_is_looked_for_where_it_came_from() {
    // red without the look at the sources in server/boot.rs, explain.
    let server = Server::start(&[]);
    server.stop();
    let elsewhere = tempfile::tempdir().unwrap();
    let (key, file) = (elsewhere.path().join("other.key"), elsewhere.path().join("portiere.toml"));
    put(&key, &[7; 32], 0o600);
    let (key, text) = (key.to_str().unwrap(), STANDARD.encode([7; 32]));
    let list = ["user", "list"];
    for (setting, told) in [
        (
            ("PORTIERE_KEYS_MASTER_KEY", &*text),
            "(keys.master_key, from the environment variable PORTIERE_KEYS_MASTER_KEY)",
        ),
        (("PORTIERE_KEYS_MASTER", key), &*format!("({key}, from the environment variable PORTIERE_KEYS_MASTER)")),
    ] {
        let said = refusal(&server, &list, &[setting]);
        assert!(said.contains(told) && !said.contains(&text), "{said}");
    }
    for (line, told) in [
        (
            format!("master_key = \"{text}\""),
            "(keys.master_key, from keys.master_key in the configuration file)".to_owned(),
        ),
        (format!("master = \"{key}\""), format!("({key}, from keys.master in the configuration file)")),
    ] {
        put(&file, format!("[keys]\n{line}\n").as_bytes(), 0o600);
        let said = refusal(&server, &list, &[("PORTIERE_CONFIG", file.to_str().unwrap())]);
        assert!(said.contains(&told) && !said.contains(&text), "{said}");
    }
}

fn put(file: &Path, bytes: &[u8], mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(file, bytes).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// What a command that has to fail says on standard error.
#[track_caller]
fn refusal(server: &Server, arguments: &[&str], settings: &[(&str, &str)]) -> String {
    let output = server.command_with(arguments, "", settings);
    assert_ne!(output.code, 0, "{arguments:?} {settings:?}");
    output.err
}

#[test]
fn sr_05_no_secret_is_taken_from_a_file_that_others_can_open_or_of_another_length() {
    // red without read_key in server/boot/folder.rs, master_key, or in server/hashing.rs, peppers; or without a check of its own.
    let server = Server::start(&[]);
    server.stop();
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("secret");
    let (path, pepper) = (file.to_str().unwrap(), format!("p1:{}", file.display()));
    let master = std::fs::read(server.data().join("master.key")).unwrap();
    for (setting, good) in
        [(("PORTIERE_KEYS_MASTER", path), &master), (("PORTIERE_HASH_PEPPERS", &pepper), &vec![5; 32])]
    {
        let list = |what: &str| refusal(&server, &["user", "list"], &[setting]).contains(what);
        for open in [0o604, 0o602, 0o620, 0o644, 0o666] {
            put(&file, good, open);
            assert!(list(&format!("secret is open to others (mode {open:04o})")), "{setting:?} {open:o}");
        }
        for length in [0, 31, 33, 4096] {
            put(&file, &vec![5; length], 0o600);
            assert!(list("secret is not 32 bytes"), "{setting:?} {length}");
        }
        std::fs::remove_file(&file).unwrap();
        assert!(list("secret is missing"), "{setting:?}");
        for closed in [0o400, 0o640] {
            put(&file, good, closed);
            let told = server.command_with(&["user", "list"], "", &[setting]);
            assert_eq!(told.code, 0, "{setting:?}: {}", told.err);
        }
    }
}

#[test]
fn sr_07_credentials_in_an_address_are_refused() {
    // red without the check of the query in http/oauth/token.rs, authenticated; or in http/oauth/userinfo.rs, userinfo.
    let server = default_server();
    let app = App::trusted(server);
    for path in ["/oauth2/token", "/oauth2/introspect", "/oauth2/revoke", "/oauth2/device"] {
        let query = format!("{path}?client_id={}&client_secret={SECRET}", app.id);
        let fields = [("grant_type", "client_credentials"), ("token", "x")];
        server.post(&query, &fields).must_fail(400, "invalid_request");
    }
    server.get("/oauth2/userinfo?access_token=x").must_fail(400, "invalid_request");
    // red without nothing_in_address in http/api/caller.rs.
    let (person, house) = (Person::add(server), Screens::of(server));
    let mut line = house.sign_in(&person, false);
    let body = house.credentials(&person.name, &person.password, false);
    for (method, operation) in
        [("GET", "me?access_token=x"), ("POST", "signin?password=x"), ("POST", "signin?client_secret=x")]
    {
        let answer = line.send(method, operation, &body);
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (400, &serde_json::json!("malformed-request")),
            "{operation}"
        );
    }
    assert!(line.is_open());
}
