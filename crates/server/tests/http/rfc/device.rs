//! RFC 8628: the device grant.

use crate::support::*;
use serde_json::Value;

fn app() -> App {
    App::add(default_server(), Grants::All, &[])
}

/// Asks for codes.
#[track_caller]
fn asked(app: &App) -> Value {
    app.post("/oauth2/device", &[("scope", "openid email")]).must_be(200).json()
}

fn text<'a>(json: &'a Value, name: &str) -> &'a str {
    json[name].as_str().unwrap()
}

/// Types the code and answers what is asked.
#[track_caller]
fn answer(browser: &mut Browser, user_code: &str, decision: &str) -> Answer {
    let page = browser.get("/device").must_be(200).text();
    let entry = Form::find(&page, "/device").unwrap();
    let page = browser.submit(&entry.fill("user_code", user_code)).must_be(200).text();
    let confirm = Form::find(&page, "/device/confirm").unwrap();
    let answered = browser.submit(&confirm.fill("decision", decision)).must_be(303);
    browser.follow(answered).must_be(200)
}

#[track_caller]
fn poll(app: &App, asked: &Value) -> Answer {
    let code = text(asked, "device_code");
    let grant = "urn:ietf:params:oauth:grant-type:device_code";
    app.post("/oauth2/token", &[("grant_type", grant), ("device_code", code)])
}

#[test]
fn rfc8628_3_2_the_answer_says_where_and_what_to_type() {
    let asked = asked(&app());
    let page = format!("{}/device", default_server().issuer);
    assert_eq!(text(&asked, "verification_uri"), page);
    assert!(text(&asked, "verification_uri_complete").starts_with(&format!("{page}?user_code=")));
    assert_eq!((&asked["expires_in"], &asked["interval"]), (&600.into(), &5.into()));
    assert!(text(&asked, "device_code").len() >= 43);
}

#[test]
fn rfc8628_3_5_pending_then_slow_down_then_tokens() {
    let server = default_server();
    let (app, person) = (app(), Person::add(server));
    let asked = asked(&app);
    poll(&app, &asked).must_fail(400, "authorization_pending");
    poll(&app, &asked).must_fail(400, "slow_down");
    answer(&mut Browser::of(server, &person), text(&asked, "user_code"), "allow");
    let tokens = Tokens::of(&poll(&app, &asked));
    assert_eq!(jwt(&tokens.id).claims["aud"], app.id);
    assert!(app.is_active(&tokens.access));
    poll(&app, &asked).must_fail(400, "invalid_grant");
}

#[test]
fn rfc8628_3_4_what_outlives_the_session_does_so_from_the_answer_on() {
    // red without is_live in rules/oauth/device.rs, redeem: devices ask every few seconds only, and on a shared computer people
    // sign out at once.
    let server = default_server();
    let (app, person) = (app(), Person::add(server));
    let approved = |scope: &str, then: &str| {
        let asked = app.post("/oauth2/device", &[("scope", scope)]).must_be(200).json();
        let mut browser = Browser::of(server, &person);
        answer(&mut browser, text(&asked, "user_code"), "allow");
        let end = browser.account_form(then);
        browser.submit(&end).must_be(303);
        poll(&app, &asked)
    };
    let tokens = Tokens::of(&approved("openid offline_access", "/account/signout"));
    assert_eq!(jwt(&tokens.id).claims.get("sid"), None, "that session is over");
    assert!(app.is_active(&tokens.access));
    app.refresh(&tokens.refresh).must_be(200);
    approved("openid", "/account/signout").must_fail(400, "invalid_grant");
    for ends_all in ["/account/sessions/revoke-others", "/account/applications/revoke"] {
        approved("openid offline_access", ends_all).must_fail(400, "invalid_grant");
    }
}

#[test]
fn rfc8628_3_5_no_is_access_denied() {
    let server = default_server();
    let (app, person) = (app(), Person::add(server));
    let asked = asked(&app);
    answer(&mut Browser::of(server, &person), text(&asked, "user_code"), "deny");
    poll(&app, &asked).must_fail(400, "access_denied");
    let list = server.must(&["audit", "list", "--client", &app.id, "--kind", "device.answered", "--json"], "");
    let lines: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!((lines.len(), &lines[0]["detail"]["allowed"]), (1, &Value::Bool(false)), "{list}");
}

