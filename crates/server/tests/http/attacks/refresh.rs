//! RT: refresh tokens.

use super::written_down::sid;
use crate::support::*;
use serde_json::Value;

fn setting(server: &'static Server) -> (App, Person, Browser, Tokens) {
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let tokens = app.tokens(&mut browser, &person);
    (app, person, browser, tokens)
}

#[test]
fn rt_01_in_grace_the_predecessor_yields_the_same_successor() {
    // red without Standing::Predecessor in rules/oauth/refresh.rs.
    let (app, _, _, first) = setting(default_server());
    let second = Tokens::of(&app.refresh(&first.refresh));
    let again = Tokens::of(&app.refresh(&first.refresh));
    assert_eq!(second.refresh, again.refresh);
    Tokens::of(&app.refresh(&second.refresh));
}

#[test]
fn rt_01_in_grace_an_older_one_revokes_the_family() {
    // red without Standing::Outdated in rules/oauth/refresh.rs, renew.
    let (app, _, _, first) = setting(default_server());
    let second = Tokens::of(&app.refresh(&first.refresh));
    let third = Tokens::of(&app.refresh(&second.refresh));
    app.refresh(&first.refresh).must_fail(400, "invalid_grant");
    app.refresh(&third.refresh).must_fail(400, "invalid_grant");
}

#[test]
fn rt_01_without_grace_any_reuse_revokes_the_family() {
    // red if `until` of Previous ignored a grace of zero: rules/oauth/refresh.rs, successor and standing.
    let (app, _, _, first) = setting(strict_server());
    let second = Tokens::of(&app.refresh(&first.refresh));
    app.refresh(&first.refresh).must_fail(400, "invalid_grant");
    app.refresh(&second.refresh).must_fail(400, "invalid_grant");
    assert!(!app.is_active(&second.access));
}

#[test]
fn rt_04_another_client_gets_nothing_and_learns_nothing() {
    // red without the comparison of clients in rules/oauth/refresh.rs, renew.
    // Registered before: what a client of that name held before it was registered is refused for another reason.
    let other = App::trusted(default_server());
    let (app, _, _, tokens) = setting(default_server());
    let stolen = other.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
    let invented = other.refresh("nothing").must_fail(400, "invalid_grant");
    assert_eq!(stolen.body, invented.body);
    Tokens::of(&app.refresh(&tokens.refresh));
}

#[test]
fn rt_05_a_scope_only_narrows_and_the_grant_stays() {
    // red without both `narrowed` in rules/oauth/refresh.rs and the look at what was granted in rules/oauth/token.rs (gate).
    let (app, _, _, first) = setting(default_server());
    let with = |token: &str, scope: &str| {
        app.post("/oauth2/token", &[("grant_type", "refresh_token"), ("refresh_token", token), ("scope", scope)])
    };
    with(&first.refresh, "openid email groups").must_fail(400, "invalid_scope");
    with(&first.refresh, "openid offline_access").must_fail(400, "invalid_scope");
    let narrow = Tokens::of(&with(&first.refresh, "openid"));
    assert_eq!(narrow.json["scope"], "openid");
    let told = app.server.send(&Call::get("/oauth2/userinfo").bearer(&narrow.access)).must_be(200).json();
    assert_eq!(told.get("email"), None);
    // Red where id_token in rules/oauth/token.rs looks at what was granted: nobody asked for one (OpenID Connect Core §3.1.2.1).
    let bare = Tokens::of(&with(&narrow.refresh, "email"));
    assert!(!narrow.id.is_empty() && bare.id.is_empty(), "{}", bare.json);
    assert_eq!(bare.json["scope"], "email");
    let wide = Tokens::of(&app.refresh(&bare.refresh));
    assert_eq!(wide.json["scope"], first.json["scope"]);
    assert!(!wide.id.is_empty());
}

#[test]
fn rt_07_a_replay_is_written_down_and_ends_the_family() {
    // red without Kind::RefreshReused in rules/oauth/refresh.rs, renew; or without `about` there.
    let (app, person, browser, first) = setting(strict_server());
    let second = Tokens::of(&app.refresh(&first.refresh));
    app.refresh(&first.refresh).must_fail(400, "invalid_grant");
    assert!(!app.is_active(&second.refresh));
    let line = ["audit", "list", "--kind", "refresh.reused", "--client", &app.id, "--user", &person.name, "--json"];
    let lines: Vec<Value> = serde_json::from_str(&app.server.must(&line, "")).unwrap();
    assert_eq!((lines.len(), &lines[0]["user"]), (1, &jwt(&first.id).claims["sub"]), "{lines:?}");
    assert_eq!(lines[0]["session"], sid(&browser), "{lines:?}");
}

#[test]
fn rt_08_revoked_is_dead_at_every_sink() {
    // red without the look at the family in rules/oauth/introspect.rs, is_live.
    let (app, _, _, tokens) = setting(default_server());
    app.revoke(&tokens.refresh).must_be(200);
    app.server.send(&Call::get("/oauth2/userinfo").bearer(&tokens.access)).must_fail(401, "invalid_token");
    assert!(!app.is_active(&tokens.access) && !app.is_active(&tokens.refresh));
    app.refresh(&tokens.refresh).must_fail(400, "invalid_grant");
    let own = Tokens::of(&app.post("/oauth2/token", &[("grant_type", "client_credentials"), ("scope", "api")]));
    assert!(app.is_active(&own.access));
    app.revoke(&own.access).must_be(200);
    assert!(!app.is_active(&own.access), "CVE-2023-0091");
}

#[test]
fn rt_02_without_offline_access_nothing_outlives_its_session_however_little_is_asked_for() {
    // red without the question in rules/oauth/refresh.rs, carry_on: a narrower scope would go round admit_grant.
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::new(server);
    let tokens = app.tokens_for(&mut browser, &person, &app.ask().with("scope", "openid offline_access"));
    let renewed = Tokens::of(&app.refresh(&tokens.refresh));
    server.must(&["client", "set", &app.id, "--remove-scope", "offline_access"], "");
    for scope in [None, Some("openid")] {
        let mut fields = vec![("grant_type", "refresh_token"), ("refresh_token", renewed.refresh.as_str())];
        fields.extend(scope.map(|scope| ("scope", scope)));
        app.post("/oauth2/token", &fields).must_fail(400, "invalid_grant");
    }
}
