//! CS for the account API: requests that come from elsewhere, with cookies and with tokens. A cookie is sent by whatever
//! page asks; a token is not, but a page that holds one must still be the application's own.

use crate::support::*;
use serde_json::{Value, json};

const NEW: &str = "teal marble oboe 77";

/// Origins that are not the application's, however alike.
fn foreign(origin: &str) -> Vec<String> {
    vec![
        "null".into(),
        "https://evil.test".into(),
        format!("{origin}.evil.test"),
        format!("{origin}:8443"),
        format!("{origin}/"),
        origin.replace("https", "http"),
        origin.to_uppercase(),
        String::new(),
        "*".into(),
    ]
}

/// Every change that somebody who is signed in can make through the API.
fn changes(person: &Person, screens: &Screens) -> [(&'static str, &'static str, Value); 3] {
    [
        ("PATCH", "password", json!({ "current": person.password, "new": NEW })),
        ("POST", "refresh", json!({ "client_id": screens.app.id })),
        ("POST", "signout", json!({})),
    ]
}

/// A request with cookies as a page of `origin` sends it.
fn with_cookies(line: &Line, origin: Option<&str>, (method, operation, body): &(&str, &str, Value)) -> Call {
    let call = Call::new(method, &format!("/api/v1/{operation}"));
    let call = if *method == "GET" { call } else { call.body("application/json", body.to_string()) };
    let call = call.cookies(&line.browser.jar);
    origin.map_or(call.clone(), |origin| call.header("origin", origin))
}

/// Nothing that a page of somebody else could read.
#[track_caller]
fn must_be_closed_to_others(answer: &Answer, what: &str) {
    for name in ["access-control-allow-origin", "access-control-allow-credentials"] {
        assert_eq!(answer.header(name), None, "{what}");
    }
}

#[test]
fn cs_01_cookies_alone_change_nothing() {
    // red without own_request in http/api/caller.rs, account and kept_refresh.
    let server = default_server();
    let screens = Screens::of(server);
    let (person, other) = (Person::add(server), Person::add(server));
    let mut line = screens.sign_in(&person, true);
    let (theirs, mine) = (screens.sign_in(&other, true).csrf, screens.sign_in(&person, true).csrf);
    for change in &changes(&person, &screens) {
        for token in [None, Some(""), Some("x"), Some(&line.csrf[1..]), Some(&theirs), Some(&mine)] {
            let call = with_cookies(&line, Some(&screens.origin), change);
            let call = token.map_or(call.clone(), |token| call.header("x-csrf-token", token));
            let answer = server.send(&call);
            assert_eq!((answer.status, answer.json()["code"].as_str()), (403, Some("csrf-refused")), "{change:?}");
            assert!(answer.all("set-cookie").is_empty());
        }
        let twice = with_cookies(&line, Some(&screens.origin), change)
            .header("x-csrf-token", &line.csrf)
            .header("x-csrf-token", &line.csrf);
        assert_eq!(server.send(&twice).status, 403, "{change:?} with the token twice");
        let mut inside = change.clone();
        inside.2["csrf_token"] = json!(line.csrf);
        inside.2["x-csrf-token"] = json!(line.csrf);
        let answer = server.send(&with_cookies(&line, Some(&screens.origin), &inside));
        assert!([400, 403].contains(&answer.status), "{change:?} with the token in the body: {}", answer.status);
    }
    assert!(line.is_open());
    Browser::of(server, &person);
    line.renew().must_be(200);
}

