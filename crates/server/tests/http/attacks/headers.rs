//! HD, XS, PX, PR, SR-07: what responses carry, and what requests smuggle.

use crate::support::*;

const SVG: &str = "\"><svg onload=alert(1)>";

/// Every page that can be had without and with a session.
fn pages(browser: &mut Browser, app: &App) -> Vec<Answer> {
    let mut stranger = Browser::new(browser.server);
    let mut pages = vec![
        stranger.get("/"),
        stranger.get("/login"),
        stranger.get("/setup"),
        stranger.get("/nothing"),
        stranger.get("/device"),
        stranger.get("/oauth2/authorize"),
        stranger.get(&app.ask().target()),
        stranger.get("/oauth2/logout"),
        stranger.send(Call::get("/login").header("host", "evil.test")),
        stranger.send(Call::new("DELETE", "/login")),
        stranger.get("/try"),
        stranger.get("/login?flow=x"),
    ];
    pages.extend([
        browser.get("/account"),
        browser.get("/device"),
        browser.get("/oauth2/logout"),
        browser.get(&app.ask().target()),
        browser.get(&app.ask().with("prompt", "select_account").target()),
        browser.get(&app.ask().with("prompt", "login").target()),
    ]);
    pages
}

#[test]
fn hd_01_every_page_forbids_frames_and_foreign_scripts() {
    // red without reply::page or front::finish in server/http.
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    for page in pages(&mut browser, &app) {
        let policy = page.header("content-security-policy").unwrap_or_else(|| panic!("{}", page.text()));
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{policy}");
        assert!(!policy.contains("unsafe-") && !policy.contains('*'), "{policy}");
        assert_eq!(page.header("x-frame-options"), Some("DENY"));
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        assert!(["same-origin", "no-referrer"].contains(&page.header("referrer-policy").unwrap()));
        assert_eq!(page.header("cache-control"), Some("no-store"));
        let text = page.text();
        let nonce = policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).unwrap_or("");
        let scripts = text.split("<script").skip(1).filter_map(|tag| tag.split('>').next());
        scripts.for_each(|tag| assert!(tag.contains(&format!("nonce=\"{nonce}\"")), "{tag}"));
        assert!(!text.contains(" onload=") && !text.contains(" onclick=") && !text.contains(" style=\""), "{text}");
    }
}

#[test]
fn hd_01_whatever_is_answered_under_account_leaves_no_handle_to_its_window_and_no_other_page_is_cut_off() {
    // Red without COOP in server/http/front.rs; and where is_apart says yes to what only begins like it.
    let server = Server::leaked(&[
        ("PORTIERE_PROXY_TRUSTED", "127.0.0.1"),
        ("PORTIERE_LIMITS_FAILURES_BURST", "5"),
        ("PORTIERE_LIMITS_FAILURES_PER_ADDRESS", "1"),
    ]);
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let form = || Call::post("/account/profile", &[("name", "x")]);
    let long = "x".repeat(80 * 1024);
    let policy = |answer: &Answer| answer.header("cross-origin-opener-policy").map(str::to_owned);
    for (status, call) in [
        (200, Call::get("/account")),
        (200, Call::new("HEAD", "/account")),
        (200, Call::get("/account?done=welcome")),
        (404, Call::get("/account/")),
        (404, Call::get("/account/nothing")),
        (405, Call::new("DELETE", "/account")),
        (405, Call::get("/account/password")),
        (403, form()),
        (403, form().header("origin", "https://evil.test")),
        (413, Call::post("/account/profile", &[("name", &long)])),
        (415, Call::new("POST", "/account/signout").body("text/plain", "x")),
        (421, Call::get("/account").header("host", "evil.test")),
        (200, Call::get("/login")),
        (200, Call::new("HEAD", "/login")),
        (303, Call::get("/login?change=1")),
        (404, Call::get("/signup")),
        (303, Call::get("/.well-known/change-password")),
    ] {
        let answer = browser.send(call.clone());
        assert_eq!((answer.status, policy(&answer).as_deref()), (status, Some("same-origin")), "{call:?}");
    }
    for call in [Call::get("/account"), form()] {
        let answer = server.send(&call).must_be(303);
        assert_eq!(policy(&answer).as_deref(), Some("same-origin"), "to the sign-in: {call:?}");
    }
    let flow = browser.get(&app.ask().with("prompt", "login").target()).text();
    let flow = Form::find(&flow, "/login").unwrap().value("flow").to_owned();
    for target in [
        "/",
        "/accounts",
        "/device",
        "/logins",
        "/oauth2/account",
        "/oauth2/jwks",
        &format!("/login?flow={flow}"),
        &app.ask().target(),
    ] {
        assert_eq!(policy(&browser.get(target)), None, "{target}");
    }
    let wrong = Call::get("/account/nothing").header("x-forwarded-for", "203.0.113.7");
    let slowed = (0..40 * nodes()).map(|_| server.send(&wrong)).find(|answer| answer.status == 429);
    assert_eq!(policy(&slowed.expect("slowed")).as_deref(), Some("same-origin"));
    server.kill();
}

