//! SE: sessions.

use crate::support::*;
use load::visitor::html::{Piece, Pieces};

/// Where the links of a page lead.
fn links(page: &str) -> Vec<String> {
    let href = |piece| match piece {
        Piece::Open(name, tag) if name == "a" => Some(tag.value("href")?.to_owned()),
        _ => None,
    };
    Pieces::of(page).filter_map(href).collect()
}

#[test]
fn se_01_what_an_attacker_plants_before_sign_in_is_worth_nothing_after() {
    // red if rules/login/session.rs, enter, kept the id of a session or flow that was there before.
    let server = default_server();
    let (app, victim, attacker) = (App::trusted(server), Person::add(server), Person::add(server));
    let mut planted = Browser::of(server, &attacker);
    planted.get(&app.ask().with("prompt", "login").target());
    let mut browser = planted.clone();
    let page = browser.sign_in_page();
    browser.log_in_on(&page, &victim.name, &victim.password).must_be(303);
    assert_ne!(browser.cookie("sid-"), planted.cookie("sid-"));
    assert!(!planted.get("/account").text().contains(&victim.name));
    let code = app.code(&mut browser, &victim, &app.ask());
    let told = Call::get("/oauth2/userinfo").bearer(&Tokens::of(&app.redeem(&code)).access);
    assert_eq!(server.send(&told).json()["preferred_username"], victim.name);
}

#[test]
fn se_01_08_a_flow_works_only_with_the_cookie_that_it_was_made_with() {
    // red without the binding to the flow cookie in app/flow.rs, open_flow.
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut one = Browser::new(server);
    let page = one.get(&app.ask().target()).text();
    let flow = Form::find(&page, "/login").unwrap().value("flow").to_owned();
    let mut two = Browser::of(server, &person);
    two.sign_in_page();
    for target in ["/login", "/continue"] {
        two.get(&format!("{target}?flow={flow}")).must_be(403);
        server.get(&format!("{target}?flow={flow}")).must_be(403);
    }
    let mut bare = one.clone();
    bare.jar.clear();
    let told = bare.submit(&Form::find(&page, "/login").unwrap().fill("login", &person.name)).must_be(403).text();
    // What it was on the way to can be asked for once more: by a link that any site may make.
    let anew =
        links(&told).into_iter().find(|link| link.starts_with("/oauth2/authorize?")).expect("a way to begin anew");
    let page = bare.get(&anew);
    assert!(bare.go_through(page, &person).landed().contains_key("code"));
    one.get(&format!("/login?flow={flow}")).must_be(200);
    let bent = format!("{}{}", &flow[..flow.len() - 1], if flow.ends_with('A') { 'B' } else { 'A' });
    one.get(&format!("/login?flow={bent}")).must_be(403);
}

#[test]
fn se_01_two_servers_on_one_host_leave_each_other_their_cookies() {
    // red without the issuer in server/http/cookies.rs, ending: cookies know no ports.
    let (one, other) = (default_server(), strict_server());
    let mut here = Browser::of(one, &Person::add(one));
    let mut there = Browser { server: other, jar: here.jar.clone() };
    assert!(!there.is_signed_in());
    there.sign_in(&Person::add(other));
    here.jar = there.jar.clone();
    assert!(here.is_signed_in() && there.is_signed_in());
    for what in ["sid", "flow", "device"] {
        let named = there.jar.iter().filter(|(name, _)| name.starts_with(what)).count();
        assert_eq!(named, 2, "{what}");
    }
}

