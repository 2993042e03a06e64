//! An application that exceeds its own rate.

use super::*;
use app::admin::clients::ClientSecret;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::scope::Scope;
use rules::secret::Secret;
use serde_json::{Value, json};

const SECRET: &str = "0123456789012345678901234567890123456789abc";
/// The most at once: for an application that shows who it is, and for the failures of an address.
const OWN: &str = "6";
const ADDRESS: &str = "5";

/// Opens a house with two applications, at any address.
async fn house() -> House {
    let house = House::with_ada(&[
        ("limits.requests_per_client", "3"),
        ("limits.failures_burst", ADDRESS),
        ("limits.failures_per_address", "10"),
    ])
    .await;
    for id in ["loops", "quiet"] {
        let client = Client {
            grants: vec![Grant::AuthorizationCode, Grant::RefreshToken, Grant::ClientCredentials, Grant::DeviceCode],
            scope: Scope::parse("openid orders").unwrap(),
            auth_methods: vec![AuthMethod::Post],
            first_party: true,
            ..Client::new(id, vec![format!("https://{id}.example.test/callback")])
        };
        let secret = ClientSecret::Given(Secret::new(SECRET));
        house.instance.app.add_client(client, secret).await.unwrap().unwrap();
    }
    house
}

/// Makes a request for every door at which an application shows who it is.
fn doors(id: &str, secret: &str) -> Vec<Ask> {
    let form = |path: &str, fields: &[(&str, &str)]| {
        Ask::post(path, &[fields, &[("client_id", id), ("client_secret", secret)]].concat())
    };
    let json = |path: &str, mut body: Value| {
        (body["client_id"], body["client_secret"]) = (json!(id), json!(secret));
        Ask { body: body.to_string(), ..Ask::new("POST", path).with("content-type", "application/json") }
    };
    vec![
        form("/oauth2/token", &[("grant_type", "client_credentials")]),
        form("/oauth2/introspect", &[("token", "t")]),
        form("/oauth2/revoke", &[("token", "t")]),
        form("/oauth2/device", &[("scope", "openid")]),
        json("/api/v1/signin", json!({ "login": "ada", "password": PASSWORD })),
        json("/api/v1/refresh", json!({ "refresh_token": "t" })),
    ]
}

#[tokio::test]
async fn an_application_over_its_own_rate_keeps_nobody_out_who_shares_its_address() {
    // Red without is_over_its_rate in http/door.rs, settled; and, if it fails when let in, without its standing there.
    let house = house().await;
    for (at, ask) in doors("loops", SECRET).into_iter().enumerate() {
        let ask = ask.from(&format!("192.0.2.{at}"));
        let mut refused = 0;
        while refused < 20 {
            let reply = ask.clone().at(&house).await;
            assert_eq!(reply.header("ratelimit-limit"), Some(OWN), "{}: {} {}", ask.path, reply.status, reply.text);
            refused += u32::from(reply.status == 429);
        }
        assert_eq!(Ask::get("/oauth2/jwks").from(&ask.from).at(&house).await.status, 200, "{}", ask.path);
        let quiet = doors("quiet", SECRET).swap_remove(at).from(&ask.from).at(&house).await;
        let fails = ask.path == "/api/v1/refresh";
        assert_eq!(quiet.status, if fails { 401 } else { 200 }, "{}: {}", ask.path, quiet.text);
        assert_eq!(quiet.header("ratelimit-limit"), Some(OWN), "{}", ask.path);
    }
}

#[tokio::test]
async fn whoever_only_says_that_they_are_an_application_is_held_to_account_where_they_are() {
    // Red where the rate of an application is checked before it has shown who it is.
    let house = house().await;
    for (at, ask) in doors("loops", "made up").into_iter().enumerate() {
        let ask = ask.from(&format!("192.0.2.{at}"));
        let mut reply = ask.clone().at(&house).await;
        assert_eq!(reply.status, 401, "{}: {}", ask.path, reply.text);
        while reply.status != 429 {
            assert_eq!(reply.header("ratelimit-limit"), Some(ADDRESS), "{}", ask.path);
            reply = ask.clone().at(&house).await;
        }
        assert_eq!(reply.header("ratelimit-limit"), Some(ADDRESS), "{}", ask.path);
        let real = doors("loops", SECRET).swap_remove(at).from(&format!("198.51.100.{at}")).at(&house).await;
        assert_ne!(real.status, 429, "{}: nobody uses up another's", ask.path);
    }
}
