//! SE-02, BF-05: what a new password ends, for each way to set one. Whoever changes a password because somebody else
//! may know it must be rid of them, whichever door was used.

use super::abandoned::begun;
use super::guessing::heard;
use crate::monitoring::figures::SERVED;
use crate::support::*;
use std::sync::Mutex;

pub(super) const NEW: &str = "teal marble oboe 77";

/// Every way to set a password.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Page,
    Bearer,
    Cookies,
    Operator,
}

const WAYS: [Way; 4] = [Way::Page, Way::Bearer, Way::Cookies, Way::Operator];

/// Whoever changes it, and goes on.
enum Changer {
    /// With the form that changes it.
    Browser(Browser, Form),
    Line(Line),
    Nobody,
}

impl Way {
    /// Somebody who is about to change it this way, in a browser or application that does nothing else.
    #[track_caller]
    fn enter(self, screens: &Screens, person: &Person) -> Changer {
        match self {
            Way::Page => {
                let mut browser = Browser::of(screens.app.server, person);
                let form = browser.account_form("/account/password");
                Changer::Browser(browser, form)
            }
            Way::Bearer | Way::Cookies => Changer::Line(screens.sign_in(person, self == Way::Cookies)),
            Way::Operator => Changer::Nobody,
        }
    }

    /// Sets the new password this way.
    #[track_caller]
    fn change(self, screens: &Screens, person: &Person) -> Changer {
        let mut changer = self.enter(screens, person);
        match &mut changer {
            Changer::Nobody => {
                drop(screens.app.server.must(&["user", "set-password", &person.name, "--password-stdin"], NEW));
            }
            changer => assert_eq!(changer.ask(&person.password, NEW), Ok(()), "{self:?}"),
        }
        changer
    }
}

impl Changer {
    /// Asks for another password. A refusal is its status, and where it leads.
    #[track_caller]
    fn ask(&mut self, current: &str, new: &str) -> Result<(), (u16, String)> {
        let (answer, done) = match self {
            Changer::Browser(browser, form) => {
                let answer = browser.submit(&form.clone().fill("current", current).fill("new", new));
                let done = answer.location().is_some_and(|place| place.contains("done="));
                (answer, done)
            }
            Changer::Line(line) => {
                let answer = line.change_password(current, new);
                let done = answer.status == 200;
                if done {
                    let told = answer.json();
                    let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
                    (line.access, line.refresh, line.csrf) =
                        (text("access_token"), text("refresh_token"), text("csrf_token"));
                    line.device = text("device_token");
                }
                (answer, done)
            }
            Changer::Nobody => panic!("nobody asks"),
        };
        let place = answer.location().unwrap_or_default().to_owned();
        if done { Ok(()) } else { Err((answer.status, place)) }
    }
}

/// `person` with the new password.
pub(super) fn renewed(person: &Person) -> Person {
    Person { password: NEW.into(), ..person.clone() }
}

#[test]
fn se_02_a_new_password_ends_everything_but_the_session_that_set_it() {
    // red without any one line of login/session.rs, end_all_but; or without the call in app/account.rs,
    // set_new_password, or in app/admin/users.rs, set_password.
    let server = default_server();
    let screens = Screens::of(server);
    for way in WAYS {
        for format in ["jwt", "opaque"] {
            let mut issued = Issued::all(App::add(server, Grants::All, &["--access-token", format]));
            let person = issued.person.clone();
            let mut lines = [screens.sign_in(&person, false), screens.sign_in(&person, true)];
            let mut other = Browser::of(server, &person);
            let changer = way.change(&screens, &person);
            assert_eq!(issued.introspected(), [""; 0], "{way:?} {format}");
            assert_eq!(issued.alive(), ["own"], "{way:?} {format}");
            assert!(!other.is_signed_in(), "{way:?}");
            for line in &mut lines {
                assert!(!line.is_open(), "{way:?}");
                assert_eq!(line.renew().status, 401, "{way:?}");
            }
            match changer {
                Changer::Browser(mut browser, _) => assert!(browser.is_signed_in(), "who changed it goes on"),
                Changer::Line(mut line) => {
                    assert!(line.is_open(), "{way:?}: who changed it goes on");
                    line.renew().must_be(200);
                }
                Changer::Nobody => {}
            }
        }
    }
}

