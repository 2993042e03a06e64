//! RFC 8414, OpenID Connect Discovery, RFC 7517: what everybody may know.

use crate::support::*;
use std::net::{Ipv6Addr, TcpListener};

#[test]
fn rfc8414_3_1_both_well_known_paths_say_the_same() {
    let server = default_server();
    let openid = server.get("/.well-known/openid-configuration").must_be(200);
    let oauth = server.get("/.well-known/oauth-authorization-server").must_be(200);
    assert_eq!(openid.json(), oauth.json());
    assert_eq!(openid.json()["issuer"], server.issuer);
}

#[test]
fn rfc8414_3_1_an_issuer_with_a_path_has_it_at_the_right_place() {
    let server = Server::under(|port| format!("http://localhost:{port}/id"), &[]);
    let url = server.issuer.clone();
    let get = |path: &str| server.get(path);
    assert_eq!(get("/id/.well-known/openid-configuration").must_be(200).json()["issuer"], url);
    assert_eq!(get("/.well-known/oauth-authorization-server/id").must_be(200).json()["issuer"], url);
    get("/.well-known/openid-configuration").must_be(404);
    let metadata = get("/id/.well-known/openid-configuration").json();
    assert_eq!(metadata["token_endpoint"], format!("{url}/oauth2/token"));
    get("/id/oauth2/jwks").must_be(200);
    // Where password managers look, which know the host alone.
    assert_eq!(get("/.well-known/change-password").must_be(303).location(), Some("/id/login?change=1"));
}

#[test]
fn oidc_discovery_3_says_what_is_true() {
    let server = default_server();
    let told = server.get("/.well-known/openid-configuration").json();
    for (endpoint, path) in [
        ("authorization_endpoint", "/oauth2/authorize"),
        ("token_endpoint", "/oauth2/token"),
        ("userinfo_endpoint", "/oauth2/userinfo"),
        ("jwks_uri", "/oauth2/jwks"),
        ("introspection_endpoint", "/oauth2/introspect"),
        ("revocation_endpoint", "/oauth2/revoke"),
        ("device_authorization_endpoint", "/oauth2/device"),
        ("end_session_endpoint", "/oauth2/logout"),
    ] {
        assert_eq!(told[endpoint], format!("{}{path}", server.issuer));
    }
    assert_eq!(told["request_uri_parameter_supported"], false);
    assert_eq!(told["claims_parameter_supported"], true);
    assert_eq!(told["authorization_response_iss_parameter_supported"], true);
    assert_eq!(told["code_challenge_methods_supported"], serde_json::json!(["S256"]));
    assert_eq!(told["response_types_supported"], serde_json::json!(["code"]));
    let list = |name: &str| told[name].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect::<Vec<_>>();
    for name in ["query", "fragment", "form_post"] {
        assert!(list("response_modes_supported").contains(&name));
    }
    for name in ["none", "login", "consent", "select_account"] {
        assert!(list("prompt_values_supported").contains(&name));
    }
    assert!(!list("token_endpoint_auth_signing_alg_values_supported").contains(&"none"));
    assert!(!list("grant_types_supported").contains(&"password"));
}

/// Libraries with a secret in their hands take the first way in the list that they know (pac4j 6 stops at `none`).
#[test]
fn oidc_discovery_3_a_secret_is_the_first_way_to_authenticate_and_nothing_the_last() {
    let told = default_server().get("/.well-known/openid-configuration").json();
    for endpoint in ["token", "revocation", "introspection"] {
        let methods = told[format!("{endpoint}_endpoint_auth_methods_supported")].as_array().unwrap();
        // Red without `authenticated` before `None` in rules/oauth/discovery.rs.
        assert_eq!(methods[0], "client_secret_basic", "{endpoint}");
        let none = methods.iter().position(|method| method == "none");
        assert!(none.is_none_or(|at| at == methods.len() - 1), "{endpoint}: {methods:?}");
    }
}

#[test]
fn rfc7517_5_the_key_set_holds_public_keys_only_each_with_its_own_kid() {
    let server = default_server();
    let answer = server.get("/oauth2/jwks").must_be(200);
    let jwks = answer.json();
    let keys = jwks["keys"].as_array().unwrap();
    let mut kids: Vec<&str> = keys.iter().map(|key| key["kid"].as_str().unwrap()).collect();
    kids.sort_unstable();
    kids.dedup();
    assert_eq!(kids.len(), keys.len());
    for key in keys {
        for private in ["d", "p", "q", "dp", "dq", "qi", "k"] {
            assert_eq!(key.get(private), None);
        }
        assert_eq!(key["use"], "sig");
    }
}

