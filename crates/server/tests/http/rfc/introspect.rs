//! RFC 7662 and RFC 7009: introspection and revocation.

use crate::support::*;

fn fresh() -> (App, Tokens) {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let tokens = app.tokens(&mut Browser::new(server), &person);
    (app, tokens)
}

#[test]
fn rfc7662_2_1_only_clients_that_authenticate_may_ask() {
    let server = default_server();
    let (_, tokens) = fresh();
    server.post("/oauth2/introspect", &[("token", &tokens.access)]).must_fail(401, "invalid_client");
    let public = App::public(server, "https://spa.test/cb", &[]);
    public.post("/oauth2/introspect", &[("token", &tokens.access)]).must_fail(401, "invalid_client");
    server.send(&Call::get("/oauth2/introspect")).must_be(405);
    // Who asks is looked at before what they ask.
    server.post("/oauth2/introspect", &[]).must_fail(401, "invalid_client");
    App::web(server).post("/oauth2/introspect", &[]).must_fail(400, "invalid_request");
}

#[test]
fn rfc7662_2_2_an_active_token_is_described() {
    let (app, tokens) = fresh();
    let told = app.introspect(&tokens.access);
    assert_eq!((&told["active"], &told["client_id"]), (&true.into(), &app.id.clone().into()));
    assert_eq!(told["scope"], "openid profile email");
    assert_eq!(told["token_type"], "Bearer");
    assert_eq!(told["iss"], app.server.issuer);
    assert_eq!(told["sub"], jwt(&tokens.id).claims["sub"]);
    let told = app.introspect(&tokens.refresh);
    assert_eq!((&told["active"], &told["client_id"]), (&true.into(), &app.id.clone().into()));
}

#[test]
fn rfc7662_2_2_inactive_is_all_that_is_said() {
    let (app, tokens) = fresh();
    app.revoke(&tokens.refresh).must_be(200);
    for token in ["nothing", "a.b.c", &tokens.id, &tokens.access, &tokens.refresh] {
        let told = app.introspect(token);
        assert_eq!(told, serde_json::json!({ "active": false }), "{token}");
    }
}

#[test]
fn rfc7662_2_1_a_resource_server_sees_the_tokens_of_its_audience_only() {
    let server = default_server();
    let person = Person::add(server);
    let uri = format!("https://{}.test/api", unique("rs"));
    let app = App::add(server, Grants::Usual, &["--trusted", "--resource", &uri]);
    let other = App::trusted(server);
    let resource_server = App::add(server, Grants::Usual, &["--resource", &uri, "--resource-server"]);
    let same_audience = App::add(server, Grants::Usual, &["--resource", &uri]);
    let token = app.tokens(&mut Browser::new(server), &person).access;
    let foreign = other.tokens(&mut Browser::new(server), &person).access;
    assert!(resource_server.is_active(&token));
    assert!(!resource_server.is_active(&foreign));
    assert!(!same_audience.is_active(&token), "only a resource server sees what is not its own");
}

#[test]
fn rfc7009_2_2_revoking_answers_200_whatever_it_was() {
    let (app, tokens) = fresh();
    for token in ["nothing", &tokens.access, &tokens.access, &tokens.refresh, &tokens.refresh] {
        app.revoke(token).must_be(200);
    }
    app.post("/oauth2/revoke", &[]).must_fail(400, "invalid_request");
    let hinted = [("token", tokens.access.as_str()), ("token_type_hint", "nonsense")];
    app.post("/oauth2/revoke", &hinted).must_be(200);
}

#[test]
fn rfc7009_2_1_revoking_a_refresh_token_revokes_all_that_came_of_it() {
    let (app, first) = fresh();
    let second = Tokens::of(&app.refresh(&first.refresh));
    app.revoke(&second.refresh).must_be(200);
    for token in [&first.access, &second.access, &second.refresh] {
        assert!(!app.is_active(token));
    }
    app.refresh(&second.refresh).must_fail(400, "invalid_grant");
    app.server.send(&Call::get("/oauth2/userinfo").bearer(&first.access)).must_fail(401, "invalid_token");
}

