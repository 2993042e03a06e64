//! Resource indicators (RFC 8707): the API that a token is for.

use super::client::Client;
use super::error::{Code, Error};
use super::params::Params;

/// RFC 8707 §2: returns the audiences asked for, which the client must have registered. A client that registered none
/// gets tokens for the issuer, and may say so (the default resource indicator of RFC 9068 §3).
pub fn asked(params: &Params, client: &Client, issuer: &str) -> Result<Vec<String>, Error> {
    let mut asked = params.all("resource");
    asked.retain(|uri| !(client.resources.is_empty() && is_same(uri, issuer)));
    among(&client.resources, &asked).ok_or(Error::new(Code::InvalidTarget, "the client has no such resource"))
}

/// Returns the resources `asked` for, as they are written in `known`; all of `known` if none is asked for, and `None`
/// if one is not among them.
pub(super) fn among(known: &[String], asked: &[impl AsRef<str>]) -> Option<Vec<String>> {
    if asked.is_empty() {
        return Some(known.to_vec());
    }
    let mut found: Vec<String> = Vec::with_capacity(asked.len());
    for uri in asked.iter().map(AsRef::as_ref) {
        let exact = known.iter().find(|known| *known == uri);
        let known = exact.or_else(|| known.iter().find(|known| is_same(known, uri)))?;
        if !found.contains(known) {
            found.push(known.clone());
        }
    }
    Some(found)
}

/// Whether two URIs are one resource. RFC 3986 §6.2.3: no path at all and the path `/` are the same, and libraries that
/// build URIs add the slash.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let bare = |uri: &'_ str| -> Option<usize> {
        let rest = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        (!authority.contains(['/', '?'])).then_some(uri.len() - (rest.len() - authority.len()))
    };
    one == other || bare(one).zip(bare(other)).is_some_and(|(one_ends, ends)| one[..one_ends] == other[..ends])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::client::tests::confidential;

    const ISSUER: &str = "https://login.test";

    fn audiences(registered: &[&str], resources: &[&str]) -> Option<Vec<String>> {
        let client = Client {
            resources: registered.iter().map(|uri| (*uri).to_owned()).collect(),
            ..confidential("c1", "https://app.test/cb")
        };
        let pairs = resources.iter().map(|uri| ("resource".to_owned(), (*uri).to_owned())).collect();
        asked(&Params::parse(pairs).expect("parameters"), &client, ISSUER).ok()
    }

    #[test]
    fn rfc3986_6_2_3_no_path_and_a_slash_are_the_same() {
        // red without is_same: a URI that a library has written would be nobody's resource.
        let (bare, slash) = ("https://api.test:8443", "https://api.test:8443/");
        for (registered, resource) in [(bare, bare), (bare, slash), (slash, bare), (slash, slash)] {
            assert_eq!(audiences(&[registered], &[resource]), Some(vec![registered.to_owned()]), "as it is registered");
        }
        assert_eq!(audiences(&[bare], &[bare, slash]), Some(vec![bare.to_owned()]), "one audience");
        assert_eq!(audiences(&[bare, slash], &[slash]), Some(vec![slash.to_owned()]), "as it is written first of all");
        for issuer in [ISSUER, "https://login.test/"] {
            assert_eq!(audiences(&[], &[issuer]), Some(vec![]), "{issuer}");
        }
        for (registered, other) in [
            ("https://api.test/v1", "https://api.test/v1/"),
            ("https://api.test", "https://api.test//"),
            ("https://api.test", "https://api.test/?"),
            ("https://api.test", "http://api.test/"),
            ("https://api.test", "https://api.test.evil/"),
            ("https://api.test?a", "https://api.test?a/"),
            ("urn:api", "urn:api/"),
        ] {
            assert_eq!(audiences(&[registered], &[other]), None, "{registered} {other}");
        }
    }
}
