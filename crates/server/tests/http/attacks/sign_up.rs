//! Self sign-up: how fast, for whom, and in whose browser.

use super::written_down::told_once;
use crate::support::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const PASSWORD: &str = "gorse violet anvil 41";

/// The form of the sign-up page that `browser` is shown at `target`.
#[track_caller]
fn form(browser: &mut Browser, target: &str) -> Form {
    let page = browser.get(target).must_be(200).text();
    Form::find(&page, "/signup").unwrap_or_else(|| panic!("no sign-up form: {page}"))
}

fn filled(form: Form, name: &str) -> Form {
    form.fill("username", name).fill("email", "").fill("password", PASSWORD)
}

/// Whether an account of that name lets its owner in.
#[track_caller]
fn exists(server: &'static Server, name: &str) -> bool {
    let mut browser = Browser::new(server);
    let page = browser.get("/login").must_be(200);
    browser.log_in_on(&page, name, PASSWORD).status == 303
}

#[test]
fn ds_05_sign_ups_of_one_address_are_paced_and_nobody_elses() {
    // red without CountFailure in rules/login/sign_up.rs, judge; without `beside` in app/sign_up.rs, may_sign_up; or with a key there that is not of the client's address.
    let server = Server::leaked(&[
        ("PORTIERE_SIGNUP_ENABLED", "true"),
        ("PORTIERE_PROXY_TRUSTED", "127.0.0.1"),
        ("PORTIERE_HASH_MAX_WAIT", "60s"),
    ]);
    let (screens, person) = (Screens::of(server), Person::add(server));
    let sign_up = |address: &str| {
        let name = unique("new");
        let body = serde_json::json!({ "client_id": screens.app.id, "username": name, "password": PASSWORD });
        server.send(&screens.call("POST", "signup", &body).header("x-forwarded-for", address))
    };
    let (began, made) = (Instant::now(), AtomicUsize::new(0));
    at_once(8, |at| {
        for _ in 0..100 {
            let answer = sign_up(&format!("2001:db8::{at}"));
            if answer.status == 429 {
                assert!(answer.header("retry-after").is_some());
                let told = answer.json();
                assert_eq!((&told["code"], &told["fields"]), (&"too-many-attempts".into(), &serde_json::Value::Null));
                return;
            }
            answer.must_be(201);
            made.fetch_add(1, Ordering::Relaxed);
        }
    });
    let made = made.load(Ordering::Relaxed);
    let drained = usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    // Those that were on their way when the last one was let in had counted before; at their own node.
    let elsewhere = if nodes() > 1 { 8 } else { 0 };
    assert!((500..=501 + drained + elsewhere).contains(&made), "{made} accounts in {drained} s");
    // One more has its place each second, for whoever comes first.
    let page = |_| {
        let mut browser = Browser::new(server);
        let form = filled(form(&mut browser, "/signup"), &unique("new"));
        let answer = browser.send(form.call().header("x-forwarded-for", "2001:db8::ffff"));
        assert_eq!(browser.cookie("sid-").is_some(), answer.status == 303, "the page is a door of the same house");
        answer
    };
    let mut pages = (0..5).flat_map(|_| at_once(40, page));
    let paced = pages.find(|answer| answer.status != 303).expect("a page that is refused");
    sign_up("2001:db8:0:1::1").must_be(201);
    sign_up("203.0.113.1").must_be(201);
    let mut browser = Browser::new(server);
    let page = browser.get("/login").text();
    let sign_in = Form::find(&page, "/login").unwrap().fill("login", &person.name).fill("password", &person.password);
    browser.send(sign_in.call().header("x-forwarded-for", "2001:db8::1")).must_be(303);
    assert_eq!((paced.status, paced.header("retry-after").is_some()), (429, true), "a caller's own limit");
    server.kill();
}

#[test]
fn se_04_where_somebody_is_expected_nobody_new_comes_in() {
    // red without the look at expects in http/pages/signup.rs, get (the page) and sign_up (the form).
    let server = sign_up_server();
    let (app, one) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &one);
    for ask in [app.ask().with("prompt", "login"), app.ask().with("max_age", "0")] {
        std::thread::sleep(std::time::Duration::from_millis(1_050));
        let page = browser.get(&ask.target()).must_be(200).text();
        assert!(!page.contains("/signup"), "no way to sign up is shown to somebody who proves again who they are");
        let flow = Form::find(&page, "/login").unwrap().value("flow").to_owned();
        browser.get(&format!("/signup?flow={flow}")).must_be(403);
        let name = unique("new");
        let sign_up = Form { action: "/signup".into(), ..Form::default() }.fill("flow", &flow);
        let refused = browser.submit(&filled(sign_up.clone(), &name)).must_be(403);
        assert!(refused.all("set-cookie").iter().all(|line| !line.starts_with("sid-")));
        assert!(!exists(server, &name));
        assert!(browser.get("/account").text().contains(&one.name));
        // Once they say that they are somebody else, a new account will do.
        let other = Form::find(&page, "/login/choose").unwrap().fill("choice", "other");
        let mut clone = browser.clone();
        let answer = clone.submit(&other);
        let page = clone.follow(answer).text();
        let flow = Form::find(&page, "/login").unwrap().value("flow").to_owned();
        browser.clone().get(&format!("/signup?flow={flow}")).must_be(200);
    }
}

