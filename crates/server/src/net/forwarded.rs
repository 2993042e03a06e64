//! Who the client is if there are proxies in between.

use super::{AddressKey, Cidr, Peer};
use crate::config::{Config, ProxyHeader};
use axum::http::HeaderMap;
use std::borrow::Cow;
use std::net::IpAddr;

/// The proxies whose headers are believed. The default is none.
#[derive(Clone, Debug)]
pub struct Proxies {
    /// Their networks.
    pub trusted: Vec<Cidr>,
    /// The one header in which they name the client. A proxy sets one of the two and passes on the other as the client
    /// wrote it, so if both were believed, anybody could choose an address.
    pub header: ProxyHeader,
}

impl Proxies {
    /// Makes the configured proxies.
    pub fn of(config: &Config) -> Self {
        Proxies { trusted: config.proxy.trusted.clone(), header: config.proxy.header }
    }

    fn lists(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }
}

/// The scheme that the client used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proto {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

impl Proto {
    /// Returns its name (RFC 9110 §4.2).
    pub fn name(self) -> &'static str {
        match self {
            Proto::Http => "http",
            Proto::Https => "https",
        }
    }
}

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The client's address: that of the peer, or the one that a listed proxy names.
    pub address: IpAddr,
    /// The scheme between the client and the first server that it reached.
    pub proto: Proto,
    /// True when the peer is a listed proxy.
    pub via_proxy: bool,
    /// True if a local or private peer that is no listed proxy sent forwarded headers: probably a proxy that the
    /// operator forgot to list.
    pub untrusted_forwarding: bool,
    /// True if a listed proxy passed the request on for somebody whom it does not name, or whose address is listed as
    /// well and not this machine's own: a network that hides its visitors' addresses may be listed as a whole.
    pub unnamed: bool,
    counted: bool,
}

impl Client {
    /// Returns the key under which limits count this client, if they count it.
    pub fn key(&self) -> Option<AddressKey> {
        self.counted().map(AddressKey::of)
    }

    /// Returns the address that limits count; `None` if only a listed proxy's own is known, which stands for everybody
    /// behind it and is never counted.
    pub fn counted(&self) -> Option<IpAddr> {
        self.counted.then_some(self.address)
    }
}

/// The headers that reveal an unlisted proxy.
const FORWARDING_HEADERS: [&str; 5] =
    ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip", "forwarded"];

/// Returns the client of a request that came from `peer` with `headers`.
///
/// Forwarded headers count only if the peer is a listed proxy. The client is then the rightmost address that is not
/// itself a listed proxy: the client wrote everything to its left (RFC 7239 §8.1). An entry that is not an address ends
/// the search at the proxy that wrote it.
pub fn client_address(peer: &Peer, headers: &HeaderMap, proxies: &Proxies) -> Client {
    let own = peer.address.ip().to_canonical();
    let own_proto = if peer.tls { Proto::Https } else { Proto::Http };
    if !proxies.lists(own) {
        let untrusted_forwarding =
            is_private(own) && headers.keys().any(|name| FORWARDING_HEADERS.contains(&name.as_str()));
        let (via_proxy, unnamed, counted) = (false, false, true);
        return Client { address: own, proto: own_proto, via_proxy, untrusted_forwarding, unnamed, counted };
    }
    let hops = match proxies.header {
        ProxyHeader::XForwardedFor => x_forwarded(headers),
        ProxyHeader::Forwarded => forwarded(headers),
    };
    let (mut address, mut proto, mut unread) = (own, own_proto, false);
    for hop in hops.iter().rev() {
        unread = hop.address.is_none();
        let Some(named) = hop.address else { break };
        address = named;
        proto = hop.proto.unwrap_or(proto);
        if !proxies.lists(named) {
            break;
        }
    }
    // What another machine calls its own address does not tell who is there, and it is not this machine.
    let elsewhere = address.is_loopback() && !own.is_loopback();
    if elsewhere {
        address = own;
    }
    let counted = !proxies.lists(address);
    let unnamed = unread || elsewhere || !hops.is_empty() && !counted && !address.is_loopback();
    Client { address, proto, via_proxy: true, untrusted_forwarding: false, unnamed, counted }
}

