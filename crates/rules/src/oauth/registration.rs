//! What a client may register. Everything that is compared later is judged here, once.

use super::client::{AuthMethod, Client, Grant};
use super::first_party;
use super::redirect::{is_port, origin};
use super::resource::is_same;
use super::scope::MOST as MOST_SCOPES;
use crate::people::names::is_plain;
use crate::realm::Realm;
use std::iter::successors;

/// Parameters of authorization responses: a redirect URI that already carries one would let two answers be read.
const RESERVED_QUERY: [&str; 12] = [
    "code",
    "state",
    "iss",
    "error",
    "error_description",
    "error_uri",
    "id_token",
    "response",
    "access_token",
    "token_type",
    "expires_in",
    "session_state",
];

/// The most resources of a client.
const MOST_RESOURCES: usize = 100;
/// The most bytes of scope and audience in an access token. In base64url, with all other claims and a signature, it
/// stays below the 16 KiB that are read of a token.
const LONGEST_IN_A_TOKEN: usize = 8 * 1024;

/// How many bytes of JSON the largest scope and audience take that a client can get.
fn in_a_token(client: &Client) -> usize {
    serde_json::json!([client.scope, client.resources]).to_string().len()
}

/// Whether `id` is allowed as a client's id.
pub fn is_client_id(id: &str) -> bool {
    (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:/@".contains(&b))
}

/// The problem of a client that asks for codes and has nowhere to receive them.
pub const NO_REDIRECT_URI: &str = "authorization_code needs at least one redirect URI";

/// Returns everything that is wrong with a registration, one sentence each; empty when nothing is. Redirect URIs that
/// are registered `before` stay, although an earlier version may have known less of what can be wrong with them.
pub fn problems(client: &Client, before: Option<&Client>, realm: &Realm) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |fine: bool, problem: &str| {
        if !fine {
            found.push(problem.to_owned());
        }
    };
    let id = client.id.as_str();
    check(is_client_id(id), "the client id must be 1 to 128 of the characters A-Z a-z 0-9 - . _ ~ : / @");
    // RFC 8725 §3.12, RFC 9068 §5: an API that looks at issuer and audience alone would take an ID token, whose audience
    // is the client, for an access token.
    let ours = [realm.issuer.as_str(), &first_party::audience(realm)];
    check(
        !ours.iter().any(|ours| is_same(id, ours)),
        "the client id must be neither the issuer nor ISSUER/api/v1: tokens are told apart by it",
    );
    let name_ok = client.name.len() <= 200 && is_plain(&client.name);
    check(name_ok, "the name must be 1 to 200 bytes of printable text");
    let public = client.auth_methods.contains(&AuthMethod::None);
    check(!client.auth_methods.is_empty(), "at least one authentication method is needed");
    check(!public || client.is_public(), "a public client cannot have other authentication methods");
    check(!public || client.secret.is_none(), "a public client has no secret");
    let by_secret = client.auth_methods.iter().any(|m| matches!(m, AuthMethod::Basic | AuthMethod::Post));
    check(!by_secret || client.secret.is_some(), "client_secret_basic and client_secret_post need a secret");
    let by_key = client.auth_methods.contains(&AuthMethod::PrivateKeyJwt);
    check(!by_key || client.jwks.is_some(), "private_key_jwt needs a key set (--jwks)");
    // RFC 8252 §8.5: whoever has a copy of a native application has its secret, which proves nothing.
    let proves = client.proves_itself();
    check(
        proves || !client.may(Grant::ClientCredentials),
        "client_credentials needs a client that authenticates, and is not native",
    );
    check(proves || !client.resource_server, "a resource server has to authenticate, and is not native");
    check(proves || !client.pkce_optional, "a public or native client must use PKCE");
    let by_code = client.may(Grant::AuthorizationCode);
    check(!by_code || !client.redirect_uris.is_empty(), NO_REDIRECT_URI);
    check(!client.grants.is_empty() || client.resource_server, "at least one grant is needed");
    check(client.redirect_uris.len() <= 50, "at most 50 redirect URIs");
    check(client.scope.tokens().len() <= MOST_SCOPES, "at most 100 scopes");
    check(client.resources.len() <= MOST_RESOURCES, "at most 100 resources");
    check(
        in_a_token(client) <= LONGEST_IN_A_TOKEN,
        "scopes and resources may have 8 KiB together, as a token lists them: a longer token would be refused \
         everywhere",
    );
    let before = before.filter(|before| before.native == client.native);
    let stays = |of: fn(&Client) -> &Vec<String>, uri| before.is_some_and(|before| of(before).contains(uri));
    for uri in client.redirect_uris.iter().filter(|uri| !stays(|client| &client.redirect_uris, uri)) {
        found.extend(redirect_problem(uri, client.native).map(|why| format!("redirect URI {uri}: {why}")));
    }
    for uri in client.post_logout_redirect_uris.iter().filter(|uri| !stays(|c| &c.post_logout_redirect_uris, uri)) {
        let why = redirect_problem(uri, client.native);
        found.extend(why.map(|why| format!("post-logout redirect URI {uri}: {why}")));
    }
    for uri in &client.resources {
        found.extend(resource_problem(uri, realm).map(|why| format!("resource {uri}: {why}")));
    }
    found
}

