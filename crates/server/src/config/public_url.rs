//! The public URL: the issuer, byte for byte.

use super::value::{Raw, Value};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The names that this machine has for itself.
const LOCALHOST: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The paths at which probes ask, under any host, whether the server lives and can serve: no public URL has them.
pub const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// W3C, A Well-Known URL for Changing Passwords: it is below no issuer's path.
pub const CHANGE_PASSWORD: &str = "/.well-known/change-password";

/// The URL at which users and applications reach the server. Its text is the issuer (OpenID Connect Discovery §3) and
/// is never changed; host and origin are derived from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    text: String,
    https: bool,
    /// In lower case, an IPv6 address in brackets.
    host: String,
    port: Option<u16>,
    path_at: usize,
}

impl PublicUrl {
    /// Parses `https://host[:port][/path]`. Plain http is for localhost, 127.0.0.1 and `[::1]` only; a query, a
    /// fragment, user information and a trailing slash are refused.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (https, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            _ => return Err(format!("{text:?} does not begin with https:// (or http:// on localhost)")),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        check_path(path)?;
        let (host, port) = split_port(authority)?;
        let url = PublicUrl {
            text: text.to_owned(),
            https,
            host: as_browsers_write(host)?,
            port,
            path_at: text.len() - path.len(),
        };
        if !url.https && !url.is_localhost() {
            return Err(format!("must be https: plain http is for localhost, 127.0.0.1 and [::1] only, not {host:?}"));
        }
        Ok(url)
    }

    /// Returns the default: `http://localhost`, or https, with `port`.
    pub fn localhost(https: bool, port: u16) -> Self {
        let (scheme, usual) = if https { ("https", 443) } else { ("http", 80) };
        let mut text = format!("{scheme}://localhost");
        if port != usual {
            text.push_str(&format!(":{port}"));
        }
        let path_at = text.len();
        PublicUrl { text, https, host: "localhost".to_owned(), port: Some(port), path_at }
    }

    /// Returns the text as configured: the issuer.
    pub fn as_str(&self) -> &str {
        &self.text
    }
    /// Returns whether the scheme is https.
    pub fn is_https(&self) -> bool {
        self.https
    }
    /// Returns the host as browsers write it, an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }
    /// Returns whether the host is localhost, 127.0.0.1 or `[::1]`.
    pub fn is_localhost(&self) -> bool {
        LOCALHOST.contains(&self.host.as_str())
    }
    /// Returns the port, given or implied by the scheme.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(if self.https { 443 } else { 80 })
    }
    /// Returns the path: empty, or `/` and segments without a trailing slash.
    pub fn path(&self) -> &str {
        &self.text[self.path_at..]
    }
    /// Returns the host as it was typed, in lower case.
    fn typed_host(&self) -> String {
        let authority = self.text[..self.path_at].split_once("://").map_or("", |(_, rest)| rest);
        split_port(authority).map_or_else(|_| self.host.clone(), |(host, _)| host.to_ascii_lowercase())
    }
    /// Returns every way to write host and port into `Host`: localhost under all of its names, and the scheme's own
    /// port without its number, as browsers do, and with it, as some proxies do (RFC 9110 §4.2.3: the same origin).
    pub fn hosts(&self) -> Vec<String> {
        let port = self.port();
        let typed = self.typed_host();
        let names = match self.is_localhost() {
            true => LOCALHOST.to_vec(),
            // A client that is no browser may write an IPv6 address as it is configured.
            false if typed == self.host => vec![self.host.as_str()],
            false => vec![self.host.as_str(), typed.as_str()],
        };
        let own = matches!((self.https, port), (true, 443) | (false, 80));
        let bare = names.iter().filter(|_| own).map(|name| (*name).to_owned());
        bare.chain(names.iter().map(|name| format!("{name}:{port}"))).collect()
    }
}

