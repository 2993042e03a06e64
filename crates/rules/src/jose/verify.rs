//! Checks a stranger's token, in the order of RFC 8725 §3: size, shape, header, signature, and only then claims.

use super::alg::{Alg, Typ};
use super::claims::Claims;
use super::json;
use super::jwk::is_kid;
use crate::id::Kid;
use crate::realm::SKEW;
use crate::secret::from_base64url;
use crate::time::{Span, Time};
use aws_lc_rs::signature::ParsedPublicKey;
use serde_json::Value;

/// The longest accepted token, in bytes. Checked before anything else looks at it.
const MAX_TOKEN: usize = 16 * 1024;
/// Header members that would bring in a key, an extension or a transformation from outside (RFC 7515 §4.1, RFC 7797,
/// RFC 7516 §4.1.3). `cty` announces a token within the token.
const FORBIDDEN: [&str; 8] = ["crit", "b64", "jku", "jwk", "x5u", "x5c", "zip", "cty"];

/// Why a token is refused: a sentence of ours that never repeats the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

/// A public key, prepared, and bound to its one algorithm.
pub struct VerifyingKey {
    kid: Option<Kid>,
    alg: Alg,
    key: ParsedPublicKey,
}

impl VerifyingKey {
    pub(super) fn new(kid: Option<Kid>, alg: Alg, key: ParsedPublicKey) -> Self {
        VerifyingKey { kid, alg, key }
    }
    /// Its name among its owner's keys.
    pub fn kid(&self) -> Option<&Kid> {
        self.kid.as_ref()
    }
    /// The algorithm it is bound to.
    pub fn alg(&self) -> Alg {
        self.alg
    }

    /// A key without a name is tried for every token, and a token that names no key is tried with every key.
    fn may_have_signed(&self, header: &Header<'_>) -> bool {
        let named = match (&self.kid, header.kid) {
            (Some(ours), Some(theirs)) => ours.as_str() == theirs,
            _ => true,
        };
        named && self.alg == header.alg
    }

    /// Whether `signature` is this key's over `message`.
    pub(super) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.key.verify_sig(message, signature).is_ok()
    }
}

/// What the caller demands of a token. Nothing of it comes from the token.
#[derive(Clone, Copy, Debug)]
pub struct Expect<'a> {
    /// The algorithms allowed here.
    pub algs: &'a [Alg],
    /// The kinds of token allowed here.
    pub typ: &'a [Typ],
    /// Accepts also a token whose header names no `typ`, as most client assertions do not.
    pub untyped: bool,
    /// Claims that must be present.
    pub required: &'a [&'a str],
    /// The `iss` that it must have, if set.
    pub issuer: Option<&'a str>,
    /// What must be in its `aud`, if set.
    pub audience: Option<&'a str>,
    /// The time now.
    pub now: Time,
    /// How far the signer's clock may be off, either way.
    pub skew: Span,
    /// The times that it must keep to.
    pub times: Times,
    /// The most bytes that it may have.
    pub longest: usize,
}

impl<'a> Expect<'a> {
    /// The strict case: `typ` named, `exp` required and not passed, clocks at most 60 seconds apart. `iss` and `aud`
    /// are not looked at unless the caller sets them.
    pub fn new(algs: &'a [Alg], typ: &'a [Typ], now: Time) -> Self {
        let skew = Span::seconds(60);
        Expect {
            algs,
            typ,
            untyped: false,
            required: &["exp"],
            issuer: None,
            audience: None,
            now,
            skew,
            times: Times::All,
            longest: MAX_TOKEN,
        }
    }

    /// A token of ours, which any node may have signed: its clock may be ahead while the one here is behind, or the
    /// other way round.
    pub fn ours(typ: &'a [Typ], issuer: &'a str, now: Time) -> Self {
        Expect { issuer: Some(issuer), skew: SKEW + SKEW, ..Expect::new(&Alg::OURS, typ, now) }
    }
}

/// The times of a token that are judged where its signature is (RFC 7519 §4.1.4 to §4.1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// `exp`, `nbf` and `iat`.
    All,
    /// `nbf` and `iat`: it may have expired, as an `id_token_hint` may have (OpenID Connect Core §3.1.2.1).
    AllButExp,
    /// None: the caller judges them by what it wants to do. What may no longer be used, or not yet, can still be ended.
    Unjudged,
}