/// One entry of a forwarded header.
struct Hop {
    address: Option<IpAddr>,
    proto: Option<Proto>,
}

/// Returns the lines of a header as text. A client may write any bytes (RFC 9110 §5.5), and a proxy appends to its line:
/// what is not text spoils the entry that it is in, and no other. None of the bytes that separate entries is replaced.
fn lines<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
    headers.get_all(name).iter().map(|line| String::from_utf8_lossy(line.as_bytes()))
}

fn x_forwarded(headers: &HeaderMap) -> Vec<Hop> {
    // The nearest proxy wrote the last scheme; many proxies do not keep a list.
    let last = |line: Cow<'_, str>| scheme(line.rsplit(',').next().unwrap_or_default().trim());
    let proto = lines(headers, "x-forwarded-proto").last().and_then(last);
    // One list over repeated lines (RFC 9110 §5.3).
    let mut hops = Vec::new();
    for line in lines(headers, "x-forwarded-for") {
        hops.extend(line.split(',').map(|entry| Hop { address: node(entry.trim()), proto }));
    }
    hops
}

/// RFC 7239 §4: elements are separated by commas, pairs by semicolons; a quoted string holds an IPv6 address, or a host
/// as the client wrote it, which may contain commas and semicolons.
fn forwarded(headers: &HeaderMap) -> Vec<Hop> {
    let mut hops: Vec<Hop> = Vec::new();
    for line in lines(headers, "forwarded") {
        hops.extend(unquoted(&line, b',').into_iter().rev().map(hop));
    }
    hops
}

fn hop(element: &str) -> Hop {
    let mut hop = Hop { address: None, proto: None };
    let mut named = 0;
    for (name, value) in unquoted(element, b';').into_iter().filter_map(|pair| pair.split_once('=')) {
        let value = value.trim();
        let value = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        match name.trim() {
            name if name.eq_ignore_ascii_case("for") => (hop.address, named) = (node(value), named + 1),
            name if name.eq_ignore_ascii_case("proto") => hop.proto = scheme(value),
            _ => {}
        }
    }
    // No name may occur twice: a proxy that does not quote let the client write one of them.
    hop.address = hop.address.filter(|_| named == 1);
    hop
}

/// Returns the parts of `text` between separators outside quoted strings (RFC 9110 §5.6.4), the last first.
///
/// It reads from the right, where the proxies wrote: a quote that the client left open affects only the client's part.
fn unquoted(text: &str, separator: u8) -> Vec<&str> {
    let bytes = text.as_bytes();
    let (mut parts, mut end, mut quoted) = (Vec::new(), bytes.len(), false);
    for (at, byte) in bytes.iter().enumerate().rev() {
        let backslashes = || bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        if *byte == b'"' && !(quoted && backslashes() % 2 == 1) {
            quoted = !quoted;
        } else if *byte == separator && !quoted {
            parts.push(text[at + 1..end].trim());
            end = at;
        }
    }
    parts.push(text[..end].trim());
    parts
}

/// RFC 7239 §6: parses an address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`,
/// `[2001:db8::1]:80`. The port may be an obfuscated name (`:_p`, §6.3), and an IPv6 address may have a zone, which has
/// a meaning only on the machine that wrote it (RFC 4007 §11).
fn node(text: &str) -> Option<IpAddr> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(host, _)| host.contains(':'))?,
        None => match text.find(':') {
            Some(at) if !text[at + 1..].contains(':') => text.split_at(at),
            _ => (text, ""),
        },
    };
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
        return None;
    }
    let address = match host.split_once('%') {
        Some((address, zone)) if is_plain(zone) => address.parse().map(IpAddr::V6).ok()?,
        _ => host.parse().ok()?,
    };
    Some(address.to_canonical())
}

fn is_port(text: &str) -> bool {
    let is_number = (1..=5).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit());
    is_number || text.strip_prefix('_').is_some_and(is_plain)
}

