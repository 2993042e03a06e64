//! Pages, where somebody does something twice, late, or with a name that cannot be.

use crate::support::*;

#[test]
fn access_that_was_removed_in_another_tab_is_removed() {
    // Red where revoke_access in http/pages/account.rs answers by whether it was there.
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    app.tokens(&mut browser, &person);
    let remove = browser.account_form("/account/applications/revoke");
    for tab in ["the first", "the second"] {
        let answer = browser.submit(&remove);
        assert_eq!(answer.status, 303, "{tab}");
        let page = browser.follow(answer).must_be(200).text();
        assert!(page.contains("The application no longer has access."), "{tab}");
    }
    browser.submit(&remove.fill("client_id", "nobody")).must_be(404);
}

#[test]
fn whoever_signs_in_again_is_asked_for_their_password_alone() {
    // Red where http/pages/login.rs begins the same flow for all.
    let server = default_server();
    let person = Person::add(server);
    let mut browser = Browser::of(server, &person);
    let shown = |page: String| page.contains(&person.name) && Form::find(&page, "/login").is_some();
    assert!(shown(browser.get("/login?again=1").must_be(200).text()));
    let page = browser.get("/login?again=1").must_be(200);
    let answer = browser.log_in_on(&page, &person.name, &person.password);
    browser.follow(answer).must_be(200);
    assert!(!shown(Browser::new(server).get("/login?again=1").must_be(200).text()), "nobody is signed in there");
}

#[test]
fn a_username_of_the_form_of_an_id_is_refused_for_that() {
    // Red where http/pages/mod.rs, problem, has one sentence for all names.
    let server = sign_up_server();
    let mut browser = Browser::new(server);
    let refused = |browser: &mut Browser, name: &str| {
        let page = browser.get("/signup").must_be(200).text();
        let form = Form::find(&page, "/signup").unwrap().fill("username", name).fill("email", "");
        browser.submit(&form.fill("password", "gorse violet anvil 41")).must_be(422).text()
    };
    assert!(refused(&mut browser, "elizabeth-anna-johanna").contains("it looks like one of the ids"));
    let other = refused(&mut browser, "-flag");
    assert!(other.contains("begins with a letter or a digit") && !other.contains("it looks like one of the ids"));
}

#[test]
fn the_page_after_a_choice_can_be_opened_again() {
    // Red where choose in http/pages/login.rs answers with a page: its address would lead nowhere.
    let server = default_server();
    let (app, one, two) = (App::trusted(server), Person::add(server), Person::add(server));
    let mut browser = Browser::of(server, &one);
    let page = browser.get(&app.ask().with("prompt", "select_account").target()).must_be(200);
    let other = Form::find(&page.text(), "/login/choose").unwrap().fill("choice", "other");
    let address = browser.submit(&other).must_be(303).location().unwrap().to_owned();
    browser.get(&address).must_be(200);
    Browser::of(server, &one).get(&address).must_be(403);
    let page = browser.get(&address).must_be(200);
    let answer = browser.log_in_on(&page, &two.name, &two.password);
    let landed = browser.follow(answer).landed();
    let told = Call::get("/oauth2/userinfo").bearer(&Tokens::of(&app.redeem(&landed["code"])).access);
    assert_eq!(server.send(&told).json()["preferred_username"], two.name);
}

#[test]
fn a_choice_is_of_the_session_that_it_was_about() {
    // Red where progress in app/flow.rs does not look at whose choice it was.
    let server = default_server();
    let (app, one, two) = (App::trusted(server), Person::add(server), Person::add(server));
    let mut browser = Browser::of(server, &one);
    let page = browser.get(&app.ask().with("prompt", "select_account").target()).must_be(200);
    let choice = Form::find(&page.text(), "/login/choose").unwrap().fill("choice", "continue");
    let address = browser.submit(&choice).must_be(303).location().unwrap().to_owned();
    assert!(browser.get(&address).landed().contains_key("code"));
    browser.sign_in(&two);
    let page = browser.get(&address).must_be(200).text();
    assert!(Form::find(&page, "/login/choose").is_some() && page.contains(&two.name), "{page}");
}

