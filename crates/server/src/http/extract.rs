//! Parsing at the door: parameters, credentials, bearer tokens.

use super::Site;
use super::door::Door;
use super::error::Refusal;
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, EXPECT, HeaderValue, ORIGIN};
use percent_encoding::percent_decode;
use rules::oauth::Error;
use rules::oauth::client_auth::Basic;
use rules::oauth::params::{self, Params};
use rules::secret::Secret;

const FORM: &str = "application/x-www-form-urlencoded";

/// The charsets that a form may declare. A form is ASCII, and its decoded text is UTF-8 (RFC 6749 appendix B); some
/// Java clients declare ISO-8859-1 for every form.
const CHARSETS_OF_FORMS: [&str; 4] = ["utf-8", "utf8", "iso-8859-1", "us-ascii"];

/// Returns the decoded pairs of a query or a form.
///
/// # Errors
/// The text is not UTF-8 (RFC 6749 appendix B): all else would become the same character, and two passwords one.
pub fn pairs(text: &[u8]) -> Result<Vec<(String, String)>, Error> {
    // One more than Params accepts, so that it can complain, but not all of a flood.
    let pairs = form_urlencoded::parse(text).take(300).map(|(name, value)| (name.into_owned(), value.into_owned()));
    let pairs: Vec<(String, String)> = pairs.collect();
    // What is not UTF-8 has become that character: only then is all of it decoded once more.
    let is_odd = |text: &String| text.contains(char::REPLACEMENT_CHARACTER);
    if pairs.iter().any(|(name, value)| is_odd(name) || is_odd(value)) && percent_decode(text).decode_utf8().is_err() {
        return Err(Error::request("a parameter is not UTF-8"));
    }
    Ok(pairs)
}

/// Returns the parameters of a query.
pub fn query(uri: &hyper::Uri) -> Result<Params, Error> {
    Params::parse(pairs(uri.query().unwrap_or("").as_bytes())?)
}

/// Returns the flow that a link to a page names.
pub fn flow(uri: &hyper::Uri) -> Option<String> {
    query(uri).ok()?.get("flow").map(str::to_owned)
}

/// Returns the parameters of a POST of the protocol, which has them in its body.
pub async fn posted(door: &Door, body: Body) -> Result<Params, Refusal> {
    params::nothing_of_ours(&pairs(door.uri.query().unwrap_or("").as_bytes())?)?;
    form(&door.site, &door.headers, body).await
}

/// Returns whether the body is declared to be a form.
pub fn is_form(headers: &HeaderMap) -> bool {
    is_said_to_be(headers, FORM, &CHARSETS_OF_FORMS)
}

/// Returns whether the body is declared to be JSON. CS-01: no form can send JSON, so a foreign page needs a preflight.
pub fn is_json(headers: &HeaderMap) -> bool {
    is_said_to_be(headers, "application/json", &["utf-8", "utf8"])
}

/// Returns whether the body is declared to be of a kind, once (RFC 9110 §5.3), in one of some charsets, and not
/// compressed: nothing here decompresses it (§8.4, §15.5.16).
fn is_said_to_be(headers: &HeaderMap, kind: &str, charsets: &[&str]) -> bool {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let (Some(said), None) = (lines.next(), lines.next()) else { return false };
    let Ok(said) = said.to_str() else { return false };
    let mut parts = said.split(';').map(str::trim);
    let is_kind = parts.next().is_some_and(|said| said.eq_ignore_ascii_case(kind));
    let is_read = |charset: &str| charsets.iter().any(|known| charset.trim_matches('"').eq_ignore_ascii_case(known));
    let may_be = |parameter: &str| match parameter.split_once('=') {
        Some((name, value)) => !name.eq_ignore_ascii_case("charset") || is_read(value),
        None => true,
    };
    let is_plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    is_kind && parts.all(may_be) && headers.get_all(CONTENT_ENCODING).iter().all(is_plain)
}

