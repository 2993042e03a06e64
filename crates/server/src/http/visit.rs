//! A request as the doors see it: who sent it, under which id, from which browser.

use super::Site;
use super::cookies::Name;
use crate::net::{Client, Peer, client_address};
use crate::pages::{Brand, Chrome, Language};
use app::browser::{Browser, Unproved};
use hyper::HeaderMap;
use hyper::header::{ACCEPT_LANGUAGE, AUTHORIZATION, HeaderValue, ORIGIN, USER_AGENT};
use rules::login::session::Origin;
use rules::secret::base64url;
use std::sync::Arc;

/// What is known of every request before its door opens.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Names the request in the log and on error pages.
    pub request_id: Arc<str>,
    /// Who sent it.
    pub client: Client,
    /// Whether a page of another site had a browser send it, other than by leading there.
    pub embedded: bool,
    /// How it may be asked for the credentials of a client.
    pub asking: Asking,
    /// The response's CSP nonce.
    pub nonce: Arc<str>,
}

impl Visit {
    /// A request from `peer`. `None` when no randomness is to be had.
    pub fn new(site: &Site, peer: &Peer, headers: &HeaderMap) -> Option<Self> {
        let chance = app::entropy::bytes().ok()?;
        Some(Visit {
            request_id: base64url(&chance[..12]).into(),
            nonce: base64url(&chance[12..28]).into(),
            client: client_address(peer, headers, &site.proxies),
            embedded: is_embedded(headers),
            asking: Asking::of(headers),
        })
    }

    /// The address as the audit log has it.
    pub fn address(&self) -> String {
        self.client.address.to_string()
    }

    /// The browser that sent it.
    pub fn browser(&self, site: &Site, headers: &HeaderMap) -> Browser {
        let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or("");
        Browser {
            session: site.session_cookie(headers),
            flow: site.cookie(headers, Name::Flow).filter(|flow| flow.reveal().len() == 43),
            device: site.cookie(headers, Name::Device),
            unproved: Unproved::default(),
            origin: Origin { agent: agent.chars().take(300).collect(), address: self.address(), client: None },
            counted: self.client.counted().filter(|_| !site.admission.lists(&self.client)),
        }
    }

    /// The frame of a page in the language that the browser prefers.
    pub fn chrome<'a>(&'a self, site: &'a Site, headers: &HeaderMap, ui_locales: Option<&str>) -> Chrome<'a> {
        let accepted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        Chrome {
            language: Language::choose(ui_locales, accepted),
            brand: Brand { name: &site.brand },
            nonce: &self.nonce,
            base: site.url.path(),
            signed_in: None,
        }
    }
}

/// Whether an answer may ask for the credentials of a client by HTTP authentication (RFC 9110 §11.6.1). A browser that is asked so
/// shows its own window for a name and a password, to whoever looks at the page that sent the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// A page sent it.
    Page,
    /// A program did, with an Authorization header.
    Tried,
    /// A program did, without one.
    Untried,
}

impl Asking {
    fn of(headers: &HeaderMap) -> Self {
        // Not `sec-fetch-mode`, which programs on Node send, too.
        match headers.contains_key(ORIGIN) || headers.contains_key("sec-fetch-site") {
            true => Asking::Page,
            false if headers.contains_key(AUTHORIZATION) => Asking::Tried,
            false => Asking::Untried,
        }
    }
}

/// What a browser says of a request that a page of another site had it send: a picture, a script, a frame, a fetch (Fetch
/// Metadata, W3C). Who sends that header without being a browser has its failures counted there, too.
fn is_embedded(headers: &HeaderMap) -> bool {
    let said = |name| headers.get(name).map(|value: &HeaderValue| value.as_bytes());
    let foreign = matches!(said("sec-fetch-site"), Some(b"cross-site" | b"same-site"));
    let leads = said("sec-fetch-mode") == Some(b"navigate") && said("sec-fetch-dest") == Some(b"document");
    foreign && !leads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_of_another_site_embeds_is_told_from_what_it_leads_to() {
        for (site, mode, dest, embedded) in [
            (Some("cross-site"), "no-cors", "image", true),
            (Some("same-site"), "cors", "empty", true),
            (Some("cross-site"), "navigate", "iframe", true),
            (Some("cross-site"), "navigate", "document", false),
            (Some("same-origin"), "cors", "empty", false),
            (Some("none"), "navigate", "document", false),
            (None, "", "", false),
        ] {
            let mut headers = HeaderMap::new();
            site.map(|site| headers.insert("sec-fetch-site", HeaderValue::from_static(site)));
            headers.insert("sec-fetch-mode", HeaderValue::from_static(mode));
            headers.insert("sec-fetch-dest", HeaderValue::from_static(dest));
            assert_eq!(is_embedded(&headers), embedded, "{site:?} {mode} {dest}");
        }
    }
}