#[test]
fn whoever_is_signed_in_is_told_so_where_somebody_else_would_take_their_place() {
    // Red where get in http/pages/login.rs or signup.rs takes whoever comes for a stranger, or where one page has the
    // other's words.
    let server = sign_up_server();
    let person = Person::add(server);
    let mut browser = Browser::of(server, &person);
    for (path, how) in [("/login", "Signing in below"), ("/signup", "Creating an account")] {
        let page = browser.get(path).must_be(200).text();
        let told = format!("<bdi>{}</bdi></strong> is signed in here. {how} signs them out.", person.name);
        assert!(page.contains(&told), "{page}");
        assert!(page.contains("href=\"/account\"") && Form::find(&page, path).is_some());
        assert!(!Browser::new(server).get(path).must_be(200).text().contains("is signed in here"), "{path}");
    }
}

#[test]
fn a_password_manager_leads_to_the_form_that_changes_a_password() {
    // Red without Place::Password in http/pages/login.rs, get and go_on.
    let server = default_server();
    let person = Person::add(server);
    let mut browser = Browser::new(server);
    let answer = browser.get("/.well-known/change-password").must_be(303);
    let page = browser.follow(answer).must_be(200);
    let page = browser.log_in_on(&page, &person.name, "not the password").must_be(422);
    let answer = browser.log_in_on(&page, &person.name, &person.password).must_be(303);
    assert_eq!(answer.location(), Some("/account#change"));
    let way = browser.get("/.well-known/change-password").must_be(303).location().unwrap().to_owned();
    assert_eq!(browser.get(&way).must_be(303).location(), Some("/account#change"));
    assert!(browser.get("/account").must_be(200).text().contains("id=\"change\""));
}

#[test]
fn who_typed_too_much_is_told_how_much_may_be_typed() {
    // Red where save_profile in http/pages/account.rs has one sentence for all names.
    let server = sign_up_server();
    let mut browser = Browser::of(server, &Person::add(server));
    let profile = browser.account_form("/account/profile");
    let mut refused = |name: &str| browser.submit(&profile.clone().fill("name", name)).must_be(422).text();
    assert!(refused(&"n".repeat(1001)).contains("it may have 1000 bytes"));
    let turned = refused("\u{202e}eman");
    assert!(turned.contains("reverses the direction") && !turned.contains("1000 bytes"), "{turned}");
    let mut stranger = Browser::new(server);
    let page = stranger.get("/signup").must_be(200).text();
    let form = Form::find(&page, "/signup").unwrap().fill("username", &unique("new"));
    let page = stranger.submit(&form.fill("password", &"kq".repeat(513))).must_be(422).text();
    assert!(page.contains("it may have 1024 bytes"), "{page}");
}

#[test]
fn the_front_page_says_to_its_owner_alone_how_to_connect_an_application() {
    // Red where home in http/pages/home.rs does not look at the role.
    let server = Server::leaked(&[]);
    let (owner, person) = (Person::stranger(), Person::add(server));
    let says = |browser: &mut Browser| browser.get("/").must_be(200).text().contains("portiere client add");
    assert!(says(&mut Browser::new(server)), "before set-up");
    let mut first = Browser::new(server);
    first.set_up(&owner).must_be(303);
    assert!(says(&mut first));
    assert!(!says(&mut Browser::of(server, &person)) && !says(&mut Browser::new(server)));
    server.kill();
}

