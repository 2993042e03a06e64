//! SE and CS for the account API's cookies: what a page has to know that was loaded again, and what becomes of the cookies
//! whose place others take.

use crate::support::*;
use serde_json::{Value, json};

/// The same browser after a reload: the page has forgotten the CSRF token, and this became of the cookies.
fn reloaded(line: &Line, (cookie, value): (&str, &str)) -> Line {
    let mut page = line.clone();
    page.csrf = "forgotten".into();
    let name = page.browser.server.cookie_name(cookie);
    page.browser.jar.keep(&format!("{name}={value}"));
    page
}

/// Something that ends somebody's sign-in.
type End = fn(&mut Line, &Person);
/// A way in, with cookies or without.
type ComeIn<'a> = &'a dyn Fn(&mut Browser, bool);

const NO_ACCESS: (&str, &str) = ("access", "; Max-Age=0");

/// What `GET /me` says to somebody who is not let in.
#[track_caller]
fn told(page: &mut Line) -> Value {
    let answer = page.send("GET", "me", &Value::Null);
    assert!([401, 403].contains(&answer.status), "{}", answer.text());
    answer.json()
}

#[test]
fn cs_01_a_page_that_was_loaded_again_goes_on_when_its_access_token_is_gone() {
    // red without out_of_access in http/api/account.rs, show.
    let server = default_server();
    let (screens, person) = (Screens::of(server), Person::add(server));
    for cookie in [NO_ACCESS, ("access", "x; Path=/")] {
        let line = screens.sign_in(&person, true);
        let mut page = reloaded(&line, cookie);
        assert_eq!(page.renew().must_be(403).json()["code"], "csrf-refused", "{cookie:?}");
        let problem = told(&mut page);
        assert_eq!(
            (&problem["code"], &problem["csrf_token"]),
            (&json!("token-refused"), &json!(line.csrf)),
            "{cookie:?}"
        );
        page.csrf = line.csrf;
        page.renew().must_be(200);
        assert!(page.is_open());
    }
}

#[test]
fn cs_01_what_refreshing_needs_is_told_to_pages_of_its_line_alone() {
    // red without each of: is_page_of in http/api/caller.rs, out_of_access; Keeping::Cookies in account.rs, show;
    // is_for_accounts in app/api.rs, kept_line.
    let server = default_server();
    let (screens, elsewhere, person) = (Screens::of(server), Screens::of(server), Person::add(server));
    let line = screens.sign_in(&person, true);
    let mut page = reloaded(&line, NO_ACCESS);
    assert!(told(&mut page).get("csrf_token").is_some());
    let nothing = |mut page: Line, why: &str| assert_eq!(told(&mut page).get("csrf_token"), None, "{why}");
    nothing(Line { screens: elsewhere, ..page.clone() }, "a page of another application of the house");
    nothing(Line { access: "x".into(), ..page.clone() }, "an application that keeps its tokens itself");
    nothing(reloaded(&page, ("refresh", "; Max-Age=0")), "no refresh token");
    nothing(reloaded(&page, ("refresh", "x; Path=/")), "none of ours");
    // Red without is_recent: who saw a token once could ask for ever whether the line lives.
    let (mut newest, first) = (line.clone(), line.browser.cookie("refresh-").unwrap());
    for gets in [true, false] {
        newest.renew().must_be(200);
        let mut old = reloaded(&page, ("refresh", &format!("{first}; Path=/")));
        assert_eq!(told(&mut old).get("csrf_token").is_some(), gets, "the one before, or an older one");
    }
    assert!(told(&mut reloaded(&newest, NO_ACCESS)).get("csrf_token").is_some());
    let tokens = screens.app.tokens(&mut Browser::of(server, &person), &person);
    nothing(reloaded(&page, ("refresh", &format!("{}; Path=/", tokens.refresh))), "one of the token endpoint");
}

