//! RC: many at once for one thing. Which of them wins is open; how many win is not.

use crate::attacks::passwords::slow_server;
use crate::scale::{RACE_ROUNDS, RACERS, scaled};
use crate::support::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn rc_01_co_05_a_code_is_redeemed_once_and_the_rush_revokes_it() {
    // red without both the guard `redeemed_at IS NULL` in store/tables/codes.rs and the unique name of the family that a
    // code begins (store/schema.rs): either alone holds.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    for _ in 0..scaled(RACE_ROUNDS) {
        let code = app.code(&mut browser, &person, &app.ask());
        let answers = at_once(RACERS, |_| app.redeem(&code));
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
        assert_eq!(won.len(), 1);
        lost.into_iter().for_each(|answer| drop(answer.must_fail(400, "invalid_grant")));
        let tokens = Tokens::of(&won[0]);
        assert!(!app.is_active(&tokens.access) && !app.is_active(&tokens.refresh));
        app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
    }
}

#[test]
fn rc_02_rt_01_in_grace_all_get_the_one_successor() {
    // red without `current_hash = ?` in store/tables/families.rs, rotate.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    for _ in 0..scaled(RACE_ROUNDS) {
        let first = app.tokens(&mut browser, &person);
        let answers = at_once(RACERS, |_| app.refresh(&first.refresh));
        let successors: HashSet<String> = answers.iter().map(|answer| Tokens::of(answer).refresh).collect();
        assert_eq!(successors.len(), 1, "one live successor");
        let successor = successors.into_iter().next().unwrap();
        assert!(!app.is_active(&first.refresh) && app.is_active(&successor));
        Tokens::of(&app.refresh(&successor));
    }
}

#[test]
fn rc_02_rt_01_without_grace_one_wins_and_the_family_is_revoked() {
    // red without `current_hash = ?` in store/tables/families.rs, rotate.
    let server = strict_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    for _ in 0..scaled(RACE_ROUNDS) {
        let first = app.tokens(&mut browser, &person);
        let answers = at_once(RACERS, |_| app.refresh(&first.refresh));
        let won: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(won.len(), 1);
        let tokens = Tokens::of(won[0]);
        assert!(!app.is_active(&tokens.refresh) && !app.is_active(&tokens.access));
        app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
    }
}

/// Runs `act` until `end` has been done by the other thread, which begins when it has been run once; what `act` gave after
/// that and before.
fn around<T: Send>(act: impl Fn() -> T + Sync, end: impl FnOnce()) -> Vec<T> {
    let (begun, over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut found = Vec::new();
                    while !over.load(Ordering::Acquire) {
                        found.push(act());
                        begun.store(true, Ordering::Release);
                    }
                    found
                })
            })
            .collect();
        while !begun.load(Ordering::Acquire) && !workers.iter().all(|worker| worker.is_finished()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::thread::sleep(std::time::Duration::from_millis(30));
        end();
        over.store(true, Ordering::Release);
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    })
}

/// The tokens that a code yields, if it does.
fn redeemed(app: &App, code: &str) -> Option<Tokens> {
    let answer = app.redeem(code);
    (answer.status == 200).then(|| Tokens::of(&answer))
}

/// Something was issued, and none of it is good for anything any more.
#[track_caller]
fn must_have_ended(app: &App, issued: Vec<Option<Tokens>>) {
    let issued: Vec<Tokens> = issued.into_iter().flatten().collect();
    assert!(!issued.is_empty());
    for tokens in issued {
        assert!(!app.is_active(&tokens.access) && !app.is_active(&tokens.refresh));
        app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
    }
}

