//! An audit log in a file into which somebody wrote what this program writes nowhere: verified, listed, served.

use crate::audit::tamper;
use crate::support::*;
use serde_json::Value;

/// What is done to the file, and what a verification then says.
const DONE: [(&str, &str); 4] = [
    (
        "UPDATE events SET detail = CAST(x'61ff62' AS text) WHERE id = (SELECT MIN(id) FROM events WHERE block = 1)",
        "line.edited",
    ),
    ("UPDATE audit_blocks SET key_id = CAST(x'ff' AS text) WHERE number = 1", "key.missing"),
    (
        "INSERT INTO audit_blocks SELECT realm, 'zzz', first_line, last_line, oldest, newest, sealed_at, key_id, digest, \
         leaves, mac_before, mac FROM audit_blocks WHERE number = 1",
        "block.inserted",
    ),
    ("INSERT INTO audit_checkpoints VALUES ('main', 'abc', 15, 'zz', 1, 'x', 'yy')", "checkpoint.edited"),
];

#[test]
fn a_value_of_another_type_is_a_finding_and_everything_else_is_told_all_the_same() {
    // Red with an error in store/sqlite/value.rs, and where the rows of the chain are read like those of other tables.
    if !on_file() {
        return;
    }
    let server = Server::leaked(&[]);
    Person::add(server);
    let status = || serde_json::from_str::<Value>(&server.must(&["audit", "status", "--json"], "")).unwrap();
    until("everything is sealed", || status()["unsealed"] == 0);
    let mut wanted = Vec::new();
    for (sql, what) in DONE {
        tamper(server, &[sql]);
        wanted.push(what);
        let verified = server.command(&["audit", "verify", "--json"], "");
        assert_eq!(verified.code, 1, "{sql}: {}", verified.err);
        let told: Value = serde_json::from_str(&verified.out).unwrap();
        let named = |what: &&str| told["findings"].as_array().unwrap().iter().any(|one| one["what"] == **what);
        assert!(wanted.iter().all(named), "{sql}: {told}");
        server.must(&["audit", "list"], "");
        server.must(&["audit", "export"], "");
        server.must(&["audit", "status"], "");
        Person::add(server);
        until("it is sealed", || status()["unsealed"] == 0);
    }
    let wrong = status()["wrong"].to_string();
    assert!(wrong.contains("the number zzz, which is none"), "{wrong}");
    until("it warns", || server.get("/readyz").json()["warnings"].to_string().contains("audit"));
}
