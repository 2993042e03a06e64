//! ASVS V6, V7, RFC 6265bis: signing in and what a session is.

use crate::support::*;

#[test]
fn asvs_7_2_1_the_session_cookie_is_for_us_alone() {
    let server = default_server();
    let person = Person::add(server);
    let mut browser = Browser::new(server);
    let answer = browser.sign_in(&person);
    let cookie = *answer.all("set-cookie").iter().find(|line| line.starts_with("sid-")).unwrap();
    for attribute in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Domain") && !cookie.contains("Secure"), "plain http on localhost: {cookie}");
}

#[test]
fn asvs_6_2_8_a_password_is_verified_exactly() {
    let server = default_server();
    let person = Person::add(server);
    for wrong in ["gorse violet anvil 4", "Gorse violet anvil 41", " gorse violet anvil 41", "gorse violet anvil 41 "] {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        browser.log_in_on(&page, &person.name, wrong).must_be(422);
        assert!(!browser.is_signed_in());
    }
}

#[test]
fn people_sign_in_by_username_or_verified_email_however_they_are_written() {
    let server = default_server();
    let person = Person::add(server);
    for login in [person.name.to_uppercase(), format!(" {} ", person.name), person.email.to_uppercase()] {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        browser.log_in_on(&page, &login, &person.password).must_be(303);
        assert!(browser.is_signed_in(), "{login}");
    }
}

#[test]
fn asvs_6_2_3_changing_the_password_needs_the_current_one_and_ends_other_sessions() {
    let server = default_server();
    let person = Person::add(server);
    let (mut here, mut there) = (Browser::of(server, &person), Browser::of(server, &person));
    let form = here.account_form("/account/password");
    let wrong = form.clone().fill("current", "wrong").fill("new", "teal marble oboe 77");
    assert_eq!(here.submit(&wrong).status, 422);
    for weak in ["short", "password", "password1", &person.name, &format!("{}1", person.name)] {
        let weak = form.clone().fill("current", &person.password).fill("new", weak);
        assert_eq!(here.submit(&weak).status, 422, "{weak:?}");
    }
    here.submit(&form.fill("current", &person.password).fill("new", "teal marble oboe 77")).must_be(303);
    assert!(here.is_signed_in());
    assert!(!there.is_signed_in(), "the other sessions are over");
    let page = there.get("/login");
    there.log_in_on(&page, &person.name, &person.password).must_be(422);
    let page = there.get("/login");
    there.log_in_on(&page, &person.name, "teal marble oboe 77").must_be(303);
}

#[test]
fn asvs_6_2_11_a_password_is_made_of_no_name_of_its_owner_or_of_the_house() {
    // red without User::names in app/account.rs and app/admin/users.rs, or without what is ours in app/passwords.rs,
    // acceptable.
    let server = sign_up_server();
    let (person, screens) = (Person::add(server), Screens::of(server));
    let names = ["name=Grace Brewster", "given_name=Graziella", "family_name=Hopperton", "middle_name=Murraywood"];
    server.must(&[&["user", "set", &person.name, "nickname=Amazing"], names.as_slice()].concat(), "");
    let mut browser = Browser::of(server, &person);
    let form = browser.account_form("/account/password").fill("current", &person.password);
    let mut line = screens.sign_in(&person, false);
    let local = person.email.split('@').next().unwrap();
    for own in ["Brewster", "graziella", "Hopperton", "MurrayWood", "Amazing", "Grace.Hopperton", local, "Portiere"] {
        let own = format!("{own}2026!");
        let page = browser.submit(&form.clone().fill("new", &own)).must_be(422).text();
        assert!(page.contains("id=\"password-wrong\""), "{own}: {page}");
        let told = line.change_password(&person.password, &own).must_be(422).json();
        assert_eq!(
            (&told["fields"][0]["field"], &told["fields"][0]["code"]),
            (&"new".into(), &"personal".into()),
            "{own}"
        );
        let set = server.command(&["user", "set-password", &person.name, "--password-stdin"], &own);
        assert!(set.code == 1 && set.err.contains("own name"), "{own}: {}", set.err);
    }
    for (username, email) in [("Lovelace", ""), ("ada", "lovelace@example.test"), ("Lord", "")] {
        let mut browser = Browser::new(server);
        let page = browser.get("/signup").must_be(200).text();
        let form = Form::find(&page, "/signup").unwrap().fill("username", username).fill("email", email);
        let own = if username == "Lord" { "portiere.1234" } else { "Lovelace.1815" };
        let page = browser.submit(&form.fill("password", own)).must_be(422).text();
        assert!(page.contains("id=\"password-wrong\""), "{own}: {page}");
    }
    // A short name is in many words: it is refused alone, and not as a part.
    server.must(&["user", "set", &person.name, "name=", "given_name=Al"], "");
    let new = |new: &str| form.clone().fill("new", new);
    browser.submit(&new("al-1234-5678")).must_be(422);
    browser.submit(&new("alarm halls also calm")).must_be(303);
}

