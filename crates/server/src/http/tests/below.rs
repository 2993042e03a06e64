//! A server whose public URL has a path.

use super::*;
use crate::pages::assets;
use app::admin::clients::ClientSecret;
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::scope::Scope;

#[tokio::test]
async fn what_pages_are_made_of_is_found_below_a_path() {
    // Red where http/pages/assets.rs looks for the whole path, although its prefix was stripped before.
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

/// Paths that exist, and similar ones that do not.
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

/// Returns the parts of a response that a program goes by.
async fn told(house: &House, base: &str, (method, path): (&'static str, &str)) -> [String; 5] {
    let reply = Ask::new(method, &format!("{base}{path}")).with("origin", SHOP).at(house).await;
    let of = |name| reply.header(name).unwrap_or("-").to_owned();
    let [kind, allow] = [of("content-type"), of("allow")];
    let [origin, methods] = [of("access-control-allow-origin"), of("access-control-allow-methods")];
    [reply.status.to_string(), kind, allow, origin, methods]
}

#[tokio::test]
async fn below_a_path_every_address_and_method_is_answered_as_without_one() {
    // Red without the fallback of `realm` in http/routes.rs: a path that the account API lacks was a page there. Red where a path that
    // has lost the issuer's is looked at for it once more: programs were told of a wrong method by a page.
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"];
    let roomy = [("limits.failures_burst", "1000000")];
    // The names of the last two are those that routes begin with.
    let bases = ["", "/auth", "/o", "/oauth2"];
    let mut houses = Vec::new();
    for base in bases {
        let house = House::at(&format!("{ISSUER}{base}"), &roomy).await;
        let client = Client {
            grants: vec![Grant::AuthorizationCode],
            scope: Scope::parse("openid").unwrap(),
            auth_methods: vec![AuthMethod::None],
            first_party: true,
            ..Client::new("shop", vec![format!("{SHOP}/callback")])
        };
        house.instance.app.add_client(client, ClientSecret::Nothing).await.unwrap().unwrap();
        houses.push(house);
    }
    for ask in PATHS.iter().flat_map(|path| methods.map(|method| (method, *path))) {
        let without = told(&houses[0], "", ask).await;
        for (base, house) in bases.iter().zip(&houses).skip(1) {
            assert_eq!(told(house, base, ask).await, without, "{ask:?} below {base}");
        }
    }
    for path in ["/api/v1", "/api/v1/none", "/api/v1/problems/a/b"] {
        let [status, kind, _, origin, _] = told(&houses[1], "/auth", ("GET", path)).await;
        assert_eq!([status.as_str(), &kind, &origin], ["404", "application/problem+json", SHOP], "{path}");
        assert_eq!(told(&houses[1], "/auth", ("OPTIONS", path)).await[0], "204", "{path}");
    }
}
