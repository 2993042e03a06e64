//! RU, OR: where an authorization response may go.

use crate::support::*;

/// What a lenient comparison takes for `https://HOST/cb`, and what leads elsewhere.
const PATTERNS: &[&str] = &[
    "https://HOST.evil.test/cb",
    "https://a@b@evil.test/cb",
    "https://HOST@evil.test/cb",
    "https://HOST\\@evil.test/cb",
    "https://HOST%40evil.test/cb",
    "https://HOST%2f@evil.test/cb",
    "https://evil.test#@HOST/cb",
    "https://evil.test?@HOST/cb",
    "https://evil.test/https://HOST/cb",
    "https://HOST/CB",
    "HTTPS://HOST/cb",
    "https://HOST/cb/",
    "https://HOST/cb?",
    "https://HOST/cb?x=1",
    "https://HOST/cb#",
    "https://HOST/cb#x",
    "https://HOST:443/cb",
    "https://HOST:8443/cb",
    "https://HOST./cb",
    "https://HOST/./cb",
    "https://HOST/x/../cb",
    "https://HOST/cb/..",
    "https://HOST//cb",
    "https://HOST/%63b",
    "https://HOST/cb%00",
    "https://HOST/cb%20",
    " https://HOST/cb",
    "https://HOST/cb ",
    "https://HOST/cb\t",
    "https://HOST/cb\n",
    "https://HOST/cb\r\nLocation: https://evil.test",
    "//HOST/cb",
    "/cb",
    "cb",
    "",
    "http://HOST/cb",
    "ftp://HOST/cb",
    "javascript:alert(1)",
    "javascript://HOST/cb%0aalert(1)",
    "data:text/html,<script>alert(1)</script>",
    "https:HOST/cb",
    "https:/HOST/cb",
    "https:///HOST/cb",
    "https://sub.HOST/cb",
    "https://xHOST/cb",
    "https://HOSTx/cb",
    "https://HOST/cbx",
    "https://HOST/c",
    "https://*/cb",
    "https://HOST/*",
    "https://HOST/cb;x",
    "https://HOST;.evil.test/cb",
    "https://HOST,evil.test/cb",
    "https://[::1]/cb",
    "https://127.0.0.1/cb",
    "https://evil.test/cb",
    "https://EVIL.test\u{2024}HOST/cb",
    "https://HOST\u{ff0f}.evil.test/cb",
    "https://\u{ff41}pp.test/cb",
    "https://HOST/cb\u{0}",
    "\u{feff}https://HOST/cb",
    "https://HOST /cb",
    "https://user:pass@HOST/cb",
    "https://HOST/cb&x=1",
    "https://HOST/cb%0d%0a",
    "https://HOST/cb%23",
    "https://HOST/cb%3Fx",
    "https://HOST/%2e%2e/cb",
    "https://HOST/cb/%2e%2e",
    "https://HOST:/cb",
    "https://HOST:0443/cb",
    "https://HOST\\cb",
    "https://HOST%00.evil.test/cb",
    "https://HOST%09.evil.test/cb",
    "https://evil.test/cb?x=https://HOST/cb",
    "https://evil.test\\HOST/cb",
    "///HOST/cb",
    "\\\\HOST\\cb",
    "https://HOST..evil.test/cb",
    "https://xn--HOST/cb",
    "wss://HOST/cb",
    "file:///cb",
    "about:blank",
    "blob:https://HOST/cb",
    "filesystem:https://HOST/cb",
    "view-source:https://HOST/cb",
    "https://HOST/cb https://evil.test",
    "https://HOST/cb,https://evil.test",
    "https://HOST/cb\u{202e}",
    "https://HOST/c\u{430}b",
    "HTTPS://HOST/CB",
];

