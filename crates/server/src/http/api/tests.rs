use super::problem::Kind;
use super::table::{ME, OPERATIONS};
use super::{BASE, openapi};
use crate::boot::Instance;
use crate::http::tests::{House, ISSUER};
use crate::net::Peer;
use app::admin::clients::ClientSecret;
use app::sign_up::NewPerson;
use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::header::{self, HeaderMap};
use hyper::{Request, StatusCode};
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::scope::Scope;
use rules::people::Role;
use rules::secret::Secret;
use rules::time::Span;
use serde_json::{Value, json};
use std::time::Duration;
use store::tables::fences::{self, Fence};
use tower::ServiceExt;

mod bodies;

const SHOP: &str = "https://shop.example.test";
const OTHER: &str = "https://other.example.test";
const SECRET: &str = "0123456789012345678901234567890123456789abc";
const PASSWORD: &str = "violet kettle drum 42";

/// A server without a socket: the doors over a real instance in a folder of its own.
struct Server {
    doors: Router,
    instance: Instance,
    _folder: tempfile::TempDir,
}

struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl Reply {
    fn text(&self, name: &str) -> &str {
        self.body[name].as_str().unwrap_or_else(|| panic!("no {name} in {} {}", self.status, self.body))
    }
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
    /// Returns the cookies that it sets, as a browser sends them back, without those that it removes.
    fn cookies(&self) -> String {
        let set = self.headers.get_all(header::SET_COOKIE).iter().map(|value| value.to_str().unwrap());
        let pairs = set.map(|line| line.split(';').next().unwrap()).filter(|pair| !pair.ends_with('='));
        pairs.collect::<Vec<_>>().join("; ")
    }
    #[track_caller]
    fn is(&self, kind: Kind) {
        assert_eq!((self.status.as_u16(), &self.body["code"]), (kind.status(), &json!(kind.slug())), "{}", self.body);
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        assert_eq!(self.text("type"), format!("{ISSUER}/api/v1/problems/{}", kind.slug()));
        assert_eq!(self.body["status"], json!(kind.status()));
        assert_eq!(self.header("cache-control"), Some("no-store"));
    }
}

/// A request, assembled from left to right.
struct Ask(axum::http::request::Builder, Option<String>);

fn ask(method: &str, path: &str) -> Ask {
    let peer = Peer { address: "192.0.2.7:4000".parse().unwrap(), tls: true };
    let to = format!("{BASE}{path}");
    Ask(Request::builder().method(method).uri(to).header("host", "id.example.test").extension(peer), None)
}

impl Ask {
    fn with(self, name: &str, value: &str) -> Self {
        Ask(self.0.header(name, value), self.1)
    }
    fn from(self, origin: &str) -> Self {
        self.with("origin", origin)
    }
    fn bearer(self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }
    fn json(self, body: &Value) -> Self {
        self.with("content-type", "application/json").raw(&body.to_string())
    }
    fn raw(self, body: &str) -> Self {
        Ask(self.0, Some(body.to_owned()))
    }
    async fn at(self, server: &Server) -> Reply {
        let request = self.0.body(self.1.map_or_else(Body::empty, Body::from)).unwrap();
        let response = server.doors.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Reply { status: parts.status, headers: parts.headers, body }
    }
}

fn client(id: &str, origin: &str, secret: bool) -> Client {
    Client {
        grants: vec![Grant::AuthorizationCode, Grant::RefreshToken],
        scope: Scope::parse("openid profile").unwrap(),
        auth_methods: if secret { vec![AuthMethod::Basic, AuthMethod::Post] } else { vec![AuthMethod::None] },
        first_party: true,
        ..Client::new(id, vec![format!("{origin}/callback")])
    }
}