#[test]
fn se_02_the_cookie_changes_whenever_somebody_proves_who_they_are() {
    // red without a fresh secret in rules/login/session.rs, enter.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let mut old = browser.clone();
    let page = browser.get(&app.ask().with("prompt", "login").target());
    browser.go_through(page, &person).landed();
    assert_ne!(old.cookie("sid-"), browser.cookie("sid-"));
    assert!(!old.is_signed_in() && browser.is_signed_in(), "step-up");
    old = browser.clone();
    let form = browser.account_form("/account/password");
    browser.submit(&form.fill("current", &person.password).fill("new", "teal marble oboe 77")).must_be(303);
    assert!(!old.is_signed_in() && browser.is_signed_in(), "password change");
    old = browser.clone();
    let somebody_else = Person::add(server);
    let page = browser.sign_in_page();
    browser.log_in_on(&page, &somebody_else.name, &somebody_else.password).must_be(303);
    assert_ne!(old.cookie("sid-"), browser.cookie("sid-"), "account switch");
    assert!(browser.get("/account").text().contains(&somebody_else.name));
}

#[test]
fn se_04_a_cancelled_reauthentication_gives_no_code() {
    // red without `signed_in_since` in rules/oauth/step.rs, wanted.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let before = jwt(&app.tokens(&mut browser, &person).id).claims["auth_time"].clone();
    std::thread::sleep(std::time::Duration::from_millis(1_050));
    let page = browser.get(&app.ask().with("prompt", "login").target()).text();
    let flow = Form::find(&page, "/login").unwrap().value("flow").to_owned();
    let skipped = browser.get(&format!("/continue?flow={flow}"));
    assert!(skipped.location().is_none() && Form::find(&skipped.text(), "/login").is_some());
    for (action, fields) in [("/login/choose", [("choice", "continue")]), ("/consent", [("decision", "allow")])] {
        let csrf = browser.account_form("/account/signout").value("csrf").to_owned();
        let form = Form { action: action.into(), ..Form::default() }.fill("flow", &flow).fill("csrf", &csrf);
        let answer = browser.submit(&form.fill(fields[0].0, fields[0].1));
        assert!(answer.location().is_none_or(|to| !to.contains("code=")), "{action}: {:?}", answer.location());
    }
    let again = jwt(&app.tokens(&mut browser, &person).id).claims["auth_time"].clone();
    assert_eq!(before, again);
}

#[test]
fn se_04_reauthentication_does_not_mix_two_people() {
    // red without `expected` in app/sign_in.rs, sign_in; or a code for the session before: app/sign_in.rs, follow.
    let server = default_server();
    let (app, one) = (App::trusted(server), Person::add(server));
    let two = Person { password: "sedge copper lantern 29".into(), ..Person::stranger() }.added(server);
    let mut browser = Browser::of(server, &one);
    let page = browser.get(&app.ask().with("prompt", "login").target());
    let answer = browser.log_in_on(&page, &two.name, &two.password);
    assert_eq!(
        (answer.status, answer.location()),
        (422, None),
        "who proves again who they are does not become another"
    );
    assert!(browser.get("/account").text().contains(&one.name));
    let page = browser.get(&app.ask().with("prompt", "login").target());
    let other = Form::find(&page.text(), "/login/choose").unwrap().fill("choice", "other");
    let answer = browser.submit(&other);
    let page = browser.follow(answer);
    let answer = browser.log_in_on(&page, &two.name, &two.password);
    let landed = browser.follow(answer).landed();
    let told = Call::get("/oauth2/userinfo").bearer(&Tokens::of(&app.redeem(&landed["code"])).access);
    assert_eq!(server.send(&told).json()["preferred_username"], two.name);
    assert!(browser.get("/account").text().contains(&two.name));
}

#[test]
fn se_04_a_reauthentication_is_of_whoever_is_signed_in_whatever_name_comes_with_it() {
    // red without `asked_of` in app/sign_in.rs: it would be an attempt at the other account; or where http/pages/login.rs, post,
    // takes the name that came for a page that expects somebody.
    let server = default_server();
    let (app, one) = (App::trusted(server), Person::add(server));
    let two = Person { password: "sedge copper lantern 29".into(), ..Person::stranger() }.added(server);
    let mut browser = Browser::of(server, &one);
    let page = browser.get(&app.ask().with("prompt", "login").target());
    let page = browser.log_in_on(&page, &two.name, &two.password).must_be(422);
    let shown = page.text();
    assert!(shown.contains(&one.name) && !shown.contains(&two.name), "whom the page asks: {shown}");
    let failures = |person: &Person| {
        let list = server.must(&["audit", "list", "--json", "--kind", "signin.failed", "--user", &person.name], "");
        serde_json::from_str::<Vec<serde_json::Value>>(&list).unwrap().len()
    };
    assert_eq!((failures(&one), failures(&two)), (1, 0), "whose failure it is");
    let answer = browser.log_in_on(&page, &two.name, &one.password);
    assert!(browser.follow(answer).landed().contains_key("code"), "their own password will do");
}

