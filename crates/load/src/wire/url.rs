//! The part of a URL that goes on the wire, and whether the URL leads to this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// An absolute `http` or `https` URL, split as HTTP/1.1 needs it: authority for `Host`, path and query for the request
/// line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    secure: bool,
    authority: String,
    target: String,
}

/// Why a text is not a URL that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is neither `http://…` nor `https://…`.
    Scheme,
    /// Host or port cannot be read, or user information precedes them.
    Authority,
    /// It contains white space or control characters, which would break the request line.
    Character,
    /// The host is a real machine, or a name that may become one, and the user does not claim to own it.
    NotLoopback,
    /// It is on this machine, the target is not, and the user does not claim that this machine belongs to it.
    ThisMachine,
    /// It is `https://…`, and the target is not.
    NoTls,
    /// It is `http://…`, and the target is `https://…`.
    PlainText,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Wrong::Scheme => "only http:// and https:// URLs can be measured",
            Wrong::Authority => "host and port cannot be read",
            Wrong::Character => "a URL holds no white space or control characters",
            Wrong::NotLoopback => {
                "only this machine may be measured (localhost, 127.0.0.0/8 or [::1]), or one named with --i-own-this-host"
            }
            Wrong::ThisMachine => {
                "it is on this machine, and the target is not; name it with --i-own-this-host=localhost if it belongs to the \
                 target"
            }
            Wrong::PlainText => "it is http, but the target is https: nothing is sent there in plain text",
            Wrong::NoTls => "it is https, but the target is not; give the target as https",
        })
    }
}

impl Url {
    /// Parses an absolute URL; a fragment is dropped, an empty path becomes `/`.
    ///
    /// # Errors
    /// [`Wrong::Scheme`], [`Wrong::Authority`] and [`Wrong::Character`]; the others are about where a URL leads.
    pub fn parse(text: &str) -> Result<Url, Wrong> {
        let (scheme, rest) = text.split_once("://").ok_or(Wrong::Scheme)?;
        let secure = scheme.eq_ignore_ascii_case("https");
        if !secure && !scheme.eq_ignore_ascii_case("http") {
            return Err(Wrong::Scheme);
        }
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(Wrong::Character);
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if host_and_port(authority).is_none() {
            return Err(Wrong::Authority);
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Url { secure, authority: authority.to_ascii_lowercase(), target: format!("{slash}{target}") })
    }

    /// Returns true for `https`.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// Returns host and port as the `Host` header needs them (RFC 9110 §7.2).
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns path and query: the origin form of the request target (RFC 9112 §3.2.1).
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns only the path.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or("/")
    }

    /// Returns scheme and authority, as the `Origin` header needs them (RFC 6454 §7).
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme(), self.authority)
    }

    /// Resolves `reference` as it stands on the page at `self` (RFC 3986 §5.2), cleaned as browsers clean it:
    /// a link that works in a browser is no mistake of the provider.
    ///
    /// # Errors
    /// The same as [`Url::parse`].
    pub fn join(&self, reference: &str) -> Result<Url, Wrong> {
        let reference: &str = &cleaned(reference);
        let path = self.path();
        let folder = &path[..=path.rfind('/').unwrap_or(0)];
        let absolute = match reference {
            "" => return Ok(self.clone()),
            _ if has_scheme(reference) => return Url::parse(reference),
            _ if reference.starts_with("//") => return Url::parse(&format!("{}:{reference}", self.scheme())),
            _ if reference.starts_with('#') => return Ok(self.clone()),
            _ if reference.starts_with('/') => without_dots(reference),
            _ if reference.starts_with('?') => format!("{path}{reference}"),
            _ => without_dots(&format!("{folder}{reference}")),
        };
        Url::parse(&format!("{}{absolute}", self.origin()))
    }

    /// Returns this URL with `query` (already encoded) appended to its query.
    #[must_use]
    pub fn with_query(&self, query: &str) -> Url {
        let sign = if self.target.contains('?') { '&' } else { '?' };
        Url { target: format!("{}{sign}{query}", self.target), ..self.clone() }
    }

    /// Returns this URL with `query` (already encoded) as its only query, as a form that is sent by GET does.
    #[must_use]
    pub fn replacing_query(&self, query: &str) -> Url {
        Url { target: format!("{}?{query}", self.path()), ..self.clone() }
    }

    /// Returns the host, without the brackets of IPv6.
    pub fn host(&self) -> &str {
        host_and_port(&self.authority).map_or("", |(host, _)| host)
    }

    /// Returns the port, even if it is not written.
    pub fn port(&self) -> u16 {
        let written = host_and_port(&self.authority).and_then(|(_, port)| port);
        written.unwrap_or(if self.secure { 443 } else { 80 })
    }

    fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// Returns the addresses to connect to, in order. No name is resolved: `localhost` is known (RFC 6761 §6.3).
    ///
    /// # Errors
    /// [`Wrong::NotLoopback`].
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, Wrong> {
        let (host, port) = (self.host(), self.port());
        if host == "localhost" || host.ends_with(".localhost") {
            let both = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            return Ok(both.map(|ip| SocketAddr::new(ip, port)).to_vec());
        }
        match host.parse::<IpAddr>() {
            Ok(ip) if ip.is_loopback() => Ok(vec![SocketAddr::new(ip, port)]),
            _ => Err(Wrong::NotLoopback),
        }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.origin(), self.target)
    }
}

