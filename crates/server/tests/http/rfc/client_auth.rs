//! RFC 6749 §2.3, RFC 7523 §3, OpenID Connect Core §9: how applications prove who they are.

use crate::support::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// An application with a key of its own.
pub struct Keyed {
    pub app: App,
    pub key: EcKey,
}

impl Keyed {
    pub fn add(options: &[&str]) -> Keyed {
        Keyed::at(default_server(), options)
    }

    pub fn at(server: &'static Server, options: &[&str]) -> Keyed {
        let key = EcKey::make();
        let file = server.folder.join(unique("jwks"));
        std::fs::write(&file, json!({ "keys": [key.jwk("k1")] }).to_string()).unwrap();
        let id = unique("keyed");
        let file = file.to_str().unwrap();
        let mut line = vec!["client", "add", "--id", &id, "--jwks", file, "--auth-method", "private_key_jwt"];
        line.extend(["--grant", "client_credentials", "--scope", "api"]);
        line.extend(options);
        server.must(&line, "");
        Keyed { app: App { server, secret: None, redirect: String::new(), id: id.clone() }, key }
    }

    pub fn claims(&self) -> Value {
        let (id, issuer) = (&self.app.id, &self.app.server.issuer);
        json!({ "iss": id, "sub": id, "aud": issuer, "iat": now(), "exp": now() + 60, "jti": unique("jti") })
    }

    pub fn assertion(&self, claims: &Value) -> String {
        self.key.sign(&json!({ "alg": "ES256", "kid": "k1" }), claims)
    }

    #[track_caller]
    pub fn present(&self, assertion: &str) -> Answer {
        let fields = [
            ("grant_type", "client_credentials"),
            ("scope", "api"),
            ("client_assertion_type", ASSERTION),
            ("client_assertion", assertion),
        ];
        self.app.server.post("/oauth2/token", &fields)
    }
}

#[test]
fn co_10_an_altered_assertion_proves_nothing() {
    // red if rules/jose/verify.rs checked less than the whole signature.
    let keyed = Keyed::add(&[]);
    let good = keyed.assertion(&keyed.claims());
    for text in near(&good, 3) {
        assert!([400, 401].contains(&keyed.present(&text).status), "{text}");
    }
    keyed.present(&good).must_be(200);
}

#[test]
fn rfc6749_2_3_1_basic_and_post_and_nothing_less() {
    let server = default_server();
    let app = App::trusted(server);
    let grant = [("grant_type", "client_credentials"), ("scope", "api")];
    app.post("/oauth2/token", &grant).must_be(200);
    let mut posted = grant.to_vec();
    posted.extend([("client_id", app.id.as_str()), ("client_secret", SECRET)]);
    server.post("/oauth2/token", &posted).must_be(200);
    posted.pop();
    server.post("/oauth2/token", &posted).must_fail(401, "invalid_client");
    posted.push(("client_secret", "wrong"));
    server.post("/oauth2/token", &posted).must_fail(401, "invalid_client");
    server.post("/oauth2/token", &grant).must_fail(401, "invalid_client");
}

#[test]
fn rfc6749_2_3_1_an_id_with_reserved_characters_is_form_encoded() {
    use base64::Engine as _;
    let server = default_server();
    let id = format!("https://rp.test/{}:x", unique("a"));
    let line = ["client", "add", "--id", &id, "--secret-stdin", "--grant", "client_credentials", "--scope", "api"];
    server.must(&line, SECRET);
    let encoded: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("{encoded}:{SECRET}"));
    let call = Call::post("/oauth2/token", &[("grant_type", "client_credentials")]);
    server.send(&call.header("authorization", &format!("Basic {basic}"))).must_be(200);
}

#[test]
fn rfc6749_2_3_one_method_a_request() {
    let server = default_server();
    let app = App::trusted(server);
    let fields = [("grant_type", "client_credentials"), ("client_secret", SECRET), ("client_id", app.id.as_str())];
    app.post("/oauth2/token", &fields).must_fail(400, "invalid_request");
    let other = [("grant_type", "client_credentials"), ("client_id", "somebody")];
    app.post("/oauth2/token", &other).must_fail(400, "invalid_request");
    let call = app.call("/oauth2/token", &[("grant_type", "client_credentials")]);
    server.send(&call.header("authorization", "Basic YTpi")).must_fail(400, "invalid_request");
}

