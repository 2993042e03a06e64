//! BF-05: whoever signed in on a device before is not kept out of it by the failures of others, in a browser that several
//! people use and in an application without cookies.

use super::passwords::{NEW, attack, by_device, by_token, renewed, slow_server};
use crate::support::*;
use serde_json::{Value, json};

#[test]
fn bf_05_a_browser_that_several_people_use_is_known_to_each_of_them() {
    // red if app/browser.rs, remember_browser, kept nothing but the newest proof.
    let server = slow_server();
    let people: Vec<Person> = (0..5).map(|_| Person::add(server)).collect();
    let mut browser = Browser::new(server);
    for person in &people {
        browser.sign_in(person);
        let form = browser.account_form("/account/signout");
        browser.submit(&form).must_be(303);
    }
    for (at, person) in people.iter().enumerate() {
        attack(server, person);
        let expected = if at == 0 { 429 } else { 303 };
        assert_eq!(by_device(&browser, person), expected, "{at}: four are known, those who were there last");
    }
    server.kill();
}

#[test]
fn bf_05_an_application_without_cookies_is_not_locked_out_by_a_stranger() {
    // red without device_token in http/api/caller.rs, browser or hand_over.
    let server = Server::leaked(&[("PORTIERE_THROTTLE_BASE_DELAY", "10m"), ("PORTIERE_SIGNUP_ENABLED", "true")]);
    let (screens, person) = (Screens::of(server), Person::add(server));
    let told = |answer: &Answer, name: &str| answer.json()[name].as_str().unwrap_or_default().to_owned();
    let mut line = screens.sign_in(&person, false);
    attack(server, &person);
    screens.try_in(&mut Browser::new(server), (&person.name, &person.password), false).must_be(429);
    assert_eq!(by_token(&line, &person), 200);

    line.send("PATCH", "password", &json!({ "current": person.password, "new": NEW })).must_be(429);
    let changed = line.change_password(&person.password, NEW).must_be(200);
    line.device = told(&changed, "device_token");
    let person = renewed(&person);
    screens.try_in(&mut Browser::new(server), (&person.name, &person.password), false).must_be(429);
    assert_eq!(by_token(&line, &person), 200);

    let new = Person::stranger();
    let body = json!({
        "client_id": screens.app.id, "username": new.name, "password": new.password, "device_token": line.device,
    });
    let made = server.send(&screens.call("POST", "signup", &body)).must_be(201);
    line.device = told(&made, "device_token");
    attack(server, &new);
    assert_eq!((by_token(&line, &new), by_token(&line, &person)), (200, 200), "who shares it keeps it");
    server.kill();
}

#[test]
fn bf_05_what_a_device_is_known_by_opens_nothing() {
    // red if http/api/caller.rs, hand_over, told it after a refresh or beside cookies, or app/api.rs took it for a token.
    let server = default_server();
    let (screens, person) = (Screens::of(server), Person::add(server));
    let mut line = screens.sign_in(&person, false);
    let device = line.device.clone();
    let me = screens.call("GET", "me", &Value::Null);
    assert_eq!(server.send(&me.clone().bearer(&device)).status, 401);
    assert_eq!(server.send(&Call::get("/oauth2/userinfo").bearer(&device)).status, 401);
    assert_eq!(Line { refresh: device.clone(), ..line.clone() }.renew().status, 401);
    for name in ["sid", "access", "refresh"].map(|what| server.cookie_name(what)) {
        let cookie = format!("{name}={device}");
        assert_eq!(server.send(&me.clone().header("cookie", &cookie)).status, 401, "{name}");
        assert_ne!(server.send(&Call::get("/account").header("cookie", &cookie)).status, 200, "{name}");
    }
    let wrong = json!({
        "client_id": screens.app.id, "login": person.name, "password": "wrong wrong wrong", "device_token": device,
    });
    server.send(&screens.call("POST", "signin", &wrong)).must_be(422);
    assert!(line.renew().must_be(200).json().get("device_token").is_none(), "nobody typed a password");
    let mut browser = Browser::new(server);
    let kept = screens.try_in(&mut browser, (&person.name, &person.password), true).must_be(200);
    assert!(kept.json().get("device_token").is_none() && browser.cookie("device-").is_some());
}