#[test]
fn se_02_what_the_changer_held_before_is_dead_too() {
    // red without `before: Some(session)` in app/account.rs, set_new_password; or without RevokeFamiliesOf
    // in login/session.rs, end_all_but.
    let server = default_server();
    let screens = Screens::of(server);
    let person = Person::add(server);
    let mut browser = Browser::of(server, &person);
    let mut copied = browser.clone();
    let form = browser.account_form("/account/password");
    browser.submit(&form.fill("current", &person.password).fill("new", NEW)).must_be(303);
    assert!(!copied.is_signed_in());
    for cookies in [false, true] {
        let person = Person::add(server);
        let mut line = screens.sign_in(&person, cookies);
        let mut copied = line.clone();
        line.change_password(&person.password, NEW).must_be(200);
        assert!(!copied.is_open(), "cookies: {cookies}");
        assert_eq!(copied.renew().status, 401, "cookies: {cookies}");
    }
}

#[test]
fn se_02_the_old_password_opens_nothing_and_the_new_one_everything() {
    // red without SetPassword in app/account.rs, set_new_password, or in app/admin/users.rs, set_password.
    let server = default_server();
    let screens = Screens::of(server);
    for way in WAYS {
        let person = Person::add(server);
        way.change(&screens, &person);
        for (password, page_status, api_status) in [(person.password.as_str(), 422, 422), (NEW, 303, 200)] {
            let mut browser = Browser::new(server);
            let page = browser.get("/login");
            assert_eq!(browser.log_in_on(&page, &person.name, password).status, page_status, "{way:?}");
            let answer = screens.try_in(&mut Browser::new(server), (&person.name, password), false);
            assert_eq!(answer.status, api_status, "{way:?} {}", answer.text());
        }
    }
}

/// A server on which a password takes long enough to be hashed that something else can happen meanwhile.
fn pensive_server() -> &'static Server {
    Server::leaked(&[pensive(), SERVED])
}

#[test]
fn rc_09_of_several_new_passwords_one_holds_and_the_others_are_told_at_once() {
    // red without the comparison of passwords in app/account.rs, still.
    let server = pensive_server();
    let screens = Screens::of(server);
    for way in [Way::Page, Way::Bearer, Way::Cookies] {
        let person = Person::add(server);
        let changers = [(); 3].map(|()| Mutex::new(way.enter(&screens, &person)));
        let new = |at: usize| format!("teal marble oboe {at}{at}");
        let ask = |at: usize| changers[at].lock().unwrap().ask(&person.password, &new(at));
        let mut answers = at_once(changers.len(), |at| (at, ask(at)));
        answers.sort();
        let won: Vec<usize> = answers.iter().filter(|(_, answer)| answer.is_ok()).map(|(at, _)| *at).collect();
        assert_eq!(won.len(), 1, "{way:?} {answers:?}");
        // The old password is wrong by then, and whoever holds a token of another session was signed out by the change.
        let told = |answer: &Result<(), (u16, String)>| match answer {
            Ok(()) => true,
            Err((status, _)) => *status == 422 || *status == 401 && way != Way::Page,
        };
        assert!(answers.iter().all(|(_, answer)| told(answer)), "{way:?} {answers:?}");
        for at in 0..changers.len() {
            let mut browser = Browser::new(server);
            let page = browser.get("/login");
            let status = browser.log_in_on(&page, &person.name, &new(at)).status;
            assert_eq!(status, if at == won[0] { 303 } else { 422 }, "{way:?}");
        }
    }
    server.kill();
}

#[test]
fn se_02_a_session_that_ends_while_its_owner_changes_the_password_changes_nothing() {
    // red (503) without the look at the session in app/account.rs, still.
    let server = pensive_server();
    let screens = Screens::of(server);
    for (way, refusal) in [(Way::Page, (303, "/login")), (Way::Bearer, (401, "")), (Way::Cookies, (401, ""))] {
        // Where this process stands still, the change may be through before the session is ended: then once more.
        let refused = (0..5).find_map(|_| overtaken(&screens, way));
        assert_eq!(refused, Some((refusal.0, refusal.1.to_owned())), "{way:?}");
    }
    server.kill();
}

/// How somebody's change of the password is refused whose session ends in the middle of it; `None` where it was quicker.
#[track_caller]
fn overtaken(screens: &Screens, way: Way) -> Option<(u16, String)> {
    let server = screens.app.server;
    let person = Person::add(server);
    let mut changer = way.enter(screens, &person);
    let mut owner = Browser::of(server, &person);
    let others = owner.account_form("/account/sessions/revoke-others");
    let before = begun(server);
    let answer = std::thread::scope(|scope| {
        let changing = scope.spawn(|| changer.ask(&person.password, NEW));
        until("a password is hashed", || begun(server) > before || changing.is_finished());
        owner.submit(&others).must_be(303);
        changing.join().unwrap()
    });
    let refused = answer.err()?;
    assert!(owner.is_signed_in(), "{way:?}");
    Browser::of(server, &person);
    Some(refused)
}