/// Whether a client may get ID tokens whose audience is that of access tokens for a resource of others: an API that looks
/// at issuer and audience alone would take the one for the other (RFC 8725 §3.12).
pub fn has_id_tokens_for(client: &Client, resource: &str) -> bool {
    let of_people = client.may(Grant::AuthorizationCode) || client.may(Grant::DeviceCode);
    let is_it = client.resources.iter().any(|own| is_same(own, resource));
    of_people && !is_it && is_same(client.id.as_str(), resource)
}

/// Returns what is wrong with a redirect URI (RFC 9700 §2.1 and §4.1.3, RFC 8252 §7).
pub fn redirect_problem(uri: &str, native: bool) -> Option<&'static str> {
    if uri.is_empty() || uri.len() > 2000 {
        return Some("must be 1 to 2,000 bytes");
    }
    if !uri.bytes().all(|b| (0x21..=0x7e).contains(&b) && !b"\"<>\\^`{|}".contains(&b)) {
        return Some("holds a character that a URI cannot have");
    }
    if uri.contains('#') {
        return Some("must not have a fragment");
    }
    if uri.contains(",http://") || uri.contains(",https://") {
        return Some("is a list: give each by itself");
    }
    if uri.contains('*') {
        return Some("wildcards are not supported");
    }
    let Some((scheme, rest)) = uri.split_once(':') else {
        return Some("must be absolute");
    };
    if !scheme.starts_with(|c: char| c.is_ascii_lowercase())
        || !scheme.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b))
    {
        return Some("its scheme must be written in lower case");
    }
    // RFC 3986 §3.2.2: brackets are for the host.
    if uri[origin(uri).len()..].contains(['[', ']']) {
        return Some("holds a character that a URI cannot have");
    }
    if !uri.split('%').skip(1).all(is_escape) {
        return Some("a % must begin the escape of a character that is not a control character");
    }
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    if readings(query).any(|query| query.split(['&', ';']).any(is_reserved)) {
        return Some("its query holds a parameter of the response");
    }
    let (authority, path) = in_parts(before);
    if let Some(why) = authority.and_then(authority_problem).or_else(|| path_problem(path)) {
        return Some(why);
    }
    match scheme {
        "https" | "http" => authority.map_or(Some("must be absolute"), |authority| web_problem(scheme, authority)),
        _ if !native => Some("must be https (private schemes are for native clients)"),
        _ if !scheme.contains('.') || scheme.split('.').any(str::is_empty) => {
            Some("a private scheme must be a reversed domain name with a dot")
        }
        _ if authority.unwrap_or("").is_empty() && path.is_empty() => {
            Some("needs a path after its scheme: com.example.app:/path")
        }
        _ => None,
    }
}

/// Whether the text after a `%` makes it an escape (RFC 3986 §2.1), and not that of a control character, which may end
/// a name, a path or a header for some readers.
fn is_escape(rest: &str) -> bool {
    let byte = rest.get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()).is_some_and(|byte| !byte.is_ascii_control())
}