impl Server {
    async fn start(options: &[(&'static str, &str)]) -> Self {
        let House { doors, instance, folder, .. } = House::open(options).await;
        let app = &instance.app;
        for (client, secret) in [
            (client("shop", SHOP, false), ClientSecret::Nothing),
            (client("backend", "https://backend.example.test", true), ClientSecret::Given(Secret::new(SECRET))),
            (Client { first_party: false, ..client("stranger", OTHER, false) }, ClientSecret::Nothing),
        ] {
            app.add_client(client, secret).await.unwrap().unwrap();
        }
        let ada = NewPerson::new("ada", "ada@example.test", PASSWORD.as_bytes());
        app.add_user(&ada, Role::Member).await.unwrap().unwrap();
        Server { doors, instance, _folder: folder }
    }

    async fn sign_in(&self) -> Reply {
        let reply = ask("POST", "/signin").from(SHOP).json(&credentials()).at(self).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
        reply
    }

    async fn sign_in_with_cookies(&self) -> Reply {
        let mut body = credentials();
        body["cookies"] = json!(true);
        let reply = ask("POST", "/signin").from(SHOP).json(&body).at(self).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
        reply
    }

    async fn me(&self, token: &str) -> Reply {
        ask("GET", "/me").bearer(token).at(self).await
    }
}

fn credentials() -> Value {
    json!({ "client_id": "shop", "login": "ada", "password": PASSWORD })
}

#[tokio::test]
async fn signing_in_gives_tokens_for_the_account_api_and_nothing_else() {
    let server = Server::start(&[]).await;
    let signed_in = server.sign_in().await;
    assert_eq!((signed_in.text("next"), signed_in.text("token_type")), ("done", "Bearer"));
    assert_eq!((signed_in.text("scope"), &signed_in.body["expires_in"]), ("account", &json!(900)));
    assert_eq!(signed_in.header("cache-control"), Some("no-store"));
    assert!(signed_in.cookies().is_empty(), "no cookie unless asked for");
    let token = signed_in.text("access_token");
    let me = server.me(token).await;
    assert_eq!((me.status, me.text("preferred_username")), (StatusCode::OK, "ada"));
    assert_eq!((me.text("email"), &me.body["email_verified"]), ("ada@example.test", &json!(true)));
    assert!(me.body.get("csrf_token").is_none());
    // Userinfo accepts only the issuer's audience.
    let userinfo = server.instance.app.userinfo(token).await.unwrap();
    assert!(userinfo.is_err());
}

#[tokio::test]
async fn every_operation_of_the_table_has_its_door() {
    let server = Server::start(&[]).await;
    for operation in OPERATIONS {
        let reply = ask(operation.method, operation.path).with("content-type", "text/plain").raw("x").at(&server).await;
        let expected = if operation.path == ME.path { Kind::TokenRefused } else { Kind::UnsupportedMediaType };
        reply.is(expected);
        let wrong = ask("DELETE", operation.path).at(&server).await;
        wrong.is(Kind::MethodNotAllowed);
        assert!(wrong.header("allow").unwrap().contains(operation.method));
    }
    ask("GET", "/nothing").at(&server).await.is(Kind::NotFound);
}

#[tokio::test]
async fn an_application_proves_itself_by_origin_or_by_its_registered_method() {
    let server = Server::start(&[]).await;
    let body = credentials();
    let sign_in = || ask("POST", "/signin");
    sign_in().json(&body).at(&server).await.is(Kind::ClientRefused);
    sign_in().from(OTHER).json(&body).at(&server).await.is(Kind::OriginRefused);
    sign_in().from("null").json(&body).at(&server).await.is(Kind::OriginRefused);
    let stranger = json!({ "client_id": "stranger", "login": "ada", "password": PASSWORD });
    sign_in().from(OTHER).json(&stranger).at(&server).await.is(Kind::ClientRefused);
    let unknown = json!({ "client_id": "nobody", "login": "ada", "password": PASSWORD });
    sign_in().from(SHOP).json(&unknown).at(&server).await.is(Kind::ClientRefused);

    let mut backend = json!({ "client_id": "backend", "login": "ada", "password": PASSWORD });
    sign_in().json(&backend).at(&server).await.is(Kind::ClientRefused);
    use base64::Engine as _;
    let basic = |secret: &str| {
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("backend:{secret}")))
    };
    let by_header = sign_in().with("authorization", &basic(SECRET)).json(&backend).at(&server).await;
    assert_eq!(by_header.status, StatusCode::OK, "{}", by_header.body);
    sign_in().with("authorization", &basic("wrong")).json(&backend).at(&server).await.is(Kind::ClientRefused);
    sign_in().from(SHOP).with("authorization", &basic(SECRET)).json(&backend).at(&server).await.is(Kind::OriginRefused);
    backend["client_secret"] = json!(SECRET);
    assert_eq!(sign_in().json(&backend).at(&server).await.status, StatusCode::OK);
    backend["client_secret"] = json!("wrong");
    sign_in().json(&backend).at(&server).await.is(Kind::ClientRefused);
}