/// A server on which a guesser's wait does not end while a test runs.
pub fn slow_server() -> &'static Server {
    Server::leaked(&[("PORTIERE_THROTTLE_BASE_DELAY", "10m")])
}

/// Guesses at the account until nobody unknown is heard there any more.
#[track_caller]
pub(super) fn attack(server: &'static Server, person: &Person) {
    heard(server, &[&person.name], |_, call| call);
    let mut stranger = Browser::new(server);
    let page = stranger.get("/login");
    assert_eq!(stranger.log_in_on(&page, &person.name, &person.password).status, 429, "the account is under attack");
}

/// What signing in comes to in a browser that kept nothing but the cookie by which it is known.
#[track_caller]
pub(super) fn by_device(known: &Browser, person: &Person) -> u16 {
    let mut browser = Browser::new(known.server);
    let cookie = known.jar.iter().find(|(name, _)| name.starts_with("device-")).expect("it is known");
    browser.jar.keep(&format!("{}={}", cookie.0, cookie.1));
    let page = browser.get("/login");
    browser.log_in_on(&page, &person.name, &person.password).status
}

/// The same in an application that kept nothing but what its device is known by.
#[track_caller]
pub(super) fn by_token(line: &Line, person: &Person) -> u16 {
    let mut body = line.screens.credentials(&person.name, &person.password, false);
    assert!(!line.device.is_empty(), "it is known");
    body["device_token"] = line.device.as_str().into();
    line.browser.server.send(&line.screens.call("POST", "signin", &body)).status
}

#[test]
fn bf_05_no_browser_is_known_any_more_once_the_password_is_another_one() {
    // red without the password in app/browser.rs, proof.
    let server = slow_server();
    let screens = Screens::of(server);
    for way in WAYS {
        let person = Person::add(server);
        let (before, line) = (Browser::of(server, &person), screens.sign_in(&person, true));
        let native = screens.sign_in(&person, false);
        way.change(&screens, &person);
        let person = renewed(&person);
        let (after, native_after) = (Browser::of(server, &person), screens.sign_in(&person, false));
        attack(server, &person);
        assert_eq!(by_device(&before, &person), 429, "{way:?}: known by the old password");
        assert_eq!(by_device(&line.browser, &person), 429, "{way:?}: the same by the account API");
        assert_eq!(by_token(&native, &person), 429, "{way:?}: the same without cookies");
        assert_eq!(by_device(&after, &person), 303, "{way:?}: known by the new one");
        assert_eq!(by_token(&native_after, &person), 200, "{way:?}: the same without cookies");
    }
    server.kill();
}

#[test]
fn bf_05_a_known_browser_is_known_to_one_account() {
    // red without both the account's id and its password in app/browser.rs, proof: either alone holds.
    let server = slow_server();
    let (person, mallory) = (Person::add(server), Person::add(server));
    let (known, stranger) = (Browser::of(server, &person), Browser::of(server, &mallory));
    let screens = Screens::of(server);
    let [line, foreign] = [&person, &mallory].map(|who| screens.sign_in(who, false));
    attack(server, &person);
    assert_eq!((by_device(&stranger, &person), by_token(&foreign, &person)), (429, 429));
    assert_eq!((by_device(&known, &person), by_token(&line, &person)), (303, 200));
    server.kill();
}

#[test]
fn bf_05_where_a_password_was_changed_the_browser_stays_known() {
    // red without remember_browser in app/account.rs, set_new_password.
    let server = slow_server();
    let screens = Screens::of(server);
    for way in [Way::Page, Way::Bearer, Way::Cookies] {
        let person = Person::add(server);
        let changer = way.change(&screens, &person);
        let person = renewed(&person);
        attack(server, &person);
        match changer {
            Changer::Line(line) if way == Way::Bearer => assert_eq!(by_token(&line, &person), 200),
            Changer::Line(Line { browser, .. }) | Changer::Browser(browser, _) => {
                assert_eq!(by_device(&browser, &person), 303, "{way:?}");
            }
            Changer::Nobody => panic!("somebody changed it"),
        }
    }
    server.kill();
}