#[test]
fn hd_01_by_no_window_that_a_site_opens_here_does_it_see_whether_its_visitor_is_signed_in() {
    // Red without TO_ACCOUNT, or CHANGE_PASSWORD, in http/front.rs, is_apart: the opener's handle says `closed`.
    let server = default_server();
    let of = Browser::of(server, &Person::add(server));
    for target in [
        "/",
        "/account",
        "/account/nothing",
        "/continue",
        "/device",
        "/device?user_code=BBBB-BBBB",
        "/login",
        "/login?again=1",
        "/login?change=1",
        "/login?change=1&flow=",
        "/login?change=1&flow=x",
        "/login?change=1&flow=x&flow=y",
        "/login/",
        "/nothing",
        "/oauth2/logout",
        "/setup",
        "/signup",
        "/signup?flow=x",
        "/try",
        "/.well-known/change-password",
    ] {
        let cuts_off = |mut browser: Browser| {
            let (mut answer, mut cut) = (browser.get(target), false);
            loop {
                cut |= answer.header("cross-origin-opener-policy").is_some();
                match answer.location().filter(|to| to.starts_with('/')).map(str::to_owned) {
                    Some(to) => answer = browser.get(&to),
                    None => return cut,
                }
            }
        };
        assert_eq!(cuts_off(of.clone()), cuts_off(Browser::new(server)), "{target}");
    }
}

#[test]
fn hd_01_nonces_are_never_used_again() {
    // red with a constant nonce in server/http/visit.rs.
    let server = default_server();
    let mut policies: Vec<String> =
        (0..20).map(|_| server.get("/login").header("content-security-policy").unwrap().to_owned()).collect();
    policies.sort();
    policies.dedup();
    assert_eq!(policies.len(), 20);
}

#[test]
fn hd_01_under_https_cookies_and_transport_are_strict() {
    // red without Secure and the prefix in http/cookies.rs, or HSTS in http/front.rs.
    let server = Server::under(|_| "https://id.test".into(), &[]);
    let call = |target: &str| server.send(&Call::get(target).header("host", "id.test"));
    let page = call("/login").must_be(200);
    assert!(page.header("strict-transport-security").is_some_and(|value| value.contains("max-age=")));
    let cookies = page.all("set-cookie");
    assert!(!cookies.is_empty());
    for line in cookies {
        assert!(line.starts_with("__Host-") && line.contains("; Secure") && line.contains("HttpOnly"), "{line}");
    }
    call("/login").must_be(200);
    server.send(&Call::get("/login")).must_be(421);
    // RFC 9110 §4.2.3: the scheme's own port may be said.
    server.send(&Call::get("/login").header("host", "id.test:443")).must_be(200);
    server.send(&Call::get("/login").header("host", "id.test:80")).must_be(421);
    assert_eq!(call("/.well-known/openid-configuration").json()["issuer"], "https://id.test");
}

