//! What the audit log says of who came in and who went: through which application, and in which session.

use crate::support::*;
use serde_json::{Value, json};

const WRONG: &str = "wrong wrong wrong";

/// The lines of this kind about somebody (`--user`) or an application (`--client`), the newest first.
#[track_caller]
pub(super) fn told(server: &Server, kind: &str, about: [&str; 2]) -> Vec<Value> {
    let list = server.must(&["audit", "list", "--json", "--kind", kind, about[0], about[1]], "");
    serde_json::from_str(&list).unwrap()
}

/// The one line of this kind about somebody.
#[track_caller]
pub(super) fn told_once(server: &Server, kind: &str, person: &str) -> Value {
    let mut lines = told(server, kind, ["--user", person]);
    assert_eq!(lines.len(), 1, "{kind}: {lines:?}");
    lines.remove(0)
}

/// The session of a browser: the half of its cookie that is no secret.
#[track_caller]
pub(super) fn sid(browser: &Browser) -> String {
    let cookie = browser.cookie("sid-").expect("a session cookie");
    cookie.split_once('.').expect("a session and its secret").0.to_owned()
}

#[test]
fn a_sign_in_is_told_of_with_the_application_that_it_came_through() {
    // red without the scene's client in app/sign_in.rs, judged, or without `on_screen_of` in app/api.rs, enter.
    let server = default_server();
    let (app, screens) = (App::trusted(server), Screens::of(server));
    let [plain, on_page, on_screen] = [(); 3].map(|()| Person::add(server));
    for (target, person) in [("/login", &plain), (&app.ask().target(), &on_page)] {
        let mut browser = Browser::new(server);
        let page = browser.get(target);
        let page = browser.log_in_on(&page, &person.name, WRONG).must_be(422);
        browser.log_in_on(&page, &person.name, &person.password).must_be(303);
    }
    screens.try_in(&mut Browser::new(server), (&on_screen.name, WRONG), false).must_be(422);
    screens.sign_in(&on_screen, false);
    for (person, client) in [(plain, Value::Null), (on_page, json!(app.id)), (on_screen, json!(screens.app.id))] {
        for kind in ["signin.failed", "session.started"] {
            assert_eq!(told_once(server, kind, &person.name)["client"], client, "{kind}");
        }
    }
}

#[test]
fn an_application_that_is_not_there_is_in_no_line() {
    // red if app/authorize.rs, request_of, took the name that a flow has without looking for who has it.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let page = browser.get(&app.ask().target());
    app.change("remove");
    browser.log_in_on(&page, &person.name, WRONG).must_be(422);
    assert_eq!(told_once(server, "signin.failed", &person.name)["client"], Value::Null);
}

#[test]
fn whoever_has_to_wait_is_counted_with_the_application_that_they_came_through() {
    // red without `origin_of` in app/sign_in.rs, hash, or `on_screen_of` in app/api.rs, enter or change_account_password.
    let server = Server::leaked(&[("PORTIERE_THROTTLE_BASE_DELAY", "10m")]);
    let (app, screens, changed) = (App::trusted(server), Screens::of(server), Screens::of(server));
    let [plain, on_page, on_screen, of_changed] = [(); 4].map(|()| Person::add(server));
    let until_refused = |attempt: &mut dyn FnMut() -> u16| {
        assert!((0..12).any(|_| attempt() == 429), "too many failures");
    };
    for (target, person) in [("/login", &plain), (&app.ask().target(), &on_page)] {
        let mut browser = Browser::new(server);
        let page = browser.get(target);
        until_refused(&mut || browser.log_in_on(&page, &person.name, WRONG).status);
    }
    let mut browser = Browser::new(server);
    until_refused(&mut || screens.try_in(&mut browser, (&on_screen.name, WRONG), false).status);
    let mut line = changed.sign_in(&of_changed, false);
    until_refused(&mut || line.change_password(WRONG, "teal marble oboe 77").status);

    let list = server.must(&["audit", "strangers", "--limit", "1000", "--json"], "");
    let rows: Vec<Value> = serde_json::from_str(&list).unwrap();
    let throttled: Vec<&Value> =
        rows.iter().filter(|row| row["what"] == "throttled").map(|row| &row["client"]).collect();
    for client in [Value::Null, json!(app.id), json!(screens.app.id), json!(changed.app.id)] {
        assert!(throttled.contains(&&client), "{client}: {list}");
    }
    server.kill();
}

#[test]
fn a_new_password_is_told_of_with_its_session_and_that_the_others_ended() {
    // red without the session, the detail or the origin's client in app/account.rs, replace_password.
    let server = default_server();
    let (screens, here, there) = (Screens::of(server), Person::add(server), Person::add(server));
    let new = "teal marble oboe 77";
    let mut browser = Browser::of(server, &here);
    let form = browser.account_form("/account/password");
    browser.submit(&form.fill("current", &here.password).fill("new", new)).must_be(303);
    let mut line = screens.sign_in(&there, false);
    line.change_password(&there.password, new).must_be(200);
    let began = told_once(server, "session.started", &there.name)["session"].clone();
    for (person, session, client) in [(here, json!(sid(&browser)), Value::Null), (there, began, json!(screens.app.id))]
    {
        let line = told_once(server, "user.password", &person.name);
        assert_eq!((&line["session"], &line["client"]), (&session, &client), "{line}");
        assert_eq!(line["detail"], json!({ "ended": "others" }), "{line}");
    }
}

#[test]
fn whoever_signs_out_everywhere_else_is_not_said_to_have_left() {
    // red with the session that goes on in the line of app/account.rs, leave_everywhere_else; or without `kept` there.
    let server = default_server();
    let person = Person::add(server);
    let (mut browser, mut other) = (Browser::of(server, &person), Browser::of(server, &person));
    let others = browser.account_form("/account/sessions/revoke-others");
    browser.submit(&others).must_be(303);
    assert!(browser.is_signed_in() && !other.is_signed_in());
    let line = told_once(server, "session.ended", &person.name);
    assert_eq!(line["session"], Value::Null, "{line}");
    assert_eq!(line["detail"], json!({ "which": "others", "kept": sid(&browser) }), "{line}");
}

#[test]
fn a_session_that_makes_way_for_somebody_elses_is_told_to_have_ended() {
    // red without `replaced` in rules/login/session.rs, enter.
    let server = default_server();
    let app = App::trusted(server);
    for through_app in [false, true] {
        let (first, second) = (Person::add(server), Person::add(server));
        let mut browser = Browser::of(server, &first);
        let ended = sid(&browser);
        if through_app {
            let page = browser.get(&app.ask().with("prompt", "login").target());
            let other = Form::find(&page.text(), "/login/choose").unwrap().fill("choice", "other");
            let answer = browser.submit(&other);
            let page = browser.follow(answer);
            browser.log_in_on(&page, &second.name, &second.password).must_be(303);
        } else {
            browser.sign_in(&second);
        }
        let client = if through_app { json!(app.id) } else { Value::Null };
        let line = told_once(server, "session.ended", &first.name);
        assert_eq!((&line["session"], &line["client"]), (&json!(ended), &client), "{line}");
        assert_eq!(line["detail"], json!({ "replaced_by": sid(&browser) }), "{line}");
        assert_eq!(told_once(server, "session.started", &second.name)["session"], sid(&browser));
    }
}