#[test]
fn bf_05_whoever_comes_in_is_known_there_from_then_on_whichever_door_it_was() {
    // red without remember_browser in app/setup.rs, set_up, in app/sign_up.rs, make_account, or in app/sign_in.rs, try_in;
    // or without device_cookie in http/pages/setup.rs, in http/pages/login.rs, signed_in_response, or http/api/caller.rs.
    let server = Server::leaked(&[("PORTIERE_THROTTLE_BASE_DELAY", "10m"), ("PORTIERE_SIGNUP_ENABLED", "true")]);
    let screens = Screens::of(server);
    type Enter<'a> = &'a dyn Fn(&mut Browser) -> Person;
    let doors: [(&str, Enter); 5] = [
        ("set-up", &|browser| {
            let owner = Person::stranger();
            browser.set_up(&owner).must_be(303);
            owner
        }),
        ("sign-up", &|browser| {
            let new = Person::stranger();
            let page = browser.get("/signup").text();
            let form = Form::find(&page, "/signup").unwrap().fill("username", &new.name);
            browser.submit(&form.fill("password", &new.password)).must_be(303);
            new
        }),
        ("sign-up by the account API", &|browser| {
            let new = Person::stranger();
            let (client, name, password) = (&screens.app.id, &new.name, &new.password);
            let body =
                serde_json::json!({ "client_id": client, "username": name, "password": password, "cookies": true });
            browser.send(screens.call("POST", "signup", &body)).must_be(201);
            new
        }),
        ("sign-in", &|browser| {
            let person = Person::add(server);
            browser.sign_in(&person);
            person
        }),
        ("sign-in by the account API", &|browser| {
            let person = Person::add(server);
            screens.try_in(browser, (&person.name, &person.password), true).must_be(200);
            person
        }),
    ];
    for (door, enter) in doors {
        let mut browser = Browser::new(server);
        let person = enter(&mut browser);
        attack(server, &person);
        assert_eq!(by_device(&browser, &person), 303, "{door}");
    }
    server.kill();
}

#[test]
fn bf_05_a_browser_stays_known_when_its_owners_password_is_hashed_anew() {
    // red if app/sign_in.rs, try_in, made the cookie of the hash that it had just replaced.
    let server = slow_server();
    let person = Person::add(server);
    server.kill();
    server.set("PORTIERE_HASH_ARGON2_PASSES", "3");
    server.restart();
    let known = Browser::of(server, &person);
    attack(server, &person);
    assert_eq!(by_device(&known, &person), 303);
    server.kill();
}

#[test]
fn ds_02_nul_in_a_password_is_a_character_at_every_door() {
    // red if rules/oauth/params.rs, parse, refused it in a password, or anything ended a password there.
    let server = sign_up_server();
    let screens = Screens::of(server);
    let person = Person { password: "gorse violet\0anvil 41".into(), ..Person::stranger() };
    server.must(&["user", "add", &person.name, "--email", &person.email, "--password-stdin"], &person.password);
    let mut browser = Browser::of(server, &person);
    screens.sign_in(&person, false);
    let refused = |person: &Person, password: &str| {
        let mut browser = Browser::new(server);
        let page = browser.get("/login");
        browser.log_in_on(&page, &person.name, password).must_be(422);
        let answer = screens.try_in(&mut browser, (&person.name, password), false);
        assert_eq!(answer.status, 422, "{password:?}");
    };
    refused(&person, "gorse violet");
    refused(&person, "gorse violet\0");

    let new = "teal marble\0oboe 77";
    let form = browser.account_form("/account/password").fill("current", &person.password).fill("new", new);
    browser.submit(&form).must_be(303);
    let changed = Person { password: new.into(), ..person };
    let mut line = screens.sign_in(&changed, false);
    refused(&changed, "teal marble");
    line.change_password(new, "gorse violet\0anvil 42").must_be(200);
    Browser::of(server, &Person { password: "gorse violet\0anvil 42".into(), ..changed });

    let stranger = Person { password: "gorse violet\0anvil 43".into(), ..Person::stranger() };
    let mut newcomer = Browser::new(server);
    let page = newcomer.get("/signup").must_be(200).text();
    let form = Form::find(&page, "/signup").unwrap().fill("username", &stranger.name).fill("email", "");
    newcomer.submit(&form.fill("password", &stranger.password)).must_be(303);
    Browser::of(server, &stranger);
}