#[test]
fn co_07_a_sign_up_form_works_in_the_browser_that_it_was_made_for() {
    // red without the binding to the flow cookie in app/flow.rs, open_flow.
    let server = sign_up_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut attacker = Browser::new(server);
    for target in ["/signup".to_owned(), app.ask().with("prompt", "create").target()] {
        let planted = form(&mut attacker, &target);
        let flow = planted.value("flow").to_owned();
        let mut fresh = Browser::new(server);
        fresh.get("/signup").must_be(200);
        for mut victim in [fresh, Browser::of(server, &person), Browser::new(server)] {
            let (before, name) = (victim.cookie("sid-"), unique("new"));
            victim.get(&format!("/signup?flow={flow}")).must_be(403);
            victim.submit(&filled(planted.clone(), &name)).must_be(403);
            assert_eq!(victim.cookie("sid-"), before);
            assert!(!exists(server, &name));
        }
        attacker.submit(&filled(planted, &unique("new"))).must_be(303);
    }
}

#[test]
fn se_01_a_sign_up_where_somebody_is_signed_in_ends_their_session() {
    // red if app/sign_up.rs, sign_up, gave `before: None` to the session gate.
    let server = sign_up_server();
    let (app, person, name) = (App::trusted(server), Person::add(server), unique("new"));
    // A page that was open when somebody signed in beside it.
    let mut browser = Browser::new(server);
    let page = filled(form(&mut browser, "/signup"), &name);
    browser.sign_in(&person);
    let tokens = app.tokens(&mut browser, &person);
    let mut before = browser.clone();
    browser.submit(&page).must_be(303);
    assert_ne!(browser.cookie("sid-"), before.cookie("sid-"));
    assert!(!before.is_signed_in(), "the cookie of before is worth nothing");
    assert!(browser.get("/account").text().contains(&name));
    app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
    let code = app.code(&mut browser, &person, &app.ask());
    let told = Call::get("/oauth2/userinfo").bearer(&Tokens::of(&app.redeem(&code)).access);
    assert_eq!(server.send(&told).json()["preferred_username"], name);
}

#[test]
fn se_01_a_set_up_where_somebody_is_signed_in_ends_their_session() {
    // red if app/setup.rs, set_up, gave `before: None` to the session gate.
    let server = Server::leaked(&[]);
    let (person, owner) = (Person::add(server), Person::stranger());
    let mut browser = Browser::of(server, &person);
    let mut before = browser.clone();
    browser.set_up(&owner).must_be(303);
    assert!(!before.is_signed_in(), "the cookie of before is worth nothing");
    assert!(browser.get("/account").text().contains(&owner.name));
    server.kill();
}

#[test]
fn oidc_prompt_create_leads_to_an_account_whoever_is_signed_in() {
    // red if the flow of a sign-up page expected somebody: app/authorize.rs, show.
    let server = sign_up_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let create = app.ask().with("prompt", "create");
    for ask in [create.clone(), create.with("max_age", "1")] {
        for mut browser in [Browser::new(server), Browser::of(server, &person)] {
            let name = unique("new");
            let page = filled(form(&mut browser, &ask.target()), &name);
            let answer = browser.submit(&page);
            assert_eq!(answer.status, 303, "{}", ask.query());
            let landed = browser.follow(answer).landed();
            let told = Call::get("/oauth2/userinfo").bearer(&Tokens::of(&app.redeem(&landed["code"])).access);
            assert_eq!(server.send(&told).json()["preferred_username"], name);
        }
    }
}

#[test]
fn an_account_is_told_of_with_the_application_that_it_was_made_through() {
    // red without `origin_of` in app/sign_up.rs, enrolled, or `on_screen_of` in app/api.rs, enroll.
    let server = sign_up_server();
    let (app, screens) = (App::trusted(server), Screens::of(server));
    let [plain, on_page, on_screen] = [(); 3].map(|()| unique("new"));
    for (target, name) in [("/signup", &plain), (&app.ask().with("prompt", "create").target(), &on_page)] {
        let mut browser = Browser::new(server);
        let page = filled(form(&mut browser, target), name);
        browser.submit(&page).must_be(303);
    }
    let body = serde_json::json!({ "client_id": screens.app.id, "username": on_screen, "password": PASSWORD });
    server.send(&screens.call("POST", "signup", &body)).must_be(201);
    for (name, client) in [(plain, None), (on_page, Some(&app.id)), (on_screen, Some(&screens.app.id))] {
        for kind in ["user.added", "session.started"] {
            assert_eq!(told_once(server, kind, &name)["client"].as_str(), client.map(String::as_str), "{kind}");
        }
    }
}