#[test]
fn rc_07_a_revoked_consent_beats_whatever_is_being_issued() {
    // red without Change::Stands in rules/oauth/token.rs, issue, and step.rs, issue.
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let browser = Browser::of(server, &person);
    for _ in 0..scaled(RACE_ROUNDS) {
        app.code(&mut browser.clone(), &person, &app.ask().with("prompt", "consent"));
        let mut revoker = browser.clone();
        let remove = revoker.account_form("/account/applications/revoke");
        let silent = app.ask().with("prompt", "none").target();
        let issue = || {
            let code = browser.clone().get(&silent).landed().remove("code")?;
            redeemed(&app, &code)
        };
        let issued = around(issue, || drop(revoker.submit(&remove).must_be(303)));
        must_have_ended(&app, issued);
    }
}

#[test]
fn rc_07_what_is_issued_while_trust_is_taken_away_ends_with_it() {
    // red without `distrusted` in app/admin/clients.rs, edit_client: the life in which something was issued tells.
    let server = default_server();
    for _ in 0..scaled(RACE_ROUNDS) {
        let (app, person) = (App::trusted(server), Person::add(server));
        let browser = Browser::of(server, &person);
        let silent = app.ask().with("prompt", "none").target();
        let issue = || {
            let answer = browser.clone().get(&silent);
            // Who meets the change itself is told to come again.
            let code = (answer.status != 503).then(|| answer.landed().remove("code"))??;
            redeemed(&app, &code)
        };
        let issued = around(issue, || drop(server.must(&["client", "set", &app.id, "--trusted=no"], "")));
        must_have_ended(&app, issued);
    }
}

#[test]
fn rc_07_an_owner_who_ends_it_beats_codes_that_a_copied_cookie_is_being_issued() {
    // red without `handle` of Change::Stands in rules/oauth/step.rs, issue, or in store/tables/changes.rs, stands: the session
    // goes on, and only its secret is another one. Red on PostgreSQL if app/account.rs, leave_everywhere_else, raised it last.
    let server = default_server();
    let app = App::trusted(server);
    for round in 0..2 * scaled(RACE_ROUNDS) {
        let person = Person::add(server);
        let mut owner = Browser::of(server, &person);
        let (copied, change) = (owner.clone(), end_of_copies(round, &mut owner, &person));
        let silent = app.ask().with("prompt", "none").target();
        let issue = || {
            let code = copied.clone().get(&silent).landed().remove("code")?;
            redeemed(&app, &code)
        };
        let issued = around(issue, || drop(owner.submit(&change).must_be(303)));
        must_have_ended(&app, issued);
        assert!(owner.is_signed_in() && !copied.clone().is_signed_in());
    }
}

#[test]
fn rc_07_an_owner_who_ends_it_beats_devices_that_a_copied_cookie_is_approving() {
    // red without `handle` of Change::Stands in rules/oauth/device.rs, answer, or without `still_proved` in app/device.rs,
    // device_answer: whoever decides again would go by what the page had found.
    let server = default_server();
    let app = App::add(server, Grants::All, &[]);
    for round in 0..2 * scaled(RACE_ROUNDS) {
        let person = Person::add(server);
        let mut owner = Browser::of(server, &person);
        let (copied, change) = (owner.clone(), end_of_copies(round, &mut owner, &person));
        let page = copied.clone().get("/device").must_be(200).text();
        let entry = Form::find(&page, "/device").unwrap();
        let approve = || {
            let asked = app.post("/oauth2/device", &[("scope", "openid offline_access")]).must_be(200).json();
            let entry = entry.clone().fill("user_code", asked["user_code"].as_str().unwrap());
            let page = copied.clone().submit(&entry).text();
            let confirm = Form::find(&page, "/device/confirm")?.fill("decision", "allow");
            let told = copied.clone().submit(&confirm).must_be(303).location().unwrap().to_owned();
            Some((asked["device_code"].as_str().unwrap().to_owned(), told))
        };
        let answered = around(approve, || drop(owner.submit(&change).must_be(303)));
        let answered: Vec<(String, String)> = answered.into_iter().flatten().collect();
        assert!(answered.iter().any(|(_, told)| told.starts_with("/device?done=approved&")), "{answered:?}");
        for (code, told) in answered {
            let grant = "urn:ietf:params:oauth:grant-type:device_code";
            let polled = app.post("/oauth2/token", &[("grant_type", grant), ("device_code", &code)]);
            assert!(["invalid_grant", "authorization_pending"].contains(&&*polled.must_be(400).error()), "{told}");
        }
    }
}

