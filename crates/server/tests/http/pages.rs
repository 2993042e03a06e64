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
        assert!(page.contains("The application has no access any more."), "{tab}");
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