#[test]
fn rc_09_a_username_is_given_once_whichever_door_is_used() {
    // red without the unique key of login names in store/schema.rs, beside the look before in app/sign_up.rs, sign_up.
    let server = sign_up_server();
    let screens = Screens::of(server);
    let name = unique("wanted");
    let wide: String = name.chars().map(|c| if c == 'w' { '\u{ff57}' } else { c }).collect();
    let written = [name.clone(), name.to_uppercase(), format!(" {name} "), wide];
    let password = |at: usize| format!("gorse violet anvil {at}");
    let answers = at_once(20, |at| {
        let (written, password) = (&written[at / 2 % 4], password(at));
        let status = if at % 2 == 0 {
            let mut browser = Browser::new(server);
            let page = form(&mut browser, "/signup").fill("username", written).fill("password", &password);
            browser.submit(&page).status
        } else {
            let body = serde_json::json!({ "client_id": screens.app.id, "username": written, "password": password });
            server.send(&screens.call("POST", "signup", &body)).status
        };
        (at, status)
    });
    assert!(answers.iter().all(|(_, status)| [201, 303, 422, 503].contains(status)), "{answers:?}");
    let won: Vec<usize> = answers.iter().filter(|(_, status)| [201, 303].contains(status)).map(|(at, _)| *at).collect();
    assert_eq!(won.len(), 1, "{answers:?}");
    let mut browser = Browser::new(server);
    for at in [(won[0] + 1) % 20, won[0]] {
        let page = browser.get("/login");
        let status = browser.log_in_on(&page, &name, &password(at)).status;
        assert_eq!(status, if at == won[0] { 303 } else { 422 });
    }
}

#[test]
fn al_04_nobody_vouches_for_their_own_address() {
    // red if app/sign_up.rs, new_person, or app/account.rs, save_profile, took `verified` from anybody but an operator.
    let server = sign_up_server();
    let (app, screens) = (App::trusted(server), Screens::of(server));
    let victim = Person::stranger();
    server.must(&["user", "add", &victim.name, "--email", &victim.email, "--password-stdin"], "teal marble oboe 77");
    let must_be_unproved = |browser: &mut Browser, person: &Person| {
        let access = app.tokens(browser, person).access;
        let told = server.send(&Call::get("/oauth2/userinfo").bearer(&access)).must_be(200).json();
        assert_eq!((&told["email"], &told["email_verified"]), (&person.email.as_str().into(), &false.into()));
    };
    let new = |email: &str| Person { email: email.to_owned(), ..Person::stranger() };
    for email in [victim.email.as_str(), &format!("{}@example.test", unique("mail"))] {
        let person = new(email);
        let mut browser = Browser::new(server);
        let page = filled(form(&mut browser, "/signup"), &person.name).fill("email", email);
        browser.submit(&page.fill("email_verified", "true")).must_be(303);
        must_be_unproved(&mut browser, &person);

        for proved in [serde_json::json!(true), "true".into(), 1.into()] {
            let person = new(email);
            let body = serde_json::json!({
                "client_id": screens.app.id, "username": person.name, "email": email, "email_verified": proved,
                "password": PASSWORD
            });
            server.send(&screens.call("POST", "signup", &body)).must_be(201);
            must_be_unproved(&mut Browser::new(server), &person);
            let claims = screens.sign_in(&person, false).send("GET", "me", &serde_json::Value::Null).json();
            assert_eq!((&claims["email"], &claims["email_verified"]), (&email.into(), &false.into()));
        }

        let person = Person { email: email.to_owned(), ..Person::add(server) };
        let mut browser = Browser::of(server, &person);
        // Once to change it, and once to leave it as it is.
        for _ in 0..2 {
            let form = browser.account_form("/account/profile").fill("email", email).fill("email_verified", "true");
            browser.submit(&form).must_be(303);
            must_be_unproved(&mut browser, &person);
        }
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        browser.log_in_on(&page, email, PASSWORD).must_be(422);
    }
}

#[test]
fn an_address_that_signs_somebody_in_is_refused_at_its_field_of_the_set_up_page() {
    // red without by_email in app/setup.rs, set_up: the unique key of login names would be met at every try.
    let server = Server::leaked(&[]);
    let (person, owner) = (Person::add(server), Person::stranger());
    let mut browser = Browser::new(server);
    let page = browser.set_up(&Person { email: person.email.to_uppercase(), ..owner.clone() }).must_be(422).text();
    assert!(page.contains("id=\"email-wrong\"") && !page.contains("id=\"username-wrong\""), "{page}");
    browser.set_up(&owner).must_be(303);
    server.kill();
}
