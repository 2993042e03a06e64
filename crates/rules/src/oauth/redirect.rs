//! Where an authorization response may go. A [`Verified`] is made only from a registered URI, so an open redirect
//! does not type-check.

use super::client::Client;
use serde::{Deserialize, Serialize};

/// A redirect URI that the client registered, as the request named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified(String);

impl Verified {
    /// RFC 9700 §2.1: equal bytes, except for the port of a native client's loopback address (RFC 8252 §7.3).
    pub fn accept(client: &Client, asked: &str) -> Option<Self> {
        client
            .redirect_uris
            .iter()
            .any(|known| known == asked || (client.native && same_but_for_port(known, asked)))
            .then(|| Verified(asked.to_owned()))
    }
    /// OpenID Connect RP-Initiated Logout §3: a registered `post_logout_redirect_uri`.
    pub fn after_logout(client: &Client, asked: &str) -> Option<Self> {
        client.post_logout_redirect_uris.iter().any(|known| known == asked).then(|| Verified(asked.to_owned()))
    }
    /// The URI.
    pub fn as_str(&self) -> &str {
        &self.0
    }
    /// Its origin (or scheme, for private-use schemes), for the page's `form-action` and for people to read.
    pub fn origin(&self) -> &str {
        origin(&self.0)
    }
    /// The URI with `fields` appended the way `mode` says. For [`Mode::FormPost`] the fields travel in a form instead.
    pub fn with(&self, mode: Mode, fields: &[(&'static str, String)]) -> String {
        let encoded: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
        let encoded = encoded.join("&");
        match mode {
            Mode::FormPost => self.0.clone(),
            Mode::Fragment => format!("{}#{encoded}", self.0),
            Mode::Query if encoded.is_empty() => self.0.clone(),
            Mode::Query if self.0.contains('?') => format!("{}&{encoded}", self.0),
            Mode::Query => format!("{}?{encoded}", self.0),
        }
    }
}

/// How an authorization response travels (OAuth 2.0 Multiple Response Types §2.1, Form Post Response Mode).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// In the query of the redirect URI.
    Query,
    /// In its fragment.
    Fragment,
    /// As a form that the browser posts.
    FormPost,
}

impl Mode {
    /// All of them, by name.
    pub const NAMES: [&'static str; 3] = ["query", "fragment", "form_post"];
    /// The mode of that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "query" => Some(Mode::Query),
            "fragment" => Some(Mode::Fragment),
            "form_post" => Some(Mode::FormPost),
            _ => None,
        }
    }
}

/// An authorization response, ready to be sent: the URI, the way, and the fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Where it goes.
    pub to: Verified,
    /// How it travels.
    pub mode: Mode,
    /// Its fields, including `state` and `iss`.
    pub fields: Vec<(&'static str, String)>,
}

/// `scheme://host:port` of a URI, or its scheme when it has no authority.
pub fn origin(uri: &str) -> &str {
    // Another "://" may follow, in the path or the query of a URI without an authority.
    let Some((scheme, rest)) = uri.split_once(':') else { return uri };
    match rest.strip_prefix("//") {
        Some(rest) => &uri[..scheme.len() + 3 + rest.find(['/', '?', '#']).unwrap_or(rest.len())],
        None => &uri[..=scheme.len()],
    }
}

/// Returns an origin as browsers write it: without the default port of its scheme (RFC 6454 §6.2).
pub fn as_sent(origin: &str) -> &str {
    let usual = match origin.split_once(':') {
        Some(("https", _)) => ":443",
        Some(("http", _)) => ":80",
        _ => return origin,
    };
    origin.strip_suffix(usual).unwrap_or(origin)
}

/// RFC 3986 §2.3: everything but unreserved characters is escaped.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_unreserved(byte) {
            escaped.push(byte as char);
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            escaped.push('%');
            escaped.push(HEX[usize::from(byte >> 4)] as char);
            escaped.push(HEX[usize::from(byte & 15)] as char);
        }
    }
    escaped
}

/// How many bytes [`escape`] makes of a text.
pub(super) fn escaped_length(text: &str) -> usize {
    text.bytes().map(|byte| if is_unreserved(byte) { 1 } else { "%00".len() }).sum()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether both are http on one loopback host, a literal (RFC 8252 §7.3) or localhost (RFC 9700 §4.1.3), and equal but
/// for the port.
fn same_but_for_port(known: &str, asked: &str) -> bool {
    ["http://127.0.0.1", "http://[::1]", "http://localhost"].into_iter().any(|host| {
        match (known.strip_prefix(host).and_then(after_port), asked.strip_prefix(host).and_then(after_port)) {
            (Some(known), Some(asked)) => known == asked,
            _ => false,
        }
    })
}

/// Returns what follows `:port`, if after the host there is an optional port and then a path, a query or nothing.
fn after_port(rest: &str) -> Option<&str> {
    let rest = match rest.strip_prefix(':') {
        Some(rest) => {
            let (port, rest) = rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count());
            is_port(port).then_some(rest)?
        }
        None => rest,
    };
    (rest.is_empty() || rest.starts_with(['/', '?'])).then_some(rest)
}