/// Returns the host without the brackets of IPv6, and the port if there is one.
fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            host.parse::<Ipv6Addr>().ok()?;
            (host, port)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(digits) => Some(digits.parse().ok()?),
        None if port.is_empty() => None,
        None => return None,
    };
    (!host.is_empty() && !host.contains('@')).then_some((host, port))
}

/// Cleans an address as browsers do (WHATWG URL §4.4): strips control characters and spaces at both ends, removes tabs
/// and line ends, and encodes spaces, control characters and all that is not ASCII as UTF-8. A host stays as it is: one
/// that is not ASCII would have to become Punycode.
fn cleaned(reference: &str) -> String {
    let kept = reference.trim_matches(|c: char| c <= ' ').replace(['\t', '\n', '\r'], "");
    let (host, rest) = kept.split_at(behind_host(&kept));
    let mut cleaned = host.to_owned();
    for letter in rest.chars() {
        if letter.is_ascii_graphic() {
            cleaned.push(letter);
        } else {
            letter.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| cleaned.push_str(&format!("%{byte:02X}")));
        }
    }
    cleaned
}

/// Returns where the path, the query or the fragment of a reference begins.
fn behind_host(reference: &str) -> usize {
    let begin = match reference.find("//") {
        Some(0) => 2,
        Some(at) if has_scheme(reference) && reference[..at].ends_with(':') => at + 2,
        _ => return 0,
    };
    reference[begin..].find(['/', '?', '#']).map_or(reference.len(), |length| begin + length)
}

/// Returns true for `word:…` where a colon precedes anything that ends a scheme (RFC 3986 §3.1).
fn has_scheme(reference: &str) -> bool {
    let end = reference.find([':', '/', '?', '#']);
    end.is_some_and(|at| at > 0 && reference.as_bytes()[at] == b':')
}