#[test]
fn se_05_signing_out_takes_the_cookie_and_kills_the_session() {
    // red without forget_session in http/pages/account.rs, leave; or the end of the row in rules/login/session.rs, leave.
    let server = default_server();
    let person = Person::add(server);
    let mut browser = Browser::of(server, &person);
    let mut replay = browser.clone();
    let form = browser.account_form("/account/signout");
    let answer = browser.submit(&form).must_be(303);
    let cleared =
        answer.all("set-cookie").into_iter().any(|line| line.starts_with("sid-") && line.contains("Max-Age=0"));
    assert!(cleared, "{:?}", answer.all("set-cookie"));
    assert!(!replay.is_signed_in());
    let landed = replay.get(&App::trusted(server).ask().with("prompt", "none").target()).landed();
    assert_eq!(landed["error"], "login_required");
}

/// What answers do to the session cookie.
fn session_cookies(answer: &Answer) -> Vec<String> {
    answer.all("set-cookie").into_iter().filter(|line| line.starts_with("sid-")).map(str::to_owned).collect()
}

/// Requests whose session cookie is looked at.
fn looked_at(app: &App, flow: &str) -> [Call; 12] {
    let post = |target: &str| Call::post(target, &[("name", "x"), ("flow", flow), ("decision", "stay")]);
    [
        Call::get("/"),
        Call::get("/account"),
        Call::new("HEAD", "/account"),
        Call::get("/login"),
        Call::get("/device"),
        Call::get(&format!("/continue?flow={flow}")),
        Call::get(&app.ask().target()),
        Call::get(&app.ask().with("prompt", "none").target()),
        Call::get("/oauth2/logout"),
        post("/account/profile"),
        post("/account/signout"),
        post("/device"),
    ]
}

