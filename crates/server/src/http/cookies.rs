//! Cookies: read by name, written with every attribute that they need.

use super::Site;
use axum::response::Response;
use hyper::HeaderMap;
use hyper::header::{COOKIE, HeaderValue, SET_COOKIE};
use rules::Span;
use rules::login::session;
use rules::realm::Realm;
use rules::secret::{Handle, Secret, hexadecimal};

/// The cookies that we set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Who is signed in.
    Session,
    /// What login flows are bound to.
    Flow,
    /// Who has signed in here before.
    Device,
    /// An access token of the account API.
    Access,
    /// A refresh token of the account API.
    Refresh,
}

impl Name {
    fn text(self) -> &'static str {
        match self {
            Name::Session => "sid",
            Name::Flow => "flow",
            Name::Device => "device",
            Name::Access => "access",
            Name::Refresh => "refresh",
        }
    }

    /// More bytes than any value of ours has.
    fn longest(self) -> usize {
        match self {
            Name::Access => 4096,
            _ => 512,
        }
    }
}

/// What the names of a realm's cookies end with: `-REALM-` and eight hexadecimal digits of its issuer's SHA-256. Cookies
/// know neither ports nor paths beyond ours (RFC 6265 §8.5, §8.6), so that two servers on one host would take each other's away.
pub(super) fn ending(realm: &Realm) -> String {
    format!("-{}-{}", realm.id, hexadecimal(&Handle::of(&realm.issuer).0[..4]))
}

impl Site {
    /// `__Host-sid-REALM-ISSUER`; on a plain http localhost URL without the prefix, because libraries and one browser
    /// drop Secure cookies there.
    fn cookie_name(&self, name: Name) -> String {
        let prefix = if self.url.is_https() { "__Host-" } else { "" };
        format!("{prefix}{}{}", name.text(), self.cookie_ending)
    }

    /// The cookie of that name; one that was sent twice is none.
    pub fn cookie(&self, headers: &HeaderMap, name: Name) -> Option<Secret> {
        let wanted = self.cookie_name(name);
        // What others keep in theirs is bytes of any kind, and hides none of ours.
        let pairs = headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
        let mut found = pairs.filter_map(|pair| pair.trim_ascii().strip_prefix(wanted.as_bytes())?.strip_prefix(b"="));
        match (found.next().map(std::str::from_utf8), found.next()) {
            (Some(Ok(value)), None) if value.len() <= name.longest() => Some(Secret::new(value)),
            _ => None,
        }
    }

    /// A `Set-Cookie` value. `None` takes the cookie away.
    pub fn set_cookie(&self, name: Name, value: Option<&str>) -> HeaderValue {
        let settings = &self.app.realm.settings;
        let age = match (value, name) {
            (None, _) => Span::ZERO,
            (_, Name::Session) => settings.session_absolute,
            (_, Name::Flow) => settings.flow_ttl + settings.flow_ttl,
            (_, Name::Device) => Span::days(365),
            (_, Name::Access) => settings.access_ttl,
            (_, Name::Refresh) => settings.refresh_absolute,
        };
        let secure = if self.url.is_https() { "; Secure" } else { "" };
        let text = format!(
            "{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}",
            self.cookie_name(name),
            value.unwrap_or(""),
            age.whole_seconds()
        );
        HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    /// Whether an answer sets a cookie, or takes it away.
    pub fn sets_cookie(&self, response: &Response, name: Name) -> bool {
        let known = self.cookie_name(name);
        let sets = |line: &HeaderValue| {
            line.as_bytes().strip_prefix(known.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        };
        response.headers().get_all(SET_COOKIE).iter().any(sets)
    }

    /// The session that the browser claims.
    pub fn session_cookie(&self, headers: &HeaderMap) -> Option<session::Cookie> {
        session::Cookie::read(self.cookie(headers, Name::Session)?.reveal())
    }
}
