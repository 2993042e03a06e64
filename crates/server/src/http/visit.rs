//! A request as the doors see it: who sent it, under which id, from which browser.

use super::Site;
use super::cookies::Name;
use crate::net::{Client, Peer, client_address};
use crate::pages::{Brand, Chrome, Language};
use app::browser::{Browser, Unproved};
use hyper::HeaderMap;
use hyper::header::{ACCEPT_LANGUAGE, USER_AGENT};
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
            origin: Origin { agent: agent.chars().take(300).collect(), address: self.address() },
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