#[test]
fn cookies_of_others_hide_none_of_ours() {
    // red if server/http/cookies.rs read a line as text before it is taken apart.
    let server = default_server();
    let browser = Browser::of(server, &Person::add(server));
    let ours = format!("{}={}", server.cookie_name("sid"), browser.cookie("sid-").unwrap());
    for (line, known) in [
        (format!("lang=caf\u{e9}; {ours}"), true),
        (format!("{ours}; x=\u{20ac}; =; ;;"), true),
        (format!("{ours}; {ours}"), false),
        (format!("x{ours}"), false),
        (format!("{ours}\u{e9}"), false),
    ] {
        let answer = server.send(&Call::get("/account").header("cookie", &line));
        assert_eq!(answer.status == 200, known, "{line}");
    }
}

#[test]
fn hd_02_line_breaks_reach_no_header() {
    // red if redirect.rs, escape, or reply::set let control characters through.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    for bad in ["a\r\nset-cookie: x=y", "a\nb", "a\rb", "\u{85}\u{2028}"] {
        let answer = browser.get(&app.ask().with("state", bad).target());
        assert_eq!(answer.landed()["state"], bad, "escaped, and whole");
        assert!(answer.all("set-cookie").iter().all(|line| !line.contains("x=y")));
    }
    browser.get(&app.ask().with("state", "a\0b").target()).must_stay_here();
    let line = ["client", "add", "--id", "hd02", "--name", "a\r\nb", "--redirect-uri", "https://a.test/cb", "--public"];
    assert_ne!(server.command(&line, "").code, 0);
}

#[test]
fn hd_04_what_is_anybodys_own_is_kept_by_nobody() {
    // red without private in server/http/reply.rs.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let redirect = browser.get(&app.ask().target()).must_be(303);
    let tokens = app.redeem(&redirect.landed()["code"]);
    let access = Tokens::of(&tokens).access;
    let told = server.send(&Call::get("/oauth2/userinfo").bearer(&access));
    let introspected = app.post("/oauth2/introspect", &[("token", &access)]);
    let refused = app.redeem("nothing");
    for answer in [redirect, tokens, told, introspected, refused, browser.get("/account"), server.get("/readyz")] {
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{}", answer.text());
    }
    assert!(browser.get("/account").header("vary").is_some_and(|vary| vary.contains("Cookie")));
}

#[test]
fn hd_rfc9700_4_12_redirects_after_credentials_are_303() {
    // red with another status in server/http/reply.rs, see_other.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let page = browser.get(&app.ask().target());
    browser.log_in_on(&page, &person.name, &person.password).must_be(303);
    browser.send(Call::post("/oauth2/authorize", &app.ask().pairs())).must_be(303);
}

