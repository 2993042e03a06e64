//! What surrounds every page: language, brand, who is signed in, and where links lead.

use super::assets;
use super::language::Language;
use super::messages::Messages;

/// The name people know the provider by.
#[derive(Clone, Copy, Debug)]
pub struct Brand<'a> {
    /// Shown beside the logo and in every title.
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
    /// The path under which the realm lives, without a trailing slash; empty at the root of a host.
    pub base: &'a str,
    /// The username of the session's owner, on the pages that are theirs: the front page, the account home and those of devices.
    pub signed_in: Option<&'a str>,
}

/// A way back to an application: its name, and a URL that only a registered URI can have made.
#[derive(Clone, Copy, Debug)]
pub struct Back<'a> {
    /// The application's name.
    pub name: &'a str,
    /// The verified URL, parameters included.
    pub url: &'a str,
    /// The parameters, where the application wants them posted; the URL is then without them.
    pub posted: &'a [(&'a str, &'a str)],
}

impl Chrome<'_> {
    pub(super) fn messages(&self) -> &'static Messages {
        Messages::of(self.language)
    }

    /// The link to `path`, which begins with a slash, inside the realm.
    pub(super) fn to(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The link to the asset `name`, content hash included.
    pub(super) fn asset(&self, name: &str) -> String {
        self.to(assets::path(name))
    }
}

impl Back<'_> {
    /// The URL as a link target.
    pub(super) fn href(&self) -> &str {
        harmless(self.url)
    }
}

/// `url`, unless following it would run a script in our origin (attack XS-02). Verified URLs never do; a link in HTML is
/// the last place that could still stop one.
pub(super) fn harmless(url: &str) -> &str {
    let scheme: String =
        url.chars().take_while(|c| *c != ':').filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    let runs = ["javascript", "data", "vbscript", "blob"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
    if runs { "#" } else { url }
}

/// The page, or plain words should rendering ever fail: a person is never left with an empty window.
pub(super) fn whole(rendered: askama::Result<String>) -> String {
    rendered.unwrap_or_else(|_| {
        "<!doctype html><html lang=\"en\"><title>Error</title><h1>This page could not be shown</h1><p>Please try again.</p></html>".into()
    })
}