/// Removes dot segments from the path (RFC 3986 §5.2.4); the query stays as it is.
fn without_dots(target: &str) -> String {
    let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_split_where_the_wire_splits_them() {
        let url = Url::parse("HTTP://LocalHost:8080?a=b#top").unwrap();
        assert_eq!((url.authority(), url.target()), ("localhost:8080", "/?a=b"));
        assert_eq!(url.origin(), "http://localhost:8080");
        assert_eq!(url.to_string(), "http://localhost:8080/?a=b");
    }

    #[test]
    fn what_cannot_be_sent_is_no_url() {
        for (text, wrong) in [
            ("ftp://localhost/", Wrong::Scheme),
            ("localhost:8080", Wrong::Scheme),
            ("http://", Wrong::Authority),
            ("http://user@localhost/", Wrong::Authority),
            ("http://localhost:99999/", Wrong::Authority),
            ("http://[zz]/", Wrong::Authority),
            ("http://localhost/a b", Wrong::Character),
            ("http://localhost/\r\nX: y", Wrong::Character),
        ] {
            assert_eq!(Url::parse(text), Err(wrong), "{text}");
        }
    }

    #[test]
    fn only_this_machine_has_addresses() {
        let addresses = |text: &str| Url::parse(text).unwrap().addresses();
        assert_eq!(addresses("http://127.0.0.1:81/").unwrap(), ["127.0.0.1:81".parse().unwrap()]);
        assert_eq!(addresses("http://[::1]/").unwrap(), ["[::1]:80".parse().unwrap()]);
        assert_eq!(addresses("http://localhost:8080/").unwrap().len(), 2);
        for text in ["http://example.com/", "http://10.0.0.1/", "http://localhost.example.com/", "http://0.0.0.0/"] {
            assert_eq!(addresses(text), Err(Wrong::NotLoopback), "{text}");
        }
    }

    #[test]
    fn references_are_resolved_as_rfc_3986_says() {
        let base = Url::parse("http://localhost:8080/a/b?c=d").unwrap();
        for (reference, expected) in [
            ("/x", "http://localhost:8080/x"),
            ("x?y=z", "http://localhost:8080/a/x?y=z"),
            ("?y", "http://localhost:8080/a/b?y"),
            ("../x/./y", "http://localhost:8080/x/y"),
            ("..", "http://localhost:8080/"),
            ("", "http://localhost:8080/a/b?c=d"),
            ("#top", "http://localhost:8080/a/b?c=d"),
            ("//127.0.0.1:9/x", "http://127.0.0.1:9/x"),
            ("http://127.0.0.1/y", "http://127.0.0.1/y"),
            ("x?u=http://h/../k", "http://localhost:8080/a/x?u=http://h/../k"),
        ] {
            assert_eq!(base.join(reference).unwrap().to_string(), expected, "{reference}");
        }
        assert_eq!(base.join("myapp:/callback"), Err(Wrong::Scheme));
        let secure = Url::parse("https://localhost/a").unwrap();
        assert_eq!(secure.join("//localhost:1/b").unwrap().to_string(), "https://localhost:1/b");
        assert_eq!((secure.port(), base.port(), secure.join("/c").unwrap().is_secure()), (443, 8080, true));
    }

    /// Red without `cleaned`: the run stops at a link that every browser follows.
    #[test]
    fn links_are_cleaned_as_in_a_browser() {
        let base = Url::parse("http://localhost:8080/a/b?c=d").unwrap();
        for (reference, expected) in [
            (" /x y?z=a b ", "http://localhost:8080/x%20y?z=a%20b"),
            ("\u{1}\u{0} ü.html\u{1f}", "http://localhost:8080/a/%C3%BC.html"),
            ("/lo\tg\r\nin?s=é%20&t=漢", "http://localhost:8080/login?s=%C3%A9%20&t=%E6%BC%A2"),
            ("ht\ntp://127.0.0.1/ö x", "http://127.0.0.1/%C3%B6%20x"),
            ("//127.0.0.1:9?q=ä", "http://127.0.0.1:9/?q=%C3%A4"),
            ("/a\u{7f}\u{1}b?u=http://h/x y", "http://localhost:8080/a%7F%01b?u=http://h/x%20y"),
            ("\t\n", "http://localhost:8080/a/b?c=d"),
        ] {
            assert_eq!(base.join(reference).unwrap().to_string(), expected, "{reference:?}");
        }
        for reference in ["http://local host/x", "//local host"] {
            assert_eq!(base.join(reference), Err(Wrong::Character), "{reference}: a host holds no space");
        }
        assert_eq!(Url::parse("http://localhost/x "), Err(Wrong::Character), "what a user types is no link");
    }

    #[test]
    fn a_query_is_added_to_one_that_is_there() {
        assert_eq!(Url::parse("http://localhost/a").unwrap().with_query("b=c").target(), "/a?b=c");
        assert_eq!(Url::parse("http://localhost/a?x").unwrap().with_query("b=c").target(), "/a?x&b=c");
        assert_eq!(Url::parse("http://localhost/a?x").unwrap().replacing_query("b=c").target(), "/a?b=c");
    }
}