#[tokio::test]
async fn unknown_and_wrong_look_the_same_and_a_guesser_waits() {
    let server = Server::start(&[]).await;
    let attempt = async |login: &str| {
        let body = json!({ "client_id": "shop", "login": login, "password": "not the password" });
        ask("POST", "/signin").from(SHOP).json(&body).at(&server).await
    };
    let (wrong, unknown) = (attempt("ada").await, attempt("nobody").await);
    wrong.is(Kind::WrongCredentials);
    assert_eq!(wrong.body, unknown.body);
    for _ in 0..4 {
        attempt("ada").await.is(Kind::WrongCredentials);
    }
    let waits = attempt("ada").await;
    waits.is(Kind::TooManyAttempts);
    assert!(waits.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
}

#[tokio::test]
async fn a_refresh_token_goes_on_here_and_nowhere_else() {
    let server = Server::start(&[("refresh.grace", "0s")]).await;
    let signed_in = server.sign_in().await;
    let first = signed_in.text("refresh_token").to_owned();
    let refresh = async |token: &str| {
        let body = json!({ "client_id": "shop", "refresh_token": token });
        ask("POST", "/refresh").from(SHOP).json(&body).at(&server).await
    };
    // The token endpoint refuses it, and it stays valid.
    let form = format!("grant_type=refresh_token&client_id=shop&refresh_token={first}");
    let peer = Peer { address: "192.0.2.7:4000".parse().unwrap(), tls: true };
    let request = Request::post("/oauth2/token")
        .header("host", "id.example.test")
        .header("content-type", "application/x-www-form-urlencoded")
        .extension(peer)
        .body(Body::from(form))
        .unwrap();
    assert_eq!(server.doors.clone().oneshot(request).await.unwrap().status(), StatusCode::BAD_REQUEST);

    let renewed = refresh(&first).await;
    assert_eq!(renewed.status, StatusCode::OK, "{}", renewed.body);
    assert!(renewed.body.get("next").is_none());
    let token = renewed.text("access_token");
    assert_eq!(server.me(token).await.status, StatusCode::OK);
    // An old token that is presented again ends the sign-in.
    refresh(&first).await.is(Kind::TokenRefused);
    refresh(renewed.text("refresh_token")).await.is(Kind::TokenRefused);
    server.me(token).await.is(Kind::TokenRefused);
    refresh("nonsense").await.is(Kind::TokenRefused);
}

#[tokio::test]
async fn signing_out_ends_everything_of_the_session() {
    let server = Server::start(&[]).await;
    let signed_in = server.sign_in().await;
    let token = signed_in.text("access_token");
    let out = ask("POST", "/signout").bearer(token).json(&json!({})).at(&server).await;
    assert_eq!((out.status, out.body), (StatusCode::NO_CONTENT, Value::Null));
    server.me(token).await.is(Kind::TokenRefused);
    let body = json!({ "client_id": "shop", "refresh_token": signed_in.text("refresh_token") });
    ask("POST", "/refresh").from(SHOP).json(&body).at(&server).await.is(Kind::TokenRefused);
}

#[tokio::test]
async fn who_leaves_while_the_database_has_just_failed_over_is_out_when_that_is_settled() {
    // Red with `open_account` for `open_account_to_end` in caller.rs, and, for the sign-in over another one, with
    // `InContext` in `kept_line` (app/src/api.rs).
    let server = Server::start(&[]).await;
    let app = &server.instance.app;
    let bearer = server.sign_in().await.text("access_token").to_owned();
    let kept = server.sign_in_with_cookies().await;
    let (cookies, csrf) = (kept.cookies(), kept.text("csrf_token").to_owned());
    let replaced = server.sign_in_with_cookies().await.cookies();
    let page = |method: &str, path: &str, cookies: &str| ask(method, path).from(SHOP).with("cookie", cookies);

    let (now, epoch) = (app.clock.now(), app.epoch().await.unwrap());
    let fence = Fence { number: 1, at: now + Span(1), identity: "another".into(), epoch };
    app.engine.commit(fences::raise(&app.realm.id, &fence, now, &[])).await.unwrap();
    server.me(&bearer).await.is(Kind::TokenRefused);
    let me = page("GET", "/me", &cookies).at(&server).await;
    me.is(Kind::TokenRefused);
    assert_eq!(me.text("csrf_token"), csrf, "the page may try to go on, and is told when");
    let renewed = page("POST", "/refresh", &cookies).with("x-csrf-token", &csrf);
    let renewed = renewed.json(&json!({ "client_id": "shop" })).at(&server).await;
    assert_eq!(renewed.status, StatusCode::SERVICE_UNAVAILABLE, "{}", renewed.body);

    let out = ask("POST", "/signout").bearer(&bearer).json(&json!({})).at(&server).await;
    assert_eq!(out.status, StatusCode::NO_CONTENT, "{}", out.body);
    page("POST", "/signout", &cookies).json(&json!({})).at(&server).await.is(Kind::CsrfRefused);
    let out = page("POST", "/signout", &cookies).with("x-csrf-token", &csrf).json(&json!({})).at(&server).await;
    assert_eq!((out.status, out.cookies().as_str()), (StatusCode::NO_CONTENT, ""));
    let mut again = credentials();
    again["cookies"] = json!(true);
    tokio::time::sleep(Duration::from_millis(5)).await;
    let over = page("POST", "/signin", &replaced).json(&again).at(&server).await;
    assert_eq!(over.status, StatusCode::OK, "{}", over.body);

    app.engine.commit(fences::lift(&app.realm.id)).await.unwrap();
    server.me(&bearer).await.is(Kind::TokenRefused);
    page("GET", "/me", &cookies).at(&server).await.is(Kind::TokenRefused);
    page("GET", "/me", &replaced).at(&server).await.is(Kind::TokenRefused);
}

#[tokio::test]
async fn a_changed_password_leaves_only_the_new_tokens() {
    let server = Server::start(&[]).await;
    let (mine, elsewhere) = (server.sign_in().await, server.sign_in().await);
    let token = mine.text("access_token");
    let change = async |current: &str, new: &str| {
        ask("PATCH", "/password").bearer(token).json(&json!({ "current": current, "new": new })).at(&server).await
    };
    change("wrong", "another violet kettle").await.is(Kind::WrongPassword);
    let weak = change(PASSWORD, "ada").await;
    weak.is(Kind::InvalidFields);
    assert_eq!(
        (&weak.body["fields"][0]["field"], &weak.body["fields"][0]["code"]),
        (&json!("new"), &json!("too-short"))
    );
    let changed = change(PASSWORD, "another violet kettle").await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
    server.me(token).await.is(Kind::TokenRefused);
    server.me(elsewhere.text("access_token")).await.is(Kind::TokenRefused);
    assert_eq!(server.me(changed.text("access_token")).await.status, StatusCode::OK);
    ask("POST", "/signin").from(SHOP).json(&credentials()).at(&server).await.is(Kind::WrongCredentials);
}

#[tokio::test]
async fn sign_up_is_closed_unless_the_operator_opens_it() {
    let body = json!({ "client_id": "shop", "username": "bob", "email": "bob@example.test", "password": PASSWORD });
    let sign_up = |body: &Value| ask("POST", "/signup").from(SHOP).json(body);
    let closed = Server::start(&[]).await;
    sign_up(&body).at(&closed).await.is(Kind::SignupClosed);

    let open = Server::start(&[("signup.enabled", "true")]).await;
    let made = sign_up(&body).at(&open).await;
    assert_eq!((made.status, made.text("next")), (StatusCode::CREATED, "done"), "{}", made.body);
    let me = open.me(made.text("access_token")).await;
    assert_eq!((me.text("preferred_username"), &me.body["email_verified"]), ("bob", &json!(false)));
    let taken = sign_up(&json!({ "client_id": "shop", "username": "BOB", "password": PASSWORD })).at(&open).await;
    taken.is(Kind::InvalidFields);
    assert_eq!(
        (&taken.body["fields"][0]["field"], &taken.body["fields"][0]["code"]),
        (&json!("username"), &json!("taken"))
    );
}

#[tokio::test]
async fn cookies_hold_the_tokens_and_need_the_csrf_token() {
    let server = Server::start(&[]).await;
    let signed_in = server.sign_in_with_cookies().await;
    assert!(signed_in.body.get("access_token").is_none() && signed_in.body.get("refresh_token").is_none());
    for line in signed_in.headers.get_all(header::SET_COOKIE) {
        let line = line.to_str().unwrap();
        assert!(line.starts_with("__Host-") && line.contains("HttpOnly") && line.contains("Secure"), "{line}");
        assert!(line.contains("SameSite=Lax") && line.contains("Path=/;"), "{line}");
    }
    assert_eq!(signed_in.header("access-control-allow-credentials"), Some("true"));
    let (cookies, csrf) = (signed_in.cookies(), signed_in.text("csrf_token").to_owned());
    let page = |method: &str, path: &str| ask(method, path).from(SHOP).with("cookie", &cookies);
    let me = page("GET", "/me").at(&server).await;
    assert_eq!((me.status, me.text("csrf_token")), (StatusCode::OK, csrf.as_str()));

    let password = json!({ "current": PASSWORD, "new": "another violet kettle" });
    page("PATCH", "/password").json(&password).at(&server).await.is(Kind::CsrfRefused);
    page("POST", "/signout").json(&json!({})).at(&server).await.is(Kind::CsrfRefused);
    let body = json!({ "client_id": "shop" });
    page("POST", "/refresh").json(&body).at(&server).await.is(Kind::CsrfRefused);
    let other = server.sign_in_with_cookies().await;
    let foreign = other.text("csrf_token");
    page("POST", "/refresh").with("x-csrf-token", foreign).json(&body).at(&server).await.is(Kind::CsrfRefused);

    let renewed = page("POST", "/refresh").with("x-csrf-token", &csrf).json(&body).at(&server).await;
    assert_eq!((renewed.status, renewed.text("csrf_token")), (StatusCode::OK, csrf.as_str()), "{}", renewed.body);
    let cookies = renewed.cookies();
    let page = |method: &str, path: &str| ask(method, path).from(SHOP).with("cookie", &cookies);
    let out = page("POST", "/signout").with("x-csrf-token", &csrf).json(&json!({})).at(&server).await;
    assert_eq!((out.status, out.cookies().as_str()), (StatusCode::NO_CONTENT, ""));
    assert_eq!(out.headers.get_all(header::SET_COOKIE).iter().count(), 2, "both are taken away");
    let gone = page("GET", "/me").at(&server).await;
    gone.is(Kind::TokenRefused);
    assert_eq!(gone.header("access-control-allow-credentials"), Some("true"), "the page must be able to read it");
}

#[tokio::test]
async fn cookies_are_for_pages_of_the_client_alone() {
    let server = Server::start(&[]).await;
    let mut body = json!({ "client_id": "backend", "client_secret": SECRET, "login": "ada", "password": PASSWORD });
    body["cookies"] = json!(true);
    ask("POST", "/signin").json(&body).at(&server).await.is(Kind::OriginRefused);
    let cookies = server.sign_in_with_cookies().await.cookies();
    let foreign = ask("GET", "/me").from("https://backend.example.test").with("cookie", &cookies).at(&server).await;
    foreign.is(Kind::OriginRefused);
}

#[tokio::test]
async fn only_pages_of_first_party_clients_may_read() {
    let server = Server::start(&[]).await;
    let preflight = async |origin: &str| {
        let ask = ask("OPTIONS", "/signin").from(origin);
        ask.with("access-control-request-method", "POST").at(&server).await
    };
    let allowed = preflight(SHOP).await;
    assert_eq!(allowed.status, StatusCode::NO_CONTENT);
    assert_eq!(allowed.header("access-control-allow-origin"), Some(SHOP));
    assert_eq!(allowed.header("access-control-allow-credentials"), Some("true"));
    assert!(allowed.header("access-control-allow-headers").unwrap().contains("x-csrf-token"));
    for foreign in [OTHER, "null", "https://shop.example.test.evil.test", "http://shop.example.test"] {
        let refused = preflight(foreign).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{foreign}");
        assert_eq!(refused.header("access-control-allow-origin"), None, "{foreign}");
    }
    let signed_in = server.sign_in().await;
    assert_eq!(signed_in.header("access-control-allow-origin"), Some(SHOP));
    assert_eq!(signed_in.header("access-control-allow-credentials"), None, "tokens in the body need no cookies");
    assert!(signed_in.header("vary").unwrap().contains("Origin"));
}

#[tokio::test]
async fn a_client_that_is_disabled_is_out_at_once() {
    let server = Server::start(&[]).await;
    let signed_in = server.sign_in().await;
    let app = &server.instance.app;
    app.set_client_enabled(&"shop".into(), false).await.unwrap().unwrap();
    server.me(signed_in.text("access_token")).await.is(Kind::TokenRefused);
    ask("POST", "/signin").from(SHOP).json(&credentials()).at(&server).await.is(Kind::ClientRefused);
}

#[tokio::test]
async fn what_a_client_was_given_stays_dead_when_it_is_first_party_again() {
    // Red without first_party in app/admin/clients.rs, edit_client.
    let server = Server::start(&[]).await;
    let signed_in = server.sign_in().await;
    for first_party in [false, true] {
        let edit = |client: &mut Client| {
            client.first_party = first_party;
            Ok(())
        };
        server.instance.app.edit_client(&"shop".into(), edit).await.unwrap().unwrap();
        server.me(signed_in.text("access_token")).await.is(Kind::TokenRefused);
    }
    let body = json!({ "client_id": "shop", "refresh_token": signed_in.text("refresh_token") });
    ask("POST", "/refresh").from(SHOP).json(&body).at(&server).await.is(Kind::TokenRefused);
    assert_eq!(server.me(server.sign_in().await.text("access_token")).await.status, StatusCode::OK);
}

#[test]
fn the_document_says_what_refusals_carry() {
    // Red without Misdirected in table.rs, all_problems, or without `headers_of` in openapi.rs.
    let document: Value = serde_json::from_str(&openapi::document(ISSUER)).unwrap();
    for one in OPERATIONS {
        let answers = &document["paths"][one.path][one.method.to_ascii_lowercase()]["responses"];
        assert!(answers["421"]["description"].as_str().unwrap().contains("misdirected"), "{}", one.path);
        for (status, header) in
            [("401", "WWW-Authenticate"), ("429", "RateLimit-Reset"), ("429", "Retry-After"), ("503", "Retry-After")]
        {
            let named = answers[status]["headers"][header]["$ref"].as_str().and_then(|named| named.strip_prefix('#'));
            let found = named.and_then(|named| document.pointer(named));
            assert!(found.is_some_and(|found| found["schema"].is_object()), "{} {status} {header}", one.path);
        }
    }
}

#[tokio::test]
async fn the_document_is_served_and_every_type_leads_somewhere() {
    let server = Server::start(&[]).await;
    let served = ask("GET", "/openapi.json").from(OTHER).at(&server).await;
    assert_eq!(served.header("access-control-allow-origin"), Some("*"));
    assert_eq!(served.body["servers"][0]["url"], json!(format!("{ISSUER}/api/v1")));
    for kind in Kind::ALL {
        let described = ask("GET", &format!("/problems/{}", kind.slug())).at(&server).await;
        assert_eq!((described.status, described.text("code")), (StatusCode::OK, kind.slug()));
    }
    // Red without `slash` in api/mod.rs.
    for nothing in ["/problems/no-such", "", "/", "/me/", "//me"] {
        ask("GET", nothing).at(&server).await.is(Kind::NotFound);
    }
}

#[test]
fn the_documentation_is_what_the_table_says() {
    crate::generated::is_current("openapi.json", None, &openapi::document("http://localhost:8080"));
}