#[test]
fn cs_01_a_page_of_another_origin_changes_and_reads_nothing() {
    // red without lives_at in http/api/caller.rs, account, and in app/api.rs, first_party.
    let server = default_server();
    let (screens, neighbor) = (Screens::of(server), Screens::of(server));
    let person = Person::add(server);
    let (cookies, bearer) = (screens.sign_in(&person, true), screens.sign_in(&person, false));
    let read = ("GET", "me", Value::Null);
    let mut origins = foreign(&screens.origin);
    origins.push(server.issuer.clone());
    for origin in &origins {
        for request in changes(&person, &screens).iter().chain([&read]) {
            let what = format!("{} from {origin}", request.1);
            let answer =
                server.send(&with_cookies(&cookies, Some(origin), request).header("x-csrf-token", &cookies.csrf));
            assert_eq!(answer.status, 403, "{what}");
            must_be_closed_to_others(&answer, &what);
            if request.1 == "refresh" {
                continue;
            }
            let call = Call::new(request.0, &format!("/api/v1/{}", request.1)).bearer(&bearer.access);
            let call = if request.0 == "GET" { call } else { call.body("application/json", request.2.to_string()) };
            let answer = server.send(&call.header("origin", origin));
            assert_eq!(answer.status, 403, "{what} with a token");
            must_be_closed_to_others(&answer, &what);
        }
        let body = json!({ "client_id": screens.app.id, "refresh_token": bearer.refresh }).to_string();
        let call = Call::new("POST", "/api/v1/refresh").body("application/json", body);
        assert_eq!(server.send(&call.header("origin", origin)).status, 403, "refresh from {origin}");
    }
    // Another application of the house is somebody else, too.
    for request in changes(&person, &screens).iter().chain([&read]) {
        let call = with_cookies(&cookies, Some(&neighbor.origin), request).header("x-csrf-token", &cookies.csrf);
        assert_eq!(server.send(&call).status, 403, "{} from a neighbor", request.1);
    }
    let origins = [screens.origin.as_str(), &screens.origin];
    let twice = origins.into_iter().fold(with_cookies(&cookies, None, &read), |call, one| call.header("origin", one));
    assert_eq!(server.send(&twice).status, 403);
    assert!(cookies.clone().is_open() && bearer.clone().is_open());
    Browser::of(server, &person);
}

#[test]
fn cs_01_nobody_is_signed_in_by_a_page_of_another_origin() {
    // red without the origin in http/api/caller.rs, client, for cookies; and lives_at in app/api.rs, first_party.
    let server = sign_up_server();
    let (screens, attacker) = (Screens::of(server), Person::add(server));
    let sign_in = screens.credentials(&attacker.name, &attacker.password, true);
    let new = json!({ "client_id": screens.app.id, "username": unique("new"), "password": NEW, "cookies": true });
    let confidential = App::add(server, Grants::Usual, &["--first-party"]);
    let proved = json!({
        "client_id": confidential.id, "client_secret": SECRET, "cookies": true,
        "login": attacker.name, "password": attacker.password
    });
    for (operation, body) in [("signin", &sign_in), ("signup", &new), ("signin", &proved)] {
        let call = || Call::new("POST", &format!("/api/v1/{operation}")).body("application/json", body.to_string());
        for origin in &foreign(&screens.origin) {
            let answer = server.send(&call().header("origin", origin));
            assert_eq!(answer.status, 403, "{operation} from {origin}: {}", answer.text());
            assert!(answer.all("set-cookie").is_empty(), "{operation} from {origin}");
            must_be_closed_to_others(&answer, origin);
        }
        let answer = server.send(&call());
        assert!([401, 403].contains(&answer.status), "cookies are for pages: {}", answer.text());
        assert!(answer.all("set-cookie").is_empty());
    }
}

#[test]
fn cs_01_what_a_form_can_send_is_no_request() {
    // red without the media type in http/api/input.rs, read; or with another method in http/api/mod.rs, routes.
    let server = default_server();
    let (screens, person) = (Screens::of(server), Person::add(server));
    let mut line = screens.sign_in(&person, true);
    let sign_in = ("POST", "signin", screens.credentials(&person.name, &person.password, true));
    for (method, operation, body) in changes(&person, &screens).iter().chain([&sign_in]) {
        let path = format!("/api/v1/{operation}");
        let kinds = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""];
        for kind in kinds {
            let call = Call::new(method, &path).body(kind, body.to_string()).cookies(&line.browser.jar);
            let call = call.header("origin", &screens.origin).header("x-csrf-token", &line.csrf);
            assert_eq!(server.send(&call).status, 415, "{operation} as {kind:?}");
        }
        for other in ["GET", "HEAD", "PUT", "DELETE", if *method == "POST" { "PATCH" } else { "POST" }] {
            let call = Call::new(other, &format!("{path}?_method={method}")).header("x-http-method-override", method);
            let call = call.body("application/json", body.to_string()).cookies(&line.browser.jar);
            let call = call.header("origin", &screens.origin).header("x-csrf-token", &line.csrf);
            assert_eq!(server.send(&call).status, 405, "{other} {operation}");
        }
    }
    assert!(line.is_open());
}