/// The patterns for one registered URI, its prefixes, it with each character replaced by a dot and each dot by a character, and
/// with each letter in the other case.
fn corpus(registered: &str) -> Vec<String> {
    let host = registered.strip_prefix("https://").unwrap().split('/').next().unwrap();
    let mut all: Vec<String> = PATTERNS.iter().map(|pattern| pattern.replace("HOST", host)).collect();
    all.extend((0..=registered.len()).map(|end| registered[..end].to_owned()).take(registered.len()));
    all.extend((1..registered.len()).map(|at| format!("{}.{}", &registered[..at], &registered[at + 1..])));
    for (at, character) in registered.char_indices() {
        let other = match character {
            '.' => 'X',
            letter if letter.is_ascii_lowercase() => letter.to_ascii_uppercase(),
            letter => letter.to_ascii_lowercase(),
        };
        all.push(format!("{}{other}{}", &registered[..at], &registered[at + 1..]));
    }
    all.push(registered.to_uppercase());
    all.retain(|uri| uri != registered);
    all.sort();
    all.dedup();
    all
}

#[test]
fn ru_01_02_04_07_only_the_registered_bytes_are_a_redirect_uri() {
    // red without `known == asked` in rules/oauth/redirect.rs, Verified::accept.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let corpus = corpus(&app.redirect);
    assert!(corpus.len() >= 120, "{}", corpus.len());
    for uri in corpus {
        let ask = app.ask().with("redirect_uri", &uri);
        browser.get(&ask.target()).must_stay_here();
        let page = server.get(&ask.with("prompt", "none").target()).must_stay_here().text();
        assert!(!page.contains("evil.test"), "RU-10: {uri}");
    }
}

#[test]
fn ru_02_14_what_can_be_read_in_two_ways_is_not_registered() {
    // red without rules/oauth/registration.rs, redirect_problem.
    let server = default_server();
    for uri in [
        "https://user@app.test/cb",
        "https://a@b@evil.test/cb",
        "http://app.test/cb",
        "https://app.test/*",
        "https://app.test/cb#x",
        "https://app.test/cb?code=1",
        "https://app.test/cb?x=1&state=2",
        "HTTPS://app.test/cb",
        "https://app.test\\@evil.test/cb",
        "//app.test/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://127.0.0.1.evil.test/cb",
        "http://localhost.evil.test/cb",
        "https://app.test/../cb",
        "https://app.test/a/..%2fcb",
        "https://app.test/a/..;/cb",
        "https://app.test/cb%5c@evil.test",
        "https://app.test/cb?%2563ode=1",
        "https://app.test/cb?a=1%26code=2",
        "com.example.app://user:pw@evil.test/cb",
        "com.example.app:/a/../../cb",
        "com.example.app://h:99999/cb",
        "com.example.app:",
        "myapp:/cb",
        "",
    ] {
        for kind in [["--public", "--native"].as_slice(), &["--secret-stdin"]] {
            let id = unique("refused");
            let mut line = vec!["client", "add", "--id", &id, "--redirect-uri", uri];
            line.extend(kind);
            let output = server.command(&line, SECRET);
            assert_ne!(output.code, 0, "{uri}");
            assert!(!output.err.is_empty());
        }
        // Nor by any other way to it.
        let id = unique("refused");
        let good = "https://app.test/cb";
        let add = ["client", "add", "--id", &id, "--secret-stdin", "--redirect-uri", good];
        let output = server.command(&[&add[..], &["--post-logout-redirect-uri", uri]].concat(), SECRET);
        assert!(output.code != 0 && !output.err.is_empty(), "{uri}");
        assert_eq!(server.command(&add, SECRET).code, 0);
        for option in ["--add-redirect-uri", "--add-post-logout-redirect-uri"] {
            let output = server.command(&["client", "set", &id, option, uri], "");
            assert!(output.code != 0 && !output.err.is_empty(), "{option} {uri}");
        }
    }
}

