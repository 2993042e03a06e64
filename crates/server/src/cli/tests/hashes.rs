//! `user hashes`: how passwords are stored, and whose.

use super::execute::add_user;
use super::*;
use serde_json::{Value, json};

/// Counts hashes, and lists whose they are.
pub async fn counted(operator: &mut Operator<'_>) {
    assert!(operator.does("user hashes").await.text.contains("no account has a password"));
    add_user(operator, "ada").await;
    let hash = "$2b$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i\n";
    operator.types("user add bob --password-hash-stdin", hash).await.unwrap();
    let told = operator.does("user hashes").await;
    let kinds = told.json["kinds"].as_array().unwrap();
    let told_of = |kind: &Value| (kind["algorithm"].clone(), kind["accounts"].clone(), kind["is_outdated"].clone());
    assert_eq!(
        kinds.iter().map(told_of).collect::<Vec<_>>(),
        [(json!("argon2id"), json!(1), json!(false)), (json!("bcrypt"), json!(1), json!(true))]
    );
    assert!(told.text.contains("rehashed at the next sign-in, unless"), "{}", told.text);
    let listed = operator.does("user hashes --of bcrypt").await.json;
    assert_eq!((&listed[0]["username"], listed.as_array().unwrap().len()), (&json!("bob"), 1));
    assert!(operator.does("user hashes --of scrypt").await.text.contains("no account has such"));
    // Red without `know` in cli/user.rs: a pepper that every hash needs is removed after a slip of the pen.
    for word in ["argon2", "Argon2id", "nosuch", "p9", "pepper", "master.key"] {
        let refused = operator.types(&format!("user hashes --of {word}"), "").await.unwrap_err();
        let Failure::Use(told) = &refused else { panic!("{word}: {refused:?}") };
        assert!(told.starts_with(&format!("--of {word}: no such")) && told.contains("\"argon2id, bound\""), "{told}");
    }
}