#[test]
fn xs_01_whatever_comes_in_is_text_on_a_page() {
    // red with `|safe` on any of these values in server/templates.
    let server = sign_up_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let ask = app.ask().with("login_hint", SVG).with("ui_locales", SVG).with("acr_values", SVG);
    let mut answers: Vec<Answer> = ask
        .pairs()
        .into_iter()
        .flat_map(|(name, _)| {
            let bent = ask.clone().with(name, SVG);
            [server.get(&bent.target()), browser.get(&bent.target())]
        })
        .collect();
    let escaped: String = form_urlencoded::byte_serialize(SVG.as_bytes()).collect();
    for path in [
        "/login?flow=",
        "/signup?flow=",
        "/device?user_code=",
        "/oauth2/logout?state=",
        "/account?done=",
        "/nothing?",
        "/assets/",
        "/",
    ] {
        answers.push(server.get(&format!("{path}{escaped}")));
        answers.push(browser.get(&format!("{path}{escaped}")));
    }
    answers.push(server.send(&Call::get("/login").header("accept-language", SVG).header("user-agent", SVG)));
    let page = browser.get("/device").text();
    answers.push(browser.submit(&Form::find(&page, "/device").unwrap().fill("user_code", SVG)));
    let mut stranger = Browser::new(server);
    let page = stranger.get("/login");
    answers.push(stranger.log_in_on(&page, SVG, SVG));
    let page = stranger.get("/signup").text();
    let sign_up = Form::find(&page, "/signup").unwrap().fill("username", SVG).fill("email", SVG);
    answers.push(stranger.submit(&sign_up.fill("password", SVG)));
    let profile = browser.account_form("/account/profile").fill("name", SVG).fill("given_name", SVG);
    answers.push(browser.submit(&profile));
    answers.push(browser.get("/account"));
    answers.push(browser.get(&app.ask().target()));
    for answer in answers {
        assert!(!answer.text().contains("<svg onload"), "{}", answer.text());
    }
}