#[test]
fn ru_05_only_the_port_of_a_native_loopback_uri_varies() {
    // red without `same_but_for_port` in rules/oauth/redirect.rs (accepted), or with a looser one (refused).
    let server = default_server();
    let native = App::public(server, "http://127.0.0.1/cb", &["--native"]);
    for uri in [
        "http://127.0.0.1.evil.test/cb",
        "http://127.0.0.1@evil.test/cb",
        "http://localhost.evil.test/cb",
        "https://127.0.0.1/cb",
        "http://127.0.0.1:80@evil.test/cb",
        "http://127.0.0.1:/cb",
        "http://127.0.0.1:0/cb",
        "http://127.0.0.1:65536/cb",
        "http://localhost:51004/cb",
        "http://127.0.0.2/cb",
        "http://[::1]/cb",
        "http://127.0.0.1:51004/cb?x",
        "http://127.0.0.1:51004/other",
        "http://127.1/cb",
        "http://2130706433/cb",
        "http://127.0.0.1:+80/cb",
        "http://127.0.0.1: 80/cb",
        "http://127.0.0.1:80/cb#x",
    ] {
        server.get(&native.ask().with("redirect_uri", uri).with("prompt", "none").target()).must_stay_here();
    }
    let fine = native.ask().with("redirect_uri", "http://127.0.0.1:51004/cb").with("prompt", "none");
    assert_eq!(server.get(&fine.target()).must_be(303).landed()["error"], "login_required");
    let web = App::add(server, Grants::Usual, &["--redirect-uri", "http://127.0.0.1/cb"]);
    server.get(&web.ask().with("redirect_uri", "http://127.0.0.1:9/cb").target()).must_stay_here();
}

#[test]
fn ru_08_every_parameter_comes_once() {
    // red without the check of `seen` in rules/oauth/params.rs, or of the query in http/oauth/authorize.rs, post.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let ask = app.ask().with("response_mode", "query").with("prompt", "none").with("max_age", "1000");
    for (name, value) in ask.pairs() {
        for second in [value, "https://evil.test/cb", ""] {
            let twice = format!(
                "{}&{}={}",
                ask.target(),
                name,
                form_urlencoded::byte_serialize(second.as_bytes()).collect::<String>()
            );
            browser.get(&twice).must_stay_here();
        }
        let both = Call::post(&format!("/oauth2/authorize?{name}=x"), &ask.pairs());
        browser.send(both).must_stay_here();
    }
    let fields = [("grant_type", "client_credentials"), ("scope", "api"), ("scope", "api")];
    app.post("/oauth2/token", &fields).must_fail(400, "invalid_request");
}

#[test]
fn ru_11_response_types_with_tokens_do_not_exist() {
    // red without `response_type` in rules/oauth/authorize.rs, CHECKS.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    for response_type in ["token", "id_token", "code token", "code id_token", "none", "CODE", "code code"] {
        let ask = app.ask().with("response_type", response_type);
        let answer = browser.get(&ask.target()).must_be(303);
        assert_eq!(answer.landed()["error"], "unsupported_response_type", "{response_type}");
        assert!(!answer.location().unwrap().contains('#'));
        browser.get(&ask.with("redirect_uri", "https://evil.test/cb").target()).must_stay_here();
    }
}

#[test]
fn ru_13_the_way_back_after_sign_out_is_compared_as_strictly() {
    // red without `known == asked` in rules/oauth/redirect.rs, Verified::after_logout.
    let server = default_server();
    let bye = format!("https://{}.test/bye", unique("bye"));
    let app = App::add(server, Grants::Usual, &["--trusted", "--post-logout-redirect-uri", &bye]);
    let hint = app.tokens(&mut Browser::new(server), &Person::add(server)).id;
    let leave = |uri: &str| {
        let pairs = [("id_token_hint", hint.as_str()), ("post_logout_redirect_uri", uri)];
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        server.get(&format!("/oauth2/logout?{query}"))
    };
    assert_eq!(leave(&bye).location(), Some(bye.as_str()));
    for uri in corpus(&bye) {
        let answer = leave(&uri);
        assert_eq!(answer.location(), None, "{uri}");
        assert!(!answer.text().contains("evil.test"), "{uri}");
    }
}