/// The form by which an owner ends what copies of their cookie may do: by turns a new password, and "sign out everywhere else".
fn end_of_copies(round: usize, owner: &mut Browser, person: &Person) -> Form {
    match round.is_multiple_of(2) {
        true => new_password(owner, person),
        false => owner.account_form("/account/sessions/revoke-others"),
    }
}

/// The form that changes somebody's password, filled in.
fn new_password(browser: &mut Browser, person: &Person) -> Form {
    let form = browser.account_form("/account/password");
    form.fill("current", &person.password).fill("new", "teal marble oboe 77")
}

#[test]
fn rc_08_a_disabled_user_has_no_session_that_began_beside_it() {
    // held twice: by Change::Stands in rules/login/session.rs, enter, and by the look at the person in `proved` there.
    let server = default_server();
    for _ in 0..scaled(RACE_ROUNDS) {
        let person = Person::add(server);
        let sign_in = || {
            let mut browser = Browser::new(server);
            let page = browser.get("/login");
            let answer = browser.log_in_on(&page, &person.name, &person.password);
            (answer.status == 303).then_some(browser)
        };
        let browsers = around(sign_in, || person.change(server, "disable"));
        for mut browser in browsers.into_iter().flatten() {
            assert!(!browser.is_signed_in());
        }
    }
}

#[test]
fn rc_09_a_username_is_given_once() {
    // red without the unique key of login names in store/schema.rs.
    let server = sign_up_server();
    for _ in 0..scaled(RACE_ROUNDS) {
        let name = unique("wanted");
        let answers = at_once(20, |at| {
            let mut browser = Browser::new(server);
            let page = browser.get("/signup").text();
            let written = if at % 2 == 0 { name.clone() } else { name.to_uppercase() };
            let form = Form::find(&page, "/signup").unwrap().fill("username", &written);
            let answer = browser.submit(&form.fill("password", &format!("gorse violet anvil {at}")));
            (answer.status, browser.is_signed_in())
        });
        let won = answers.iter().filter(|(status, signed_in)| *status == 303 && *signed_in).count();
        assert_eq!(won, 1, "{answers:?}");
        assert!(answers.iter().all(|(status, _)| [303, 422, 503].contains(status)), "{answers:?}");
    }
}

#[test]
fn rc_09_rc_10_pe_04_an_owner_is_made_once_and_stays() {
    // held more than once: by the unique row of the owner (Change::ClaimOwner), and by the setup link, which is used up.
    let server = Server::leaked(&[]);
    let link = std::fs::read_to_string(server.data().join("setup-link")).unwrap();
    let token = link.trim().rsplit('#').next().unwrap();
    let won = at_once(20, |at| {
        let (name, password) = (format!("owner{at}"), "gorse violet anvil 41");
        if at % 4 == 0 {
            let line = ["user", "add", &name, "--role", "owner", "--password-stdin"];
            return server.command(&line, password).code == 0;
        }
        let fields = [("token", token), ("username", &name), ("email", ""), ("password", password)];
        server.send(&Call::post("/setup", &fields).header("origin", &server.issuer)).status == 303
    });
    assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
    // Red without the questions about the role in app/admin/users.rs.
    let owners = || {
        let all: Vec<serde_json::Value> = serde_json::from_str(&server.must(&["user", "list", "--json"], "")).unwrap();
        all.into_iter().filter(|user| user["role"] == "owner").collect::<Vec<_>>()
    };
    let before = owners();
    assert_eq!(before.len(), 1, "{before:?}");
    let name = before[0]["username"].as_str().unwrap().to_owned();
    let tried = at_once(6, |at| server.command(&["user", ["disable", "remove"][at % 2], &name], "").code);
    assert!(tried.iter().all(|code| *code != 0), "{tried:?}");
    assert_eq!(owners(), before);
    server.kill();
}

