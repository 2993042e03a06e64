//! "Try it": a public client that lives in the browser, so that a fresh server is seen to work without code.

use crate::config::PublicUrl;
use app::admin::clients::ClientSecret;
use app::{App, Fault};
use rules::oauth::client::{AuthMethod, Client, Grant};
use rules::oauth::scope::Scope;

/// The built-in client's id.
pub const CLIENT_ID: &str = "portiere-try";

/// Takes the built-in client away where "Try it" is not offered (any more).
pub async fn remove_client(app: &App) -> Result<(), Fault> {
    if app.find_client(&CLIENT_ID.into()).await?.is_none() {
        return Ok(());
    }
    app.remove_client(&CLIENT_ID.into()).await?.map_err(|refused| Fault::Broken(refused.to_string()))
}

/// Registers the built-in client unless it is there.
pub async fn ensure_client(app: &App, url: &PublicUrl) -> Result<(), Fault> {
    let redirect = format!("{}/try/callback", url.as_str());
    match app.find_client(&CLIENT_ID.into()).await? {
        Some(known) if known.redirect_uris.contains(&redirect) => return Ok(()),
        // The public URL is another one since.
        Some(known) => app.remove_client(&known.id).await?.map_err(|refused| Fault::Broken(refused.to_string()))?,
        None => {}
    }
    let client = Client {
        name: "Try it".into(),
        post_logout_redirect_uris: vec![format!("{}/try", url.as_str())],
        grants: vec![Grant::AuthorizationCode],
        scope: Scope::parse("openid profile email").unwrap_or_default(),
        auth_methods: vec![AuthMethod::None],
        ..Client::new(CLIENT_ID, vec![redirect])
    };
    match app.add_client(client, ClientSecret::Nothing).await? {
        Ok(_) => Ok(()),
        Err(refused) => Err(Fault::Broken(format!("the built-in client: {refused}"))),
    }
}
