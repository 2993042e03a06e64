//! The doors without a socket: which requests are refused, what a refusal costs, and what it keeps.

use super::{Site, router};
use crate::admission::{Pace, Permit};
use crate::boot::Instance;
use crate::config::{Config, PublicUrl, Sources};
use crate::metrics::Store;
use crate::net::{Peer, Terms, client_address};
use crate::trace::Exporter;
use crate::{cli, control};
use app::sign_up::NewPerson;
use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::header::HeaderMap;
use rules::Span;
use rules::people::Role;
use std::time::Duration;
use store::tables::fences::{self, Fence};
use tower::ServiceExt;

mod below;
mod crowd;
mod kinds;
mod malformed;
mod own_rate;

pub const ISSUER: &str = "https://id.example.test";
const PASSWORD: &str = "violet kettle drum 42";
/// Of the right form, but of no session.
const SESSION: &str = "__Host-sid-main-5cd8cf9b=01jd3w6z5k8x9y0a1b2c3d4e5f.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// A server without a socket: the doors over a real instance in a folder of its own. No jobs run in it.
pub struct House {
    pub site: Site,
    pub doors: Router,
    pub instance: Instance,
    pub folder: tempfile::TempDir,
}

/// Three lanes of one place each, where no request waits for long.
const NARROW: [(&str, &str); 4] =
    [("limits.tokens", "1"), ("limits.pages", "1"), ("limits.passwords", "1"), ("limits.max_wait", "10ms")];

