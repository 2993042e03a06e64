//! A request as the doors see it: its sender, its id, its browser.

use super::Site;
use super::cookies::Name;
use super::cors;
use crate::admission::Sender;
use crate::net::{Client, Peer, client_address};
use app::browser::{Browser, Unproved};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue, ORIGIN, USER_AGENT};
use rules::login::session::Origin;
use rules::secret::base64url;
use std::sync::Arc;

/// What is known of every request before it reaches its door.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Names the request in the log and on error pages.
    pub request_id: Arc<str>,
    /// The client that sent it.
    pub client: Client,
    /// Whether a page of another site caused it.
    pub sender: Sender,
    /// Whether its answer may ask for the credentials of a client.
    pub asking: Asking,
    /// The response's CSP nonce.
    pub nonce: Arc<str>,
}

impl Visit {
    /// Makes the visit of a request from `peer`. `None` if no randomness is available.
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

    /// Returns the address in the form of the audit log.
    pub fn address(&self) -> String {
        self.client.address.to_string()
    }

    /// Returns the browser that sent the request.
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
}

/// Whether a response may ask for the credentials of a client by HTTP authentication (RFC 9110 §11.6.1). To a browser
/// that would show its own name and password dialog, to the user of the page that sent the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// A page sent the request.
    Page,
    /// A program sent it, with an Authorization header.
    Tried,
    /// A program sent it, without one.
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

/// Returns whether, according to the browser, a page of another site caused the request other than by a link: with an
/// image, a script, a frame, a fetch (Fetch Metadata, W3C). A script's request, and its preflight, name the origin of
/// its page, which no other page can forge: an application's origin sets it apart from pages that embed this server. A
/// program that forges these headers has its failures counted for its own address in either class, and for no other
/// address. `is_known` is asked before anything is counted, so it must cost nothing.
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

    /// Classifies a request as a browser, or any program, may send it.
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
