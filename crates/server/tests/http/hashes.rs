//! Hashes of other systems, peppers, and what `hash` measures.

use crate::support::*;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

const PASSWORD: &str = "correct horse 1";
/// Of [`PASSWORD`], as Django stores it: slow enough to be kept until the next sign-in.
const DJANGO: &str = "pbkdf2_sha256$1000$saltsalt$x74/eLoFuG1b9SwCoUbGr8vyg2cKlbteE/sweaLyNOQ=";
/// Of [`PASSWORD`], as LDAP servers store it: too fast to be kept.
const SSHA: &str = "{SSHA}CsaB3rS0+/WKJxYq0vZ36uYesYJzYWx0c2FsdA==";

/// Somebody whose password another system hashed.
fn import(server: &Server, hash: &str) -> Person {
    let name = unique("imported");
    server.must(&["user", "add", &name, "--password-hash-stdin"], hash);
    Person { email: format!("{name}@example.test"), password: PASSWORD.into(), name }
}

fn signs_in(server: &'static Server, person: &Person) -> bool {
    let mut browser = Browser::new(server);
    let page = browser.get("/login");
    browser.log_in_on(&page, &person.name, &person.password);
    browser.is_signed_in()
}

/// What a command says when the server is stopped and no pepper is configured.
fn without_pepper(server: &Server) -> Output {
    server.command(&["user", "list"], "")
}

fn pepper(folder: &Path, name: &str) -> String {
    let file = folder.join(name);
    let made = run(folder, &["hash", "pepper", name, file.to_str().unwrap(), "--json"], "");
    assert_eq!(made.code, 0, "{}", made.err);
    let told: Value = serde_json::from_str(&made.out).unwrap();
    told["pepper"].as_str().unwrap().to_owned()
}

#[test]
fn hashes_of_other_systems_sign_their_owners_in() {
    // red without the formats in hasher/formats/django.rs and without `wrap` in app/passwords.rs.
    let server = Server::leaked(&[]);
    let bcrypt = "$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i";
    let people =
        [import(server, DJANGO), import(server, SSHA), Person { password: "x".repeat(72), ..import(server, bcrypt) }];
    for person in &people {
        let wrong = Person { password: "correct horse 2".into(), ..person.clone() };
        assert!(!signs_in(server, &wrong), "{}", person.name);
        assert!(signs_in(server, person), "{}", person.name);
        assert!(signs_in(server, person), "{} once more, by the new hash", person.name);
    }
}

