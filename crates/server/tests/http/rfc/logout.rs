//! OpenID Connect RP-Initiated Logout 1.0.

use crate::support::*;

const BYE: &str = "https://app.test/bye";

fn signed_in() -> (App, Person, Browser, Tokens) {
    let server = default_server();
    let app = App::add(server, Grants::Usual, &["--trusted", "--post-logout-redirect-uri", BYE]);
    let person = Person::add(server);
    let mut browser = Browser::new(server);
    let tokens = app.tokens(&mut browser, &person);
    (app, person, browser, tokens)
}

fn target(pairs: &[(&str, &str)]) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    format!("/oauth2/logout?{query}")
}

#[test]
fn rp_initiated_logout_2_with_a_hint_it_signs_out_and_returns_with_state() {
    let (app, _, mut browser, tokens) = signed_in();
    let pairs = [("id_token_hint", tokens.id.as_str()), ("post_logout_redirect_uri", BYE), ("state", "a b&c")];
    let answer = browser.get(&target(&pairs)).must_be(303);
    assert_eq!(answer.location(), Some("https://app.test/bye?state=a%20b%26c"));
    assert!(!browser.is_signed_in());
    app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
}

#[test]
fn rp_initiated_logout_2_get_and_post_do_the_same() {
    let (_, _, mut browser, tokens) = signed_in();
    let pairs = [("id_token_hint", tokens.id.as_str()), ("post_logout_redirect_uri", BYE)];
    let answer = browser.send(Call::post("/oauth2/logout", &pairs)).must_be(303);
    assert_eq!(browser.follow(answer).location(), Some(BYE));
    assert!(!browser.is_signed_in());
}

/// RP-Initiated Logout §2: an ID token that "does not belong to the current OP session" ends nothing without a question, however
/// it was got. Red where rules/oauth/logout.rs, decide, takes a token of no session for one of any, and where token.rs, id_token,
/// does not say which session a line has outlived.
#[test]
fn rp_initiated_logout_2_a_line_that_outlived_its_session_ends_no_other() {
    let (app, person, mut browser, _) = signed_in();
    let tokens = app.tokens_for(&mut browser, &person, &app.ask().with("scope", "openid offline_access"));
    let first = Tokens::of(&app.refresh(&tokens.refresh));
    assert_eq!(jwt(&first.id).claims["sid"], jwt(&tokens.id).claims["sid"]);
    let own = [("id_token_hint", first.id.as_str()), ("post_logout_redirect_uri", BYE)];
    browser.get(&target(&own)).must_be(303);
    assert!(!browser.is_signed_in(), "while its session lives it names it");
    let later = Tokens::of(&app.refresh(&first.refresh));
    let mut elsewhere = Browser::new(app.server);
    app.tokens(&mut elsewhere, &person);
    let pairs = [("id_token_hint", later.id.as_str()), ("post_logout_redirect_uri", BYE)];
    elsewhere.get(&target(&pairs)).must_be(200);
    assert!(elsewhere.is_signed_in());
}

#[test]
fn rp_initiated_logout_2_without_a_hint_it_asks_first() {
    let (app, _, mut browser, _) = signed_in();
    let pairs = [("client_id", app.id.as_str()), ("post_logout_redirect_uri", BYE), ("state", "x")];
    let page = browser.get(&target(&pairs)).must_be(200);
    assert!(browser.is_signed_in());
    let form = Form::find(&page.text(), "/oauth2/logout/confirm").unwrap();
    let mut stays = browser.clone();
    stays.submit(&form.clone().fill("decision", "stay")).must_be(303);
    assert!(stays.is_signed_in());
    let answer = browser.submit(&form.fill("decision", "sign_out")).must_be(303);
    assert_eq!(answer.location(), Some("https://app.test/bye?state=x"));
    assert!(!browser.is_signed_in());
}