#[test]
fn a_form_that_is_older_than_a_change_in_another_window_does_nothing_and_keeps_what_was_typed() {
    // Red without out_of_date in http/pages/account.rs, or where it looks at nothing but that somebody is signed in.
    let server = default_server();
    let (person, other) = (Person::add(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let profile = browser.account_form("/account/profile").fill("name", "Grace Typed");
    let password = browser.account_form("/account/password").fill("current", &person.password);
    let others = browser.account_form("/account/sessions/revoke-others");
    browser.submit(&others).must_be(303);

    let page = browser.submit(&profile).must_be(403).text();
    assert!(page.contains("changed in another window"), "{page}");
    let again = Form::find(&page, "/account/profile").unwrap();
    assert_eq!(again.value("name"), "Grace Typed");
    assert_eq!(browser.account_form("/account/profile").value("name"), "", "nothing was saved");
    browser.submit(&again).must_be(303);
    assert_eq!(browser.account_form("/account/profile").value("name"), "Grace Typed");
    browser.submit(&password.fill("new", "teal marble oboe 77")).must_be(403);
    browser.submit(&others).must_be(403);
    Browser::of(server, &person);

    // What says nothing of where it comes from is not shown: only our pages have the token.
    let refused = browser.send(profile.call()).must_be(403).text();
    assert!(Form::find(&refused, "/account/profile").is_none(), "{refused}");
    browser.sign_in(&other);
    let page = browser.submit(&profile).must_be(403).text();
    assert!(!page.contains("Grace Typed"), "it was typed for somebody else: {page}");
}

#[test]
fn every_line_about_what_is_done_in_a_session_names_it() {
    // Red without a session on one of these events: whoever looks into a session that was stolen does not see what was done in it.
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    app.tokens(&mut browser, &person);
    let profile =
        browser.account_form("/account/profile").fill("name", "Ada Other").fill("email", "other@example.test");
    browser.submit(&profile).must_be(303);
    let password = browser.account_form("/account/password").fill("current", "not the password");
    browser.submit(&password.fill("new", "of three words 41")).must_be(422);
    let remove = browser.account_form("/account/applications/revoke");
    browser.submit(&remove).must_be(303);
    let list = |more: &[&str]| {
        let line = [&["audit", "list", "--user", &person.name, "--limit", "100", "--json"], more].concat();
        serde_json::from_str::<Vec<serde_json::Value>>(&server.must(&line, "")).unwrap()
    };
    let session = list(&["--kind", "session.started"])[0]["session"].as_str().unwrap().to_owned();
    let lines = list(&["--session", &session]);
    for kind in ["code.issued", "consent.granted", "consent.revoked", "signin.failed", "tokens.issued", "user.changed"]
    {
        assert!(lines.iter().any(|line| line["event"] == kind), "{kind}: {lines:?}");
    }
    let changed = lines.iter().find(|line| line["event"] == "user.changed").unwrap();
    assert_eq!(changed["detail"]["changed"], "name email", "and what was changed");
    // Red where the list of people shows what anybody may enter as what was proved.
    let people = server.must(&["user", "list"], "");
    let row = people.lines().find(|row| row.starts_with(&person.name)).unwrap();
    assert!(row.contains("other@example.test (not verified)"), "{row}");
}

#[test]
fn where_somebody_is_expected_who_was_removed_nobody_is() {
    // Red without `who_is_expected` in app/sign_in.rs: whoever typed the right password of another account was told that it is wrong.
    let server = default_server();
    let (removed, other) = (Person::add(server), Person::add(server));
    let mut browser = Browser::of(server, &removed);
    let page = browser.get("/login?again=1").must_be(200);
    removed.change(server, "remove");
    let again = browser.log_in_on(&page, &other.name, "not the password").must_be(422);
    let shown = Form::find(&again.text(), "/login").unwrap();
    assert_eq!(shown.value("login"), other.name, "it can be typed");
    browser.log_in_on(&page, &other.name, &other.password).must_be(303);
    assert!(browser.is_signed_in());
}

#[test]
fn a_start_ends_the_set_up_link_of_before_where_there_is_one_server() {
    // Red with `offer_setup(false)` in boot.rs: a link that somebody else has seen makes the owner, although there is a newer one.
    if !on_file() {
        return;
    }
    let server = Server::leaked(&[]);
    let file = server.data().join("setup-link");
    let before = std::fs::read_to_string(&file).unwrap();
    server.stop();
    server.restart();
    let now = std::fs::read_to_string(&file).unwrap();
    assert_ne!(before, now);
    let (mut browser, owner) = (Browser::new(server), Person::stranger());
    std::fs::write(&file, &before).unwrap();
    let refused = browser.set_up(&owner);
    assert!(refused.status == 422 && refused.text().contains("set-up code is not valid"), "{refused:?}");
    std::fs::write(&file, &now).unwrap();
    browser.set_up(&owner).must_be(303);
    server.kill();
}