/// A file that holds the text of a secret, as `hash.import_keys` names it.
fn secret(folder: &Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.join(name);
    std::fs::write(&file, format!("{text}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    format!("{name}:{}", file.display())
}

#[test]
fn hashes_that_need_a_secret_of_their_system_verify_with_it_and_are_refused_without() {
    // red without `import_keys` in hashing.rs, keys; the second start without `importid` in hasher/pepper.rs, parameter.
    let folder = tempfile::tempdir().unwrap();
    let signer = "jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==";
    let (firebase, devise) = (secret(folder.path(), "fb", signer), secret(folder.path(), "dv", "devise pepper"));
    let server = Server::leaked(&[("PORTIERE_HASH_IMPORT_KEYS", &format!("{firebase},{devise}"))]);
    let of_firebase = r#"{"email":"x@example.com","passwordHash":"lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==","salt":"42xEC+ixf3L2lw==","base64_salt_separator":"Bw==","rounds":8,"mem_cost":14,"import_key":"fb"}"#;
    let of_devise =
        r#"{"encrypted_password":"$2a$05$abcdefghijklmnopqrstuu6md4TaeSaXHXKZU3n6aSC3r8lDGO9Z2","import_key":"dv"}"#;
    let first = Person { password: "user1password".into(), ..import(server, of_firebase) };
    let second = import(server, of_devise);
    for unknown in [of_firebase.replace(r#":"fb""#, r#":"xy""#), of_devise.replace(r#":"dv""#, r#":"fc""#)] {
        let refused = server.command(&["user", "add", &unique("never"), "--password-hash-stdin"], &unknown);
        assert!(refused.code == 1 && refused.err.contains("not configured"), "{}", refused.err);
    }
    assert!(signs_in(server, &first) && signs_in(server, &first), "and by the new hash");
    // The first secret is needed by nobody now, the second one is.
    server.set("PORTIERE_HASH_IMPORT_KEYS", &devise);
    server.stop();
    server.restart();
    assert!(signs_in(server, &first));
    server.stop();
    let refused = server.command(&["user", "list"], "");
    assert!(
        refused.code == 1 && refused.err.contains("import dv is not configured, and 1 account has"),
        "{}",
        refused.err
    );
    server.restart();
    assert!(signs_in(server, &second));
    server.kill();
}

#[test]
fn a_hash_outside_the_limits_is_refused_with_the_parameter_that_is() {
    let server = default_server();
    let salt_and_tag = "AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    for (hash, told) in [
        (format!("$argon2id$v=19$m=2097152,t=1,p=1${salt_and_tag}"), "m"),
        (format!("$argon2id$v=19$m=19456,t=65,p=1${salt_and_tag}"), "t"),
        ("$2b$16$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i".to_owned(), "cost"),
        (DJANGO.replace("$1000$", "$10000001$"), "iterations"),
        ("plum".to_owned(), "hash"),
    ] {
        let refused = server.command(&["user", "add", &unique("never"), "--password-hash-stdin"], &hash);
        assert_eq!(refused.code, 1, "{hash}");
        assert!(refused.err.contains("the password hash") && refused.err.contains(told), "{hash}: {}", refused.err);
        assert_eq!(refused.err.lines().count(), 1, "{}", refused.err);
    }
}

#[test]
fn a_hash_that_needs_more_memory_than_there_is_for_hashing_is_refused_at_import() {
    // red without `fits` in hasher.rs, work: nobody could sign in with it, and everybody would wait for it.
    let server = Server::leaked(&[("PORTIERE_HASH_MEMORY", "64MiB")]);
    let hash = "$argon2id$v=19$m=65537,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let refused = server.command(&["user", "add", &unique("never"), "--password-hash-stdin"], hash);
    assert!(refused.code == 1 && refused.err.contains("more memory"), "{}", refused.err);
    server.must(&["user", "add", &unique("just"), "--password-hash-stdin"], &hash.replace("65537", "65536"));
    server.kill();
}

#[test]
fn ue_01_a_hash_that_cannot_be_verified_any_more_is_a_wrong_password_and_said_to_the_operator() {
    // red without `decoy` after verify_of in app/sign_in.rs: 503 at once tells that there is such an account.
    let server = Server::leaked(&[]);
    let hash = "$argon2id$v=19$m=65536,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let person = import(server, hash);
    server.set("PORTIERE_HASH_MEMORY", "32MiB");
    server.stop();
    server.restart();
    let answers = [person.name.as_str(), "nobody-is-called-so"].map(|login| {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        browser.log_in_on(&page, login, PASSWORD).status
    });
    assert_eq!(answers, [422, 422]);
    until("it is told", || server.log().contains("a stored password hash cannot be verified"));
    server.kill();
}

/// Until everybody has a hash of today's policy, names cannot be told apart by time: answers leave at full steps, not
/// before the dearest of the hashes could.
#[test]
fn ue_02_while_a_hash_is_of_another_kind_every_refusal_takes_as_long_as_the_dearest() {
    // red without even_out in app/sign_in.rs, hash; the dear one also without `others` in hasher.rs, even_out.
    for hash in [DJANGO.to_owned(), DJANGO.replace("$1000$", "$1000000$")] {
        let server = Server::leaked(&[("PORTIERE_HASH_UPGRADE", "false")]);
        let person = import(server, &hash);
        let took = |login: &str| {
            let mut browser = Browser::new(server);
            let page = browser.get("/login");
            let begun = Instant::now();
            browser.log_in_on(&page, login, "wrong wrong wrong");
            begun.elapsed()
        };
        let step = Duration::from_millis(50);
        let (mut known, mut unknown, mut alike) = (Duration::MAX, Duration::MAX, false);
        // The least of each, of more where the machine stood still: all would have to take too long.
        for pair in 0..24 {
            if pair >= 4 && alike {
                break;
            }
            known = known.min(took(&person.name));
            unknown = unknown.min(took("nobody-at-all"));
            // A quarter is for what else the machine does: without it, one is many times the other.
            alike = (unknown + step) * 4 > known * 3;
        }
        assert!(known >= step && unknown >= step && alike, "{known:?} {unknown:?}");
        server.kill();
    }
}

/// What one node was told, every node knows at its next sign-in: without that, names would take another time there.
#[test]
fn ue_02_a_hash_that_one_node_took_in_is_reckoned_with_at_the_others() {
    // red without bump_epoch in store/tables/hash_kinds.rs, announce; without `epoch` in app/passwords.rs, even_out.
    let Some(server) = Server::pair() else { return };
    let took = |node: usize| {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        server.only(node);
        let begun = Instant::now();
        browser.log_in_on(&page, &unique("nobody"), "wrong wrong wrong");
        let took = begun.elapsed();
        server.both();
        took
    };
    // The dearest that is taken, of which the hasher expects about three seconds: far beyond what a sign-in takes on a
    // machine that does much else. And there is nothing to wait for before.
    let (hash, dear) = (DJANGO.replace("$1000$", "$10000000$"), Duration::from_secs(3));
    for node in 0..2 {
        until("sign-ins take no longer than where nobody has such a hash", || took(node) <= dear);
    }
    import(server, &hash);
    for node in 0..2 {
        let least = took(node).min(took(node));
        assert!(least > dear, "node {node}: {least:?}, and the dearest hash takes {dear:?}");
    }
    server.kill();
}

#[test]
fn a_pepper_is_in_every_new_hash_and_no_server_starts_without_one_that_is_needed() {
    // red without confirm_secrets in app/keyring.rs, prepare.
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (pepper(folder.path(), "p1"), pepper(folder.path(), "p2"));
    let server = Server::leaked(&[("PORTIERE_HASH_PEPPERS", &first)]);
    let person = import(server, DJANGO);
    server.stop();
    assert_eq!(without_pepper(server).code, 0, "nobody's hash needs it yet");

    server.restart();
    assert!(signs_in(server, &person));
    server.stop();
    let refused = without_pepper(server);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("pepper p1 is not configured, and 1 account has"), "{}", refused.err);
    let remedy = ": name its file there again, or give the server's configuration (--config)";
    assert!(refused.err.trim_end().ends_with(remedy), "{}", refused.err);

    // Another file of that name: noticed at start, not told people as a wrong password.
    let other = format!("p1:{}", &second[3..]);
    let config = folder.path().join("portiere.toml");
    std::fs::write(&config, format!("[hash]\npeppers = [{other:?}]\n")).unwrap();
    let refused = server.command(&["user", "list", "--config", config.to_str().unwrap()], "");
    assert!(refused.code == 1 && refused.err.contains("is not the secret"), "{}", refused.err);

    // Rotation: the new one first; after a sign-in nobody needs the old one.
    server.set("PORTIERE_HASH_PEPPERS", &format!("{second},{first}"));
    server.restart();
    assert!(signs_in(server, &person));
    server.set("PORTIERE_HASH_PEPPERS", &second);
    server.stop();
    server.restart();
    assert!(signs_in(server, &person));
    server.kill();
}

/// The id of one may be how the other's begins, as it is written: `cDE` and `cDEw`.
#[test]
fn a_pepper_can_go_although_the_name_of_another_one_begins_alike() {
    // red without the ends in app/secrets.rs, hashes_with.
    let folder = tempfile::tempdir().unwrap();
    let (short, long) = (pepper(folder.path(), "p1"), pepper(folder.path(), "p10"));
    let server = Server::leaked(&[("PORTIERE_HASH_PEPPERS", &format!("{long},{short}"))]);
    let person = import(server, DJANGO);
    assert!(signs_in(server, &person));
    server.set("PORTIERE_HASH_PEPPERS", &long);
    server.stop();
    server.restart();
    assert!(signs_in(server, &person));
    server.set("PORTIERE_HASH_PEPPERS", &short);
    server.stop();
    assert!(without_pepper(server).err.contains("pepper p10 is not configured, and 1 account has"));
}

#[test]
fn a_pepper_never_overwrites_a_file_and_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    pepper(folder.path(), "p1");
    let file = folder.path().join("p1");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let before = std::fs::read(&file).unwrap();
    assert_eq!(before.len(), 32);
    let again = run(folder.path(), &["hash", "pepper", "p1", file.to_str().unwrap()], "");
    assert!(again.code == 1 && again.err.contains("exists already"), "{}{}", again.out, again.err);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn what_was_learnt_of_the_machine_is_kept_in_the_data_folder() {
    let server = Server::newcomer(&[]);
    let file = server.data().join("hashing");
    let learnt = || std::fs::read_to_string(&file).is_ok_and(|text| text.starts_with("lanes 1\nmachine "));
    until("it is written", learnt);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("argon2id m="), "{text}");
    // Nonsense in it is measured anew, not an error.
    server.stop();
    std::fs::write(&file, "nonsense").unwrap();
    server.restart();
    until("it is written once more", learnt);
    // Red where a server that stops writes it in any case: who takes it away wants it measured anew.
    std::fs::remove_file(&file).unwrap();
    server.stop();
    assert!(!file.exists());
}