#[test]
fn rp_initiated_logout_2_whoever_is_signed_out_already_may_go_back() {
    // Nobody vouches for whoever asks: a link, and no redirect.
    let (app, ..) = signed_in();
    let target = |uri| target(&[("client_id", app.id.as_str()), ("post_logout_redirect_uri", uri), ("state", "x")]);
    let page = app.server.get(&target(BYE)).must_be(200).text();
    assert!(page.contains("href=\"https://app.test/bye?state=x\""), "{page}");
    let page = app.server.get(&target("https://evil.test/")).must_be(200).text();
    assert!(!page.contains("evil.test"), "{page}");
}

#[test]
fn rp_initiated_logout_3_who_could_not_be_signed_out_in_a_frame_does_not_go_back_as_if_they_were() {
    // red without is_framed_without_cookies in http/oauth/logout.rs: a session's cookie (SameSite=Lax) does not come there.
    let (app, _, mut browser, tokens) = signed_in();
    let ask = || Call::get(&target(&[("id_token_hint", tokens.id.as_str()), ("post_logout_redirect_uri", BYE)]));
    let framed = |site| ask().header("sec-fetch-site", site).header("sec-fetch-mode", "navigate");
    // A page of the same site may itself be within one of another.
    for (site, dest) in
        [("cross-site", "iframe"), ("cross-site", "object"), ("same-site", "iframe"), ("same-site", "embed")]
    {
        let page = app.server.send(&framed(site).header("sec-fetch-dest", dest)).must_be(200);
        assert_eq!(page.header("x-frame-options"), Some("DENY"), "{site} {dest}");
    }
    assert!(browser.is_signed_in());
    let answer = app.server.send(&framed("cross-site").header("sec-fetch-dest", "document")).must_be(303);
    assert_eq!(answer.location(), Some(BYE), "at the top it would have come");
    let answer = browser.send(framed("same-site").header("sec-fetch-dest", "iframe")).must_be(303);
    assert_eq!(answer.location(), Some(BYE), "a browser that sends it");
    assert!(!browser.is_signed_in());
}

#[test]
fn rp_initiated_logout_2_nobody_signed_in_is_simply_signed_out() {
    let (_, _, _, tokens) = signed_in();
    let server = default_server();
    server.get("/oauth2/logout").must_be(200);
    let pairs = [("id_token_hint", tokens.id.as_str()), ("post_logout_redirect_uri", BYE)];
    assert_eq!(server.get(&target(&pairs)).must_be(303).location(), Some(BYE));
}

#[test]
fn or_05_an_unregistered_uri_leads_nowhere() {
    // red without Verified::after_logout in rules/oauth/logout.rs, decide.
    let (_, _, browser, tokens) = signed_in();
    let (_, _, _, foreign) = signed_in();
    for uri in ["https://evil.test/", "https://app.test/bye/", "https://app.test/bye?x", "//evil.test", "javascript:0"]
    {
        for hint in [None, Some(tokens.id.as_str()), Some(foreign.id.as_str()), Some("nonsense")] {
            let mut pairs = vec![("post_logout_redirect_uri", uri)];
            pairs.extend(hint.map(|hint| ("id_token_hint", hint)));
            let answer = browser.clone().get(&target(&pairs));
            assert_eq!(answer.location(), None, "{uri}");
            assert!(!answer.text().contains("evil.test"), "{uri}");
        }
    }
}

#[test]
fn or_05_confirming_does_not_make_a_foreign_uri_good() {
    // red without Verified::after_logout in app/logout.rs, logout_confirmed.
    let (app, _, mut browser, _) = signed_in();
    let (_, _, _, foreign) = signed_in();
    for pairs in [
        vec![("client_id", app.id.as_str()), ("post_logout_redirect_uri", "https://evil.test/")],
        vec![("id_token_hint", "nonsense"), ("client_id", app.id.as_str()), ("post_logout_redirect_uri", BYE)],
        vec![("id_token_hint", &foreign.id), ("client_id", &app.id), ("post_logout_redirect_uri", BYE)],
    ] {
        let page = browser.get(&target(&pairs)).must_be(200).text();
        let form = Form::find(&page, "/oauth2/logout/confirm").unwrap();
        let answer = browser.clone().submit(&form.fill("decision", "sign_out"));
        assert_eq!(answer.location(), Some("/oauth2/logout"), "{pairs:?}");
        let person = Person::add(default_server());
        browser.sign_in(&person);
    }
}