/// Reads the parameters of a form. No body is a form without parameters, whose media type nobody states (RFC 9110
/// §8.3): a client that has authenticated by a header may have nothing else to say (RFC 8628 §3.1).
pub async fn form(site: &Site, headers: &HeaderMap, body: Body) -> Result<Params, Refusal> {
    // Whoever asks whether to send a body has one.
    let is_unstated = [CONTENT_TYPE, CONTENT_ENCODING, EXPECT].iter().all(|name| !headers.contains_key(name));
    if !is_unstated && !is_form(headers) {
        return Err(Refusal::MediaType);
    }
    let bytes = site.bodies.read(body).await?;
    if is_unstated && !bytes.is_empty() {
        return Err(Refusal::MediaType);
    }
    Ok(Params::parse(pairs(&bytes)?)?)
}

/// RFC 6749 §2.3.1: returns a client's credentials from the Authorization header, both halves form-decoded.
pub fn basic(headers: &HeaderMap) -> Result<Option<Basic>, Error> {
    let bad = Error::client("the Authorization header is not Basic credentials");
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(Error::request("more than one Authorization header was sent"));
    }
    let line = line.to_str().map_err(|_| bad)?;
    let (scheme, rest) = line.split_once(' ').ok_or(bad)?;
    if !scheme.eq_ignore_ascii_case("basic") || rest.len() > 4096 {
        return Err(bad);
    }
    let text = STANDARD.decode(rest.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or(bad)?;
    let (id, secret) = text.split_once(':').ok_or(bad)?;
    let decode = |half: &str| {
        let joined = format!("x={}", half.replace('&', "%26").replace('=', "%3D"));
        pairs(joined.as_bytes()).ok()?.pop().map(|(_, value)| value)
    };
    let id = decode(id).ok_or(bad)?;
    // A secret that is no form encoding at all may be the registered secret as it stands.
    let decoded = decode(secret).unwrap_or_else(|| secret.to_owned());
    if id.is_empty() || id.contains('\0') || decoded.contains('\0') {
        return Err(bad);
    }
    let plain = (decoded != secret && !secret.contains('\0')).then(|| Secret::new(secret));
    Ok(Some(Basic { id, secret: Secret::new(decoded), plain }))
}

/// RFC 6750 §2.1: returns the access token of the Authorization header. A client that uses another scheme is told no
/// more than one that sends no credentials (§3.1).
pub fn bearer(headers: &HeaderMap) -> Result<Option<Secret>, Error> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(Error::request("more than one Authorization header was sent"));
    }
    // RFC 9110 §11.4: a scheme may stand alone, and one or more spaces may precede what follows it.
    let mut words = line.as_bytes().splitn(2, |b| *b == b' ');
    let (scheme, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Ok(None);
    }
    // A header that cannot be read is a malformed request, not a wrong token.
    let token = std::str::from_utf8(rest).unwrap_or_default().trim_start_matches(' ');
    match is_b64token(token) {
        true => Ok(Some(Secret::new(token))),
        false => Err(Error::request("the Authorization header holds no bearer token")),
    }
}

/// RFC 6750 §2.1: returns whether `text` may stand in the header at all.
fn is_b64token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    !body.is_empty() && body.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b))
}

/// CS-01, CS-04: refuses a form that changes something unless it comes from a page of ours. Browsers name the origin of
/// every POST; a request that names none must still carry a token that only our pages hold.
pub fn own_form(site: &Site, headers: &HeaderMap) -> Result<(), Refusal> {
    let foreign_fetch =
        headers.get("sec-fetch-site").is_some_and(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"));
    let foreign_origin =
        headers.get_all(ORIGIN).iter().any(|origin| !origin.to_str().is_ok_and(|origin| site.is_own_origin(origin)));
    if foreign_fetch || foreign_origin { Err(Refusal::Forgery) } else { Ok(()) }
}