#[test]
fn tune_recommends_what_owasp_allows_and_says_what_others_choices_cost() {
    let folder = tempfile::tempdir().unwrap();
    let tuned = run(folder.path(), &["hash", "tune", "--target", "10s", "--memory", "16M", "--json"], "");
    assert_eq!(tuned.code, 0, "{}", tuned.err);
    let told: Value = serde_json::from_str(&tuned.out).unwrap();
    // What it was recommended for goes into the configuration with it.
    let text = run(folder.path(), &["hash", "tune", "--target", "10s", "--memory", "16M"], "").out;
    assert!(text.contains("  [hash]\n  memory = \"16384KiB\"\n\n  [hash.argon2]\n"), "{text}");
    let parameters = &told["recommended"]["parameters"];
    assert!(parameters["memory_kib"].as_u64().unwrap() >= 7168 && told["recommended"]["in_time"] == true, "{told}");
    let choices = told["choices"].as_array().unwrap();
    let fits = |choice: &&Value| !choice["measured"].is_null();
    assert!(choices.len() == 7 && (1..7).contains(&choices.iter().filter(fits).count()), "{told}");
    for wrong in [["--target", "0s"], ["--target", "fast"], ["--memory", "12"], ["--memory", "1MiB"]] {
        let refused = run(folder.path(), &[&["hash", "tune"][..], &wrong].concat(), "");
        assert!([1, 2].contains(&refused.code) && refused.err.lines().count() == 1, "{wrong:?}: {}", refused.err);
    }
    // Red where any size is taken: what is recommended for it could not be set.
    let refused = run(folder.path(), &["hash", "tune", "--memory", "7M"], "");
    assert!(refused.code == 2 && refused.err.contains("must be at least 8MiB;"), "{}", refused.err);
}