impl House {
    pub async fn open(options: &[(&'static str, &str)]) -> Self {
        House::at(ISSUER, options).await
    }

    async fn at(issuer: &str, options: &[(&'static str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data").display().to_string();
        let given = [("data", data.as_str()), ("public_url", issuer)];
        let flags = given.iter().chain(options).map(|(name, value)| (*name, (*value).to_owned())).collect();
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let url = PublicUrl::parse(issuer).unwrap();
        let instance = Instance::open(&config, Some(&url)).await.unwrap();
        let (tracer, _) = Exporter::of(&config, "node", &instance.app.clock).unwrap();
        let terms = Terms::of(&config, u64::MAX).unwrap();
        let site = Site::new(&config, (url, false), &instance, &terms, tracer);
        House { doors: router(site.clone()), site, instance, folder }
    }

    /// Opens a house with an account that can sign in.
    async fn with_ada(options: &[(&'static str, &str)]) -> Self {
        let house = House::open(options).await;
        let ada = NewPerson::new("ada", "ada@example.test", PASSWORD.as_bytes());
        house.instance.app.add_user(&ada, Role::Member).await.unwrap().unwrap();
        house
    }

    /// Takes every place.
    async fn fill(&self) -> Vec<Option<Permit>> {
        let mut held = Vec::new();
        let here = Peer { address: "127.0.0.1:4000".parse().unwrap(), tls: true };
        let client = client_address(&here, &HeaderMap::new(), &self.site.proxies);
        for pace in [Pace::Tokens, Pace::Pages, Pace::Passwords] {
            held.push(self.site.admission.enter(pace, &client).await.unwrap());
        }
        held
    }

    /// Returns the requests that were let in, in all lanes.
    fn admitted(&self) -> u64 {
        self.site.admission.lanes().iter().map(|(_, lane)| lane.admitted_total).sum()
    }

    /// Returns how often requests asked the database, and how many batches it got.
    fn asked(&self) -> (u64, u64) {
        let fetches = self.site.requests.stages().find(|(stage, _)| *stage == "fetch").unwrap().1.count;
        let Store::File { stats, .. } = Store::of(&self.site.database) else { panic!("it is a file") };
        (fetches, stats.batches + stats.long_fetches)
    }

    /// Gets the sign-in page; returns its flow and the flow's cookie.
    async fn sign_in_page(&self, path: &str) -> (String, String) {
        let page = Ask::get(path).at(self).await;
        assert_eq!(page.status, 200, "{}", page.text);
        let cookie = page.headers.get("set-cookie").unwrap().to_str().unwrap().split(';').next().unwrap().to_owned();
        (page.value("flow").to_owned(), cookie)
    }
}

/// A request, assembled from left to right.
#[derive(Clone)]
struct Ask {
    method: &'static str,
    path: String,
    host: &'static str,
    from: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

struct Reply {
    status: u16,
    headers: HeaderMap,
    text: String,
}

impl Ask {
    fn new(method: &'static str, path: &str) -> Self {
        let (host, from) = ("id.example.test", "192.0.2.7".to_owned());
        Ask { method, path: path.to_owned(), host, from, headers: Vec::new(), body: String::new() }
    }
    fn get(path: &str) -> Self {
        Ask::new("GET", path)
    }
    fn post(path: &str, fields: &[(&str, &str)]) -> Self {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        Ask { body, ..Ask::new("POST", path) }.with("content-type", "application/x-www-form-urlencoded")
    }
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
    fn host(self, host: &'static str) -> Self {
        Ask { host, ..self }
    }
    fn from(self, address: &str) -> Self {
        Ask { from: address.to_owned(), ..self }
    }
    async fn at(self, house: &House) -> Reply {
        let peer = Peer { address: format!("{}:4000", self.from).parse().unwrap(), tls: true };
        let mut request = Request::builder().method(self.method).uri(self.path).extension(peer);
        if !self.host.is_empty() {
            request = request.header("host", self.host);
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let response = house.doors.clone().oneshot(request.body(Body::from(self.body)).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Reply { status: parts.status.as_u16(), headers: parts.headers, text }
    }
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Returns the value of an input.
    fn value(&self, name: &str) -> &str {
        let marked = format!("name=\"{name}\"");
        let inputs = self.text.split("<input").skip(1).map(|rest| rest.split('>').next().unwrap());
        let input = inputs.into_iter().find(|input| input.contains(&marked));
        let input = input.unwrap_or_else(|| panic!("no {name}: {}", self.text));
        input.split("value=\"").nth(1).map_or("", |rest| rest.split('"').next().unwrap())
    }

    #[track_caller]
    fn must_put_off(&self, status: u16) {
        assert_eq!(self.status, status, "{}", self.text);
        assert!(self.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
        assert!(!self.text.contains(PASSWORD), "{}", self.text);
    }
}

/// Repeats a request until it is refused for earlier failures of its address, one of which is forgotten each second.
async fn over(house: &House, ask: &Ask) -> Reply {
    for _ in 0..100 {
        while Ask::get("/nothing").from(&ask.from).at(house).await.status != 429 {}
        let reply = ask.clone().at(house).await;
        if reply.status == 429 {
            return reply;
        }
    }
    panic!("{} {} is not refused", ask.method, ask.path)
}

#[tokio::test]
async fn whoever_is_told_to_come_back_finds_what_was_typed_and_goes_on_from_there() {
    // Red without `again` in http/door.rs: at the rate of failures, at the lane, and where the database is away.
    let options = [&NARROW[..], &[("limits.failures_burst", "2"), ("limits.failures_per_address", "1")]].concat();
    let house = House::with_ada(&options).await;
    let (flow, cookie) = house.sign_in_page("/login").await;
    let typed = [("flow", flow.as_str()), ("login", "ada"), ("password", PASSWORD)];
    let sign_in = |address: &str| Ask::post("/login", &typed).with("cookie", &cookie).from(address);
    let keeps = |reply: &Reply, status| {
        reply.must_put_off(status);
        assert_eq!((reply.value("flow"), reply.value("login"), reply.value("password")), (flow.as_str(), "ada", ""));
    };
    let slowed = over(&house, &sign_in("192.0.2.8")).await;
    keeps(&slowed, 429);
    assert_eq!(slowed.header("ratelimit-remaining"), Some("0"));
    // Another site's page is not ours, and the flow of another browser is not accepted.
    let foreign = over(&house, &sign_in("192.0.2.10").with("origin", "https://evil.test")).await;
    let other = over(&house, &Ask::post("/login", &typed).from("192.0.2.11")).await;
    for strange in [foreign, other] {
        strange.must_put_off(429);
        assert!(!strange.text.contains("\"ada\""), "{}", strange.text);
    }
    let held = house.fill().await;
    keeps(&sign_in("192.0.2.9").at(&house).await, 503);
    drop(held);
    let signed_in = sign_in("192.0.2.12").at(&house).await;
    assert_eq!((signed_in.status, signed_in.header("location")), (303, Some("/account")), "{}", signed_in.text);
    house.instance.database.close();
    keeps(&sign_in("192.0.2.13").at(&house).await, 503);
}

#[tokio::test]
async fn a_sign_in_for_an_application_still_leads_there_after_it_was_put_off() {
    // Red where the page of the refusal forbids forms to lead out (0024), or names no application.
    let house = House::with_ada(&NARROW).await;
    super::try_it::ensure_client(&house.instance.app, &house.site.url).await.unwrap();
    let callback = format!("{ISSUER}/try/callback");
    let ask: String = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([
            ("client_id", super::try_it::CLIENT_ID),
            ("redirect_uri", callback.as_str()),
            ("response_type", "code"),
        ])
        .extend_pairs([("scope", "openid"), ("code_challenge_method", "S256")])
        .extend_pairs([("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")])
        .finish();
    let (flow, cookie) = house.sign_in_page(&format!("/oauth2/authorize?{ask}")).await;
    let _held = house.fill().await;
    let typed = [("flow", flow.as_str()), ("login", "ada"), ("password", PASSWORD)];
    let refused = Ask::post("/login", &typed).with("cookie", &cookie).at(&house).await;
    refused.must_put_off(503);
    assert!(!refused.header("content-security-policy").unwrap().contains("form-action"));
    assert!(refused.text.contains("to continue to"), "{}", refused.text);
    let consent = [("flow", flow.as_str()), ("csrf", "c5rf"), ("decision", "allow")];
    let refused = Ask::post("/consent", &consent).with("cookie", &cookie).at(&house).await;
    refused.must_put_off(503);
    assert!(!refused.header("content-security-policy").unwrap().contains("form-action"));
    assert_eq!(refused.value("decision"), "allow");
}

#[tokio::test]
async fn every_form_of_ours_is_kept_while_there_is_no_place_for_it() {
    // Red without `form` in http/routes.rs, one by one.
    let house = House::open(&[&NARROW[..], &[("signup.enabled", "true")]].concat()).await;
    let (flow, cookie) = house.sign_in_page("/signup").await;
    let _held = house.fill().await;
    let flow = ("flow", flow.as_str());
    let secret = ("password", PASSWORD);
    let csrf = ("csrf", "c5rf");
    let forms: [(&str, &[(&str, &str)]); 14] = [
        ("/login", &[flow, ("login", "ada"), secret]),
        ("/signup", &[flow, ("username", "ada"), ("email", "ada@example.test"), secret]),
        ("/setup", &[("token", "t0ken"), ("username", "ada"), ("email", "ada@example.test"), secret]),
        ("/login/choose", &[flow, ("choice", "other")]),
        ("/consent", &[flow, csrf, ("decision", "allow")]),
        ("/oauth2/logout/confirm", &[flow, csrf, ("decision", "sign_out")]),
        ("/device", &[csrf, ("user_code", "WDJB-MJHT")]),
        ("/device/confirm", &[csrf, ("user_code", "WDJB-MJHT"), ("decision", "allow")]),
        ("/account/profile", &[csrf, ("name", "Ada L"), ("given_name", "Ada"), ("email", "ada@example.test")]),
        ("/account/password", &[csrf, ("current", PASSWORD), ("new", PASSWORD)]),
        ("/account/sessions/revoke", &[csrf, ("id", "s1d")]),
        ("/account/sessions/revoke-others", &[csrf]),
        ("/account/applications/revoke", &[csrf, ("client_id", "notes")]),
        ("/account/signout", &[csrf]),
    ];
    for (path, fields) in forms {
        let refused = Ask::post(path, fields).with("cookie", &cookie).at(&house).await;
        refused.must_put_off(503);
        for (name, value) in fields {
            let kept = if *value == PASSWORD { "" } else { value };
            assert_eq!(refused.value(name), kept, "{path}: {name}");
        }
        let foreign = Ask::post(path, fields).with("origin", "https://evil.test").at(&house).await;
        assert!(!foreign.text.contains("<form"), "{path}: {}", foreign.text);
    }
    let page = Ask::get("/account").at(&house).await;
    page.must_put_off(503);
    assert!(page.text.contains("href=\"\""), "what was only asked for can be asked for again: {}", page.text);
}

#[tokio::test]
async fn a_refusal_for_want_of_room_asks_nothing_of_the_database() {
    // Red where the page of a refusal looks a user or a client up.
    let house = House::open(&[&NARROW[..], &[("signup.enabled", "true")]].concat()).await;
    let (flow, cookie) = house.sign_in_page("/login").await;
    let (flow, cookie) = (("flow", flow.as_str()), format!("{cookie}; {SESSION}"));
    let shop = "https://shop.example.test";
    let refused = [
        Ask::post("/login", &[flow, ("login", "ada"), ("password", PASSWORD)]),
        Ask::post("/signup", &[flow, ("username", "ada"), ("password", PASSWORD)]),
        Ask::post("/account/password", &[("csrf", "c5rf"), ("current", PASSWORD), ("new", PASSWORD)]),
        Ask::post("/account/profile", &[("csrf", "c5rf"), ("name", "Ada")]),
        Ask::post("/consent", &[flow, ("csrf", "c5rf"), ("decision", "allow")]),
        Ask::get("/login"),
        Ask::get("/account"),
        Ask::get("/oauth2/authorize?client_id=notes&ui_locales=de"),
        Ask::post("/oauth2/token", &[("grant_type", "refresh_token"), ("client_id", "notes")]).with("origin", shop),
        Ask::get("/oauth2/userinfo").with("authorization", "Bearer t0ken").with("origin", shop),
        Ask::get("/api/v1/me").with("authorization", "Bearer t0ken").with("origin", shop),
        Ask::new("POST", "/api/v1/signin").with("content-type", "application/json").with("origin", shop),
        Ask::new("OPTIONS", "/api/v1/signin").with("origin", shop),
    ];
    let before = house.asked();
    let _held = house.fill().await;
    for ask in refused.iter().cycle().take(50) {
        let reply = ask.clone().with("cookie", &cookie).at(&house).await;
        reply.must_put_off(503);
    }
    assert_eq!(house.asked(), before);
}

#[tokio::test]
async fn every_request_is_counted_once_and_only_health_is_not() {
    // Red where a refusal comes before a door, as for wrong hosts, wrong methods and unknown paths in the past.
    let rates = [("limits.failures_burst", "2"), ("limits.failures_per_address", "1")];
    let roomy = House::open(&rates).await;
    let narrow = House::open(&NARROW).await;
    let elsewhere = "https://elsewhere.test";
    let class = [
        (404, Ask::get("/nothing")),
        (404, Ask::post("/nothing/at/all", &[])),
        (405, Ask::new("DELETE", "/login")),
        (405, Ask::new("BREW", "/")),
        (405, Ask::get("/oauth2/token")),
        (405, Ask::new("PUT", "/.well-known/openid-configuration")),
        (405, Ask::new("POST", "/healthz")),
        (405, Ask::new("POST", "/assets/none.css")),
        (421, Ask::get("/login").host("elsewhere.test")),
        (421, Ask::get("/api/v1/me").host("elsewhere.test")),
        (400, Ask::get("/login").host("")),
        (404, Ask::get("/api/v1/nothing")),
        (404, Ask::get("/api/v1/problems/none")),
        (405, Ask::new("DELETE", "/api/v1/signin")),
        (405, Ask::new("DELETE", "/api/v1/openapi.json")),
        (403, Ask::new("OPTIONS", "/oauth2/token").with("origin", elsewhere)),
        (403, Ask::new("OPTIONS", "/api/v1/nothing").with("origin", elsewhere)),
        (403, Ask::post("/login", &[]).with("origin", elsewhere)),
        (415, Ask::new("POST", "/oauth2/token").with("content-type", "text/plain")),
        (400, Ask::get("/oauth2/authorize")),
    ];
    let held = narrow.fill().await;
    for (at, (status, ask)) in class.into_iter().enumerate() {
        let (ask, what) = (ask.from(&format!("192.0.2.{}", 100 + at)), at);
        let admitted = roomy.admitted();
        let first = ask.clone().at(&roomy).await;
        assert_eq!((first.status, first.header("ratelimit-remaining")), (status, Some("1")), "{what}: {}", first.text);
        // A form with a password takes its place once it is known to be ours.
        let once = if ask.path == "/login" && ask.method == "POST" { 0 } else { 1 };
        assert_eq!(roomy.admitted(), admitted + once, "{what}");
        assert_eq!(over(&roomy, &ask).await.status, 429, "{what}");
        if once == 1 {
            assert_eq!(ask.at(&narrow).await.status, 503, "{what}");
        }
    }
    // Requests for metadata, and preflights of them, succeed, and take a place.
    for ask in [Ask::get("/api/v1/openapi.json"), Ask::new("OPTIONS", "/oauth2/jwks"), Ask::get("/oauth2/jwks")] {
        let admitted = roomy.admitted();
        let answer = ask.clone().at(&roomy).await;
        assert!([200, 204].contains(&answer.status) && answer.header("ratelimit-limit").is_none(), "{}", ask.path);
        assert_eq!((roomy.admitted(), ask.at(&narrow).await.status), (admitted + 1, 503));
    }
    // Health checks and the assets of pages are always answered.
    let missing = Ask::get("/assets/none.css").from("192.0.2.250");
    assert_eq!(over_with(&roomy, &missing).await, 404, "it counts where it fails");
    for path in ["/healthz", "/readyz"] {
        let alive = Ask::get(path).from("192.0.2.250").at(&roomy).await;
        assert!(alive.status == 200 && alive.header("ratelimit-limit").is_none(), "{path}: {}", alive.text);
        assert_eq!(Ask::get(path).at(&narrow).await.status, 200, "{path}");
    }
    drop(held);
}

/// Returns the status of a request that is never refused, once others of its address are, because of it.
async fn over_with(house: &House, ask: &Ask) -> u16 {
    for _ in 0..100 {
        for _ in 0..3 {
            ask.clone().at(house).await;
        }
        if Ask::get("/login").from(&ask.from).at(house).await.status == 429 {
            return ask.clone().at(house).await.status;
        }
    }
    panic!("{} does not count", ask.path)
}

#[tokio::test]
async fn whoever_is_sent_away_from_the_database_is_told_when_it_will_be_through() {
    // Red with a constant in http/error.rs or http/api/problem.rs.
    let house = House::open(&[]).await;
    house.instance.database.close();
    let credentials = serde_json::json!({ "client_id": "shop", "login": "ada", "password": PASSWORD }).to_string();
    let sign_in = Ask::new("POST", "/api/v1/signin").with("content-type", "application/json");
    for (wait, seconds) in [(0, "2"), (7_200, "8"), (3_600_000, "60")] {
        house.site.strain.say_database_wait(Duration::from_millis(wait));
        for ask in [
            Ask::get("/account").with("cookie", SESSION),
            Ask::post("/oauth2/revoke", &[("client_id", "notes"), ("token", "t")]),
            Ask { body: credentials.clone(), ..sign_in.clone() }.with("origin", "https://shop.example.test"),
        ] {
            let reply = ask.clone().at(&house).await;
            assert_eq!(
                (reply.status, reply.header("retry-after")),
                (503, Some(seconds)),
                "{}: {}",
                ask.path,
                reply.text
            );
        }
    }
}

#[tokio::test]
async fn operators_commands_have_places_of_their_own_and_are_told_when_there_are_none() {
    // Red without `command` in control.rs, obey.
    let house = House::with_ada(&NARROW).await;
    let control = control::listen(house.folder.path(), &house.instance).unwrap().of(house.site.clone());
    let scenario = async {
        let list: cli::Request = serde_json::from_value(serde_json::json!({ "Group": "List" })).unwrap();
        let told = async || control::ask(house.folder.path(), &list).await.unwrap().unwrap();
        let _requests = house.fill().await;
        told().await.expect("a flood of requests keeps no operator out");
        let mut held = Vec::new();
        while let Ok(place) = house.site.admission.command().await {
            held.push(place);
        }
        assert_eq!(held.len(), 16);
        let Err(cli::Failure::Later(why)) = told().await else { panic!("there is no place") };
        assert!(why.ends_with("with other commands: try again in 1 s"), "{why}");
        let lanes: Vec<_> = house.site.admission.all_lanes().collect();
        assert!(
            lanes.iter().any(|(name, lane)| (*name, lane.running, lane.refused_total) == ("commands", 16, 2)),
            "{lanes:?}"
        );
        held.pop();
        told().await.expect("one is free");
    };
    tokio::select! {
        () = control.run(std::future::pending()) => panic!("the control socket ended"),
        () = scenario => {}
    }
}

#[tokio::test]
async fn whoever_signs_out_while_the_database_has_just_failed_over_is_out_when_that_is_settled() {
    // Red with own_form in http/pages/account.rs, sign_out: the session would be alive again once the fence is lifted.
    let house = House::with_ada(&[]).await;
    let (flow, flow_cookie) = house.sign_in_page("/login").await;
    let entered = Ask::post("/login", &[("flow", &flow), ("login", "ada"), ("password", PASSWORD)])
        .with("cookie", &flow_cookie)
        .at(&house)
        .await;
    let cookies = entered.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
    let session = cookies.into_iter().find(|line| line.starts_with("__Host-sid-")).expect("a session").to_owned();
    let session = session.split(';').next().unwrap();
    let account = || Ask::get("/account").with("cookie", session);
    let page = account().at(&house).await;
    let leave = Ask::post("/account/signout", &[("csrf", page.value("csrf"))]).with("cookie", session);

    let app = &house.instance.app;
    let now = app.clock.now();
    let epoch = app.epoch().await.unwrap();
    let fence = Fence { number: 1, at: now + Span::seconds(1), identity: "another".into(), epoch };
    app.engine.commit(fences::raise(&app.realm.id, &fence, now, &[])).await.unwrap();
    assert_eq!(account().at(&house).await.status, 303, "it may not be used");
    let left = leave.at(&house).await;
    assert!(left.status == 303 && left.header("set-cookie").unwrap().contains("Max-Age=0"), "{:?}", left.headers);
    app.engine.commit(fences::lift(&app.realm.id)).await.unwrap();
    assert_eq!(account().at(&house).await.status, 303, "it has ended");
}

#[tokio::test]
async fn a_certificate_that_has_ended_is_a_warning() {
    // Red without `outlived` in http/health.rs, told.
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name).display().to_string());
    let mut params = rcgen::CertificateParams::new(vec!["id.example.test".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let pair = rcgen::KeyPair::generate().unwrap();
    std::fs::write(&certificate, params.self_signed(&pair).unwrap().pem()).unwrap();
    std::fs::write(&key, pair.serialize_pem()).unwrap();
    let house = House::open(&[("tls.certificate", &certificate), ("tls.key", &key)]).await;
    let metrics = crate::metrics::page(&house.site, crate::metrics::Looked::nothing()).await;
    assert!(metrics.contains("\nportiere_tls_certificate_expiry_timestamp_seconds 1577836800\n"), "{metrics}");
    let told = Ask::get("/readyz").from("127.0.0.1").at(&house).await;
    assert!(told.status == 200 && told.text.contains("cert.pem ended at 2020-01-01T00:00:00Z"), "{}", told.text);
}
