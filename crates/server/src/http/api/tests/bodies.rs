//! What a body may contain.

use super::*;

#[tokio::test]
async fn bodies_are_json_objects_without_duplicates_and_of_the_right_types() {
    let server = Server::start(&[]).await;
    let sign_in = || ask("POST", "/signin").from(SHOP);
    let json = "application/json";
    for (kind, content) in [
        (Kind::UnsupportedMediaType, "text/plain"),
        (Kind::UnsupportedMediaType, "application/x-www-form-urlencoded"),
        (Kind::UnsupportedMediaType, "application/json; charset=latin1"),
    ] {
        sign_in().with("content-type", content).raw(&credentials().to_string()).at(&server).await.is(kind);
    }
    for malformed in [
        "",
        "[]",
        "{",
        "null",
        r#"{"client_id":"shop","login":"ada","login":"bob","password":"x"}"#,
        r#"{"client_id":"shop","login":["ada"],"password":"x"}"#,
        r#"{"client_id":"shop","login":"ada","password":null}"#,
        r#"{"client_id":"shop","login":"ada"}"#,
        r#"{"client_id":"shop","login":"ada","password":"x","cookies":"true"}"#,
        r#"{"client_id":7,"login":"ada","password":"x"}"#,
    ] {
        let reply = sign_in().with("content-type", json).raw(malformed).at(&server).await;
        reply.is(Kind::MalformedRequest);
    }
    // Red without `measure` in input.rs.
    let with = |name: &str, value: Value| {
        let mut body = credentials();
        body[name] = value;
        body
    };
    let many: Vec<u8> = vec![0; 60];
    let mut crowd = credentials();
    (0..30).for_each(|at| crowd[format!("m{at}")] = json!(at));
    let deep = (0..70).fold(json!(1), |inside, _| json!([inside]));
    for beyond in [
        crowd,
        with(&"n".repeat(65), json!(1)),
        with("list", json!(many.iter().map(|_| json!({ "a": 1 })).collect::<Vec<_>>())),
        with("list", deep),
        with("text", json!("ä".repeat(16_385))),
    ] {
        sign_in().json(&beyond).at(&server).await.is(Kind::MalformedRequest);
    }
}

/// Red without holds_long_named in input.rs: it would be reported as a text that is too long.
#[tokio::test]
async fn a_long_name_is_told_as_one_at_every_depth() {
    let server = Server::start(&[]).await;
    let with = |value: Value| {
        let mut body = credentials();
        body["x"] = value;
        body
    };
    for below in [json!({ "n".repeat(65): 1 }), json!([[{ "n".repeat(65): 1 }]])] {
        let reply = ask("POST", "/signin").from(SHOP).json(&with(below)).at(&server).await;
        reply.is(Kind::MalformedRequest);
        assert_eq!(reply.text("detail"), "the name of a member has more than 64 characters");
    }
}

#[tokio::test]
async fn texts_are_as_long_as_is_said_and_no_longer() {
    let server = Server::start(&[]).await;
    let sign_in = || ask("POST", "/signin").from(SHOP);
    let with = |name: &str, value: Value| {
        let mut body = credentials();
        body[name] = value;
        body
    };
    for (name, most) in [("client_id", 1024), ("login", 1024), ("password", 4096), ("device_token", 512)] {
        let longest = sign_in().json(&with(name, json!("ä".repeat(most)))).at(&server).await;
        assert_ne!(longest.status, StatusCode::BAD_REQUEST, "{name}: {}", longest.body);
        let longer = sign_in().json(&with(name, json!("ä".repeat(most + 1)))).at(&server).await;
        longer.is(Kind::MalformedRequest);
        assert_eq!(
            (longer.body["fields"][0]["field"].as_str(), longer.body["fields"][0]["code"].as_str()),
            (Some(name), Some("too-long"))
        );
    }
    let long = format!(r#"{{"client_id":"shop","login":"{}","password":"x"}}"#, "a".repeat(4 << 20));
    sign_in().with("content-type", "application/json").raw(&long).at(&server).await.is(Kind::BodyTooLarge);
    let mut known = credentials();
    known["unknown"] = serde_json::json!([1, 2]);
    let utf8 = sign_in().with("content-type", "Application/JSON; charset=UTF-8").raw(&known.to_string());
    assert_eq!(utf8.at(&server).await.status, StatusCode::OK);
}

#[tokio::test]
async fn what_is_wrong_with_a_name_is_said_of_the_name_that_it_is() {
    // Red where `bad_name` in sign_in.rs has one sentence for the characters of both names.
    let server = Server::start(&[("signup.enabled", "true")]).await;
    for (username, email, field, why) in [
        ("a@b", "", "username", "more than one alphabet"),
        ("v\u{456}ctim", "", "username", "more than one alphabet"),
        ("bob", "b\u{f6}b@example.test", "email", "a character that it cannot have"),
    ] {
        let body = json!({ "client_id": "shop", "username": username, "email": email, "password": PASSWORD });
        let refused = ask("POST", "/signup").from(SHOP).json(&body).at(&server).await;
        refused.is(Kind::InvalidFields);
        let told = &refused.body["fields"][0];
        assert_eq!((&told["field"], &told["code"]), (&json!(field), &json!("character")), "{username}");
        assert!(told["detail"].as_str().unwrap().contains(why), "{}", refused.body);
    }
}
