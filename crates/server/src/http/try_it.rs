//! "Try it": a public client that lives in the browser, so that a fresh server can be seen to work without code.

use crate::config::{Config, PublicUrl, TryIt};
use app::admin::Refused;
use app::admin::clients::ClientSecret;
use app::{App, Fault};
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::registration::redirect_problem;
use rules::oauth::scope::Scope;

/// The built-in client's id.
pub const CLIENT_ID: &str = "portiere-try";

/// Nodes that start at the same moment all do this at once: the slower ones try again, up to so many times.
const TRIES: u32 = 4;

/// Returns whether a server at `url` offers "Try it".
pub fn is_offered(config: &Config, url: &PublicUrl) -> bool {
    match config.server.try_it {
        TryIt::On => true,
        TryIt::Off => false,
        TryIt::Auto => url.is_localhost(),
    }
}

/// Returns why the built-in client cannot be registered at `url`: an issuer may be written in ways that a redirect URI
/// may not, since browsers would come back under another spelling.
pub fn problem(url: &PublicUrl) -> Option<&'static str> {
    redirect_problem(&callback(url), false)
}

fn callback(url: &PublicUrl) -> String {
    format!("{}/try/callback", url.as_str())
}

/// Removes the built-in client where "Try it" is not (or no longer) offered.
pub async fn remove_client(app: &App) -> Result<(), Fault> {
    let id = CLIENT_ID.into();
    if app.find_client(&id).await?.is_none() {
        return Ok(());
    }
    match app.remove_client(&id).await? {
        Err(refused) if app.find_client(&id).await?.is_some() => Err(Fault::Broken(refused.to_string())),
        _ => Ok(()),
    }
}

/// Registers the built-in client unless it is there.
pub async fn ensure_client(app: &App, url: &PublicUrl) -> Result<(), Fault> {
    let mut why = String::new();
    for _ in 0..TRIES {
        match register(app, url).await? {
            Ok(()) => return Ok(()),
            Err(refused) => why = refused.to_string(),
        }
    }
    Err(Fault::Broken(format!("the built-in client: {why}")))
}

async fn register(app: &App, url: &PublicUrl) -> Result<Result<(), Refused>, Fault> {
    let redirect = callback(url);
    let known = app.find_client(&CLIENT_ID.into()).await?;
    match &known {
        Some(known) if known.redirect_uris.contains(&redirect) => return Ok(Ok(())),
        // The public URL has changed since.
        Some(_) => remove_client(app).await?,
        None => {}
    }
    let client = Client {
        name: "Try it".into(),
        post_logout_redirect_uris: vec![format!("{}/try", url.as_str())],
        grants: vec![Grant::AuthorizationCode],
        scope: Scope::parse("openid profile email").unwrap_or_default(),
        auth_methods: vec![AuthMethod::None],
        // An operator who disabled it meant it under any URL.
        disabled_at: known.and_then(|known| known.disabled_at),
        ..Client::new(CLIENT_ID, vec![redirect])
    };
    Ok(app.add_client(client, ClientSecret::Nothing).await?.map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::tests::House;

    #[tokio::test]
    async fn what_a_start_would_stumble_over_is_known_before() {
        // Red where `problem` demands less than registration does, or more.
        let house = House::open(&[]).await;
        for (url, fits) in [
            ("https://login.test", true),
            ("https://login.test:443/a", true),
            ("https://[2001:db8::1]:8443", true),
            ("http://[::1]:8080", true),
            ("https://Login.test", false),
            ("https://my_login.test", false),
            ("http://LOCALHOST:8080", false),
            ("http://[0:0:0:0:0:0:0:1]:8080", false),
        ] {
            let url = PublicUrl::parse(url).unwrap();
            assert_eq!(
                (problem(&url).is_none(), ensure_client(&house.instance.app, &url).await.is_ok()),
                (fits, fits),
                "{url}"
            );
        }
    }

    #[tokio::test]
    async fn what_an_operator_disabled_stays_so_under_another_url() {
        // Red without `disabled_at` in register.
        let house = House::open(&[]).await;
        let app = &house.instance.app;
        ensure_client(app, &PublicUrl::parse("https://old.test").unwrap()).await.unwrap();
        app.set_client_enabled(&CLIENT_ID.into(), false).await.unwrap().unwrap();
        ensure_client(app, &PublicUrl::parse("https://new.test").unwrap()).await.unwrap();
        let client = app.find_client(&CLIENT_ID.into()).await.unwrap().unwrap();
        assert!(client.is_disabled() && client.redirect_uris == ["https://new.test/try/callback"], "{client:?}");
    }

    #[tokio::test]
    async fn nodes_that_start_at_the_same_moment_all_start() {
        // Red without TRIES in ensure_client, or the second look in remove_client.
        let house = House::open(&[]).await;
        let (app, url) = (&house.instance.app, &house.site.url);
        for _ in 0..3 {
            let (one, other) = tokio::join!(ensure_client(app, url), ensure_client(app, url));
            assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
            assert!(app.find_client(&CLIENT_ID.into()).await.unwrap().is_some());
            let (one, other) = tokio::join!(remove_client(app), remove_client(app));
            assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
            assert!(app.find_client(&CLIENT_ID.into()).await.unwrap().is_none());
        }
    }
}