#[test]
fn or_01_02_nothing_that_a_request_says_leads_a_sign_in_elsewhere() {
    // red if server/http/pages/login.rs, go_on, took its place from anything but the sealed flow.
    let server = default_server();
    let person = Person::add(server);
    for place in
        ["//evil.test", "/\\evil.test", "https:evil.test", "%2f%2fevil.test", "/%09/evil.test", "/..//evil.test"]
    {
        for name in ["next", "rd", "return_to", "redirect", "redirect_uri", "flow", "continue", "to"] {
            let mut browser = Browser::new(server);
            let page = browser.get(&format!("/login?{name}={place}"));
            if page.status != 200 {
                assert_eq!((page.status, page.location()), (403, None), "{name}={place}");
                continue;
            }
            assert!(!page.text().contains("evil.test"), "{name}={place}");
        }
        let mut browser = Browser::new(server);
        let page = browser.get(&format!("/login?next={place}"));
        let answer = browser.log_in_on(&page, &person.name, &person.password);
        assert_eq!(answer.location(), Some("/account"), "{place}");
    }
}

/// A class of sign-in that nobody reaches here.
const UNREACHABLE: &str = r#"{"id_token":{"acr":{"essential":true,"value":"99"}}}"#;

#[test]
fn or_04_an_error_does_not_send_a_stranger_away() {
    // red without `at_once` in app/authorize.rs, tell and go_on.
    let server = default_server();
    let app = App::web(server);
    for (name, value) in [
        ("scope", "bogus"),
        ("response_type", "token"),
        ("code_challenge", ""),
        ("claims", "[]"),
        ("claims", UNREACHABLE),
    ] {
        let answer = server.get(&app.ask().with(name, value).target());
        assert_eq!(answer.location(), None, "{name}={value}");
        assert_eq!(answer.status, 400);
        let page = answer.text();
        assert!(page.contains(&format!("href=\"{}?error=", app.redirect)), "a button back: {page}");
        assert!(!page.contains("http-equiv") && !page.contains(".submit()"));
    }
}

#[test]
fn co_11_no_token_is_ever_in_a_location() {
    // red with any response type but code: rules/oauth/step.rs, issue.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    for mode in ["query", "fragment"] {
        let landed = browser.get(&app.ask().with("response_mode", mode).target()).landed();
        let mut names: Vec<&str> = landed.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["code", "iss", "state"]);
    }
}

#[test]
fn or_01_what_is_posted_is_judged_before_anybody_is_sent_on() {
    // red without the question in app/posted.rs: the address would first come back in a Location of ours (RFC 9700 §4.11.2).
    let server = default_server();
    let app = App::trusted(server);
    let long = "x".repeat(13 * 1024);
    let wrong =
        [("redirect_uri", "https://evil.test/cb"), ("client_id", "nobody"), ("redirect_uri", "/cb"), ("state", &long)];
    for (name, value) in wrong {
        let answer = server.post("/oauth2/authorize", &app.ask().with(name, value).pairs()).must_be(400);
        assert_eq!(answer.location(), None, "{name}");
    }
    let split = Call::post("/oauth2/logout?client_id=a", &[("client_id", "b")]);
    assert_eq!(server.send(&split).must_be(400).location(), None, "RU-08");
}