#[test]
fn se_05_a_page_signs_out_when_its_access_token_is_gone() {
    // red without the refresh token in http/api/caller.rs, leaving; without kept_refresh (CSRF) or is_page_of there.
    let server = default_server();
    let (screens, elsewhere, person) = (Screens::of(server), Screens::of(server), Person::add(server));
    let out = |mut page: Line| page.send("POST", "signout", &json!({}));
    for cookie in [NO_ACCESS, ("access", "x; Path=/")] {
        let line = screens.sign_in(&person, true);
        let page = Line { csrf: line.csrf.clone(), ..reloaded(&line, cookie) };
        out(reloaded(&line, cookie)).must_be(403);
        out(Line { screens: elsewhere.clone(), ..page.clone() }).must_be(403);
        out(reloaded(&page, ("refresh", "x; Path=/"))).must_be(401);
        assert!(line.clone().is_open(), "nobody signed out");
        let left = out(page.clone()).must_be(204);
        let gone =
            |what: &str| left.all("set-cookie").iter().any(|set| set.starts_with(what) && set.contains("Max-Age=0"));
        assert!(gone("access-") && gone("refresh-"));
        assert!(!line.clone().is_open() && page.clone().renew().status == 401, "{cookie:?}");
        out(page).must_be(401);
    }
}

#[test]
fn di_01_a_line_that_is_over_tells_nothing_to_go_on_with() {
    // red without each of: can_end, is_admitted in app/api.rs, kept_line.
    let server = default_server();
    let ends: [(&str, End); 4] = [
        ("sign-out", |line, _| drop(line.clone().send("POST", "signout", &json!({})).must_be(204))),
        ("the account is disabled", |line, person| person.change(line.browser.server, "disable")),
        ("the application is disabled", |line, _| line.screens.app.change("disable")),
        ("no application of the house", |line, _| {
            line.browser.server.must(&["client", "set", &line.screens.app.id, "--first-party=no"], "");
        }),
    ];
    for (why, end) in ends {
        let (screens, person) = (Screens::of(server), Person::add(server));
        let mut line = screens.sign_in(&person, true);
        let mut page = reloaded(&line, NO_ACCESS);
        assert!(told(&mut page).get("csrf_token").is_some());
        end(&mut line, &person);
        assert_eq!(told(&mut page).get("csrf_token"), None, "{why}");
    }
}

#[test]
fn se_02_cookies_whose_place_others_take_are_dead() {
    // red without leave_before in app/api.rs, hand_over; without `before` in http/api/sign_in.rs, enter or enroll.
    let server = sign_up_server();
    let (screens, person) = (Screens::of(server), Person::add(server));
    let enroll = |browser: &mut Browser, cookies: bool| {
        let body = json!({
            "client_id": screens.app.id, "username": unique("new"), "password": person.password, "cookies": cookies,
        });
        browser.send(screens.call("POST", "signup", &body)).must_be(201);
    };
    let enter = |browser: &mut Browser, who: &Person, cookies: bool| {
        screens.try_in(browser, (&who.name, &who.password), cookies).must_be(200);
    };
    let other = Person::add(server);
    let comings: [(&str, ComeIn<'_>); 3] = [
        ("the same person", &|browser, cookies| enter(browser, &person, cookies)),
        ("somebody else", &|browser, cookies| enter(browser, &other, cookies)),
        ("a new account", &|browser, cookies| enroll(browser, cookies)),
    ];
    for (who, come_in) in comings {
        let line = screens.sign_in(&person, true);
        let (mut copied, mut browser) = (line.clone(), line.browser.clone());
        screens.try_in(&mut browser, (&person.name, "not the password 1"), true).must_be(422);
        come_in(&mut browser, false);
        assert!(copied.is_open(), "{who}: nothing took the place of the cookies");
        come_in(&mut browser, true);
        assert!(!copied.is_open(), "{who}");
        assert_eq!(copied.renew().status, 401, "{who}");
        let mut now = Line { browser, ..line };
        assert!(now.is_open(), "{who}");
    }
}