/// Whether some reader takes this part of a query for a parameter of the response: some readers ignore case, some skip
/// white space before a name, and some read `name[]` as that name.
fn is_reserved(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or("").to_ascii_lowercase();
    let name = name.trim_matches([' ', '+']).split('[').next().unwrap_or("");
    RESERVED_QUERY.contains(&name)
}

/// Decodes every `%XX` (RFC 3986 §2.1): browsers and libraries read a name in either form.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digit = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// Returns a text, and what it becomes each time that a reader decodes it once more: browsers, libraries and servers
/// decode a different number of times.
fn readings(text: &str) -> impl Iterator<Item = String> {
    successors(Some(text.to_owned()), |last| {
        let next = String::from_utf8_lossy(&unescaped(last)).into_owned();
        (next != *last).then_some(next)
    })
}

/// Takes what follows the scheme, without the query, apart (RFC 3986 §3): the authority, if there is one, and the path.
fn in_parts(text: &str) -> (Option<&str>, &str) {
    match text.strip_prefix("//") {
        Some(text) => {
            let (authority, path) = text.split_at(text.find('/').unwrap_or(text.len()));
            (Some(authority), path)
        }
        None => (None, text),
    }
}

/// Returns the host of an authority, and its port.
fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rfind(':') {
        Some(at) if !authority[at..].contains(']') => (&authority[..at], Some(&authority[at + 1..])),
        _ => (authority, None),
    }
}

fn authority_problem(authority: &str) -> Option<&'static str> {
    let (host, port) = host_and_port(authority);
    if authority.contains('@') {
        return Some("must not have user information");
    }
    if port.is_some_and(|port| !is_port(port) || host.is_empty()) {
        return Some("its port is not a number from 1 to 65535 after a host");
    }
    authority.contains('%').then_some("its host must be written without escapes")
}

/// RFC 3986 §5.2.4: browsers remove dot segments. Some servers ignore what follows a `;` in a segment, and some decode
/// a separator.
fn path_problem(path: &str) -> Option<&'static str> {
    let is_dots = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
    if readings(path).any(|path| path.split('/').any(is_dots)) {
        return Some("must not have dot segments");
    }
    let hides = |path: String| ["%2f", "%5c"].iter().any(|escape| path.to_ascii_lowercase().contains(escape));
    readings(path).any(hides).then_some("must not have an escaped / or \\ in its path")
}

fn web_problem(scheme: &str, authority: &str) -> Option<&'static str> {
    let (host, _) = host_and_port(authority);
    let literal = host.starts_with('[') && host.ends_with(']');
    if !literal && !host.split('.').all(is_label) {
        return Some("its host must be a name in lower case");
    }
    if !literal && ends_in_a_number(host) && host.parse::<std::net::Ipv4Addr>().is_err() {
        return Some("its host looks like an IP address, but is not written as one");
    }
    if literal && host[1..host.len() - 1].parse::<std::net::Ipv6Addr>().is_err() {
        return Some("its host looks like an IP address, but is not written as one");
    }
    (scheme == "http" && !matches!(host, "localhost" | "127.0.0.1" | "[::1]"))
        .then_some("http is for localhost, 127.0.0.1 and [::1] only")
}

fn is_label(label: &str) -> bool {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !label.is_empty() && label.bytes().all(legal) && !label.starts_with('-') && !label.ends_with('-')
}

/// URL Standard §3.5: browsers take such a host for an address, however it is written: `127.1`, `0x7f000001`.
fn ends_in_a_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or("");
    let hexadecimal = last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    hexadecimal || last.bytes().all(|b| b.is_ascii_digit())
}

/// RFC 8707 §2: a resource is an absolute URI without a fragment. Nobody may register our own: its resource server
/// could look into the account tokens of every first-party client.
pub fn resource_problem(uri: &str, realm: &Realm) -> Option<&'static str> {
    let legal = uri.len() <= 2000 && uri.bytes().all(|b| (0x21..=0x7e).contains(&b) && b != b'#');
    if !legal || origin(uri) == uri && !uri.contains(':') {
        return Some("must be an absolute URI without a fragment");
    }
    (uri.trim_end_matches('/') == first_party::audience(realm)).then_some("is the account API of this server")
}

#[cfg(test)]
mod tests;