fn check_path(path: &str) -> Result<(), String> {
    if path.contains(['?', '#']) {
        return Err("must have neither a query nor a fragment".to_owned());
    }
    let Some(segments) = path.strip_prefix('/') else { return Ok(()) };
    if segments.is_empty() || segments.ends_with('/') {
        return Err("must not end in a slash: the issuer is compared byte for byte".to_owned());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    match segments.split('/').find(|part| part.is_empty() || matches!(*part, "." | "..") || !part.chars().all(plain)) {
        Some(part) => Err(format!("has a path segment {part:?} that is not letters, digits, '-', '.', '_' and '~'")),
        None if path == CHANGE_PASSWORD => {
            Err(format!("has the path {path}, where password managers look for the page to change a password"))
        }
        None if PROBES.contains(&path) => Err(format!("has the path {path}, which is reserved for probes")),
        None => Ok(()),
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    if authority.contains('@') {
        return Err("must not have user information".to_owned());
    }
    let after_brackets = authority.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = authority[after_brackets..].find(':').map(|at| at + after_brackets) else {
        return Ok((authority, None));
    };
    let port = &authority[colon + 1..];
    match port.parse::<u16>() {
        Ok(number) if number > 0 && port.bytes().all(|b| b.is_ascii_digit()) => Ok((&authority[..colon], Some(number))),
        _ => Err(format!("has a port {port:?} that is not between 1 and 65535")),
    }
}

/// Returns the host as browsers send it, however it was typed (WHATWG URL §3.5): in lower case, an IPv6 address in its
/// shortest form. Refuses what browsers would take for an IPv4 address in another notation.
fn as_browsers_write(host: &str) -> Result<String, String> {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address: Ipv6Addr =
            address.parse().map_err(|_| format!("has a host {host:?} that is not an IPv6 address"))?;
        let [.., high, low] = address.segments();
        // Browsers write it without dots.
        return Ok(match address.to_ipv4_mapped() {
            Some(_) => format!("[::ffff:{high:x}:{low:x}]"),
            None => format!("[{address}]"),
        });
    }
    check_name(host)?;
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X");
    if is_number && host.parse::<Ipv4Addr>().is_err() {
        return Err(format!("has a host {host:?} that is not an IPv4 address as browsers write it"));
    }
    Ok(host.to_ascii_lowercase())
}

fn check_name(host: &str) -> Result<(), String> {
    let label = |part: &str| {
        !part.is_empty()
            && part.len() <= 63
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    match host.len() <= 253 && host.split('.').all(label) {
        true => Ok(()),
        false => Err(format!("has a host {host:?} that is not a DNS name (write other scripts in their xn-- form)")),
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Value for PublicUrl {
    fn takes() -> String {
        "a URL such as \"https://login.example.com\"".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        PublicUrl::parse(&String::parse(raw)?)
    }
    fn show(&self) -> Option<String> {
        self.text.show()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_kept_and_the_rest_derived() {
        let url = PublicUrl::parse("https://Login.Example.com:443/realms/a").unwrap();
        assert_eq!(url.as_str(), "https://Login.Example.com:443/realms/a");
        assert_eq!((url.path(), url.port(), url.is_https()), ("/realms/a", 443, true));
        let local = PublicUrl::parse("http://[::1]:8080").unwrap();
        assert_eq!((local.path(), local.port(), local.is_localhost()), ("", 8080, true));
        for path in ["/healthz/a", "/a/readyz", "/login", "/.well-known/oauth-authorization-server"] {
            assert_eq!(PublicUrl::parse(&format!("https://a.test{path}")).unwrap().path(), path);
        }
    }

    #[test]
    fn a_host_is_known_under_all_of_its_names_with_and_without_the_schemes_own_port() {
        let here = |port: &str| ["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}{port}"));
        for name in ["localhost", "127.0.0.1", "[::1]"] {
            for (scheme, own) in [("http", ":80"), ("https", ":443")] {
                for url in [format!("{scheme}://{name}"), format!("{scheme}://{name}{own}/realms/a")] {
                    assert_eq!(PublicUrl::parse(&url).unwrap().hosts(), [here(""), here(own)].concat(), "{url}");
                }
                let elsewhere = PublicUrl::parse(&format!("{scheme}://{name}:8080")).unwrap();
                assert_eq!(elsewhere.hosts(), here(":8080"), "{scheme} {name}");
            }
        }
        for (https, port, own) in [(false, 80, ":80"), (true, 443, ":443")] {
            assert_eq!(PublicUrl::localhost(https, port).hosts(), [here(""), here(own)].concat());
        }
        let public = |url| PublicUrl::parse(url).unwrap().hosts();
        assert_eq!(public("https://Login.Example.com"), ["login.example.com", "login.example.com:443"]);
        assert_eq!(public("https://login.example.com:8443"), ["login.example.com:8443"]);
    }

    #[test]
    fn an_address_is_served_as_browsers_write_it_and_as_it_was_typed() {
        // red without as_browsers_write in parse: every browser would be answered 421.
        let hosts = |url: &str| PublicUrl::parse(url).unwrap().hosts();
        assert_eq!(
            hosts("https://[2001:DB8:0:0::1]:8443"),
            ["[2001:db8::1]:8443", "[2001:db8:0:0::1]:8443"],
            "RFC 5952 and what was typed"
        );
        assert_eq!(hosts("https://[2001:db8::1]:8443"), ["[2001:db8::1]:8443"]);
        assert_eq!(hosts("https://[::FFFF:192.0.2.1]:1")[0], "[::ffff:c000:201]:1");
        assert_eq!(hosts("https://192.0.2.1:1"), ["192.0.2.1:1"]);
        let here = PublicUrl::parse("http://[0:0:0:0:0:0:0:1]:8080").unwrap();
        assert!(here.is_localhost() && here.hosts().contains(&"[::1]:8080".to_owned()), "{here:?}");
    }

    #[test]
    fn plain_http_is_for_localhost_alone() {
        for good in ["http://localhost", "http://127.0.0.1:1", "http://[::1]:9"] {
            assert!(PublicUrl::parse(good).is_ok(), "{good}");
        }
        for bad in ["http://example.com", "http://localhost.evil.test", "http://127.0.0.2", "http://10.0.0.1"] {
            assert!(PublicUrl::parse(bad).unwrap_err().contains("https"), "{bad}");
        }
    }

    #[test]
    fn what_would_not_compare_byte_for_byte_is_refused() {
        for bad in [
            "https://a.test/",
            "https://a.test/b/",
            "https://a.test?x",
            "https://a.test/#f",
            "https://u@a.test",
            "https://",
            "https://a..test",
            "https://a.test:0",
            "https://a.test:",
            "https://a.test:+80",
            "https://a.test:99999",
            "https://a.test/a//b",
            "https://a.test/../b",
            "https://a.test/%2e",
            "ftp://a.test",
            "https://[::g]",
            "https://[::1",
            "https://a b.test",
            "https://ä.test",
            "a.test",
            "HTTPS://a.test",
            "https://127.1",
            "https://10.0.0.010",
            "https://2130706433",
            "https://0x7f.1",
            "https://256.1.1.1",
            "https://login.1",
            "https://a.test/healthz",
            "https://a.test/readyz",
            "https://a.test/.well-known/change-password",
        ] {
            assert!(PublicUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_default_drops_the_usual_port() {
        assert_eq!(PublicUrl::localhost(false, 80).as_str(), "http://localhost");
        assert_eq!(PublicUrl::localhost(true, 8443).as_str(), "https://localhost:8443");
        assert_eq!(PublicUrl::localhost(false, 8080), PublicUrl::parse("http://localhost:8080").unwrap());
    }
}