#[test]
fn or_04_a_posted_request_that_is_too_long_is_told_like_any_other_that_is_wrong() {
    // Red where app/posted.rs, posted_authorize, refuses what is not portable before it is read (there would be no way back), or
    // without `silent` or `session` there.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let long = "x".repeat(13 * 1024);
    let post = |ask: Authorization| Call::post("/oauth2/authorize", &ask.pairs());
    let told = |answer: Answer| {
        let landed = answer.must_be(303).landed();
        assert_eq!((landed["error"].as_str(), landed["state"].as_str()), ("invalid_request", "s-te"));
    };
    // A long ID token is what people post for: it does not come again, and does not count.
    let ask = app.ask().with("id_token_hint", &long);
    let again = server.send(&post(ask)).must_be(303);
    assert!(again.location().is_some_and(|to| to.len() < 2048 && to.contains("/oauth2/authorize?")), "{again:?}");
    for name in ["nonce", "login_hint", "claims", "whatever"] {
        let ask = app.ask().with(name, &long);
        told(server.send(&post(ask.clone().with("prompt", "none"))));
        // From our own site the session comes along.
        told(browser.send(post(ask.clone())));
        let page = server.send(&post(ask.clone())).must_be(400);
        assert_eq!(page.location(), None, "{name}: nobody is known to be there");
        assert!(page.text().contains(&format!("href=\"{}?error=", app.redirect)), "{name}: a button back");
        for (name, value) in [("redirect_uri", "https://evil.test/cb"), ("client_id", "nobody")] {
            let wrong = ask.clone().with(name, value).with("prompt", "none");
            let page = browser.send(post(wrong)).must_be(400);
            assert!(page.location().is_none() && !page.text().contains("evil.test"), "{name}");
        }
    }
    let form = post(app.ask().with("nonce", &long).with("prompt", "none").with("response_mode", "form_post"));
    let page = server.send(&form).must_be(200).text();
    let form = &Form::all(&page)[0];
    assert_eq!((form.action.as_str(), form.value("error")), (app.redirect.as_str(), "invalid_request"));
}

#[test]
fn oidc_3_1_2_1_a_posted_request_that_is_sent_on_can_be_read() {
    // red where rules/oauth/params.rs counts less than Site::link writes: the address was answered with 431.
    let server = default_server();
    let app = App::trusted(server);
    for byte in [" ", "*", "~", "\"", "x"] {
        for many in [1_000, 3_800, 5_000, 11_000, 11_700] {
            let ask = app.ask().with("whatever", &byte.repeat(many));
            let answer = server.post("/oauth2/authorize", &ask.pairs());
            match answer.location().map(str::to_owned) {
                Some(to) => {
                    assert!(to.len() < 16 * 1024, "{byte:?} {many}: {} bytes", to.len());
                    server.send(&Call::get(&to)).must_be(200);
                }
                None => {
                    assert!(many > 3_800, "{byte:?} {many}");
                    answer.must_be(400);
                }
            }
        }
    }
}

#[test]
fn co_11_an_id_token_that_is_posted_is_in_no_address_and_does_what_it_did() {
    // red without without_token in app/posted.rs; or if what stands in its place were not signed.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let hint = app.tokens(&mut browser, &person).id;
    let foreign = format!("{}x", hint);
    for (text, works) in [(&hint, true), (&foreign, false)] {
        let ask = app.ask().with("id_token_hint", text).with("prompt", "none");
        let to = browser.send(Call::post("/oauth2/authorize", &ask.pairs())).must_be(303);
        let location = to.location().unwrap().to_owned();
        assert!(!location.contains(&hint[..40]), "{location}");
        assert_eq!(browser.follow(to).landed().contains_key("code"), works);
        // Only what was made of it by us.
        let forged = location.replace("id_token_hint=read.", "id_token_hint=read.A");
        let landed = browser.get(&forged).landed();
        assert_eq!(landed.get("error").map(String::as_str), Some("invalid_request"));
    }
    let bye = [("id_token_hint", hint.as_str())];
    let to = browser.send(Call::post("/oauth2/logout", &bye)).must_be(303);
    assert!(!to.location().unwrap().contains(&hint[..40]));
    browser.follow(to).must_be(200);
    assert!(!browser.is_signed_in(), "the hint vouches for whoever asks");
}