#[test]
fn rfc8628_3_5_a_code_that_never_was() {
    let asked = serde_json::json!({ "device_code": "nothing" });
    poll(&app(), &asked).must_fail(400, "invalid_grant");
}

#[test]
fn rfc8628_3_3_whoever_is_not_signed_in_signs_in_first() {
    let server = default_server();
    let (app, person) = (app(), Person::add(server));
    let asked = asked(&app);
    let mut browser = Browser::new(server);
    let complete = text(&asked, "verification_uri_complete").to_owned();
    let page = browser.get(complete.strip_prefix(&server.issuer).unwrap()).must_be(200);
    let next = browser.log_in_on(&page, &person.name, &person.password).must_be(303);
    let page = browser.follow(next).must_be(200).text();
    let entry = Form::find(&page, "/device").unwrap();
    assert_eq!(entry.value("user_code"), text(&asked, "user_code"));
    poll(&app, &asked).must_fail(400, "authorization_pending");
}

#[test]
fn rfc8628_3_3_a_yes_covers_what_the_page_has_shown() {
    // Red without has_shown in http/pages/device.rs.
    let server = default_server();
    let app = app();
    let mut browser = Browser::of(server, &Person::add(server));
    let set = |way: &str| {
        server.must(&["client", "set", &app.id, way, "email"], "");
    };
    let asked = asked(&app);
    set("--remove-scope");
    let page = browser.get("/device").must_be(200).text();
    let entry = Form::find(&page, "/device").unwrap().fill("user_code", text(&asked, "user_code"));
    let page = browser.submit(&entry).must_be(200).text();
    let allow = |page: &str| Form::find(page, "/device/confirm").unwrap().fill("decision", "allow");
    set("--add-scope");
    let again = browser.submit(&allow(&page)).must_be(200).text();
    poll(&app, &asked).must_fail(400, "authorization_pending");
    assert_ne!(Form::find(&again, "/device/confirm").unwrap().value("shown"), allow(&page).value("shown"));
    browser.submit(&allow(&again)).must_be(303);
    poll(&app, &asked).must_be(200);
}

#[test]
fn how_an_answer_ended_is_said_by_a_page_of_its_own_to_whoever_gave_it() {
    // red if http/pages/device.rs, answer, showed the page itself; or without the seal in app/device.rs, open_ending.
    let server = default_server();
    let app = app();
    let mut browser = Browser::of(server, &Person::add(server));
    for (decision, said) in [("allow", "approved"), ("deny", "denied")] {
        let code = asked(&app);
        let page = browser.get("/device").must_be(200).text();
        let entry = Form::find(&page, "/device").unwrap().fill("user_code", text(&code, "user_code"));
        let page = browser.submit(&entry).must_be(200).text();
        let confirm = Form::find(&page, "/device/confirm").unwrap().fill("decision", decision);
        let link = browser.submit(&confirm).must_be(303).location().unwrap().to_owned();
        assert!(link.starts_with(&format!("/device?done={said}&")), "{link}");
        for _ in 0..2 {
            let page = browser.get(&link).must_be(200).text();
            assert!(page.contains(&app.id) && Form::find(&page, "/device").is_none(), "{page}");
        }
        let mut other = Browser::of(server, &Person::add(server));
        for (browser, link) in [(&mut other, link.clone()), (&mut browser, link.replace(said, "expired"))] {
            let page = browser.get(&link).must_be(200).text();
            assert!(!page.contains(&app.id) && Form::find(&page, "/device").is_some(), "{page}");
        }
        // Once more, as a browser posts again that was told to: the code is used up.
        let again = browser.submit(&confirm).must_be(303).location().unwrap().to_owned();
        assert!(again.starts_with("/device?done=invalid&client=&seal="), "{again}");
    }
}

#[test]
fn rfc8628_6_1_a_user_code_is_read_however_it_is_typed() {
    let server = default_server();
    let (app, person) = (app(), Person::add(server));
    let asked = asked(&app);
    let typed = format!(" {} ", text(&asked, "user_code").to_lowercase().replace('-', " "));
    answer(&mut Browser::of(server, &person), &typed, "allow");
    Tokens::of(&poll(&app, &asked));
}

