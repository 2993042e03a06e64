//! The answers to pages of other origins, and what those pages may read of them: without a socket.

use super::*;
use crate::admission::Permit;
use crate::http::tests::House;
use crate::net::{Peer, client_address};
use app::admin::clients::ClientSecret;
use http_body_util::BodyExt;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::scope::Scope;
use tower::ServiceExt;

const APP: &str = "https://app.example.test";
const SHOP: &str = "https://shop.example.test";
const NATIVE: &str = "http://localhost:21010";
const BY_ANY_PAGE: [&str; 2] = ["/.well-known/openid-configuration", "/oauth2/jwks"];
const FORM: &str = "application/x-www-form-urlencoded";

fn client(id: &str, origin: &str) -> Client {
    Client {
        grants: vec![Grant::AuthorizationCode],
        scope: Scope::parse("openid").unwrap(),
        auth_methods: vec![AuthMethod::None],
        ..Client::new(id, vec![format!("{origin}/cb")])
    }
}

/// Opens a house with a single-page application, a first-party one and a native one, none of which is remembered yet.
async fn house(options: &[(&'static str, &str)]) -> House {
    let house = House::open(options).await;
    let shop = Client { first_party: true, ..client("shop", SHOP) };
    let native = Client { native: true, first_party: true, ..client("native", NATIVE) };
    for client in [client("app", APP), shop, native] {
        house.instance.app.add_client(client, ClientSecret::Nothing).await.unwrap().unwrap();
    }
    house
}

/// Sends a request as a page of `origin` would.
async fn ask(house: &House, asked: (&str, &str), origin: &str, body: &'static str) -> Response {
    ask_of("id.example.test", house, asked, origin, body).await
}

async fn ask_of(host: &str, house: &House, (method, path): (&str, &str), origin: &str, body: &'static str) -> Response {
    let peer = Peer { address: "192.0.2.7:4000".parse().unwrap(), tls: true };
    let request = Request::builder().method(method).uri(path).header("host", host).extension(peer);
    let request = request.header("origin", origin).header("content-type", FORM).body(Body::from(body));
    house.doors.clone().oneshot(request.unwrap()).await.unwrap()
}

async fn preflight_of(house: &House, path: &str, origin: &str) -> Response {
    ask(house, ("OPTIONS", path), origin, "").await
}

fn said<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

fn reader(response: &Response) -> Option<&str> {
    said(response, "access-control-allow-origin")
}

/// Makes the house remember which origins there are.
async fn remembered(house: &House) {
    assert!(house.site.app.is_registered_origin(APP).await.unwrap());
}

/// Returns the response once it has that status: for 429, the address has failed as often as it may, and one of its
/// failures is forgiven each second.
async fn put_off(house: &House, status: u16, asked: (&str, &str), origin: &str) -> Response {
    for _ in 0..100 {
        while status == 429 && ask(house, ("GET", "/nothing"), origin, "").await.status() != status {}
        let response = ask(house, asked, origin, "").await;
        if response.status() == status {
            return response;
        }
    }
    panic!("{asked:?} of {origin} is never told {status}")
}

/// Takes the only place for applications' requests.
async fn full(house: &House) -> Option<Permit> {
    let peer = Peer { address: "127.0.0.1:4000".parse().unwrap(), tls: true };
    let client = client_address(&peer, &HeaderMap::new(), &house.site.proxies);
    house.site.admission.enter(Pace::Tokens, &client).await.unwrap()
}

#[tokio::test]
async fn the_preflight_of_an_application_is_answered_whatever_its_request_is_told() {
    // Red without the answer from memory: a browser tells its page nothing of a preflight that is refused.
    let rates = [("limits.failures_burst", "2"), ("limits.failures_per_address", "1")];
    let narrow = [("limits.tokens", "1"), ("limits.max_wait", "10ms")];
    for (options, status) in [(rates, 429), (narrow, 503)] {
        let house = house(&options).await;
        remembered(&house).await;
        let held = if status == 503 { full(&house).await } else { None };
        for (origin, path) in [(APP, "/oauth2/token"), (APP, "/oauth2/userinfo"), (SHOP, "/api/v1/me")] {
            let method = if path == "/oauth2/token" { "POST" } else { "GET" };
            let refused = put_off(&house, status, (method, path), origin).await;
            assert_eq!(reader(&refused), Some(origin), "{status} {path}");
            assert!(said(&refused, "retry-after").is_some(), "{path}");
            assert!(said(&refused, "access-control-expose-headers").unwrap().contains("retry-after"), "{path}");
            let preflight = preflight_of(&house, path, origin).await;
            assert_eq!((preflight.status().as_u16(), reader(&preflight)), (204, Some(origin)), "{status} {path}");
            assert!(said(&preflight, "access-control-allow-headers").unwrap().contains("x-requested-with"), "{path}");
        }
        for path in BY_ANY_PAGE {
            assert_eq!(preflight_of(&house, path, APP).await.status(), 204, "{status} {path}");
        }
        // An origin that is none of them is counted, and waits.
        for (origin, path) in [("https://evil.test", "/oauth2/token"), (APP, "/api/v1/me")] {
            let preflight = put_off(&house, status, ("OPTIONS", path), origin).await;
            assert_eq!(reader(&preflight), None, "{origin} {path}");
        }
        drop(held);
    }
}

#[tokio::test]
async fn a_preflight_of_what_is_no_application_any_more_lets_its_page_read_nothing() {
    // Red where the memory also decides about the response.
    let house = house(&[]).await;
    remembered(&house).await;
    house.instance.app.remove_client(&"app".into()).await.unwrap().unwrap();
    assert_eq!(preflight_of(&house, "/oauth2/token", APP).await.status(), 204, "as far as is remembered");
    let told = ask(&house, ("POST", "/oauth2/token"), APP, "grant_type=refresh_token&client_id=app").await;
    assert_eq!((told.status().as_u16(), reader(&told)), (401, None));
    let preflight = preflight_of(&house, "/oauth2/token", APP).await;
    assert_eq!((preflight.status().as_u16(), reader(&preflight)), (403, None));
}

#[tokio::test]
async fn while_the_database_is_away_applications_read_that_and_nothing_is_held_against_strangers() {
    // Red where an origin that the database cannot look up counts as a stranger's: 403, and a failure of its address.
    let both = [(APP, "/oauth2/token"), (SHOP, "/api/v1/signin")];
    let house = house(&[]).await;
    house.instance.database.close();
    for (origin, path) in both {
        let preflight = preflight_of(&house, path, origin).await;
        assert_eq!((preflight.status().as_u16(), reader(&preflight)), (503, None), "{path}");
        assert!(said(&preflight, "retry-after").is_some() && said(&preflight, "ratelimit-limit").is_none());
    }
    let house = self::house(&[]).await;
    remembered(&house).await;
    house.instance.database.close();
    for (origin, path) in both {
        let preflight = preflight_of(&house, path, origin).await;
        assert_eq!((preflight.status().as_u16(), reader(&preflight)), (204, Some(origin)), "{path}");
    }
    let told = ask(&house, ("POST", "/oauth2/revoke"), APP, "client_id=app&token=t").await;
    assert_eq!((told.status().as_u16(), reader(&told)), (503, Some(APP)));
}

#[tokio::test]
async fn a_disabled_application_reads_that_it_is_refused() {
    // Red where app/cache.rs omits the origins of disabled applications.
    let house = house(&[]).await;
    for id in ["app", "shop"] {
        house.instance.app.set_client_enabled(&id.into(), false).await.unwrap().unwrap();
    }
    assert_eq!(preflight_of(&house, "/oauth2/userinfo", APP).await.status(), 204);
    let told = ask(&house, ("POST", "/oauth2/token"), APP, "grant_type=refresh_token&client_id=app").await;
    assert_eq!((told.status().as_u16(), reader(&told)), (401, Some(APP)));
    let body = told.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("invalid_client"), "{body:?}");
    let preflight = preflight_of(&house, "/api/v1/me", SHOP).await;
    assert_eq!((preflight.status().as_u16(), reader(&preflight)), (403, None), "it is none of the house any more");
}

#[tokio::test]
async fn cs_04_a_page_at_another_loopback_port_reads_nothing() {
    // Red if the port could vary for pages as it does for redirect URIs of native clients.
    let house = house(&[]).await;
    for (origin, reads, status) in [(NATIVE, Some(NATIVE), 204), ("http://localhost:21011", None, 403)] {
        let told = ask(&house, ("POST", "/oauth2/token"), origin, "grant_type=refresh_token&client_id=native").await;
        assert_eq!(reader(&told), reads);
        assert_eq!(said(&told, "access-control-allow-credentials"), None);
        for path in ["/oauth2/userinfo", "/api/v1/me"] {
            assert_eq!(preflight_of(&house, path, origin).await.status(), status, "{origin} {path}");
        }
    }
}

#[tokio::test]
async fn whoever_may_read_the_metadata_may_read_when_to_come_back() {
    // Red without EXPOSED in `opened`.
    let house = house(&[("limits.failures_burst", "2"), ("limits.failures_per_address", "1")]).await;
    for status in [200, 429] {
        for path in BY_ANY_PAGE {
            let told = put_off(&house, status, ("GET", path), "https://any.test").await;
            assert_eq!(reader(&told), Some("*"), "{status} {path}");
            let exposed = said(&told, "access-control-expose-headers").unwrap();
            assert!(["retry-after", "ratelimit-reset", "x-request-id"].iter().all(|name| exposed.contains(name)));
        }
    }
}

#[tokio::test]
async fn whoever_has_the_address_wrong_is_told_so_and_takes_it_for_nothing_else() {
    // Red without `of_metadata` in http/front.rs, or with a page for programs in http/pages/home.rs, nothing.
    let house = house(&[]).await;
    let (ours, another) = ("id.example.test", "elsewhere.test");
    for (host, path, status) in [
        (ours, "/.well-known/none", 404),
        (ours, "/other/.well-known/openid-configuration", 404),
        (ours, "/.well-known/none/of/ours", 404),
        (ours, "/oauth2/none", 404),
        (ours, "/none", 404),
        (another, "/.well-known/openid-configuration", 421),
        (another, "/oauth2/jwks", 421),
        (another, "/login", 421),
    ] {
        let told = ask_of(host, &house, ("GET", path), APP, "").await;
        let reads = path.contains("/.well-known/").then_some("*");
        assert_eq!((told.status().as_u16(), reader(&told)), (status, reads), "{host} {path}");
        let for_programs = path.starts_with("/.well-known/") || path.starts_with("/oauth2/");
        assert_eq!(said(&told, "content-type") == Some("application/json"), for_programs, "{host} {path}");
    }
}