#[test]
fn a_profile_form_changes_what_its_owner_changed_and_keeps_what_was_typed() {
    // red without email_shown, or with values for fields that were not sent, in http/pages/account.rs, save_profile.
    let server = default_server();
    let person = Person::add(server);
    let mut browser = Browser::of(server, &person);
    let loaded = browser.account_form("/account/profile");
    let corrected = format!("corrected.{}", person.email);
    server.must(&["user", "set", &person.name, "family_name=Hopper", &format!("email={corrected}")], "");
    browser.submit(&loaded.fill("name", "Grace")).must_be(303);
    let form = browser.account_form("/account/profile");
    let all = ["name", "family_name", "email"].map(|field| form.value(field).to_owned());
    assert_eq!(all, ["Grace", "Hopper", corrected.as_str()], "the page was older");
    let csrf = form.value("csrf").to_owned();
    browser.send(Call::post("/account/profile", &[("csrf", &csrf), ("given_name", "G.")])).must_be(303);
    let form = browser.account_form("/account/profile");
    let all = ["name", "given_name", "email"].map(|field| form.value(field).to_owned());
    assert_eq!(all, ["Grace", "G.", corrected.as_str()], "what was not sent stays");

    let page = browser.submit(&form.fill("name", "Grace M.").fill("email", "nobody at home")).must_be(422).text();
    let again = Form::find(&page, "/account/profile").unwrap();
    let all = ["name", "email", "email_shown"].map(|field| again.value(field).to_owned());
    assert_eq!(all, ["Grace M.", "nobody at home", corrected.as_str()], "{page}");
    browser.submit(&again.fill("email", "")).must_be(303);
    assert_eq!(browser.account_form("/account/profile").value("email"), "", "emptied by its owner");
}

#[test]
fn asvs_7_5_2_a_person_ends_one_session_or_all_others() {
    let server = default_server();
    let person = Person::add(server);
    let mut browsers: Vec<Browser> = (0..3).map(|_| Browser::of(server, &person)).collect();
    let end = browsers[0].account_form("/account/sessions/revoke");
    browsers[0].submit(&end).must_be(303);
    let alive = browsers.iter_mut().map(Browser::is_signed_in).filter(|alive| *alive).count();
    assert_eq!(alive, 2);
    let others = browsers[0].account_form("/account/sessions/revoke-others");
    // A copy of the cookie is elsewhere, too: red without `renew` in app/account.rs, leave_everywhere_else.
    browsers.push(browsers[0].clone());
    browsers[0].submit(&others).must_be(303);
    let alive: Vec<bool> = browsers.iter_mut().map(Browser::is_signed_in).collect();
    assert_eq!(alive, [true, false, false, false]);
    let again = browsers[0].account_form("/account/sessions/revoke-others");
    browsers[0].submit(&again).must_be(303);
    assert!(browsers[0].is_signed_in(), "as often as one likes");
}

#[test]
fn asvs_7_4_2_disabling_somebody_ends_all_sessions_for_good() {
    let server = default_server();
    let person = Person::add(server);
    let mut browser = Browser::of(server, &person);
    person.change(server, "disable");
    assert!(!browser.is_signed_in());
    let page = browser.get("/login");
    browser.log_in_on(&page, &person.name, &person.password).must_be(422);
    person.change(server, "enable");
    assert!(!browser.is_signed_in(), "an old session does not come back");
    browser.sign_in(&person);
}

