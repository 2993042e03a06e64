//! BF-05: how a browser is known: by proofs of the accounts that signed in there last.

use super::{NOW, database, node};
use crate::App;
use crate::browser::Browser;
use crate::clock::Clock;
use rules::people::User;
use rules::secret::{Secret, base64url, from_base64url, mac};
use tempfile::TempDir;

async fn start() -> (TempDir, App) {
    let folder = tempfile::tempdir().unwrap();
    let app = node(database(folder.path()).await, Clock::fixed(NOW)).await;
    (folder, app)
}

fn person(name: &str) -> User {
    with_password(name, "the first")
}

fn with_password(name: &str, password: &str) -> User {
    User { password: Some(format!("a hash of {password}")), ..User::new(name.into(), name, NOW) }
}

fn keeping(device: impl Into<String>) -> Browser {
    Browser { device: Some(Secret::new(device)), ..Browser::default() }
}

/// Returns the browser after `user` has signed in there.
fn used_by(app: &App, browser: &Browser, user: &User) -> Browser {
    Browser { device: Some(app.remember_browser(browser, user).unwrap()), ..Browser::default() }
}

fn kept(browser: &Browser) -> &str {
    browser.device.as_ref().map_or("", Secret::reveal)
}

/// Returns the names under which a browser is known to these people.
fn names(app: &App, browser: &Browser, people: &[User]) -> Vec<Option<String>> {
    people.iter().map(|user| app.known_device(browser, user)).collect()
}

fn known(app: &App, browser: &Browser, people: &[User]) -> Vec<bool> {
    names(app, browser, people).iter().map(Option::is_some).collect()
}

#[tokio::test]
async fn bf_05_a_browser_is_known_to_the_four_who_signed_in_there_last() {
    // Red with another MOST_KNOWN in browser.rs, or if remember_browser there kept a returning user's place.
    let (_folder, app) = start().await;
    let people = ["ada", "bob", "cleo", "dora", "egon"].map(person);
    let browser = people[..4].iter().fold(Browser::default(), |browser, user| used_by(&app, &browser, user));
    assert_eq!(known(&app, &browser, &people), [true, true, true, true, false]);
    let again = used_by(&app, &browser, &people[0]);
    assert_eq!(names(&app, &again, &people), names(&app, &browser, &people), "each under the name that it had");
    let full = used_by(&app, &again, &people[4]);
    assert_eq!(known(&app, &full, &people), [true, false, true, true, true], "bob was there before the others");
    assert!(kept(&full).len() <= 512, "more than a cookie of ours may have");
}

#[tokio::test]
async fn bf_05_an_account_has_one_proof_in_a_browser_whatever_its_password_was() {
    // Red without `is_named_for` in browser.rs, remember_browser: void proofs would take the place of good ones.
    let (_folder, app) = start().await;
    let bob = person("bob");
    let mut browser = used_by(&app, &Browser::default(), &bob);
    for password in ["one", "two", "three", "four", "five"] {
        browser = used_by(&app, &browser, &with_password("ada", password));
    }
    let people = [bob, with_password("ada", "four"), with_password("ada", "five")];
    assert_eq!(known(&app, &browser, &people), [true, false, true]);
}

#[tokio::test]
async fn bf_05_what_does_not_have_the_form_of_a_proof_hides_none() {
    // Red if browser.rs, proofs, counted parts of another form, took a part of a proof for one, or took any number.
    let (_folder, app) = start().await;
    let ada = person("ada");
    let is_known = |device: String| app.known_device(&keeping(device), &ada).is_some();
    let good = kept(&used_by(&app, &Browser::default(), &ada)).to_owned();
    let other = "A".repeat(43);
    for device in [
        good.clone(),
        format!("~~~~~~~~{good}"),
        format!("{good}~{good}~x"),
        format!("x~.~{}~{}~{good}", "A".repeat(44), "=".repeat(43)),
        format!("{other}~{other}~{other}~{good}"),
    ] {
        assert!(is_known(device.clone()), "{device}");
    }
    let (cut, last) = good.split_at(42);
    for device in [
        String::new(),
        cut.to_owned(),
        format!("{good}A"),
        format!("{good}{good}"),
        format!("{cut}~{last}"),
        format!("{good}.{other}"),
        format!("{other}~{other}~{other}~{other}~{good}"),
    ] {
        assert!(!is_known(device.clone()), "{device}");
    }
    let mended = used_by(&app, &keeping(format!("x~{other}~{good}~{good}")), &ada);
    assert_eq!(kept(&mended), format!("{good}~{other}"));
}

#[tokio::test]
async fn bf_05_who_signs_in_to_accounts_of_their_own_is_known_to_no_other() {
    // Red without the account's id in browser.rs, proof; or without the name there.
    let (_folder, app) = start().await;
    let ada = User { password: person("m0").password, ..person("ada") };
    let own: Vec<User> = (0..4).map(|at| person(&format!("m{at}"))).collect();
    let browser = own.iter().fold(Browser::default(), |browser, user| used_by(&app, &browser, user));
    assert_eq!(known(&app, &browser, &own), [true; 4]);
    assert_eq!(app.known_device(&browser, &ada), None);
    let proofs: Vec<Vec<u8>> = kept(&browser).split('~').map(|proof| from_base64url(proof).unwrap()).collect();
    let spliced = keeping(base64url(&[&proofs[0][..16], &proofs[1][16..]].concat()));
    assert_eq!(known(&app, &spliced, &own), [false; 4]);
}

/// What the version before gave a browser; it knew of one account alone.
fn given_before(app: &App, user: &User, name: [u8; 16]) -> String {
    let password = user.password.as_deref().unwrap_or_default();
    let tag = mac(&*app.keyring.device, &[user.id.as_str().as_bytes(), password.as_bytes(), &name]);
    base64url(&[&name, &tag[..16]].concat())
}

/// Whether that version accepts it.
fn known_before(app: &App, device: &str, user: &User) -> bool {
    let name = from_base64url(device).filter(|bytes| bytes.len() == 32).and_then(|bytes| bytes.first_chunk().copied());
    name.is_some_and(|name| given_before(app, user, name) == device)
}

#[tokio::test]
async fn bf_05_nodes_of_the_version_before_and_of_this_one_serve_the_same_browsers() {
    // Red if browser.rs, proof, made another MAC than before, or if BETWEEN were a letter of base64url.
    let (_folder, app) = start().await;
    let people = ["ada", "bob"].map(person);
    let before = keeping(given_before(&app, &people[0], [7; 16]));
    assert_eq!(names(&app, &before, &people), [Some(base64url(&[7; 16])), None]);
    let both = used_by(&app, &before, &people[1]);
    assert_eq!(known(&app, &both, &people), [true, true]);
    assert_eq!(people.each_ref().map(|user| known_before(&app, kept(&both), user)), [false, false], "unknown, no more");
    let one = used_by(&app, &Browser::default(), &people[0]);
    assert!(known_before(&app, kept(&one), &people[0]));
    let again = used_by(&app, &before, &people[0]);
    assert_eq!(kept(&again), kept(&before), "once, under its name");
}
