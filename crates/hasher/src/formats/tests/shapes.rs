//! What is reported about an unreadable import: its likely format, what is wrong and where, and none of its content.

use super::{SNOWMAN, parse, verify};
use crate::{
    ParseError,
    formats::import::{self, BadJson, Imported},
};

const BCRYPT: &str = "$2b$05$abcdefghijklmnopqrstuuzxGOZEy/WPRLMjjU2/y65oP0ZJGIbym";
const DATA: &str = r#"{"hashIterations":2750,"algorithm":"pbkdf2-sha256","additionalParameters":{}}"#;
const SECRET: &str = r#"{"value":"reCJfHZpxM9yCuh7ShX9ifMjqROc4gmSsPFd5ApkF/n/CUwxGhfI+r8MmdMq8+fIIqgSBNtoaF2XTt6FIH5pwg==","salt":"c2l4dGVlbiBieXRlIHNsdA=="}"#;

fn refused(given: &str) -> String {
    import::any(given).err().unwrap_or_else(|| panic!("{given}")).to_string()
}

/// Keycloak exports texts; programs that process an export write objects. Red without `read_value` in json.rs.
#[test]
fn a_credential_of_keycloak_may_be_of_texts_or_of_objects() {
    let quoted = |json: &str| serde_json::to_string(json).unwrap();
    let texts =
        import::any(&format!(r#"{{"credentialData":{},"secretData":{}}}"#, quoted(DATA), quoted(SECRET))).unwrap();
    let objects = import::any(&format!(r#"{{"type":"password","secretData":{SECRET},"credentialData":{DATA}}}"#));
    let Imported::Stored(stored) = &texts else { panic!() };
    assert!(verify(stored, SNOWMAN));
    assert_eq!(objects, Ok(texts));
}

/// Red where `any` takes JSON of no known shape for LDAP's.
#[test]
fn json_that_cannot_be_read_is_told_as_json_and_where() {
    let deep = format!(r#"{{"credentialData":{},"secretData":"{{}}"}}"#, "[".repeat(2000));
    for (given, told) in [
        ("{", "the JSON ends too early, at line 1, column 1"),
        (r#"{"credentialData": "{\"algo"#, "the JSON ends too early, at line 1, column 27"),
        ("{\n  \"algorithm\": \"md5\",\n  oops\n}", "the JSON cannot be read, at line 3, column 3"),
        ("{'algorithm': 'md5'}", "the JSON cannot be read, at line 1, column 2"),
        ("{algorithm: \"md5\"}", "the JSON cannot be read, at line 1, column 2"),
        (&format!(r#"{{"password_hash":"{BCRYPT}"}} x"#), "the JSON cannot be read, at line 1, column 82"),
        (&deep, "the JSON cannot be read"),
        (r#"{"passwordHash":5}"#, "the JSON has a field of another type or value than the system exports, at line 1, "),
        (r#"{"encrypted_password":{"hunter2":1}}"#, "the JSON has a field of another type"),
        (r#"{"passwordHash":"a","passwordHash":"b"}"#, "the JSON has a field twice"),
        (r#"{"credentialData":"{}"}"#, "the JSON lacks the field secretData"),
        (r#"{"secretData":"{}"}"#, "the JSON lacks the field credentialData"),
        (
            r#"{"credentialData":["hunter2"],"secretData":{}}"#,
            "credentialData is neither an object nor the text of one",
        ),
        (r#"{"credentialData":{},"secretData":{}}"#, "credentialData lacks the field algorithm"),
        (r#"{"credentialData":"{\"alg","secretData":{}}"#, "credentialData ends too early, at line 1, column 5"),
        (r#"{"custom_password_hash":{"algorithm":"md5"}}"#, "custom_password_hash lacks the field hash"),
        (r#"{"algorithm":"md5","hash":"hunter2"}"#, "the JSON has a field of another type"),
        (r#"{"encryptionScheme":"bcrypt","factor":5,"salt":"a"}"#, "the JSON lacks the field password"),
        (r#"{"passwordHash":"a","salt":"b","rounds":8,"mem_cost":14}"#, "the JSON lacks the field import_key"),
        (r#"{"hunter2":"hunter2"}"#, "the JSON has none of the fields of a known export"),
        ("{}", "the JSON has none of the fields of a known export"),
        ("{ }", "the JSON has none of the fields of a known export"),
        (&format!("[{DATA}]"), "the JSON is not an object"),
        (&format!("\"{BCRYPT}\""), "the JSON is not an object"),
    ] {
        let error = refused(given);
        assert!(error.starts_with(told), "{given}: {error}");
        assert!(!error.contains("LDAP") && !error.contains("hunter2"), "{given}: {error}");
    }
    // Objects that were parsed before have no place any more.
    let objects = |data: &str| import::any(&format!(r#"{{"credentialData":{data},"secretData":{SECRET}}}"#));
    let problem = "has a field of another type or value than the system exports";
    let bad = BadJson { part: "credentialData", problem, place: None };
    assert_eq!(objects(&DATA.replace("2750", r#""hunter2""#)), Err(ParseError::Json(bad)));
    assert_eq!(objects(&DATA.replace("2750", "-1")), Err(ParseError::Json(bad)));
}

/// Red without OF_SPRING and `is_springs_own` in ldap.rs: Spring's names counted as LDAP's, its digests as bad base64.
#[test]
fn what_spring_security_and_ldap_have_in_braces_is_refused_by_whose_it_is() {
    let hex = "5251f537da347f6dce2f6addfaa9e9790a8cb08b1a340951fd23e3dcf69d6d8a";
    for scheme in
        ["ldap", "MD4", "SHA-1", "SHA-256", "scrypt", "scrypt@SpringSecurity_v5_8", "pbkdf2@SpringSecurity_v5_8"]
    {
        let error = refused(&format!("{{{scheme}}}{hex}"));
        assert!(error.contains("Spring Security") && error.contains("LDAP"), "{scheme}: {error}");
    }
    for own in [
        format!("{{sha256}}{hex}"),
        format!("{{MD5}}{{salt}}{hex}"),
        format!("{{pbkdf2}}{hex}"),
        format!("{{MD5}}{hex}"),
    ] {
        assert!(refused(&own).contains("Spring Security"), "{own}");
    }
    for clear in
        ["{noop}hunter2", "{CLEARTEXT}hunter2", "{clear}hunter2", "{PLAIN}hunter2", "{noop}", "{noop}hunter2 : {}"]
    {
        let error = refused(clear);
        assert!(
            error.contains("a password in the clear, not a hash") && !error.contains("hunter2"),
            "{clear}: {error}"
        );
    }
    for unknown in ["{SASL}ada@EXAMPLE.COM", "{hunter2", "{SSHAa00BjQNcdgZNRkWzVRsIhEWxARQ="] {
        let error = refused(unknown);
        assert!(
            error.contains("LDAP") && !error.contains("Spring") && !error.contains("hunter2"),
            "{unknown}: {error}"
        );
    }
}

/// As `DelegatingPasswordEncoder` writes them.
#[test]
fn what_spring_security_has_in_a_known_format_is_read() {
    let argon2 = "$argon2id$v=19$m=64,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$xyWrWCiOX2Ntnl1pulNcNPefn01q/zKzx9V1KoCf2dM";
    for (scheme, hash) in [("bcrypt", BCRYPT), ("argon2", argon2), ("argon2@SpringSecurity_v5_8", argon2)] {
        let stored = parse(&format!("{{{scheme}}}{hash}"));
        assert!(stored == parse(hash) && verify(&stored, SNOWMAN), "{scheme}");
    }
}

/// Red without `strip_prefix` in `any`: the file was saved on Windows.
#[test]
fn a_byte_order_mark_is_passed_over() {
    let digest = "{SSHA}koT7eR03nOA9C6Rvp9x8ojq/o/ALwRhD";
    for given in [BCRYPT, digest, &format!(r#"{{"password_hash":"{BCRYPT}"}}"#)] {
        let marked = import::any(&format!("\u{feff}{given}"));
        assert!(marked.is_ok() && marked == import::any(given), "{given}");
    }
    assert!(refused("\u{feff}{").starts_with("the JSON ends too early"));
    assert!(import::any(&format!("\u{feff}\u{feff}{BCRYPT}")).is_err(), "one of them");
}

/// The caller says that this is about a password hash. Red where an error says so again.
#[test]
fn what_is_wrong_is_told_without_saying_again_of_what() {
    for given in
        ["plum", "$2b$99$x", "$2b$16$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i", "{X}", "{", "{}", "$P$"]
    {
        let told = format!("the password hash: {}", refused(given));
        assert_eq!(told.matches("password hash").count(), 1, "{told}");
    }
}