/// What a stranger can tell answers by: the status, and the headers without what is new in each of them.
fn told(answer: &Answer) -> (u16, Vec<(String, String)>) {
    let plain = |(name, value): &(String, String)| {
        let value = match &**name {
            "date" | "x-request-id" | "content-security-policy" => String::new(),
            "set-cookie" => value.split('=').next().unwrap_or_default().to_owned(),
            "location" => value.split("flow=").next().unwrap_or_default().to_owned(),
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    (answer.status, answer.headers.iter().map(plain).collect())
}

#[test]
fn se_05_who_knows_a_sid_is_not_told_whether_that_session_lives() {
    // red without is_sealed in app/browser.rs, is_over.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let flow = Browser::new(server).get(&app.ask().target()).text();
    let flow = Form::find(&flow, "/login").unwrap().value("flow").to_owned();
    let [live, mut ended] = [0; 2].map(|_| Browser::of(server, &person));
    let sid = |browser: &Browser| browser.cookie("sid-").unwrap().split('.').next().unwrap().to_owned();
    let unknown = format!("{}{}", &sid(&live)[..20], "0".repeat(6));
    let sids = [sid(&live), sid(&ended), unknown];
    let form = ended.account_form("/account/signout");
    ended.submit(&form).must_be(303);
    let name = server.cookie_name("sid");
    for call in looked_at(&app, &flow) {
        let [live, ended, unknown] = sids.clone().map(|sid| {
            let cookie = format!("{name}={sid}.{}", "x".repeat(42) + "A");
            told(&server.send(&call.clone().header("cookie", &cookie)))
        });
        assert!(live == ended && live == unknown, "{call:?}: {live:?} {ended:?} {unknown:?}");
    }
}

#[test]
fn se_05_wherever_a_dead_cookie_is_looked_at_it_is_taken_away_and_a_living_one_never() {
    // Red without `without_dead_session` in server/http/door.rs, let_in, or its question for a cookie that the answer has.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let (flow, old) = (browser.get(&app.ask().with("prompt", "login").target()), browser.clone());
    let flow = Form::find(&flow.text(), "/login").unwrap().value("flow").to_owned();
    let looked_at = looked_at(&app, &flow);
    let passed_by = [
        Call::get("/oauth2/jwks"),
        Call::get("/.well-known/openid-configuration"),
        Call::get("/nothing"),
        Call::get("/healthz"),
        Call::post("/oauth2/token", &[]),
        Call::get("/oauth2/userinfo"),
    ];
    for call in looked_at.iter().chain(&passed_by) {
        assert_eq!(session_cookies(&browser.clone().send(call.clone())), [""; 0], "it lives: {call:?}");
    }
    let page = browser.get(&app.ask().with("prompt", "login").target());
    browser.go_through(page, &person).landed();
    assert_eq!(
        session_cookies(&old.clone().get("/account").must_be(303)),
        [""; 0],
        "the session has another secret by now"
    );

    let form = browser.account_form("/account/signout");
    let dead = browser.clone();
    let taken = session_cookies(&browser.submit(&form).must_be(303));
    assert!(taken.len() == 1 && taken[0].contains("=;") && taken[0].contains("Max-Age=0"), "{taken:?}");
    for call in looked_at {
        assert_eq!(session_cookies(&dead.clone().send(call.clone())), taken, "{call:?}");
    }
    for call in passed_by {
        assert_eq!(session_cookies(&dead.clone().send(call.clone())), [""; 0], "{call:?}");
    }
    // Who signs in has the new one, and the old one stays away.
    let mut again = dead.clone();
    let page = again.send(Call::get("/login"));
    again.jar = dead.jar.clone();
    page.all("set-cookie").into_iter().filter(|line| line.starts_with("flow-")).for_each(|line| again.jar.keep(line));
    let entered = again.log_in_on(&page, &person.name, &person.password).must_be(303);
    let lines = session_cookies(&entered);
    assert!(lines.len() == 1 && !lines[0].contains("Max-Age=0"), "{lines:?}");
    assert!(again.is_signed_in());
}

#[test]
fn se_a_cookie_sent_twice_or_bent_is_nobodys() {
    // red without the check for a second one in server/http/cookies.rs, cookie.
    let server = default_server();
    let browser = Browser::of(server, &Person::add(server));
    let (name, value) = browser.jar.iter().find(|(name, _)| name.starts_with("sid-")).unwrap();
    let with = |line: &str| server.send(&Call::get("/account").header("cookie", line)).status;
    assert_eq!(with(&format!("{name}={value}")), 200);
    for line in [
        format!("{name}={value}; {name}={value}"),
        format!("{name}={value}; {name}=x"),
        format!("{name}={value}x"),
        format!("{name}= {value}y"),
        format!("{name}=\"{value}\""),
        format!("{}={value}", name.to_uppercase()),
        format!("{name}={}", "x".repeat(100_000)),
    ] {
        let answer = Call::get("/account").header("cookie", &line).try_send(server.port);
        assert!(answer.is_none_or(|answer| answer.status != 200), "{line:.80}");
    }
}

#[test]
fn se_02_a_changed_password_ends_all_that_was_issued() {
    // red without RevokeFamiliesOf or BurnCodesOf in login/session.rs, end_all_but.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let tokens = app.tokens(&mut browser, &person);
    let code = app.code(&mut browser, &person, &app.ask());
    let form = browser.account_form("/account/password");
    browser.submit(&form.fill("current", &person.password).fill("new", "teal marble oboe 78")).must_be(303);
    assert!(browser.is_signed_in());
    app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
    app.redeem(&code).must_fail(400, "invalid_grant");
    assert_eq!(server.send(&Call::get("/oauth2/userinfo").bearer(&tokens.access)).status, 401);
}
