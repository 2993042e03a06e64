//! What surrounds every page: language, brand, the user who is signed in, and where links lead.

use super::assets;
use super::language::Language;
use super::messages::Messages;

/// The name by which people know the provider.
#[derive(Clone, Copy, Debug)]
pub struct Brand<'a> {
    /// Shown next to the logo and in every title.
    pub name: &'a str,
}

/// What every page is rendered with.
#[derive(Clone, Copy, Debug)]
pub struct Chrome<'a> {
    /// The language of all text, and of the `lang` attribute.
    pub language: Language,
    /// The provider's own name.
    pub brand: Brand<'a>,
    /// The response's CSP nonce, also sent in its header; base64, fresh for every response.
    pub nonce: &'a str,
    /// The path of the realm, without a trailing slash; empty at the root of a host.
    pub base: &'a str,
    /// The user who is signed in, on pages of their own: the front page, the account home and the device pages.
    pub signed_in: Option<&'a str>,
}

/// A way back to an application: its name, and a URL that can only come from a registered URI.
#[derive(Clone, Copy, Debug)]
pub struct Back<'a> {
    /// The application's name.
    pub name: &'a str,
    /// The verified URL, parameters included.
    pub url: &'a str,
    /// The parameters, if the application wants them posted; the URL is then without them.
    pub posted: &'a [(&'a str, &'a str)],
}

impl Chrome<'_> {
    pub(super) fn messages(&self) -> &'static Messages {
        Messages::of(self.language)
    }

    /// Returns the link to `path`, which begins with a slash, inside the realm.
    pub(super) fn to(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns the link to the asset `name`, content hash included.
    pub(super) fn asset(&self, name: &str) -> String {
        self.to(assets::path(name))
    }
}

impl Back<'_> {
    /// Returns the URL as a link target.
    pub(super) fn href(&self) -> &str {
        harmless(self.url)
    }
}

/// Returns `url`, unless following it would run a script in our origin (attack XS-02). Verified URLs never do; a link
/// in HTML is the last place that can still stop one.
pub(super) fn harmless(url: &str) -> &str {
    let scheme: String =
        url.chars().take_while(|c| *c != ':').filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    let runs = ["javascript", "data", "vbscript", "blob"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
    if runs { "#" } else { url }
}

/// Returns the page, or plain words if rendering ever fails: a user is never left with an empty window.
pub(super) fn whole(rendered: askama::Result<String>) -> String {
    rendered.unwrap_or_else(|_| {
        "<!doctype html><html lang=\"en\"><title>Error</title><h1>This page could not be shown</h1><p>Please try again.</p></html>".into()
    })
}