#[test]
fn hd_04_metadata_may_be_kept_by_anybody() {
    // red without `public` in server/http/oauth/metadata.rs.
    let server = default_server();
    for path in ["/oauth2/jwks", "/.well-known/openid-configuration"] {
        let answer = server.get(path).must_be(200);
        assert!(answer.header("cache-control").unwrap().starts_with("public, max-age="), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert!(answer.all("set-cookie").is_empty());
        let lied = Call::get(path).header("x-forwarded-host", "evil.test").header("x-original-url", "/evil");
        assert_eq!(server.send(&lied).body, answer.body, "{path}");
    }
}

#[test]
fn hd_05_rotation_keeps_old_keys_for_those_who_still_hold_their_tokens() {
    // red without the overlap in rules/keys.rs (stages of a key).
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let before = app.tokens(&mut Browser::new(server), &person);
    server.must(&["keys", "rotate"], "");
    let jwks = server.get("/oauth2/jwks").json();
    assert!(jwt(&before.id).is_signed_by(&jwks) && jwt(&before.access).is_signed_by(&jwks));
    assert!(app.is_active(&before.access));
    let after = app.tokens(&mut Browser::new(server), &person);
    assert!(jwt(&after.id).is_signed_by(&server.get("/oauth2/jwks").json()));
}

#[test]
fn rfc9110_7_2_localhost_is_served_under_all_of_its_names() {
    // red without the names of PublicUrl::hosts in config/public_url.rs.
    let server = default_server();
    for name in ["localhost", "LOCALHOST", "127.0.0.1", "[::1]"] {
        let host = |port: &str| server.send(&Call::get("/login").header("host", &format!("{name}{port}"))).status;
        assert_eq!(host(&format!(":{}", server.port)), 200, "{name}");
        // Without a port it is the scheme's own, which is another server's.
        assert_eq!([host(""), host(":80")], [421; 2], "{name}");
    }
}

#[test]
fn rfc9110_7_2_a_host_is_judged_alike_over_ipv6() {
    // red if http/front.rs, host, read a name in brackets otherwise than config/public_url.rs writes it.
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        return println!("skipped: no IPv6 here");
    }
    let six = free_port();
    let both = format!("exec \"$@\" --listen '[::1]:{six}'");
    let server = Server::wrapped(&[], &["sh", "-c", &both, "sh"]);
    let four = server.port;
    for (host, status) in [
        (format!("localhost:{four}"), 200),
        (format!("127.0.0.1:{four}"), 200),
        (format!("[::1]:{four}"), 200),
        // The public URL has the port of the first address.
        (format!("[::1]:{six}"), 421),
        (format!("[0:0:0:0:0:0:0:1]:{four}"), 421),
        (format!("[::2]:{four}"), 421),
        (format!("[::ffff:127.0.0.1]:{four}"), 421),
        ("[::1]".to_owned(), 421),
        ("evil.test".to_owned(), 421),
    ] {
        let call = Call::get("/login").header("host", &host);
        let told = [call.try_send_here(four).unwrap().status, call.try_send_v6(six).unwrap().status];
        assert_eq!(told, [status; 2], "{host}");
    }
    let own = Call::get("/.well-known/openid-configuration").header("host", &format!("[::1]:{four}"));
    assert_eq!(own.try_send_v6(six).unwrap().must_be(200).json()["issuer"], server.issuer, "it is called what it is");
    server.kill();
}

#[test]
fn healthz_and_readyz_answer_any_host() {
    let server = default_server();
    for path in ["/healthz", "/readyz"] {
        server.send(&Call::get(path).header("host", "10.0.0.7")).must_be(200);
    }
    server.send(&Call::get("/oauth2/jwks").header("host", "10.0.0.7")).must_be(421);
}

/// Red without `successor` in pages/assets.rs: while nodes are upgraded one after the other, a page of one has no style at another.
#[test]
fn what_a_page_of_another_version_refers_to_is_there_and_not_kept() {
    let server = default_server();
    let page = server.get("/login").must_be(200).text();
    let begin = page.find("/assets/page.").unwrap();
    let ours = &page[begin..begin + page[begin..].find('"').unwrap()];
    let extension = ours.rsplit_once('.').unwrap().1;
    let told = server.get(ours).must_be(200);
    assert!(told.header("cache-control").unwrap().contains("immutable"));
    let other = server.get(&format!("/assets/page.0123456789abcdef.{extension}")).must_be(200);
    assert_eq!((other.header("cache-control"), other.text()), (Some("no-store"), told.text()));
    for none in [
        "page.0123456789abcdeg.css",
        "page.0123.css",
        "page.css",
        "none.0123456789abcdef.css",
        "page.0123456789abcdef.svg",
    ] {
        server.get(&format!("/assets/{none}")).must_be(404);
    }
}

#[test]
fn who_comes_by_another_name_is_told_the_right_one_on_a_page_that_looks_like_ours() {
    let server = default_server();
    let page = server.send(&Call::get("/account").header("host", "10.0.0.7")).must_be(421).text();
    assert!(page.contains(&format!("href=\"{}", server.issuer)) && !page.contains("10.0.0.7"), "{page}");
    let begin = page.find("/assets/page.").unwrap();
    let style = &page[begin..begin + page[begin..].find('"').unwrap()];
    server.send(&Call::get(style).header("host", "10.0.0.7")).must_be(200);
    server.send(&Call::get("/assetsx").header("host", "10.0.0.7")).must_be(421);
    // Where two hosts are named there is no name to be wrong.
    server.send(&Call::get(style).header("host", "10.0.0.7").header("host", "10.0.0.8")).must_be(400);
}
