//! RFC 6750 and OpenID Connect Core §5.3: userinfo, and how a token is shown there.

use crate::support::*;

fn fresh() -> (Person, Tokens) {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let tokens = app.tokens(&mut Browser::new(server), &person);
    (person, tokens)
}

#[test]
fn oidc_core_5_3_2_sub_is_that_of_the_id_token() {
    let (person, tokens) = fresh();
    let answer = default_server().send(&Call::get("/oauth2/userinfo").bearer(&tokens.access)).must_be(200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let told = answer.json();
    assert_eq!(told["sub"], jwt(&tokens.id).claims["sub"]);
    assert_eq!(told["email"], person.email);
    assert_eq!(told["preferred_username"], person.name);
    assert_eq!(told.get("groups"), None);
}

/// Whoever is known with everything is told with everything, each claim of its own kind.
#[test]
fn oidc_core_5_4_each_scope_brings_all_of_its_claims() {
    // red without phone_number_verified in rules/oauth/userinfo.rs.
    let server = default_server();
    let app = App::add(server, Grants::Usual, &["--trusted", "--scope", "address phone"]);
    let person = Person::add(server);
    let mut known: Vec<String> = ["name", "given_name", "family_name", "middle_name", "nickname", "gender"]
        .iter()
        .map(|claim| format!("{claim}=Ada"))
        .collect();
    known.extend(["profile", "picture", "website"].map(|claim| format!("{claim}=https://ada.test/{claim}")));
    let rest = ["birthdate=1815-12-10", "zoneinfo=Europe/London", "locale=en-GB", "phone_number=+44 20 7946 0000"];
    known.extend(rest.map(str::to_owned));
    known.push("address=12 St James's Square, London".to_owned());
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    server.must(&[&["user", "set", &person.name], known.as_slice()].concat(), "");
    let listed = server.get("/.well-known/openid-configuration").json();
    for (scope, claims) in [
        (
            "profile",
            "name family_name given_name middle_name nickname preferred_username profile picture website gender \
             birthdate zoneinfo locale updated_at",
        ),
        ("email", "email email_verified"),
        ("address", "address"),
        ("phone", "phone_number phone_number_verified"),
    ] {
        let ask = app.ask().with("scope", &format!("openid {scope}"));
        let tokens = app.tokens_for(&mut Browser::new(server), &person, &ask);
        let mut told = server.send(&Call::get("/oauth2/userinfo").bearer(&tokens.access)).must_be(200).json();
        assert!(told.as_object_mut().unwrap().remove("sub").is_some());
        for claim in claims.split_whitespace() {
            let value = told.as_object_mut().unwrap().remove(claim).unwrap_or_default();
            let fits = match claim {
                "email_verified" | "phone_number_verified" => value.is_boolean(),
                "updated_at" => value.is_number(),
                "address" => value["formatted"].is_string(),
                _ => value.is_string(),
            };
            assert!(fits, "{claim} is {value}");
            assert!(listed["claims_supported"].as_array().unwrap().contains(&claim.into()), "{claim}");
        }
        assert_eq!(told, serde_json::json!({}), "{scope}");
    }
}

#[test]
fn rfc6750_2_header_or_form_but_not_both_and_never_the_query() {
    let server = default_server();
    let (_, tokens) = fresh();
    let form = [("access_token", tokens.access.as_str())];
    server.send(&Call::new("POST", "/oauth2/userinfo").bearer(&tokens.access)).must_be(200);
    server.send(&Call::post("/oauth2/userinfo", &form)).must_be(200);
    let json = Call::new("POST", "/oauth2/userinfo").body("application/json", "{}");
    server.send(&json.clone().bearer(&tokens.access)).must_be(200);
    let both = Call::post("/oauth2/userinfo", &form).bearer(&tokens.access);
    server.send(&both).must_fail(400, "invalid_request");
    let query = format!("/oauth2/userinfo?access_token={}", tokens.access);
    server.get(&query).must_fail(400, "invalid_request");
    let twice = Call::get("/oauth2/userinfo").bearer(&tokens.access).bearer(&tokens.access);
    server.send(&twice).must_fail(400, "invalid_request");
}

#[test]
fn rfc6750_3_1_no_token_is_a_bare_challenge() {
    // §3: "This scheme MUST be followed by one or more auth-param values."
    let bare = Call::get("/oauth2/userinfo");
    let post = Call::new("POST", "/oauth2/userinfo");
    for call in [
        bare.clone(),
        bare.clone().header("authorization", "Basic YTpi"),
        // Red where the scheme was looked at after the space: RFC 9110 §11.4 lets it stand alone.
        bare.clone().header("authorization", "Negotiate"),
        bare.header("authorization", "Digest username=\"a b\", nonce=\"c\""),
        post.clone(),
        // Red without `is_form` in server/http/oauth/userinfo.rs: 415 says nothing of how to come in.
        post.clone().body("application/json", "{}"),
        post.clone().body("application/json", "{}").header("authorization", "Negotiate"),
        post.body("application/x-www-form-urlencoded", ""),
    ] {
        let answer = default_server().send(&call).must_be(401);
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer realm=") && !challenge.contains("error="), "{challenge}");
        assert_eq!(answer.text(), "", "no error to speak of");
    }
}

#[test]
fn rfc9110_11_4_more_than_one_space_may_follow_the_scheme() {
    let (_, tokens) = fresh();
    for scheme in ["Bearer  ", "bearer   "] {
        let call = Call::get("/oauth2/userinfo").header("authorization", &format!("{scheme}{}", tokens.access));
        default_server().send(&call).must_be(200);
    }
}

#[test]
fn rfc6750_3_1_a_bad_token_is_named_as_such() {
    for token in ["nothing", "a.b-c_d~e+f/g=="] {
        let call = Call::get("/oauth2/userinfo").bearer(token);
        let answer = default_server().send(&call).must_fail(401, "invalid_token");
        assert!(answer.header("www-authenticate").unwrap().contains("error=\"invalid_token\""));
    }
}

/// What holds nothing that could be a token (§2.1) is a request to correct; a new token would not help.
#[test]
fn rfc6750_3_1_a_header_that_cannot_be_read_is_a_malformed_request() {
    // red with Error::token in server/http/extract.rs, bearer.
    for line in ["Bearer", "Bearer a b", "Bearer a,b", "Bearer \"a\"", "Bearer a=b", "Bearer =", "Bearer é"] {
        let call = Call::get("/oauth2/userinfo").header("authorization", line);
        let answer = default_server().send(&call).must_fail(400, "invalid_request");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer ") && challenge.contains("error=\"invalid_request\""), "{challenge}");
    }
}