#[test]
fn asvs_6_2_1_and_6_2_9_lengths_of_passwords() {
    let server = sign_up_server();
    for (password, status) in [
        ("x".repeat(7), 422),
        ("é日本語のパスワード".to_owned(), 303),
        ("kq".repeat(512), 303),
        ("kq".repeat(512) + "k", 422),
    ] {
        let mut browser = Browser::new(server);
        let page = browser.get("/signup").must_be(200).text();
        let form = Form::find(&page, "/signup").unwrap().fill("username", &unique("new")).fill("password", &password);
        assert_eq!(browser.submit(&form).status, status, "{} bytes", password.len());
    }
}

#[test]
fn an_email_typed_by_its_owner_is_unverified_and_no_login_name() {
    let server = sign_up_server();
    let app = App::trusted(server);
    let (name, email) = (unique("new"), format!("{}@example.test", unique("mail")));
    let mut browser = Browser::new(server);
    let page = browser.get("/signup").must_be(200).text();
    let form = Form::find(&page, "/signup").unwrap().fill("username", &name).fill("email", &email);
    browser.submit(&form.fill("password", "gorse violet anvil 41")).must_be(303);
    let person = Person { name, email: email.clone(), password: "gorse violet anvil 41".into() };
    let tokens = app.tokens(&mut browser, &person);
    let told = server.send(&Call::get("/oauth2/userinfo").bearer(&tokens.access)).json();
    assert_eq!((&told["email"], &told["email_verified"]), (&email.clone().into(), &false.into()));
    let mut other = Browser::new(server);
    let page = other.get("/login");
    other.log_in_on(&page, &email, &person.password).must_be(422);
}

#[test]
fn sign_up_is_off_unless_the_operator_turns_it_on() {
    let server = default_server();
    server.get("/signup").must_be(404);
    server.post("/signup", &[("username", "x"), ("password", "gorse violet anvil 41")]).must_be(404);
    let page = server.get(&App::web(server).ask().with("prompt", "create").target()).must_stay_here();
    assert!(Form::find(&page.text(), "/signup").is_none());
}

#[test]
fn whoever_signs_up_cannot_look_like_somebody_else_by_mixing_scripts() {
    // red without the check in app/sign_up.rs, enrolled. An operator may give such a name.
    let server = sign_up_server();
    for name in ["vict\u{456}m", "\u{430}dmin"] {
        let mut browser = Browser::new(server);
        let page = browser.get("/signup").must_be(200);
        let form = Form::find(&page.text(), "/signup").unwrap();
        let form = form.fill("username", name).fill("email", "").fill("password", "gorse violet anvil 41");
        let page = browser.submit(&form).must_be(422);
        assert!(page.text().contains("id=\"username-wrong\""), "{}", page.text());
        server.must(&["user", "add", &format!("{name}{}", unique("x")), "--password-stdin"], "gorse violet anvil 41");
    }
}