#[test]
fn rfc6749_5_2_a_failed_basic_gets_a_challenge() {
    let server = default_server();
    let call = Call::post("/oauth2/token", &[("grant_type", "client_credentials")]);
    for line in ["Basic bm9ib2R5Ong=", "Basic !!!", "Basic", "Bearer x", "Basic bm9jb2xvbg=="] {
        let answer = server.send(&call.clone().header("authorization", line)).must_fail(401, "invalid_client");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(
            challenge.starts_with("Basic") && challenge.contains("error=\"invalid_client\""),
            "{line}: {challenge}"
        );
    }
}

#[test]
fn rfc6749_5_2_who_did_not_try_basic_is_not_challenged_to() {
    // Red without `Asking`. Libraries read a challenge and not the body, and a browser shows a window for a password.
    let server = default_server();
    let app = App::web(server);
    let post = |fields: &[(&str, &str)]| {
        Call::post("/oauth2/token", &[&[("grant_type", "client_credentials")], fields].concat())
    };
    let challenge = |call: &Call| {
        let answer = server.send(call).must_fail(401, "invalid_client");
        answer.header("www-authenticate").map(str::to_owned)
    };
    let in_body = post(&[("client_id", &app.id), ("client_secret", "wrong")]);
    assert_eq!(challenge(&in_body), None);
    let alone = post(&[("client_id", &app.id)]);
    let told = challenge(&alone).expect("nothing was tried");
    assert!(told.contains("no secret and no assertion"), "{told}");
    assert!(challenge(&post(&[])).is_some());
    let basic = format!("Basic {}", STANDARD.encode(format!("{}:wrong", app.id)));
    let by_node = post(&[]).header("authorization", &basic).header("sec-fetch-mode", "cors");
    assert!(challenge(&by_node).is_some(), "that is no page");
    for (name, value) in [("origin", "https://evil.test"), ("sec-fetch-site", "cross-site")] {
        for call in [&in_body, &alone, &post(&[]), &post(&[]).header("authorization", &basic)] {
            assert_eq!(challenge(&call.clone().header(name, value)), None, "{name}");
        }
        let signs_in = Call::new("POST", "/api/v1/signin").body("application/json", r#"{"login":"x","password":"y"}"#);
        let answer = server.send(&signs_in.header(name, value));
        let challenge = answer.header("www-authenticate").unwrap_or_default();
        assert!(!challenge.starts_with("Basic"), "{name}: {} {challenge}", answer.status);
    }
}

#[test]
fn oidc_core_9_only_the_registered_method_counts() {
    let server = default_server();
    let app = App::add(server, Grants::All, &["--auth-method", "client_secret_post"]);
    let grant = [("grant_type", "client_credentials"), ("scope", "api")];
    app.post("/oauth2/token", &grant).must_fail(401, "invalid_client");
    let mut posted = grant.to_vec();
    posted.extend([("client_id", app.id.as_str()), ("client_secret", SECRET)]);
    server.post("/oauth2/token", &posted).must_be(200);
    let public = App::public(server, "https://spa.test/cb", &[]);
    let fields = [("grant_type", "refresh_token"), ("refresh_token", "x"), ("client_secret", SECRET)];
    public.post("/oauth2/token", &fields).must_fail(401, "invalid_client");
}

#[test]
fn rfc7523_3_a_signed_assertion_proves_the_client() {
    let keyed = Keyed::add(&[]);
    keyed.present(&keyed.assertion(&keyed.claims())).must_be(200);
    let typed = keyed.key.sign(&json!({ "alg": "ES256", "typ": "JWT" }), &keyed.claims());
    keyed.present(&typed).must_be(200);
}

#[test]
fn rfc7523_3_each_claim_of_an_assertion_is_checked() {
    let keyed = Keyed::add(&[]);
    let endpoint = format!("{}/oauth2/token", keyed.app.server.issuer);
    let issuer = keyed.app.server.issuer.clone();
    for (claim, value) in [
        ("iss", json!("somebody")),
        ("sub", json!("somebody")),
        ("aud", json!("https://other.test")),
        ("aud", json!(endpoint)),
        ("aud", json!([issuer, "https://other.test"])),
        ("aud", json!([])),
        ("aud", json!(5)),
        ("exp", json!(now() - 61)),
        ("exp", json!(now() + 2 * 3600)),
        ("exp", Value::Null),
        ("exp", json!("9999999999")),
        ("nbf", json!(now() + 120)),
        ("iat", json!(now() + 120)),
        ("jti", Value::Null),
        ("jti", json!("")),
        ("jti", json!(7)),
    ] {
        let mut claims = keyed.claims();
        claims[claim] = value.clone();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(claim);
        }
        let answer = keyed.present(&keyed.assertion(&claims));
        assert_eq!((answer.status, answer.error().as_str()), (401, "invalid_client"), "{claim}: {value}");
    }
}

