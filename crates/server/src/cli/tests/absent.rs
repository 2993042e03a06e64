//! `--if-absent`: commands that are run again.

use super::*;
use crate::control;
use crate::setup_link::LinkFile;
use serde_json::json;

const ADA: &str = "user add ada --email ada@example.test --if-absent --password-stdin";
const SHOP: &str = "client add --id shop --redirect-uri https://shop.test/cb --if-absent";
const STAFF: &str = "group add staff --if-absent";

async fn adds(operator: &mut Operator<'_>, line: &str) -> Outcome {
    operator.types(line, PASSWORD).await.unwrap_or_else(|failure| panic!("{line}: {failure:?}"))
}

/// Returns how many lines the audit log has.
async fn told(operator: &mut Operator<'_>) -> usize {
    operator.does("audit list").await.json.as_array().unwrap().len()
}

/// Returns the answer to a line before anything is read for it.
async fn looked(operator: &mut Operator<'_>, line: &str) -> Reply {
    let Ok(Cli { command: Command::Request(request), .. }) = cli(line) else { panic!("{line}") };
    operator.0.ask(&request.supposes().unwrap()).await
}

/// Adds everything, twice.
pub async fn again(operator: &mut Operator<'_>) {
    for (line, show, what) in [
        (ADA, Some("user show ada"), "user \"ada\""),
        (SHOP, Some("client show shop"), "client \"shop\""),
        (STAFF, None, "group \"staff\""),
    ] {
        let made = adds(operator, line).await;
        assert_eq!(made.json["created"], json!(true), "{}", made.text);
        let before = told(operator).await;
        let found = adds(operator, line).await;
        assert_eq!(found.text, format!("{what} exists already; nothing was changed"));
        assert_eq!(found.json["created"], json!(false));
        assert_eq!(told(operator).await, before, "what was not done is not written down");
        if let Some(show) = show {
            let mut shown = operator.does(show).await.json;
            shown["created"] = json!(false);
            assert_eq!(found.json, shown, "no secret, and all else");
        }
    }
    // Whatever else the command asks for.
    let other = "client add --id shop --public --redirect-uri http://shop.test/cb --if-absent";
    assert_eq!(adds(operator, other).await.json["created"], json!(false));
    assert_eq!(adds(operator, "user add ADA --if-absent --password-stdin").await.json["username"], json!("ada"));
    // Red without the first look in cli/absent.rs: the input must be neither judged nor hashed.
    for line in ["user add ada --if-absent --password-stdin", "user add ada --if-absent --password-hash-stdin"] {
        assert_eq!(operator.types(line, "password\n").await.unwrap().json["created"], json!(false), "{line}");
    }
    somebody_else(operator).await;
    looks(operator).await;
}

/// Red without `by_email` in app/admin/users.rs, user_called.
async fn somebody_else(operator: &mut Operator<'_>) {
    adds(operator, "user add bob --email bob@example.test --if-absent --password-stdin").await;
    for line in [
        "user add eve --email ADA@example.test --if-absent --password-stdin",
        "user add ada --email bob@example.test --if-absent --password-stdin",
    ] {
        assert!(operator.cannot(line).await.contains("signs in with that e-mail address"), "{line}");
    }
    let portiere = "client add --id portiere-try --public --redirect-uri https://shop.test/a --if-absent";
    assert!(operator.cannot(portiere).await.contains("reserved for Try it"));
}

async fn looks(operator: &mut Operator<'_>) {
    let before = told(operator).await;
    let secret = "client add --id shop --redirect-uri https://shop.test/cb --if-absent --secret-stdin";
    for (line, found) in [
        ("user add ada --if-absent", json!(false)),
        ("user add eve --if-absent", json!(null)),
        (secret, json!(false)),
        (&*secret.replace("shop ", "none "), json!(null)),
    ] {
        assert_eq!(looked(operator, line).await.unwrap().json["created"], found, "{line}");
    }
    let taken = looked(operator, "user add eve --email ada@example.test --if-absent").await;
    assert!(taken.is_err(), "nobody is asked for what is of no use");
    assert_eq!(told(operator).await, before, "a look makes nothing");
}

/// Red without the second look in cli/absent.rs.
#[tokio::test]
async fn of_two_at_once_one_makes_it_and_the_other_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let server = instance(folder.path()).await;
    let control = control::listen(folder.path(), &server).unwrap();
    let scenario = async {
        let (mut one, mut other) = (Operator::new(&config), Operator::new(&config));
        for line in ["user add ada --role owner --if-absent --password-stdin", SHOP, STAFF] {
            let (first, second) = tokio::join!(one.types(line, PASSWORD), other.types(line, PASSWORD));
            let mut made = [first, second].map(|reply| reply.unwrap().json["created"].as_bool().unwrap());
            made.sort_unstable();
            assert_eq!(made, [false, true], "{line}");
        }
    };
    tokio::select! {
        () = control.run(std::future::pending()) => panic!("the control socket ended"),
        () = Box::pin(scenario) => {}
    }
    server.close().await;
}

/// Red where cli/user.rs, drop_link, looks only at the request: nobody could make the owner any more.
#[tokio::test]
async fn who_is_there_and_no_owner_leaves_the_set_up_link() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    instance(folder.path()).await.close().await;
    let file = LinkFile::of(folder.path());
    let mut operator = Operator::new(&config);
    adds(&mut operator, "user add bob --password-stdin").await;
    let link = operator.does("setup-link").await.json["link"].as_str().unwrap().to_owned();
    file.write(&link).await.unwrap();
    let found = adds(&mut operator, "user add bob --role owner --if-absent --password-stdin").await;
    assert_eq!(found.json["role"], json!("member"));
    assert!(file.path().exists());
    operator.0.close().await;
}

#[test]
fn only_what_would_be_read_is_looked_for_before() {
    let supposes = |line: &str| match cli(line) {
        Ok(Cli { command: Command::Request(request), .. }) => request.supposes().is_some(),
        _ => panic!("{line}"),
    };
    assert!(supposes("user add ada --if-absent") && !supposes("user add ada"));
    assert!(supposes("client add --id a --if-absent --secret-stdin"));
    assert!(!supposes("client add --id a --if-absent") && !supposes("group add staff --if-absent"));
}