/// When the newest session of somebody was last used, as another of their browsers is shown it.
#[track_caller]
fn last_seen(onlooker: &mut Browser) -> String {
    let page = onlooker.get("/account").must_be(200).text();
    let moments: Vec<&str> = page.split("datetime=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    moments[1].to_owned()
}

#[test]
fn a_session_counts_as_used_at_every_door_of_its_owner() {
    // red without note_use in http/pages/account.rs, device.rs and mod.rs (own_form), and in http/api/account.rs, show.
    let server = Server::leaked(&[("PORTIERE_SESSION_TOUCH_EVERY", "0s")]);
    let doors = ["account", "profile", "device", "code", "me"];
    at_once(doors.len(), |at| {
        let person = Person::add(server);
        let mut onlooker = Browser::of(server, &person);
        let (mut browser, mut line) = (Browser::new(server), None);
        match doors[at] {
            "me" => line = Some(Screens::of(server).sign_in(&person, false)),
            _ => drop(browser.sign_in(&person)),
        }
        let form = match doors[at] {
            "profile" => browser.account_form("/account/profile"),
            "code" => Form::find(&browser.get("/device").text(), "/device").unwrap().fill("user_code", "BCDF-GHJK"),
            _ => Form::default(),
        };
        // What was used on the way here is written within a second or so, and the page tells seconds.
        let mut before = last_seen(&mut onlooker);
        until("nobody uses it", || {
            std::thread::sleep(std::time::Duration::from_millis(1_500));
            let seen = last_seen(&mut onlooker);
            std::mem::replace(&mut before, seen) == before
        });
        match (doors[at], &mut line) {
            (_, Some(line)) => assert!(line.is_open()),
            ("account", _) => assert!(browser.is_signed_in()),
            ("device", _) => drop(browser.get("/device").must_be(200)),
            ("profile", _) => drop(browser.submit(&form).must_be(303)),
            _ => drop(browser.submit(&form).must_be(422)),
        }
        // Within a second it is written.
        until(doors[at], || last_seen(&mut onlooker) > before);
    });
    server.kill();
}

#[test]
fn a_page_that_was_open_while_its_owner_signed_out_or_in_again_elsewhere_loses_nothing() {
    // red without begin_again in http/pages/login.rs, or if a token of before were Forgery in http/pages/mod.rs, must_be_of.
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let page = browser.get(&app.ask().target()).must_be(200);
    let consent = Form::find(&page.text(), "/consent").unwrap().fill("decision", "allow");

    let login = browser.get(&app.ask().with("prompt", "login").target());
    browser.log_in_on(&login, &person.name, &person.password).must_be(303);
    let old = browser.submit(&consent).must_be(403).text();
    assert!(old.contains("too old") && !old.contains("elsewhere"), "{old}");
    // Red without `anew` in login.rs, consent: the application would be forgotten.
    assert!(old.contains("href=\"/oauth2/authorize?"), "{old}");

    let page = browser.get(&app.ask().target()).must_be(200);
    let consent = Form::find(&page.text(), "/consent").unwrap().fill("decision", "allow");
    let out = browser.account_form("/account/signout");
    browser.submit(&out).must_be(303);
    let answer = browser.submit(&consent).must_be(303);
    let landed = browser.go_through(answer, &person).landed();
    Tokens::of(&app.redeem(&landed["code"]));
}

#[test]
fn a_page_that_is_older_than_the_session_leads_to_where_signing_out_is_asked() {
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let out = browser.account_form("/account/signout");
    let login = browser.get(&app.ask().with("prompt", "login").target());
    browser.log_in_on(&login, &person.name, &person.password).must_be(303);
    let old = browser.submit(&out).must_be(403).text();
    assert!(old.contains("href=\"/oauth2/logout\"") && browser.is_signed_in(), "{old}");
    let out = browser.account_form("/account/signout");
    browser.submit(&out).must_be(303);
    // In another tab, which shows the account still.
    let answer = browser.submit(&out).must_be(303);
    assert!(browser.follow(answer).must_be(200).text().contains("You are signed out"));
}

#[test]
fn a_browser_that_keeps_no_cookies_is_told_so() {
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let page = server.get(&app.ask().target()).must_be(200).text();
    let form = Form::find(&page, "/login").unwrap().fill("login", &person.name).fill("password", &person.password);
    let told = Browser::new(server).submit(&form).must_be(403).text();
    assert!(told.contains("cookie") && told.contains("href=\"/oauth2/authorize?"), "{told}");
    // One that has the cookie of another flow is of another browser, or too late.
    let mut other = Browser::new(server);
    other.get(&app.ask().target()).must_be(200);
    let told = other.submit(&form).must_be(403).text();
    assert!(told.contains("too old") && !told.contains("accept cookies"), "{told}");
}

#[test]
fn who_opens_the_address_of_a_form_is_led_on() {
    let server = default_server();
    for (path, way) in [("/account/password", "/account"), ("/device/confirm", "/device"), ("/login/choose", "/")] {
        let told = server.get(path).must_be(405).text();
        assert!(told.contains(&format!("class=\"button\" href=\"{way}\"")), "{path}: {told}");
    }
}

/// Whoever begins anything has all of the time that it may take: red where the cookie is set only when it is new.
#[test]
fn the_cookie_of_a_flow_is_kept_anew_with_each_page() {
    let server = default_server();
    let app = App::web(server);
    let mut browser = Browser::new(server);
    let mut lines = || {
        let page = browser.get(&app.ask().target()).must_be(200);
        page.all("set-cookie")
            .into_iter()
            .filter(|line| line.starts_with("flow-"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (first, second) = (lines(), lines());
    assert!(first.len() == 1 && first[0].contains("Max-Age="), "{first:?}");
    assert_eq!(first, second);
}