#[test]
fn oidc_core_9_the_token_endpoint_is_an_audience_where_the_client_is_set_so() {
    let keyed = Keyed::add(&["--assertion-aud-endpoint"]);
    let mut claims = keyed.claims();
    claims["aud"] = json!(format!("{}/oauth2/token", keyed.app.server.issuer));
    keyed.present(&keyed.assertion(&claims)).must_be(200);
    // RFC 7519 §4.1.3, as libraries of before RFC 7523 was tightened write it; for us alone all the same.
    let (issuer, strict) = (&keyed.app.server.issuer, Keyed::add(&[]));
    for (by, audience, status) in [
        (&keyed, json!([issuer]), 200),
        (&keyed, json!([issuer, "https://other.test"]), 401),
        (&keyed, json!([]), 401),
        (&strict, json!([issuer]), 401),
    ] {
        let mut claims = by.claims();
        claims["aud"] = audience.clone();
        assert_eq!(by.present(&by.assertion(&claims)).status, status, "{audience}");
    }
}

#[test]
fn rfc7523_3_a_key_of_somebody_else_proves_nothing() {
    let (one, two) = (Keyed::add(&[]), Keyed::add(&[]));
    one.present(&two.assertion(&one.claims())).must_fail(401, "invalid_client");
    let fields = [
        ("grant_type", "client_credentials"),
        ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"),
        ("client_assertion", &one.assertion(&one.claims())),
    ];
    one.app.server.post("/oauth2/token", &fields).must_fail(401, "invalid_client");
    let named = [
        ("grant_type", "client_credentials"),
        ("client_id", &two.app.id),
        ("client_assertion_type", ASSERTION),
        ("client_assertion", &one.assertion(&one.claims())),
    ];
    one.app.server.post("/oauth2/token", &named).must_fail(400, "invalid_request");
}

#[test]
fn jw_08_an_assertion_is_used_once_at_any_endpoint() {
    // red without Change::UseAssertion in rules/oauth/client_auth.rs, assert; or App::use_up in app/token.rs.
    let keyed = Keyed::add(&[]);
    let assertion = keyed.assertion(&keyed.claims());
    keyed.present(&assertion).must_be(200);
    keyed.present(&assertion).must_fail(401, "invalid_client");
    // Red without `not_proved` in app/token.rs, use_up.
    let refused = keyed.app.server.must(&["audit", "strangers", "--limit", "1000", "--json"], "");
    let rows: Vec<Value> = serde_json::from_str(&refused).unwrap();
    let of_it = |row: &&Value| row["what"] == "client" && row["client"] == keyed.app.id.as_str();
    assert_eq!(rows.iter().filter(of_it).count(), 1, "{refused}");
    let other = keyed.assertion(&keyed.claims());
    let fields = [("token", "x"), ("client_assertion_type", ASSERTION), ("client_assertion", other.as_str())];
    keyed.app.server.post("/oauth2/introspect", &fields).must_be(200);
    keyed.app.server.post("/oauth2/revoke", &fields).must_fail(401, "invalid_client");
    keyed.present(&other).must_fail(401, "invalid_client");
    // Red where the grant is looked at first.
    for grant in [Some("password"), None] {
        let third = keyed.assertion(&keyed.claims());
        let mut fields = vec![("client_assertion_type", ASSERTION), ("client_assertion", third.as_str())];
        fields.extend(grant.map(|grant| ("grant_type", grant)));
        let asked = keyed.app.server.post("/oauth2/token", &fields);
        assert_eq!(
            asked.must_be(400).error(),
            if grant.is_some() { "unsupported_grant_type" } else { "invalid_request" }
        );
        keyed.present(&third).must_fail(401, "invalid_client");
    }
}

#[test]
fn rc_06_parallel_uses_of_one_assertion_count_once() {
    // red without the unique key of store/tables (assertions): UseAssertion.
    let keyed = Keyed::add(&[]);
    let assertion = keyed.assertion(&keyed.claims());
    let won = at_once(50, |_| keyed.present(&assertion).status).into_iter().filter(|status| *status == 200).count();
    assert_eq!(won, 1);
}

