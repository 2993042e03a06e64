//! The OpenID Foundation's conformance suite: the guide's configuration of it (`docs/guide/conformance.json`), and what
//! its modules ask that no other test does.

use crate::support::*;
use rules::secret::base64url;

const PLAN: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/conformance.json"));

/// Every command that leads the suite's browser through a page, wherever it stands.
fn commands(of: &serde_json::Value, found: &mut Vec<Vec<String>>) {
    match of {
        serde_json::Value::Object(members) => {
            if let Some(list) = members.get("commands").and_then(|list| list.as_array()) {
                let words = |command: &serde_json::Value| {
                    let word = |word: &serde_json::Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
                    command.as_array().unwrap().iter().map(word).collect()
                };
                found.extend(list.iter().map(words));
            }
            members.values().for_each(|member| commands(member, found));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| commands(item, found)),
        _ => {}
    }
}

#[test]
fn what_the_suite_looks_for_is_on_the_pages() {
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let unregistered = app.ask().with("redirect_uri", "https://elsewhere.test/cb").target();
    let out = |query: &str| format!("/oauth2/logout?{query}");
    let pages = [
        server.get(&app.ask().target()).must_be(200).text(),
        server.get(&unregistered).must_be(400).text(),
        server.get(&app.ask().with("scope", "").target()).must_be(400).text(),
        browser.get(&app.ask().target()).must_be(200).text(),
        browser.get(&out("")).must_be(200).text(),
        browser.get(&out("post_logout_redirect_uri=https://app.test/bye")).must_be(200).text(),
        browser.get(&out("id_token_hint=x")).must_be(200).text(),
        server.get(&out(&format!("client_id={}&post_logout_redirect_uri=https://x.test", app.id))).must_be(200).text(),
    ]
    .concat();
    assert!(pages.contains("<a class=\"button main\""), "the way back from an error");
    let (mut found, plan) = (Vec::new(), serde_json::from_str::<serde_json::Value>(PLAN).unwrap());
    // The last stands for a client in the module that authenticates by `client_secret_post`.
    for client in ["client", "client2", "client_secret_post"] {
        assert!(plan[client]["client_id"].is_string() && plan[client]["client_secret"].is_string(), "{client}");
    }
    commands(&plan, &mut found);
    assert!(found.len() > 40, "{}", found.len());
    for command in found.iter().filter(|command| command[2] != "submission_complete") {
        let on_page = match (command[1].as_str(), command[2].as_str()) {
            ("id", id) => format!("id=\"{id}\""),
            ("css", ".main") => "<button class=\"main\"".into(),
            ("css", button) => button.replace("button[value=", "value=\"").replace(']', "\""),
            _ => command[4].clone(),
        };
        assert!(pages.contains(&on_page), "{command:?}");
    }
}

#[test]
fn form_post_2_a_request_object_is_refused_in_the_way_that_only_it_names() {
    // red without `way_back` in rules: the OpenID Foundation's suite for form_post names it nowhere else.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let object = |claims: &str| format!("{}.{}.", base64url(br#"{"alg":"none"}"#), base64url(claims.as_bytes()));
    let ask = app.ask().with("request", &object(r#"{"response_mode":"form_post"}"#));
    let answer = Browser::of(server, &person).get(&ask.target()).must_be(200);
    let form = Form::find(&answer.text(), &app.redirect).unwrap();
    assert_eq!((form.value("error"), form.value("iss")), ("request_not_supported", &*server.issuer));
    let page = server.get(&ask.target()).must_stay_here();
    let back = Form::find(&page.text(), &app.redirect).unwrap();
    assert_eq!((back.value("error"), back.value("state")), ("request_not_supported", "s-te"));
}