#[test]
fn xs_01_names_of_applications_are_text_too() {
    // red with `|safe` on a client's name in server/templates.
    let server = default_server();
    let (app, person) = (App::add(server, Grants::Usual, &["--name", SVG]), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let page = browser.get(&app.ask().target());
    assert!(!page.text().contains("<svg onload"));
    browser.go_through(page, &person);
    assert!(!browser.get("/account").text().contains("<svg onload"));
    assert!(!server.get(&app.ask().target()).text().contains("<svg onload"));
}

#[test]
fn xs_02_form_post_escapes_and_posts_to_the_client_only() {
    // red with `|safe` in templates/form_post.html, or without form_to in server/http/oauth/authorize.rs, respond.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let state = format!("'{SVG}</form><form action=//evil.test>");
    let page = browser.get(&app.ask().with("response_mode", "form_post").with("state", &state).target()).must_be(200);
    let forms = Form::all(&page.text());
    assert_eq!(forms.len(), 1);
    assert_eq!((forms[0].action.as_str(), forms[0].value("state")), (app.redirect.as_str(), state.as_str()));
    let policy = page.header("content-security-policy").unwrap();
    let origin = app.redirect.strip_suffix("/cb").unwrap();
    assert!(policy.contains(&format!("form-action 'self' {origin};")), "{policy}");
    // Its form says whose it is: with same-origin, browsers would send `Origin: null`.
    assert_eq!(page.header("referrer-policy"), Some("strict-origin"));
}

#[test]
fn xs_02_no_redirect_uri_writes_into_a_policy() {
    // Red if source in server/http/reply.rs gave back what it was given, or rules/oauth/redirect.rs, origin, looked for "://"
    // anywhere.
    let server = default_server();
    let person = Person::add(server);
    for uri in [
        "com.example.app:/cb;script-src",
        "com.example.app:/cb,default-src",
        "com.example.app:/cb?next=x://y;script-src",
        "com.example.app://cb;script-src",
        "com.example.app://cb,default-src/a",
        "com.example.app:cb;x,y",
    ] {
        let app = App::public(server, uri, &["--native"]);
        let mut browser = Browser::of(server, &person);
        let page = browser.get(&app.ask().with("response_mode", "form_post").target());
        let page = browser.go_through(page, &person).must_be(200);
        assert_eq!(Form::all(&page.text())[0].action, uri);
        let policies = page.all("content-security-policy");
        assert_eq!(policies.len(), 1);
        let directives: Vec<&str> = policies[0].split(';').map(str::trim).collect();
        assert!(directives.contains(&"form-action 'self' com.example.app:"), "{uri}: {directives:?}");
        assert_eq!(directives.len(), 10, "{uri}: {directives:?}");
        assert!(!policies[0].contains(','), "{uri}: {directives:?}");
    }
}

#[test]
fn forms_stay_here_unless_they_lead_to_an_application() {
    // red with another of Forms in server/http. Browsers hold every redirect after a form against form-action, and where an
    // application sends the browser on to is its own business (tests/browser tries it).
    let server = default_server();
    let (app, person) = (App::web(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    let policy = |page: Answer| page.must_be(200).header("content-security-policy").unwrap().to_owned();
    let stay = [
        server.get("/login"),
        server.get("/device"),
        browser.get("/account"),
        browser.get("/device"),
        browser.get("/oauth2/logout"),
    ];
    stay.into_iter().map(policy).for_each(|policy| assert!(policy.contains("; form-action 'self'; "), "{policy}"));
    let logout = format!("/oauth2/logout?client_id={}", app.id);
    let leave = [server.get(&app.ask().target()), browser.get(&app.ask().target()), browser.get(&logout)];
    leave.into_iter().map(policy).for_each(|policy| assert!(!policy.contains("form-action"), "{policy}"));
}

#[test]
fn pr_02_and_px_01_the_configured_name_is_the_only_one() {
    // red if Site::serves took any host, or if links were built from the request: server/http/front.rs.
    let server = default_server();
    let headers = [
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-port",
        "x-forwarded-prefix",
        "x-forwarded-server",
        "x-original-host",
        "x-original-url",
        "x-original-uri",
        "x-rewrite-url",
        "x-host",
        "x_forwarded_host",
        "x-user",
        "remote-user",
        "x-remote-user",
    ];
    let mut call = Call::get("/.well-known/openid-configuration").header("forwarded", "host=evil.test;proto=https");
    for name in headers {
        call = call.header(name, "evil.test");
    }
    let answer = server.send(&call).must_be(200);
    assert_eq!(answer.body, server.get("/.well-known/openid-configuration").body);
    let mut account = Call::get("/account");
    for name in headers {
        account = account.header(name, "admin");
    }
    assert_eq!(server.send(&account).location(), Some("/login"));
    for host in ["evil.test", "localhost.evil.test", "localhost", "127.0.0.1:1", "", "localhost:80@evil.test"] {
        let answer = Call::get("/login").header("host", host).try_send(server.port).unwrap();
        assert!([400, 421].contains(&answer.status), "{host}: {}", answer.status);
        assert!(answer.all("set-cookie").is_empty());
    }
    let twice = Call::get("/login").header("host", "evil.test").header("host", "evil.test");
    server.send(&twice).must_be(400);
}

#[test]
fn px_02_nobody_is_a_proxy_unless_listed() {
    // red without not_everybody in config/checks.rs, or with a default list of proxies.
    for (networks, admitted) in [
        ("192.0.2.1", true),
        ("10.0.0.0/8,fd00::/8", true),
        ("0.0.0.0/0", false),
        ("::/0", false),
        ("10.0.0.0/8,0.0.0.0/0", false),
        ("*", false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_portiere"))
            .args(["config", "check", "--data"])
            .arg(folder.path())
            .env("PORTIERE_PROXY_TRUSTED", networks)
            .output()
            .unwrap();
        assert_eq!(output.status.success(), admitted, "{networks}");
    }
    let server = Server::start(&[]);
    // Each node tells of what came to it.
    Call::get("/login").header("x-forwarded-for", "203.0.113.9").try_send_here(server.port).unwrap();
    let told = Call::get("/readyz").try_send_here(server.port).unwrap().must_be(200).json();
    assert_eq!(told["warnings"].as_array().unwrap().len(), 1, "a forgotten proxy is told about");
}

#[test]
fn rfc9112_3_2_a_request_names_one_host() {
    // red if http/front.rs, host, took the first of two.
    let server = default_server();
    let own = format!("localhost:{}", server.port);
    let twice = Call::get("/login").header("host", &own).header("host", &own);
    server.send(&twice).must_be(400);
    let other = Call::get("/login").header("host", &own).header("host", "evil.test");
    server.send(&other).must_be(400);
}
