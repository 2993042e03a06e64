//! Cookies: read by name, and written with all the attributes that they need.

use super::Site;
use axum::response::Response;
use hyper::HeaderMap;
use hyper::header::{COOKIE, HeaderValue, SET_COOKIE};
use rules::Span;
use rules::login::cookie::Cookie;
use rules::realm::Realm;
use rules::secret::{Handle, Secret, hexadecimal};

/// The cookies that this server sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// Who is signed in.
    Session,
    /// The browser that login flows are bound to.
    Flow,
    /// Which accounts have signed in with this browser before.
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

    /// Returns a length that no value of ours exceeds, in bytes.
    fn longest(self) -> usize {
        match self {
            Name::Access => 4096,
            _ => 512,
        }
    }
}

/// Returns the end of a realm's cookie names: `-REALM-` and eight hexadecimal digits of its issuer's SHA-256. Cookies
/// ignore ports and paths (RFC 6265 §8.5, §8.6), so two servers on one host would overwrite each other's.
pub(super) fn ending(realm: &Realm) -> String {
    format!("-{}-{}", realm.id, hexadecimal(&Handle::of(&realm.issuer).0[..4]))
}

impl Site {
    /// Returns `__Host-sid-REALM-ISSUER`; without the prefix on a plain http localhost URL, because libraries and one
    /// browser drop Secure cookies there.
    fn cookie_name(&self, name: Name) -> String {
        let prefix = if self.url.is_https() { "__Host-" } else { "" };
        format!("{prefix}{}{}", name.text(), self.cookie_ending)
    }

    /// Returns the cookie of that name; `None` if it was sent twice.
    pub fn cookie(&self, headers: &HeaderMap, name: Name) -> Option<Secret> {
        let wanted = self.cookie_name(name);
        // Cookies of other programs may hold any bytes; they must not hide ours.
        let pairs = headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
        let mut found = pairs.filter_map(|pair| pair.trim_ascii().strip_prefix(wanted.as_bytes())?.strip_prefix(b"="));
        match (found.next().map(std::str::from_utf8), found.next()) {
            (Some(Ok(value)), None) if value.len() <= name.longest() => Some(Secret::new(value)),
            _ => None,
        }
    }

    /// Returns a `Set-Cookie` value. `None` removes the cookie.
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

    /// Returns whether a response sets or removes a cookie.
    pub fn sets_cookie(&self, response: &Response, name: Name) -> bool {
        let known = self.cookie_name(name);
        let sets = |line: &HeaderValue| {
            line.as_bytes().strip_prefix(known.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        };
        response.headers().get_all(SET_COOKIE).iter().any(sets)
    }

    /// Returns the session that the browser claims.
    pub fn session_cookie(&self, headers: &HeaderMap) -> Option<Cookie> {
        Cookie::read(self.cookie(headers, Name::Session)?.reveal())
    }
}