#[test]
fn rfc6750_3_1_without_openid_it_is_insufficient_scope() {
    let server = default_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let tokens = app.tokens_for(&mut Browser::new(server), &person, &app.ask().with("scope", "profile"));
    assert!(tokens.id.is_empty(), "OIDC-2: no openid, no ID token");
    let answer = server.send(&Call::get("/oauth2/userinfo").bearer(&tokens.access));
    let answer = answer.must_fail(403, "insufficient_scope");
    assert!(answer.header("www-authenticate").unwrap().contains("insufficient_scope"));
}

#[test]
fn oidc_core_5_3_1_an_access_token_without_a_person_has_no_userinfo() {
    let server = default_server();
    let app = App::trusted(server);
    let own = Tokens::of(&app.post("/oauth2/token", &[("grant_type", "client_credentials"), ("scope", "api")]));
    let answer = server.send(&Call::get("/oauth2/userinfo").bearer(&own.access));
    assert!([401, 403].contains(&answer.status), "{}", answer.text());
}

#[test]
fn rfc6750_5_an_expired_access_token_is_dead_everywhere() {
    let server = short_server();
    let (app, person) = (App::trusted(server), Person::add(server));
    let mut browser = Browser::of(server, &person);
    // Codes and tokens live for seconds there, which a machine that stands still may miss.
    let alive = (0..5).find_map(|_| {
        let answer = app.redeem(&app.code(&mut browser, &person, &app.ask()));
        let tokens = (answer.status == 200).then(|| Tokens::of(&answer))?;
        app.is_active(&tokens.access).then_some(tokens)
    });
    let tokens = alive.expect("tokens in time");
    let left = jwt(&tokens.access).claims["exp"].as_i64().unwrap() - now();
    assert!(left <= 10);
    std::thread::sleep(std::time::Duration::from_secs(u64::try_from(left + 1).unwrap_or_default()));
    server.send(&Call::get("/oauth2/userinfo").bearer(&tokens.access)).must_fail(401, "invalid_token");
    assert!(!app.is_active(&tokens.access));
}