/// §4: what did not pass is not used, and the developer who wonders why nobody comes back reads it on the page.
#[test]
fn rp_initiated_logout_4_what_was_not_used_is_said() {
    // red without Ask::unused in rules/oauth/logout.rs.
    let (_, _, _, foreign) = signed_in();
    for (sent, sentence, asked) in [
        ("own other", "post_logout_redirect_uri is not registered", false),
        ("client other", "post_logout_redirect_uri is not registered", true),
        ("bye", "post_logout_redirect_uri needs id_token_hint or client_id", true),
        ("nobody bye", "client_id names no client, or one that is disabled", true),
        ("nonsense bye", "id_token_hint is not an ID token of this server", true),
        ("foreign client bye", "id_token_hint is not an ID token of this client", true),
        ("", "", true),
        ("own", "", false),
    ] {
        let (app, _, browser, tokens) = signed_in();
        let pair = |name| match name {
            "own" => ("id_token_hint", tokens.id.as_str()),
            "foreign" => ("id_token_hint", foreign.id.as_str()),
            "nonsense" => ("id_token_hint", name),
            "client" => ("client_id", app.id.as_str()),
            "nobody" => ("client_id", name),
            "bye" => ("post_logout_redirect_uri", BYE),
            _ => ("post_logout_redirect_uri", "https://app.test/other"),
        };
        let target = target(&sent.split_whitespace().map(pair).collect::<Vec<_>>());
        for mut visitor in [browser, Browser::new(app.server)] {
            let was_signed_in = visitor.is_signed_in();
            let page = visitor.get(&target).must_be(200).text();
            assert_eq!(page.contains("<dt>Detail</dt>"), !sentence.is_empty(), "{sent}");
            assert!(page.contains(sentence), "{sent}: {page}");
            assert_eq!(Form::find(&page, "/oauth2/logout/confirm").is_some(), asked && was_signed_in, "{sent}");
            assert_eq!(visitor.is_signed_in(), asked && was_signed_in, "{sent}");
        }
    }
}

#[test]
fn whoever_reloads_the_page_that_says_so_signs_nobody_out_again() {
    // red if http/pages/account.rs, leave, or http/oauth/logout.rs, confirm, answered with a page.
    let (_, person, mut browser, _) = signed_in();
    for asked in ["/account", "/oauth2/logout?ui_locales=de"] {
        browser.sign_in(&person);
        let page = browser.get(asked).must_be(200).text();
        let confirm = Form::find(&page, "/oauth2/logout/confirm").map(|form| form.fill("decision", "sign_out"));
        let form = confirm.or_else(|| Form::find(&page, "/account/signout")).unwrap();
        let left = browser.submit(&form).must_be(303);
        let said = browser.clone().follow(left.clone()).must_be(200).text();
        assert!(said.contains("<html lang=\"de\"") == asked.contains("de"), "{said}");
        browser.sign_in(&person);
        browser.get(left.location().unwrap());
        assert!(browser.is_signed_in(), "{asked}");
    }
}

#[test]
fn cs_02_nobody_is_signed_out_without_a_word_of_their_own() {
    // red without the comparison of hint and session in rules/oauth/logout.rs, decide.
    let (_, _, mut browser, tokens) = signed_in();
    let (_, _, _, foreign) = signed_in();
    for pairs in [
        vec![],
        vec![("id_token_hint", "nonsense")],
        vec![("id_token_hint", foreign.id.as_str())],
        vec![("id_token_hint", tokens.access.as_str())],
    ] {
        let page = browser.get(&target(&pairs)).must_be(200);
        assert!(Form::find(&page.text(), "/oauth2/logout/confirm").is_some(), "{pairs:?}");
        assert!(browser.is_signed_in());
    }
}