#[test]
fn rfc7009_2_1_revoking_an_access_token_leaves_the_others() {
    let (app, first) = fresh();
    let second = Tokens::of(&app.refresh(&first.refresh));
    app.revoke(&second.access).must_be(200);
    assert!(!app.is_active(&second.access));
    app.server.send(&Call::get("/oauth2/userinfo").bearer(&second.access)).must_fail(401, "invalid_token");
    Tokens::of(&app.refresh(&second.refresh));
}

#[test]
fn rfc7009_2_1_nobody_revokes_the_tokens_of_another_client() {
    let (app, tokens) = fresh();
    let (other, _) = fresh();
    other.revoke(&tokens.access).must_fail(400, "invalid_grant");
    // RT-04: that there is such a token is told to nobody but its client.
    other.revoke(&tokens.refresh).must_be(200);
    assert!(app.is_active(&tokens.access) && app.is_active(&tokens.refresh));
    app.server.post("/oauth2/revoke", &[("token", &tokens.refresh)]).must_fail(401, "invalid_client");
    assert!(app.is_active(&tokens.refresh));
}

#[test]
fn rfc7009_2_a_public_client_revokes_its_own() {
    let server = default_server();
    let (app, person) = (App::public(server, "https://spa.test/cb", &[]), Person::add(server));
    let tokens = app.tokens(&mut Browser::new(server), &person);
    app.revoke(&tokens.refresh).must_be(200);
    app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
}

/// RFC 7662 §2.2: `active` is whether it could be used, and `exp` when that ends: with its session, where it has one.
#[test]
fn rfc7662_2_2_a_refresh_token_is_active_while_it_could_be_used() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let bound = app.tokens(&mut browser, &person);
    let (told, day) = (app.introspect(&bound.refresh), 24 * 3600);
    let left = told["exp"].as_i64().unwrap() - jwt(&bound.id).claims["iat"].as_i64().unwrap();
    assert!((day - 600..=day + 600).contains(&left), "session.idle, and not refresh.idle: {left}");
    assert_eq!(told.get("iat"), None, "when it was rotated is not kept");
    let offline = app.tokens_for(&mut browser, &person, &app.ask().with("scope", "openid offline_access"));
    assert!(app.is_active(&offline.refresh));
    server.must(&["client", "set", &app.id, "--remove-scope", "offline_access"], "");
    app.refresh(&offline.refresh).must_fail(400, "invalid_grant");
    assert!(!app.is_active(&offline.refresh));
}

/// Red without `nothing_left` or `both` in rules/oauth/introspect.rs: what no refresh gets is told as if it did.
#[test]
fn rfc7662_2_2_a_refresh_token_is_active_for_what_its_client_still_registers() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let line = app.tokens_for(&mut browser, &person, &app.ask().with("scope", "openid profile email"));
    let single = app.ask().with("scope", "openid").with("claims", r#"{"userinfo":{"email":null}}"#);
    let single = app.tokens_for(&mut browser, &person, &single);
    assert!(app.is_active(&single.refresh));
    server.must(&["client", "set", &app.id, "--remove-scope", "email"], "");
    assert_eq!(app.introspect(&line.refresh)["scope"], "openid profile");
    assert!(!app.is_active(&single.refresh), "no refresh can leave its claim out");
    app.refresh(&single.refresh).must_fail(400, "invalid_grant");
}

#[test]
fn rfc8252_8_5_the_secret_of_a_native_client_vouches_for_nothing() {
    let server = default_server();
    let app = App::shipped(server, "http://127.0.0.1/cb");
    // The registration cannot say otherwise.
    for more in [["--add-grant", "client_credentials"].as_slice(), &["--resource-server"], &["--pkce", "optional"]] {
        let refused = server.command(&[&["client", "set", &app.id], more].concat(), "");
        assert!(refused.code != 0 && refused.err.contains("native"), "{more:?}: {}", refused.err);
    }
    app.post("/oauth2/introspect", &[("token", "x")]).must_be(401);
}