#[test]
fn rfc8628_5_1_guesses_of_user_codes_are_slowed() {
    let server = default_server();
    let mut browser = Browser::of(server, &Person::add(server));
    let page = browser.get("/device").must_be(200).text();
    let entry = Form::find(&page, "/device").unwrap();
    let statuses: Vec<u16> =
        (0..12).map(|_| browser.submit(&entry.clone().fill("user_code", "BCDF-GHJK")).status).collect();
    assert_eq!(statuses[0], 422);
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
}

#[test]
fn dv_01_a_device_code_belongs_to_its_client() {
    // red without the filter on `found.device.client` in rules/oauth/device.rs, poll.
    let server = default_server();
    let (one, two, person) = (app(), app(), Person::add(server));
    let asked = asked(&one);
    answer(&mut Browser::of(server, &person), text(&asked, "user_code"), "allow");
    poll(&two, &asked).must_fail(400, "invalid_grant");
    Tokens::of(&poll(&one, &asked));
}

#[test]
fn dv_02_what_was_approved_is_what_is_issued() {
    // red without `granted.scope: device.scope` in rules/oauth/device.rs, answer; or the limit to the client's scopes.
    let server = default_server();
    let (app, person) = (app(), Person::add(server));
    let asked = app.post("/oauth2/device", &[("scope", "openid email admin")]).must_be(200).json();
    answer(&mut Browser::of(server, &person), text(&asked, "user_code"), "allow");
    let grant = "urn:ietf:params:oauth:grant-type:device_code";
    let wider =
        [("grant_type", grant), ("device_code", text(&asked, "device_code")), ("scope", "openid email groups profile")];
    let tokens = Tokens::of(&app.post("/oauth2/token", &wider));
    assert_eq!(tokens.json["scope"], "openid email");
}

#[test]
fn dv_04_the_grant_is_off_by_default_and_a_link_approves_nothing() {
    // red without the check of `client.may(DeviceCode)` in rules/oauth/device.rs, ask; or a confirm page that GET answers.
    let server = default_server();
    let plain = App::web(server);
    plain.post("/oauth2/device", &[]).must_fail(400, "unauthorized_client");
    let (app, person) = (app(), Person::add(server));
    let asked = asked(&app);
    let mut browser = Browser::of(server, &person);
    let complete = text(&asked, "verification_uri_complete").to_owned();
    browser.get(complete.strip_prefix(&server.issuer).unwrap()).must_be(200);
    poll(&app, &asked).must_fail(400, "authorization_pending");
    let page = browser.get("/device").text();
    let entry = Form::find(&page, "/device").unwrap();
    let page = browser.submit(&entry.fill("user_code", text(&asked, "user_code"))).text();
    assert!(page.contains(&app.id) && page.contains("127.0.0.1"), "the page names client and requester");
}

#[test]
fn rc_05_approving_and_polling_race_for_one_grant() {
    // red without both `stage = 'approved'` in store/tables/devices.rs, redeem, and the unique name of the family that an
    // approval begins (store/schema.rs): either alone holds.
    let server = default_server();
    let (app, person) = (app(), Person::add(server));
    let asked = asked(&app);
    let browser = Browser::of(server, &person);
    let outcomes = at_once(20, |at| {
        if at == 0 {
            answer(&mut browser.clone(), text(&asked, "user_code"), "allow");
            return None;
        }
        Some(poll(&app, &asked)).filter(|answer| answer.status == 200)
    });
    let late = poll(&app, &asked);
    let won = outcomes.iter().flatten().count() + usize::from(late.status == 200);
    assert_eq!(won, 1, "one approval yields tokens once");
}

#[test]
fn rc_05_parallel_polls_of_an_approved_code_yield_tokens_once() {
    // red without both `stage = 'approved'` in store/tables/devices.rs, redeem, and the unique name of the family that an
    // approval begins (store/schema.rs): either alone holds.
    let server = default_server();
    let (app, person) = (app(), Person::add(server));
    let asked = asked(&app);
    answer(&mut Browser::of(server, &person), text(&asked, "user_code"), "allow");
    let won = at_once(50, |_| poll(&app, &asked).status).into_iter().filter(|status| *status == 200).count();
    assert_eq!(won, 1);
}