fn is_plain(text: &str) -> bool {
    let fits = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'_' | b'-');
    !text.is_empty() && text.bytes().all(fits)
}

fn scheme(text: &str) -> Option<Proto> {
    match text {
        _ if text.eq_ignore_ascii_case("https") => Some(Proto::Https),
        _ if text.eq_ignore_ascii_case("http") => Some(Proto::Http),
        _ => None,
    }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(one) => {
            let shared = one.octets()[0] == 100 && one.octets()[1] & 0xc0 == 64;
            one.is_loopback() || one.is_private() || one.is_link_local() || shared
        }
        IpAddr::V6(one) => one.is_loopback() || one.is_unique_local() || one.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};
    use std::net::SocketAddr;

    /// Each `¿` becomes a byte that is no text.
    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            let bytes = value.chars().flat_map(|c| if c == '¿' { vec![0xff] } else { c.to_string().into_bytes() });
            let value = HeaderValue::from_bytes(&bytes.collect::<Vec<u8>>()).unwrap();
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), value)
        };
        lines.iter().map(pair).collect()
    }

    fn ask(peer: &str, lines: &[(&str, &str)], header: ProxyHeader) -> Client {
        let trusted = ["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().unwrap()).to_vec();
        let peer = Peer { address: SocketAddr::new(peer.parse().unwrap(), 5), tls: false };
        client_address(&peer, &headers(lines), &Proxies { trusted, header })
    }

    #[test]
    fn bf_04_an_unlisted_peer_cannot_choose_its_address() {
        let everything = [
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-proto", "https"),
            ("forwarded", "for=1.1.1.1;proto=https"),
            ("x-real-ip", "1.1.1.1"),
        ];
        for header in [ProxyHeader::XForwardedFor, ProxyHeader::Forwarded] {
            let client = ask("203.0.113.9", &everything, header);
            assert_eq!((client.address.to_string().as_str(), client.proto), ("203.0.113.9", Proto::Http));
            assert!(!client.via_proxy && !client.untrusted_forwarding);
            assert!(ask("192.168.1.1", &everything, header).untrusted_forwarding);
            assert!(ask("127.0.0.1", &everything[3..], header).untrusted_forwarding);
        }
        assert!(!ask("127.0.0.1", &[], ProxyHeader::Forwarded).untrusted_forwarding);
    }

    #[test]
    fn px_02_nobody_is_trusted_by_default() {
        let config = Config::load(crate::config::Sources::default()).unwrap();
        let peer = Peer { address: "127.0.0.1:1".parse().unwrap(), tls: false };
        let client = client_address(&peer, &headers(&[("x-forwarded-for", "1.1.1.1")]), &Proxies::of(&config));
        assert_eq!((client.address, client.via_proxy), (peer.address.ip(), false));
    }

    #[test]
    fn the_rightmost_address_that_is_no_proxy_is_the_client() {
        for (value, expected) in [
            ("198.51.100.1", "198.51.100.1"),
            ("6.6.6.6, 198.51.100.1", "198.51.100.1"),
            ("6.6.6.6, 198.51.100.1, 10.0.0.7", "198.51.100.1"),
            ("198.51.100.1:443", "198.51.100.1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("::ffff:198.51.100.1", "198.51.100.1"),
            ("198.51.100.1:_p", "198.51.100.1"),
            ("[2001:db8::1]:_a.b-c", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("[fe80::1%25eth0]:80", "fe80::1"),
            ("[198.51.100.1]", "10.1.1.1"),
            ("198.51.100.1%eth0", "10.1.1.1"),
            ("198.51.100.1:", "10.1.1.1"),
            ("198.51.100.1:p", "10.1.1.1"),
            ("198.51.100.1:_", "10.1.1.1"),
            ("[2001:db8::1]80", "10.1.1.1"),
            ("fe80::1%", "10.1.1.1"),
            ("fd00::9,2001:db8::1,fd00::8", "2001:db8::1"),
            ("6.6.6.6, unknown, 10.0.0.7", "10.0.0.7"),
            ("6.6.6.6, unknown", "10.1.1.1"),
            ("6.6.6.6,", "10.1.1.1"),
            ("10.0.0.9, 10.0.0.8", "10.0.0.9"),
            ("127.0.0.1' OR 1=1", "10.1.1.1"),
            // Red where a line is read as text or not at all: whoever writes such a byte would be nobody.
            ("¿, 198.51.100.1", "198.51.100.1"),
            ("¿,¿é\u{a0}, 198.51.100.1, 10.0.0.7", "198.51.100.1"),
            ("6.6.6.6, ¿", "10.1.1.1"),
            ("6.6.6.6, 198.51.100.1¿", "10.1.1.1"),
        ] {
            let client = ask("10.1.1.1", &[("x-forwarded-for", value)], ProxyHeader::XForwardedFor);
            assert_eq!((client.address.to_string().as_str(), client.via_proxy), (expected, true), "{value}");
        }
    }

    /// Red without `elsewhere`: behind a proxy of a proxy, everybody would be somebody on this machine, whose failures
    /// nobody counts.
    #[test]
    fn what_another_machine_calls_itself_is_not_this_one() {
        for named in ["127.0.0.1", "::1", "127.0.0.6", "::ffff:127.0.0.1", "198.51.100.1, 127.0.0.1"] {
            let client = ask("10.1.1.1", &[("x-forwarded-for", named)], ProxyHeader::XForwardedFor);
            assert_eq!(client.address.to_string(), "10.1.1.1", "{named}");
            assert!(client.unnamed && !client.counted, "{named}");
        }
        let own = Peer { address: "127.0.0.1:1".parse().unwrap(), tls: false };
        let proxies = Proxies { trusted: vec!["127.0.0.1/32".parse().unwrap()], header: ProxyHeader::XForwardedFor };
        for named in ["127.0.0.1", "127.0.0.6", "::1"] {
            let client = client_address(&own, &headers(&[("x-forwarded-for", named)]), &proxies);
            assert_eq!((client.address.to_string().as_str(), client.unnamed), (named, false), "{named}");
        }
    }

    #[test]
    fn repeated_lines_are_one_list() {
        let lines =
            [("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "10.0.0.2")];
        assert_eq!(ask("10.1.1.1", &lines, ProxyHeader::XForwardedFor).address.to_string(), "198.51.100.1");
        let broken = [("x-forwarded-for", "6.6.6.6"), ("x-forwarded-for", "\u{ff}")];
        assert_eq!(ask("10.1.1.1", &broken, ProxyHeader::XForwardedFor).address.to_string(), "10.1.1.1");
    }

    #[test]
    fn the_standard_header_is_read_where_it_is_the_one() {
        for (value, expected, proto) in [
            ("for=198.51.100.1;proto=https;by=10.0.0.1", "198.51.100.1", Proto::Https),
            ("For=\"[2001:db8::1]:47\"; Proto=HTTPS", "2001:db8::1", Proto::Https),
            ("for=6.6.6.6, for=198.51.100.1, for=10.0.0.3;proto=https", "198.51.100.1", Proto::Https),
            ("for=6.6.6.6;proto=https, for=198.51.100.1;proto=http", "198.51.100.1", Proto::Http),
            ("for=\"198.51.100.1:_p\"", "198.51.100.1", Proto::Http),
            ("for=\"[fe80::1%eth0]:47\"", "fe80::1", Proto::Http),
            ("for=_hidden", "10.1.1.1", Proto::Http),
            ("for=\"198.51.100.1", "10.1.1.1", Proto::Http),
            ("for=¿;host=\"¿, for=198.51.100.1;proto=https", "198.51.100.1", Proto::Https),
            ("for=198.51.100.1;host=\"a¿b\";proto=https", "198.51.100.1", Proto::Https),
            ("for=198.51.100.1¿", "10.1.1.1", Proto::Http),
            ("", "10.1.1.1", Proto::Http),
        ] {
            let client = ask("10.1.1.1", &[("forwarded", value)], ProxyHeader::Forwarded);
            assert_eq!((client.address.to_string().as_str(), client.proto), (expected, proto), "{value}");
        }
    }

    /// A Host may contain each of `,;=` (RFC 3986 §3.2.2), and what a client sends for Forwarded may be anything.
    #[test]
    fn bf_04_what_a_client_has_quoted_for_it_names_nobody() {
        // Red without `!quoted` in `unquoted`, the backslashes there, its `rev`, or `named == 1` in `hop`.
        for (value, expected) in [
            (r#"for=198.51.100.1;host="a,for=6.6.6.6;b";proto=https"#, "198.51.100.1"),
            (r#"for=198.51.100.1;host="a;for=6.6.6.6;b""#, "198.51.100.1"),
            (r#"host="a,for=6.6.6.6;b";for=198.51.100.1"#, "198.51.100.1"),
            (r#"for=198.51.100.1;host="a\",for=6.6.6.6;b""#, "198.51.100.1"),
            (r#"for=198.51.100.1;host="a\\",for=10.0.0.3;host="b;for=6.6.6.6;c""#, "198.51.100.1"),
            (r#"for=", for=198.51.100.1;host="b""#, "198.51.100.1"),
            (r#"for="6.6.6.6, for=198.51.100.1"#, "198.51.100.1"),
            (r#"for=6.6.6.6;host="b, for="[2001:db8::1]:47""#, "2001:db8::1"),
            ("for=198.51.100.1;host=a;for=6.6.6.6", "10.1.1.1"),
            ("for=6.6.6.6;For=198.51.100.1", "10.1.1.1"),
        ] {
            let client = ask("10.1.1.1", &[("forwarded", value)], ProxyHeader::Forwarded);
            assert_eq!(client.address.to_string(), expected, "{value}");
        }
    }

    #[test]
    fn px_01_the_other_header_and_look_alikes_are_ignored() {
        let lines = [
            ("forwarded", "for=6.6.6.6;proto=https"),
            ("x_forwarded_for", "6.6.6.6"),
            ("x-forwarded-for", "198.51.100.1"),
            ("x-real-ip", "6.6.6.6"),
            ("x-original-for", "6.6.6.6"),
        ];
        let client = ask("10.1.1.1", &lines, ProxyHeader::XForwardedFor);
        assert_eq!((client.address.to_string().as_str(), client.proto), ("198.51.100.1", Proto::Http));
        let client = ask("10.1.1.1", &[("x-forwarded-for", "6.6.6.6"), lines[1]], ProxyHeader::Forwarded);
        assert_eq!(client.address.to_string(), "10.1.1.1");
    }

    #[test]
    fn a_listed_proxy_itself_is_never_counted() {
        assert_eq!(ask("10.1.1.1", &[], ProxyHeader::XForwardedFor).key(), None);
        let behind = ask("10.1.1.1", &[("x-forwarded-for", "198.51.100.1")], ProxyHeader::XForwardedFor);
        assert_eq!(behind.key(), Some(AddressKey::of("198.51.100.1".parse().unwrap())));
        assert!(ask("203.0.113.9", &[], ProxyHeader::XForwardedFor).key().is_some());
    }

    #[test]
    fn whom_a_proxy_does_not_name_is_not_the_proxy() {
        let asks = |lines: &[(&str, &str)]| ask("10.1.1.1", lines, ProxyHeader::XForwardedFor).unnamed;
        assert!(asks(&[("x-forwarded-for", "unknown")]) && asks(&[("x-forwarded-for", "unknown, 10.0.0.7")]));
        assert!(asks(&[("x-forwarded-for", "10.0.0.7")]), "all visitors, where their addresses are hidden");
        assert!(!asks(&[]) && !asks(&[("x-forwarded-for", "unknown, 198.51.100.1")]));
    }

    #[test]
    fn the_scheme_is_the_nearest_proxys() {
        let lines = [("x-forwarded-for", "198.51.100.1"), ("x-forwarded-proto", "http, https")];
        assert_eq!(ask("10.1.1.1", &lines, ProxyHeader::XForwardedFor).proto, Proto::Https);
    }
}
