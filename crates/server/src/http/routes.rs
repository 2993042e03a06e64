//! Every route of the server.

use super::again;
use super::door::{Below, Door, bearer, form, json, page};
use super::error::wrong_method;
use super::oauth::{authorize, device as device_endpoint, introspect, logout, metadata, revoke, token, userinfo};
use super::pages::{account, assets, device, home, login, setup, signup};
use super::site::Site;
use super::{api, cors, front, health};
use crate::admission::Pace;
use crate::config::CHANGE_PASSWORD;
use axum::body::Body;
use axum::handler::Handler;
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router, middleware};
use hyper::Method;

/// Builds the router with all doors of a site.
pub fn router(site: Site) -> Router {
    let base = site.url.path().to_owned();
    let metadata = Router::new()
        .route("/.well-known/openid-configuration", only_get(get(json(Pace::Metadata, metadata::discovery))))
        .route("/oauth2/jwks", only_get(get(json(Pace::Metadata, metadata::jwks))));
    let callable = Router::new()
        .route("/oauth2/token", only_post(post(json(Pace::Tokens, token::token))))
        .route("/oauth2/revoke", only_post(post(json(Pace::Tokens, revoke::revoke))))
        .route(
            "/oauth2/userinfo",
            both(get(bearer(Pace::Tokens, userinfo::userinfo)).post(bearer(Pace::Tokens, userinfo::userinfo))),
        )
        .layer(middleware::from_fn_with_state(site.clone(), cors::registered));
    let nothing = page(Pace::Pages, home::nothing).of_no_body();
    let realm = Router::new()
        .merge(metadata.layer(middleware::from_fn_with_state(site.clone(), cors::everybody)))
        .merge(callable)
        .merge(protocol())
        .merge(own_pages())
        .merge(api::routes(&site))
        // Set here as well as on the whole router: a nested router passes on the fallbacks inside it, such as the
        // account API's, only if it has one of its own.
        .fallback(nothing.clone());
    // RFC 8414 §3.1 puts the well-known part before the issuer's path; OpenID Connect Discovery §4 puts it after.
    let oauth_metadata = Router::new()
        .route(
            &format!("/.well-known/oauth-authorization-server{base}"),
            only_get(get(json(Pace::Metadata, metadata::discovery))),
        )
        .layer(middleware::from_fn_with_state(site.clone(), cors::everybody));
    // Where password managers look (W3C, A Well-Known URL for Changing Passwords), whatever the issuer's path.
    let change =
        Router::new().route(CHANGE_PASSWORD, only_get(get(page(Pace::Pages, account::where_passwords_change))));
    let realm = match base.as_str() {
        "" => realm,
        base => {
            let realm = realm.layer(Extension(Below));
            Router::new().nest(base, realm).route(&format!("{base}/"), only_get(get(page(Pace::Pages, home::home))))
        }
    };
    Router::new()
        .merge(realm)
        .merge(oauth_metadata)
        .merge(change)
        .route("/healthz", only_get(get(health::alive)))
        .route("/readyz", only_get(get(health::ready)))
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(site.clone(), front::front))
        .with_state(site)
}

fn protocol() -> Router<Site> {
    Router::new()
        .route(
            "/oauth2/authorize",
            by_asking(get(page(Pace::Pages, authorize::get)).post(page(Pace::Pages, authorize::post)), GET_AND_POST),
        )
        .route("/oauth2/introspect", only_post(post(json(Pace::Tokens, introspect::introspect))))
        .route("/oauth2/device", only_post(post(json(Pace::Tokens, device_endpoint::device))))
        .route(
            "/oauth2/logout",
            by_asking(get(page(Pace::Pages, logout::get)).post(page(Pace::Pages, logout::post)), GET_AND_POST),
        )
        .route("/oauth2/logout/confirm", only_post(post(form(Pace::Pages, again::same, logout::confirm))))
}

fn own_pages() -> Router<Site> {
    Router::new()
        .route("/", only_get(get(page(Pace::Pages, home::home))))
        .route("/try", only_get(get(page(Pace::Pages, home::try_it))))
        .route("/try/callback", only_get(get(page(Pace::Pages, home::try_it))))
        .route("/assets/{name}", only_get(get(page(Pace::Free, assets::asset))))
        .route(
            "/setup",
            both(get(page(Pace::Pages, setup::get)).post(form(Pace::Passwords, setup::again, setup::post))),
        )
        .route(
            "/login",
            both(get(page(Pace::Pages, login::get)).post(form(Pace::Passwords, login::again, login::post))),
        )
        .route("/login/choose", only_post(post(form(Pace::Pages, again::same, login::choose))))
        .route("/continue", by_asking(get(page(Pace::Pages, login::carry_on)), &[Method::GET]))
        .route("/consent", only_post(post(form(Pace::Pages, again::same, login::consent))))
        .route(
            "/signup",
            both(get(page(Pace::Pages, signup::get)).post(form(Pace::Passwords, signup::again, signup::post))),
        )
        .route("/device", both(get(page(Pace::Pages, device::get)).post(form(Pace::Pages, again::same, device::post))))
        .route("/device/confirm", only_post(post(form(Pace::Pages, again::same, device::confirm))))
        .route("/account", only_get(get(page(Pace::Pages, account::get))))
        .route("/account/profile", only_post(post(form(Pace::Pages, again::same, account::profile))))
        .route("/account/password", only_post(post(form(Pace::Passwords, again::same_passwords, account::password))))
        .route("/account/sessions/revoke", only_post(post(form(Pace::Pages, again::same, account::end_session))))
        .route("/account/sessions/revoke-others", only_post(post(form(Pace::Pages, again::same, account::end_others))))
        .route("/account/applications/revoke", only_post(post(form(Pace::Pages, again::same, account::remove_access))))
        .route("/account/signout", only_post(post(form(Pace::Pages, again::same, account::sign_out))))
}

fn only_get(methods: MethodRouter<Site>) -> MethodRouter<Site> {
    allowing(methods, &[Method::GET, Method::HEAD])
}

fn only_post(methods: MethodRouter<Site>) -> MethodRouter<Site> {
    allowing(methods, &[Method::POST])
}

fn both(methods: MethodRouter<Site>) -> MethodRouter<Site> {
    allowing(methods, &[Method::GET, Method::HEAD, Method::POST])
}

const GET_AND_POST: &[Method] = &[Method::GET, Method::POST];

/// Refuses HEAD where GET does something for whoever asks, such as issuing a code or signing out: by HEAD, nobody asks
/// for that (RFC 9110 §9.2.1).
fn by_asking(methods: MethodRouter<Site>, allowed: &'static [Method]) -> MethodRouter<Site> {
    allowing(methods.head(wrong(allowed)), allowed)
}

/// Answers any other method with the allowed ones, and counts it like any request.
fn allowing(methods: MethodRouter<Site>, allowed: &'static [Method]) -> MethodRouter<Site> {
    methods.fallback(wrong(allowed))
}

fn wrong(allowed: &'static [Method]) -> impl Handler<(), Site> {
    page(Pace::Pages, async move |door: Door, _: Body| Ok(wrong_method(&door, allowed))).of_no_body()
}