/// Whether `text` is a port in its one spelling.
pub(super) fn is_port(text: &str) -> bool {
    text.starts_with(|first: char| matches!(first, '1'..='9'))
        && text.bytes().all(|b| b.is_ascii_digit())
        && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::client::tests::{confidential, native};

    #[test]
    fn ru_only_the_registered_bytes_are_accepted() {
        let client = confidential("c1", "https://app.test/cb");
        assert!(Verified::accept(&client, "https://app.test/cb").is_some());
        for foreign in [
            "https://app.test.evil.test/cb",
            "https://a@b@evil.test/cb",
            "https://app.test@evil.test/cb",
            "https://app.test\\@evil.test/cb",
            "https://app.test%40evil.test/cb",
            "https://app.test/CB",
            "HTTPS://app.test/cb",
            "https://APP.test/cb",
            "https://app.test/cb/",
            "https://app.test/cb?x",
            "https://app.test:443/cb",
            "https://app.test/./cb",
            "https://app.test/%63b",
            "https://app.test/cb#",
            " https://app.test/cb",
            "https://app.test/cb ",
            "",
        ] {
            assert!(Verified::accept(&client, foreign).is_none(), "{foreign}");
        }
    }

    #[test]
    fn ru_05_only_the_port_of_a_native_loopback_address_varies() {
        let client = native("p1", "http://127.0.0.1/cb");
        for known in ["http://127.0.0.1/cb", "http://127.0.0.1:51004/cb", "http://127.0.0.1:1/cb"] {
            assert!(Verified::accept(&client, known).is_some(), "{known}");
        }
        for foreign in [
            "http://127.0.0.1.evil.test/cb",
            "http://127.0.0.1@evil.test/cb",
            "http://127.0.0.1:80@evil.test/cb",
            "http://127.0.0.1:/cb",
            "http://127.0.0.1:0/cb",
            "http://127.0.0.1:051004/cb",
            "http://127.0.0.1:+1/cb",
            "http://127.0.0.1:65536/cb",
            "http://localhost.evil.test/cb",
            "http://localhost:1/cb",
            "https://127.0.0.1/cb",
            "http://127.0.0.1:1/other",
            "http://127.0.0.1:1/cb?x=1",
            "http://127.0.0.2:1/cb",
            "http://[::1]:1/cb",
        ] {
            assert!(Verified::accept(&client, foreign).is_none(), "{foreign}");
        }
        let client = native("p1", "http://localhost/cb");
        for known in ["http://localhost/cb", "http://localhost:51004/cb"] {
            assert!(Verified::accept(&client, known).is_some(), "{known}");
        }
        for foreign in [
            "http://localhost.evil.test/cb",
            "http://localhost.evil.test:51004/cb",
            "http://localhost:80@evil.test/cb",
            "http://localhost@evil.test/cb",
            "http://localhost:/cb",
            "http://localhost:1/other",
            "http://127.0.0.1:1/cb",
            "https://localhost:1/cb",
        ] {
            assert!(Verified::accept(&client, foreign).is_none(), "{foreign}");
        }
        let web = confidential("c1", "http://127.0.0.1/cb");
        assert!(Verified::accept(&web, "http://127.0.0.1:51004/cb").is_none());
    }

    #[test]
    fn fields_are_escaped_and_a_query_is_kept() {
        let client = confidential("c1", "https://app.test/cb?x=1");
        let to = Verified::accept(&client, "https://app.test/cb?x=1").expect("registered");
        let fields = [("state", "a&b=c #\"<".to_owned())];
        assert_eq!(to.with(Mode::Query, &fields), "https://app.test/cb?x=1&state=a%26b%3Dc%20%23%22%3C");
        assert_eq!(to.origin(), "https://app.test");
    }

    #[test]
    fn what_is_counted_is_what_is_written() {
        // Red where a space or `*` counts as one byte: a request that was let through came back in an address that no
        // server reads.
        for byte in 0..=u8::MAX {
            let text = char::from(byte).to_string();
            assert_eq!(escaped_length(&text), escape(&text).len(), "{text:?}");
        }
    }

    #[test]
    fn the_origin_is_the_beginning_and_nothing_that_follows_it() {
        // Red if `origin` looked for "://" anywhere.
        for (uri, begins) in [
            ("https://app.test/cb?next=x://y", "https://app.test"),
            ("https://app.test?next=x://y", "https://app.test"),
            ("https://app.test", "https://app.test"),
            ("com.example.app:/cb?next=x://y;z", "com.example.app:"),
            ("com.example.app:cb", "com.example.app:"),
            ("com.example.app://cb;x/y", "com.example.app://cb;x"),
            ("http://[::1]:1/cb", "http://[::1]:1"),
        ] {
            assert_eq!(origin(uri), begins);
        }
    }
}