#[test]
fn rc_09_of_two_changes_to_a_client_neither_is_lost() {
    // red without at_epoch in app/admin/clients.rs, change_client.
    let server = default_server();
    for _ in 0..scaled(RACE_ROUNDS) {
        let app = App::web(server);
        at_once(3, |at| {
            let verb = ["disable", "rotate-secret", "set"][at];
            let name = ["--name", "Another"];
            let flags = if verb == "set" { &name[..] } else { &[] };
            server.must(&[&["client", verb, &app.id], flags].concat(), "");
        });
        assert!(server.must(&["client", "show", &app.id], "").contains("Another"));
        let ask = [("grant_type", "refresh_token"), ("refresh_token", "none")];
        app.post("/oauth2/token", &ask).must_fail(401, "invalid_client");
        app.change("enable");
        app.post("/oauth2/token", &ask).must_fail(401, "invalid_client");
    }
}

#[test]
fn rc_11_parallel_guesses_are_all_counted() {
    // red if the attempt were counted after the hash: app/sign_in.rs, hash; or without the turnstile and its guard.
    let server = slow_server();
    let person = Person::add(server);
    let mut browser = Browser::new(server);
    let page = browser.get("/login").text();
    let guess = Form::find(&page, "/login").unwrap().fill("login", &person.name).fill("password", "wrong wrong wrong");
    let statuses = at_once(RACERS, |_| browser.clone().submit(&guess).status);
    let heard = statuses.iter().filter(|status| **status == 422).count();
    assert!((1..=6).contains(&heard), "{heard} of {RACERS} were heard");
    assert!(statuses.iter().all(|status| [422, 429, 503].contains(status)), "{statuses:?}");
    assert_eq!(browser.submit(&guess).status, 429);
}

#[test]
fn se_07_people_who_sign_in_at_the_same_time_are_not_mixed_up() {
    // red if anything of a sign-in were kept outside of its request: app/sign_in.rs.
    let server = default_server();
    let app = App::trusted(server);
    let people: Vec<Person> = (0..12).map(|_| Person::add(server)).collect();
    let names = at_once(people.len(), |at| {
        let tokens = app.tokens(&mut Browser::new(server), &people[at]);
        let told = server.send(&Call::get("/oauth2/userinfo").bearer(&tokens.access)).must_be(200).json();
        (at, told["preferred_username"].as_str().unwrap().to_owned())
    });
    for (at, name) in names {
        assert_eq!(name, people[at].name);
    }
}

#[test]
fn rc_11_honest_sign_ins_at_once_are_all_let_in() {
    // red without the turnstile in app/sign_in.rs. That its place is held until the attempt was judged shows only where
    // the database is some milliseconds away.
    let server = default_server();
    let person = Person::add(server);
    // Each node has a turnstile of its own, and more than five attempts under way look like guesses.
    let people = if nodes() == 1 { 24 } else { 4 };
    let answers = at_once(people, |_| {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        browser.log_in_on(&page, &person.name, &person.password).status
    });
    assert!(answers.iter().all(|status| *status == 303), "{answers:?}");
}

#[test]
fn rc_11_of_parallel_polls_one_is_in_time() {
    // red without the guard in store/tables/devices.rs, polled: RFC 8628 §3.5 would hold for no device that asks in parallel.
    let app = App::add(default_server(), Grants::All, &[]);
    let asked = app.post("/oauth2/device", &[("scope", "openid")]).must_be(200).json();
    let code = asked["device_code"].as_str().unwrap();
    let grant = "urn:ietf:params:oauth:grant-type:device_code";
    let errors =
        at_once(RACERS, |_| app.post("/oauth2/token", &[("grant_type", grant), ("device_code", code)]).error());
    let pending = errors.iter().filter(|error| *error == "authorization_pending").count();
    assert_eq!(pending, 1, "{errors:?}");
    assert!(errors.iter().all(|error| ["authorization_pending", "slow_down"].contains(&error.as_str())), "{errors:?}");
}
