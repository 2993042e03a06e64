//! Networks, and what limits count as one address.

use rules::login::throttle::subscriber;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network: an address and the number of its significant bits (RFC 4632 §3.1, RFC 4291 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    bits: u8,
}

/// This machine's loopback networks (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
pub const LOOPBACK: [Cidr; 2] = [
    Cidr { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), bits: 8 },
    Cidr { address: IpAddr::V6(Ipv6Addr::LOCALHOST), bits: 128 },
];

/// Why a text is not a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CidrError {
    /// Neither `address` nor `address/bits`.
    Malformed(String),
    /// Bits are set beyond the prefix; with the network that was probably meant.
    HostBits(String, Cidr),
}

impl Cidr {
    /// Returns true if `address` lies in this network. An IPv4 address written as IPv6 (`::ffff:…`) counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(one)) => {
                mask(one.to_bits().into(), 32, self.bits) == network.to_bits().into()
            }
            (IpAddr::V6(network), IpAddr::V6(one)) => mask(one.to_bits(), 128, self.bits) == network.to_bits(),
            _ => false,
        }
    }

    /// Returns true for `0.0.0.0/0` and `::/0`.
    pub fn is_everything(&self) -> bool {
        self.bits == 0
    }
}

/// Returns the leading `bits` of an address of `width` bits.
fn mask(address: u128, width: u32, bits: u8) -> u128 {
    let dropped = width - u32::from(bits);
    address.checked_shr(dropped).and_then(|kept| kept.checked_shl(dropped)).unwrap_or(0)
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let malformed = || CidrError::Malformed(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| malformed())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => width,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map_err(|_| malformed())?,
            Some(_) => return Err(malformed()),
        };
        if bits > width || address.to_canonical() != address {
            return Err(malformed());
        }
        let network = match address {
            IpAddr::V4(one) => IpAddr::V4((mask(one.to_bits().into(), 32, bits) as u32).into()),
            IpAddr::V6(one) => IpAddr::V6(mask(one.to_bits(), 128, bits).into()),
        };
        let cidr = Cidr { address: network, bits };
        if network == address { Ok(cidr) } else { Err(CidrError::HostBits(text.to_owned(), cidr)) }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl fmt::Display for CidrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CidrError::Malformed(text) => write!(f, "{text:?} is not a network such as \"10.0.0.0/8\" or an address"),
            CidrError::HostBits(text, meant) => write!(f, "{text:?} has bits set beyond its prefix: write \"{meant}\""),
        }
    }
}

impl std::error::Error for CidrError {}

/// What limits count as one address: an IPv4 address, or the /64 of an IPv6 address, which is the least that a
/// subscriber is given (RFC 6177 §2), so that nobody gets 2^64 fresh counters. An address from an IPv4 translator
/// counts as the IPv4 address in it ([`subscriber`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AddressKey(IpAddr);

/// The network around an [`AddressKey`]: the /24 of an IPv4 address, or the /48 of an IPv6 address, which is the most
/// that a site is given (RFC 6177 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NetworkKey(IpAddr);

impl AddressKey {
    /// Returns the network around this address.
    pub fn network(self) -> NetworkKey {
        NetworkKey(match self.0 {
            IpAddr::V4(one) => IpAddr::V4((mask(one.to_bits().into(), 32, 24) as u32).into()),
            IpAddr::V6(one) => IpAddr::V6(mask(one.to_bits(), 128, 48).into()),
        })
    }

    /// Returns the key of `address`.
    pub fn of(address: IpAddr) -> Self {
        AddressKey(match subscriber(address) {
            IpAddr::V6(one) => IpAddr::V6(Ipv6Addr::from_bits(mask(one.to_bits(), 128, 64))),
            four => four,
        })
    }
}

impl fmt::Display for AddressKey {
    /// `192.0.2.1`, or `2001:db8::/64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(one) => one.fmt(f),
            IpAddr::V6(one) => write!(f, "{one}/64"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_contains_its_addresses_and_no_other() {
        for (network, address, inside) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7/32", "192.0.2.6", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/33", "2001:db8:7fff::1", true),
            ("2001:db8::/33", "2001:db8:8000::1", false),
            ("fd00::1", "fd00::1", true),
        ] {
            assert_eq!(cidr(network).contains(address.parse().unwrap()), inside, "{network} {address}");
        }
    }

    #[test]
    fn what_is_not_a_network_is_refused() {
        for bad in
            ["", "*", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.0.0/8", "::/129", "a.test", "::ffff:10.0.0.0/104"]
        {
            assert!(matches!(bad.parse::<Cidr>(), Err(CidrError::Malformed(_))), "{bad}");
        }
        let error = "10.1.2.3/8".parse::<Cidr>().unwrap_err();
        assert!(error.to_string().ends_with("write \"10.0.0.0/8\""), "{error}");
    }

    #[test]
    fn an_ipv6_subscriber_is_one_address() {
        let key = |text: &str| AddressKey::of(text.parse().unwrap());
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:ffff:ffff:ffff"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
        // Red with `to_canonical` in `of`: all of IPv4 would be one address behind a translator.
        assert_eq!(key("64:ff9b::192.0.2.1"), key("192.0.2.1"));
        assert_ne!(key("64:ff9b::192.0.2.1"), key("64:ff9b::192.0.2.2"));
        assert_eq!(key("64:ff9b::192.0.2.1").network(), key("192.0.2.254").network());
        assert_ne!(key("64:ff9b::192.0.2.1").network(), key("64:ff9b::198.51.100.1").network());
        assert!(
            !cidr("192.0.2.0/24").contains("64:ff9b::192.0.2.1".parse().unwrap()),
            "who is trusted is another matter"
        );
        assert_eq!(key("2001:db8::5").to_string(), "2001:db8::/64");
    }
}