#[test]
fn jw_01_02_05_10_11_14_forged_assertions_prove_nothing() {
    // red without Header::check in rules/jose/verify.rs (algs, FORBIDDEN, kid), or Claims::check (types of claims).
    let keyed = Keyed::add(&[]);
    let own = EcKey::make();
    let claims = keyed.claims();
    let header = |extra: Value| {
        let mut header = json!({ "alg": "ES256", "kid": "k1" });
        header.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        header
    };
    let unsigned =
        |alg: &Value| format!("{}.{}.", encode(json!({ "alg": alg }).to_string()), encode(claims.to_string()));
    let mut forged: Vec<String> =
        [json!("none"), json!("None"), json!("nOnE"), json!(""), Value::Null].iter().map(unsigned).collect();
    forged.push(format!("{}.{}.", encode("{}"), encode(claims.to_string())));
    forged.extend([
        keyed.key.sign(&header(json!({ "crit": ["x"] })), &claims),
        keyed.key.sign(&header(json!({ "b64": false })), &claims),
        keyed.key.sign(&header(json!({ "jku": "http://127.0.0.1:9/jwks" })), &claims),
        own.sign(&header(json!({ "jwk": own.jwk("k1") })), &claims),
        own.sign(&header(json!({ "kid": "../../../dev/null" })), &claims),
        own.sign(&header(json!({ "kid": "' OR 1=1--" })), &claims),
        own.sign(&header(json!({ "kid": "k".repeat(64 * 1024) })), &claims),
        own.sign(&header(json!({ "kid": "k\u{0}1" })), &claims),
        keyed.key.sign(&header(json!({ "alg": "RS256" })), &claims),
        keyed.key.sign(&header(json!({ "typ": "at+jwt" })), &claims),
        format!("{}.a.b.c.d", encode(r#"{"alg":"PBES2-HS256+A128KW","enc":"A128GCM","p2c":2147483647}"#)),
        ".".repeat(2),
        ".".repeat(900),
        "a.b.c".into(),
        String::from("é.é.é"),
        "..".repeat(5_000),
    ]);
    for value in [r#""9999999999""#, "true", "[]", "{}", "1e400", "-1", "1.5e308"] {
        for claim in ["exp", "nbf", "iat"] {
            let mut raw: Value = claims.clone();
            raw.as_object_mut().unwrap().remove(claim);
            let text = raw.to_string();
            let text = format!("{},\"{claim}\":{value}}}", &text[..text.len() - 1]);
            forged.push(keyed.sign_text(&text));
        }
    }
    for (at, assertion) in forged.iter().enumerate() {
        let answer = keyed.present(assertion);
        assert!([400, 401, 413].contains(&answer.status), "{at}: {} {assertion:.120}", answer.status);
    }
    keyed.present(&keyed.assertion(&claims)).must_be(200);
}

impl Keyed {
    /// Signs claims that a JSON library would not write.
    fn sign_text(&self, claims: &str) -> String {
        self.key.sign_raw(r#"{"alg":"ES256","kid":"k1"}"#, claims)
    }
}

#[test]
fn rfc6749_2_3_1_a_secret_may_be_encoded_or_not() {
    // red without Basic::plain in server/http/extract.rs. Half of the libraries send it as it is.
    let server = default_server();
    let secret = "k9+XbV%2fQ7w=Zr3LtY0 u8Hs5Jd1Nf6Pg4Ca2Me";
    let app = App { secret: Some(secret), id: unique("plus"), server, redirect: String::new() };
    let line = ["client", "add", "--id", &app.id, "--grant", "client_credentials", "--scope", "api", "--secret-stdin"];
    server.must(&line, secret);
    let ask = |header: String| {
        let call = Call::post("/oauth2/token", &[("grant_type", "client_credentials")]);
        server.send(&call.header("authorization", &header)).status
    };
    let plainly = |secret: &str| format!("Basic {}", STANDARD.encode(format!("{}:{secret}", app.id)));
    assert_eq!((ask(app.basic()), ask(plainly(secret))), (200, 200));
    assert_eq!((ask(plainly(&secret.replace('+', " "))), ask(plainly(""))), (401, 401));
}

#[test]
fn rfc6749_3_3_a_scope_of_nothing_is_left_out() {
    let server = default_server();
    let app = App { server, id: unique("bare"), secret: Some(SECRET), redirect: String::new() };
    server.must(
        &["client", "add", "--id", &app.id, "--grant", "client_credentials", "--scope", "openid", "--secret-stdin"],
        SECRET,
    );
    let answer = app.post("/oauth2/token", &[("grant_type", "client_credentials")]).must_be(200).json();
    let token = answer["access_token"].as_str().unwrap();
    assert_eq!(
        (answer.get("scope"), jwt(token).claims.get("scope"), app.introspect(token).get("scope")),
        (None, None, None)
    );
    assert_eq!(app.introspect(token)["active"], true);
}
