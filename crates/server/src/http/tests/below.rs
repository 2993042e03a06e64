//! A server whose public URL has a path.

use super::*;
use crate::pages::assets;
use app::admin::clients::ClientSecret;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::scope::Scope;

#[tokio::test]
async fn what_pages_are_made_of_is_found_below_a_path() {
    // Red where http/pages/assets.rs looks for the path that was stripped before.
    let house = House::at("https://id.example.test/auth", &[]).await;
    for asset in assets() {
        let found = Ask::get(&format!("/auth{}", asset.path)).at(&house).await;
        assert_eq!(found.status, 200, "{}", asset.path);
    }
    let page = Ask::get("/auth/login").at(&house).await;
    assert!(page.status == 200 && page.text.contains("\"/auth/assets/"), "{}", page.text);
    for slug in ["busy", "not-found"] {
        let described = Ask::get(&format!("/auth/api/v1/problems/{slug}")).at(&house).await;
        assert_eq!(described.status, 200, "{slug}");
    }
}

const SHOP: &str = "https://shop.example.test";

/// What there is, and what is like it and is not.
#[rustfmt::skip]
const PATHS: &[&str] = &[
    "/", "/try", "/try/callback", "/assets/none.css", "/setup", "/login", "/login/choose", "/continue", "/consent",
    "/signup", "/device", "/device/confirm", "/account", "/account/profile", "/account/password",
    "/account/sessions/revoke", "/account/sessions/revoke-others", "/account/applications/revoke",
    "/account/signout", "/oauth2/authorize", "/oauth2/introspect", "/oauth2/device", "/oauth2/logout",
    "/oauth2/logout/confirm", "/oauth2/token", "/oauth2/revoke", "/oauth2/userinfo", "/oauth2/jwks",
    "/.well-known/openid-configuration", "/api/v1/signup", "/api/v1/signin", "/api/v1/refresh", "/api/v1/signout",
    "/api/v1/password", "/api/v1/me", "/api/v1/openapi.json", "/api/v1/problems/busy", "/api/v1/problems/none",
    "/nothing", "/nothing/at/all", "/login/", "/oauth2", "/oauth2/none", "/.well-known/none", "/api", "/api/v1",
    "/api/v1/", "/api/v1/none", "/api/v1/me/", "/api/v1//me", "/api/v1/problems", "/api/v1/problems/a/b", "//",
];

/// What a program goes by, of an answer.
async fn told(house: &House, base: &str, (method, path): (&'static str, &str)) -> [String; 5] {
    let reply = Ask::new(method, &format!("{base}{path}")).with("origin", SHOP).at(house).await;
    let of = |name| reply.header(name).unwrap_or("-").to_owned();
    let [kind, allow] = [of("content-type"), of("allow")];
    let [origin, methods] = [of("access-control-allow-origin"), of("access-control-allow-methods")];
    [reply.status.to_string(), kind, allow, origin, methods]
}

#[tokio::test]
async fn below_a_path_every_address_and_method_is_answered_as_without_one() {
    // Red without the fallback of `realm` in http/routes.rs: what the account API has not was a page there.
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"];
    let roomy = [("limits.failures_burst", "1000000")];
    let houses = [House::open(&roomy).await, House::at("https://id.example.test/auth", &roomy).await];
    for house in &houses {
        let client = Client {
            grants: vec![Grant::AuthorizationCode],
            scope: Scope::parse("openid").unwrap(),
            auth_methods: vec![AuthMethod::None],
            first_party: true,
            ..Client::new("shop", vec![format!("{SHOP}/callback")])
        };
        house.instance.app.add_client(client, ClientSecret::Nothing).await.unwrap().unwrap();
    }
    let [without, below] = &houses;
    for ask in PATHS.iter().flat_map(|path| methods.map(|method| (method, *path))) {
        assert_eq!(told(below, "/auth", ask).await, told(without, "", ask).await, "{ask:?}");
    }
    for path in ["/api/v1", "/api/v1/none", "/api/v1/problems/a/b"] {
        let [status, kind, _, origin, _] = told(below, "/auth", ("GET", path)).await;
        assert_eq!([status.as_str(), &kind, &origin], ["404", "application/problem+json", SHOP], "{path}");
        assert_eq!(told(below, "/auth", ("OPTIONS", path)).await[0], "204", "{path}");
    }
}