#[test]
fn cs_04_cookies_are_shared_with_pages_of_the_house_alone() {
    // red if http/api/cors.rs, first_party, allowed an origin that is not a first-party client's.
    let server = default_server();
    let (screens, stranger) = (Screens::of(server), App::web(server));
    let line = screens.sign_in(&Person::add(server), true);
    let preflight = |operation: &str, origin: &str| {
        let call = Call::new("OPTIONS", &format!("/api/v1/{operation}")).header("origin", origin);
        server.send(&call.header("access-control-request-method", "POST"))
    };
    for operation in ["signin", "signup", "refresh", "signout", "password", "me"] {
        let answer = preflight(operation, &screens.origin);
        assert_eq!(answer.header("access-control-allow-origin"), Some(screens.origin.as_str()), "{operation}");
        assert_eq!(answer.header("access-control-allow-credentials"), Some("true"), "{operation}");
        let mut origins = foreign(&screens.origin);
        origins.push(stranger.redirect.strip_suffix("/cb").unwrap().to_owned());
        for origin in &origins {
            must_be_closed_to_others(&preflight(operation, origin), origin);
        }
    }
    let read = ("GET", "me", Value::Null);
    let own = server.send(&with_cookies(&line, Some(&screens.origin), &read)).must_be(200);
    assert_eq!(own.header("access-control-allow-origin"), Some(screens.origin.as_str()));
    assert_eq!(own.header("access-control-allow-credentials"), Some("true"));
    assert!(own.all("vary").iter().any(|value| value.eq_ignore_ascii_case("origin")));
    let bearer = screens.sign_in(&Person::add(server), false);
    let told = server.send(&bearer.call("GET", "me", &Value::Null)).must_be(200);
    assert_eq!(told.header("access-control-allow-origin"), Some(screens.origin.as_str()));
    assert_eq!(told.header("access-control-allow-credentials"), None, "tokens need no cookies");
}

#[test]
fn cs_04_each_door_takes_its_own_credentials() {
    // red if http/api/caller.rs, account, fell back from a bad token to a cookie, or browser there kept the session.
    let server = default_server();
    let (screens, person) = (Screens::of(server), Person::add(server));
    let mut line = screens.sign_in(&person, true);
    let read = ("GET", "me", Value::Null);
    for bad in ["Bearer x", "Bearer ", "Basic eDp5", "x"] {
        let call = with_cookies(&line, Some(&screens.origin), &read).header("authorization", bad);
        let answer = server.send(&call);
        assert!([400, 401].contains(&answer.status), "{bad}: {}", answer.status);
    }
    let mut page = Browser::of(server, &person);
    let answer = page.send(Call::get("/api/v1/me").header("origin", &screens.origin));
    assert_eq!(answer.status, 401, "the session of the pages opens no API");
    assert!(!line.browser.is_signed_in(), "cookies of the API open no page");
    for cookie in line.browser.jar.iter().filter(|(name, _)| !name.starts_with("device-")) {
        for name in ["sid", "access", "refresh"].map(|what| server.cookie_name(what)) {
            if name == cookie.0 {
                continue;
            }
            let swapped = Call::get("/api/v1/me").header("cookie", &format!("{name}={}", cookie.1));
            assert_eq!(server.send(&swapped).status, 401, "{} as {name}", cookie.0);
            let swapped = Call::get("/account").header("cookie", &format!("{name}={}", cookie.1));
            assert_ne!(server.send(&swapped).status, 200, "{} as {name}", cookie.0);
        }
    }
    let told = server.send(&with_cookies(&line, Some(&screens.origin), &read)).must_be(200).json();
    assert_eq!(told["csrf_token"], json!(line.csrf));
    let answer = line.send("POST", "signout", &json!({})).must_be(204);
    let gone = answer.all("set-cookie").into_iter().filter(|line| line.contains("Max-Age=0")).count();
    assert_eq!(gone, 2, "{:?}", answer.all("set-cookie"));
}
