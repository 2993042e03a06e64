//! A request as the doors see it: who sent it, under which id, from which browser.

use super::Site;
use super::cookies::Name;
use super::cors;
use crate::admission::Sender;
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
    /// Who had it sent.
    pub sender: Sender,
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
            sender: sender(headers, |origin| site.app.was_enabled_origin(origin)),
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

/// What a browser says of a request that a page of another site had it send, other than by leading there: a picture, a script, a
/// frame, a fetch (Fetch Metadata, W3C). A script, and the preflight before it, comes with the origin of its page, which no other
/// page can name: that of an application tells its requests from what whoever embeds. Who sends such headers without being a
/// browser has failures counted in the name of either for its own address, and for nobody else's. `is_known` is asked before
/// anything is counted, so it may cost nothing.
fn sender(headers: &HeaderMap, is_known: impl FnOnce(&str) -> bool) -> Sender {
    let said = |name| headers.get(name).map(|value: &HeaderValue| value.as_bytes());
    let mode = said("sec-fetch-mode");
    let leads = mode == Some(b"navigate") && said("sec-fetch-dest") == Some(b"document");
    match said("sec-fetch-site") {
        Some(b"cross-site" | b"same-site") if !leads => {
            let is_own = mode == Some(b"cors") && cors::origin(headers).is_some_and(|origin| is_known(&origin));
            if is_own { Sender::Application } else { Sender::Foreign }
        }
        _ => Sender::Visitor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a browser, or whoever, sends it.
    fn sent((site, mode, dest): (Option<&str>, &str, &str), origins: &[&str]) -> Sender {
        let mut headers = HeaderMap::new();
        let value = |text| HeaderValue::from_str(text).unwrap();
        site.map(|site| headers.insert("sec-fetch-site", value(site)));
        headers.insert("sec-fetch-mode", value(mode));
        headers.insert("sec-fetch-dest", value(dest));
        for origin in origins {
            headers.append(ORIGIN, value(origin));
        }
        sender(&headers, |origin| origin == "https://app.test")
    }

    #[test]
    fn what_a_page_of_another_site_embeds_is_told_from_what_it_leads_to() {
        for (said, whose) in [
            ((Some("cross-site"), "no-cors", "image"), Sender::Foreign),
            ((Some("same-site"), "cors", "empty"), Sender::Foreign),
            ((Some("cross-site"), "navigate", "iframe"), Sender::Foreign),
            ((Some("cross-site"), "navigate", "document"), Sender::Visitor),
            ((Some("same-origin"), "cors", "empty"), Sender::Visitor),
            ((Some("none"), "navigate", "document"), Sender::Visitor),
            ((None, "", ""), Sender::Visitor),
        ] {
            assert_eq!(sent(said, &[]), whose, "{said:?}");
        }
    }

    #[test]
    fn what_an_application_asks_for_is_told_from_what_other_pages_embed() {
        // Red without `is_own`; and where any origin would do, or one beside another.
        let app = "https://app.test";
        for site in ["cross-site", "same-site"] {
            let by = |mode, origins: &[&str]| sent((Some(site), mode, "empty"), origins);
            assert_eq!(by("cors", &[app]), Sender::Application, "{site}");
            for foreign in [&["https://evil.test"][..], &["null"], &[], &[app, app], &[app, "https://evil.test"]] {
                assert_eq!(by("cors", foreign), Sender::Foreign, "{site} {foreign:?}");
            }
            for mode in ["no-cors", "navigate", "websocket", ""] {
                assert_eq!(by(mode, &[app]), Sender::Foreign, "{site} {mode}");
            }
        }
        assert_eq!(sent((Some("same-origin"), "cors", "empty"), &[app]), Sender::Visitor);
        assert_eq!(sent((None, "cors", "empty"), &[app]), Sender::Visitor, "a program");
    }
}