/// Checks a compact JWS and returns its claims. It must be signed by one of `keys` and meet all that `expect` demands.
///
/// RFC 7515 §5.2, RFC 7519 §7.2, RFC 8725 §3.
pub fn verify<'k>(
    token: &str,
    keys: impl IntoIterator<Item = &'k VerifyingKey>,
    expect: &Expect<'_>,
) -> Result<Claims, Refused> {
    let parts = Parts::of(token, expect.longest)?;
    let members = parts.header()?;
    let header = Header::check(&members, expect)?;
    let signature = from_base64url(parts.signature).ok_or(Refused("the signature is not base64url"))?;
    let mut candidates = keys.into_iter().filter(|key| key.may_have_signed(&header));
    if !candidates.any(|key| key.signed(parts.signed.as_bytes(), &signature)) {
        return Err(Refused("no key of the signer fits"));
    }
    let claims = parts.claims()?;
    check(&claims, expect)?;
    Ok(claims)
}

/// A text that a token claims, *unproved*: for finding the keys to prove it with, or how its sender wants to be told
/// that it is refused; never for letting anything through.
pub fn claimed(token: &str, name: &str) -> Option<String> {
    let claims = Parts::of(token, MAX_TOKEN).ok()?.claims().ok()?;
    claims.all().get(name)?.as_str().map(str::to_owned)
}

/// The three parts of a compact JWS (RFC 7515 §7.1), still encoded.
struct Parts<'a> {
    header: &'a str,
    claims: &'a str,
    signature: &'a str,
    /// Header, dot and claims: what is signed.
    signed: &'a str,
}

impl<'a> Parts<'a> {
    /// Splits a token. Allocates nothing, whatever the token is.
    fn of(token: &'a str, longest: usize) -> Result<Self, Refused> {
        if token.len() > longest {
            return Err(Refused("the token is too long"));
        }
        let three = |token: &'a str| {
            let (signed, signature) = token.rsplit_once('.')?;
            let (header, claims) = signed.split_once('.')?;
            (!claims.contains('.')).then_some(Parts { header, claims, signature, signed })
        };
        three(token).ok_or(Refused("the token does not have three parts"))
    }

    fn header(&self) -> Result<serde_json::Map<String, Value>, Refused> {
        let header = from_base64url(self.header).ok_or(Refused("the header is not base64url"))?;
        json::object(&header).ok_or(Refused("the header is not a JSON object with each member once"))
    }

    fn claims(&self) -> Result<Claims, Refused> {
        let claims = from_base64url(self.claims).ok_or(Refused("the claims are not base64url"))?;
        Claims::check(json::object(&claims).ok_or(Refused("the claims are not a JSON object with each member once"))?)
    }
}

/// The parts of a header that matter for choosing a key.
struct Header<'a> {
    alg: Alg,
    kid: Option<&'a str>,
}

impl<'a> Header<'a> {
    fn check(members: &'a serde_json::Map<String, Value>, expect: &Expect<'_>) -> Result<Self, Refused> {
        if FORBIDDEN.iter().any(|name| members.contains_key(*name)) {
            return Err(Refused("the header has a member that is not accepted"));
        }
        let alg = match members.get("alg") {
            Some(Value::String(name)) => Alg::parse(name).filter(|alg| expect.algs.contains(alg)),
            _ => None,
        };
        let alg = alg.ok_or(Refused("alg is not accepted"))?;
        let typed = match members.get("typ") {
            None => expect.untyped,
            Some(Value::String(name)) => expect.typ.iter().any(|typ| typ.is(name)),
            Some(_) => false,
        };
        if !typed {
            return Err(Refused("typ is not accepted"));
        }
        let kid = match members.get("kid") {
            None => None,
            Some(Value::String(kid)) if is_kid(kid) => Some(kid.as_str()),
            Some(_) => return Err(Refused("kid is not accepted")),
        };
        Ok(Header { alg, kid })
    }
}

/// RFC 7519 §4.1: presence, time, signer and audience. The types were checked when the claims were made.
fn check(claims: &Claims, expect: &Expect<'_>) -> Result<(), Refused> {
    let Expect { now, skew, times, .. } = *expect;
    let (ends, begins) = (times == Times::All, times != Times::Unjudged);
    let past = |moment: Option<Time>| ends && moment.is_some_and(|moment| (moment + skew).has_come(now));
    let ahead = |moment: Option<Time>| begins && moment.is_some_and(|moment| moment > now + skew);
    let faults = [
        (expect.required.iter().any(|name| !claims.all().contains_key(*name)), "a required claim is missing"),
        (past(claims.expires()), "the token has expired"),
        (ahead(claims.not_before()), "the token is not valid yet"),
        (ahead(claims.issued()), "the token was issued in the future"),
        (expect.issuer.is_some_and(|issuer| claims.issuer() != Some(issuer)), "iss is not the expected signer"),
        (expect.audience.is_some_and(|ours| claims.audience().all(|one| one != ours)), "aud does not name us"),
    ];
    match faults.into_iter().find(|(fault, _)| *fault) {
        Some((_, why)) => Err(Refused(why)),
        None => Ok(()),
    }
}
