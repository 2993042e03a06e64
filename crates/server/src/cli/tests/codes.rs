//! What programs read of a command that failed.

use super::*;
use std::collections::BTreeSet;

/// Lines on a server with a user ada, a client shop and a group staff, and the code of their failures.
const FAILING: [(&str, &str); 38] = [
    // First: whoever holds the database does not look for a server any more.
    ("verifier status", "unavailable"),
    ("user show eve", "not-found"),
    ("user set eve name=Eve", "not-found"),
    ("user disable eve", "not-found"),
    ("user enable eve", "not-found"),
    ("user remove eve", "not-found"),
    ("user set-password eve --password-stdin", "not-found"),
    ("user add ada --password-stdin", "exists"),
    ("user add eve --email ada@example.test --password-stdin", "exists"),
    ("user add eve --role owner --password-stdin", "refused"),
    ("user disable ada", "refused"),
    ("user set ada sub=1", "refused"),
    ("user set ada name=A name=B", "use"),
    ("user hashes --of nosuch", "use"),
    ("user list --limit 0", "use"),
    ("client show none", "not-found"),
    ("client set none --name None", "not-found"),
    ("client set shop", "use"),
    ("client disable none", "not-found"),
    ("client enable none", "not-found"),
    ("client rotate-secret none", "not-found"),
    ("client remove none", "not-found"),
    ("client remove portiere-try", "refused"),
    ("client add --id shop --redirect-uri https://shop.test/cb", "exists"),
    ("client add --id bad --redirect-uri http://bad.test/cb", "refused"),
    ("group show none", "not-found"),
    ("group remove none", "not-found"),
    ("group member none ada", "not-found"),
    ("group add staff", "exists"),
    ("keys rotate --revoke none", "not-found"),
    ("verifier rename none other", "not-found"),
    ("verifier revoke none", "not-found"),
    ("verifier trust none", "not-found"),
    ("node forget none --yes", "not-found"),
    ("fence accept-loss none --yes", "not-found"),
    ("audit forget http", "not-found"),
    ("audit discard 1 --yes", "refused"),
    ("setup-link", "refused"),
];

#[tokio::test]
async fn each_failure_has_a_code() {
    let folder = tempfile::tempdir().unwrap();
    instance(folder.path()).await.close().await;
    let config = config(folder.path());
    let mut operator = Operator::new(&config);
    operator.types("user add ada --email ada@example.test --role owner --password-stdin", PASSWORD).await.unwrap();
    operator.does("client add --id shop --redirect-uri https://shop.test/cb").await;
    operator.does("group add staff").await;
    operator.0.close().await;
    let mut operator = Operator::new(&config);
    let mut seen = BTreeSet::new();
    for (line, code) in FAILING {
        let failure = operator.types(line, PASSWORD).await.unwrap_err();
        assert_eq!(failure.code(), code, "{line}: {failure:?}");
        seen.insert(code);
    }
    assert_eq!(seen, BTreeSet::from(["exists", "not-found", "refused", "unavailable", "use"]));
    operator.0.close().await;
}

#[test]
fn a_line_that_cannot_be_read_is_answered_in_the_form_that_it_asks_for() {
    // Red where only what was parsed is asked: a program that mistypes an option reads no JSON.
    for (line, expected) in [
        ("user --json", true),
        ("user list --json --limit x", true),
        ("--json nosuch", true),
        ("audit export --format csv --json", true),
        ("user list --limit x", false),
        ("user show --nosuch -- --json", false),
    ] {
        let Err(NoCommand::Wrong { as_json, .. }) = cli(line) else { panic!("{line}") };
        assert_eq!(as_json, expected, "{line}");
    }
}
