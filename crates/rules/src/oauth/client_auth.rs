//! How a client proves who it is at the token endpoint and its siblings (RFC 6749 §2.3, RFC 7523 §3).

use super::client::{AuthMethod, Client};
use super::error::Error;
use super::params::Params;
use super::registration::is_client_id;
use crate::decision::{Change, Decision};
use crate::id::ClientId;
use crate::jose::{self, Alg, Expect, Typ};
use crate::realm::Realm;
use crate::secret::{Handle, Secret};
use crate::time::{Span, Time};

/// RFC 7521 §4.2, the only kind of assertion that is supported.
pub const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The longest time that an assertion may be valid: somebody who finds an unused one has that long to use it.
const LONGEST_ASSERTION: Span = Span::minutes(5);
/// The same for libraries that predate the tightening of RFC 7523, and address the token endpoint.
const LONGEST_TO_ENDPOINT: Span = Span::hours(1);
/// Why a client's name alone is refused, whether it is known or not.
pub const NAME_ALONE: &str = "no secret and no assertion was sent, and the client is unknown, disabled, or needs one";
/// Why a request that names no client is refused.
pub const NOBODY: &str = "the client did not authenticate";
const ASSERTION_ALGS: [Alg; 4] = [Alg::RS256, Alg::PS256, Alg::ES256, Alg::EdDSA];

/// A proof of identity, as presented: exactly one per request.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The client that it claims to be.
    pub client: ClientId,
    /// The means by which it is proved.
    pub means: Means,
}

/// The means of a proof.
#[derive(Clone, Debug)]
pub enum Means {
    /// None: the client's name alone.
    Name,
    /// A secret in the header.
    Basic {
        /// The secret, form-decoded, as RFC 6749 §2.3.1 wants.
        secret: Secret,
        /// The secret as it was sent, if that differs: many libraries do not encode it. It is compared by its hash, and
        /// tells no more to somebody who guesses.
        plain: Option<Secret>,
    },
    /// A secret in the body.
    Post(Secret),
    /// A signed assertion.
    Assertion(Secret),
}

impl Means {
    fn method(&self) -> AuthMethod {
        match self {
            Means::Name => AuthMethod::None,
            Means::Basic { .. } => AuthMethod::Basic,
            Means::Post(_) => AuthMethod::Post,
            Means::Assertion(_) => AuthMethod::PrivateKeyJwt,
        }
    }
}

/// The credentials of an Authorization header.
#[derive(Clone, Debug)]
pub struct Basic {
    /// The client id, form-decoded.
    pub id: String,
    /// The secret, form-decoded.
    pub secret: Secret,
    /// The secret as it was sent, if that differs.
    pub plain: Option<Secret>,
}

/// Finds the proof in a request. More than one method is refused (RFC 6749 §2.3).
pub fn proof(params: &Params, basic: Option<Basic>) -> Result<Proof, Error> {
    let named = params.get("client_id");
    let assertion = match (params.get("client_assertion_type"), params.get("client_assertion")) {
        (None, None) => None,
        (Some(ASSERTION_TYPE), Some(assertion)) => Some(assertion),
        (Some(_), Some(_)) => return Err(Error::client("client_assertion_type is not supported")),
        _ => return Err(Error::request("client_assertion and client_assertion_type belong together")),
    };
    let secret = params.get("client_secret");
    let methods = [basic.is_some(), assertion.is_some(), secret.is_some()];
    if methods.into_iter().filter(|sent| *sent).count() > 1 {
        return Err(Error::request("more than one client authentication method was sent"));
    }
    let agrees = |id: &str| named.is_none_or(|named| named == id);
    if let Some(Basic { id, secret, plain }) = basic {
        // An empty secret proves no more than the name does, and some libraries send one for public clients (§2.3.1).
        let means = if secret.reveal().is_empty() { Means::Name } else { Means::Basic { secret, plain } };
        return match agrees(&id) {
            true => Ok(Proof { client: id.as_str().into(), means }),
            false => Err(Error::request("client_id is not the one that authenticates")),
        };
    }
    if let Some(assertion) = assertion {
        // Not verified yet: this is text from a stranger, and about to be looked up.
        let id = jose::claimed(assertion, "sub").filter(|id| is_client_id(id));
        let id = id.ok_or(Error::client("the client assertion is not valid"))?;
        return match agrees(&id) {
            true => Ok(Proof { client: id.as_str().into(), means: Means::Assertion(Secret::new(assertion)) }),
            false => Err(Error::request("client_id is not the one that authenticates")),
        };
    }
    let client = named.ok_or(Error::client(NOBODY))?.into();
    let means = secret.map_or(Means::Name, |secret| Means::Post(Secret::new(secret)));
    Ok(Proof { client, means })
}

/// Why nothing was proved: for our log, never for a caller that has proved nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unproved(pub &'static str);

/// Judges a proof against the client that was found under the claimed name.
pub fn prove(proof: &Proof, found: Option<&Client>, realm: &Realm, now: Time) -> Decision<(), Unproved> {
    let refused = |why| Decision::refuse(Unproved(why));
    let Some(client) = found.filter(|client| client.id == proof.client) else {
        return refused("there is no such client");
    };
    if let Some(why) = client.refusal() {
        return refused(why);
    }
    if !client.auth_methods.contains(&proof.means.method()) {
        return refused("the client is registered for another authentication method");
    }
    match &proof.means {
        Means::Name => Decision::accept(()),
        Means::Basic { secret, plain }
            if is_secret(client, secret) || plain.as_ref().is_some_and(|plain| is_secret(client, plain)) =>
        {
            Decision::accept(())
        }
        Means::Post(secret) if is_secret(client, secret) => Decision::accept(()),
        Means::Basic { .. } | Means::Post(_) => refused("the secret is wrong"),
        Means::Assertion(assertion) => match assert(client, assertion.reveal(), realm, now) {
            Ok(used) => Decision::accept(()).and(used),
            Err(jose::Refused(why)) => refused(why),
        },
    }
}

fn is_secret(client: &Client, secret: &Secret) -> bool {
    client.secret.is_some_and(|handle| handle == secret.handle())
}

/// RFC 7523 §3 as tightened by its revision: issuer and subject are the client, the one audience is the issuer (or the
/// token endpoint, for a client that is set so), and the assertion expires within minutes and is used once.
fn assert(client: &Client, assertion: &str, realm: &Realm, now: Time) -> Result<Change, jose::Refused> {
    let refused = jose::Refused;
    let keys = client.jwks.as_ref().ok_or(refused("the client has no keys"))?;
    let rsa_alg = Alg::RS256;
    let mut keys_ready = keys.verifying_keys(rsa_alg).map_err(|_| refused("a key of the client is not usable"))?;
    keys_ready
        .extend(keys.verifying_keys(Alg::PS256).unwrap_or_default().into_iter().filter(|k| k.alg() == Alg::PS256));
    let expect = Expect {
        untyped: true,
        required: &["iss", "sub", "aud", "exp", "jti"],
        issuer: Some(client.id.as_str()),
        skew: realm.settings.skew,
        ..Expect::new(&ASSERTION_ALGS, &[Typ::Jwt, Typ::ClientAssertion], now)
    };
    let claims = jose::verify(assertion, &keys_ready, &expect)?;
    let endpoint = format!("{}/oauth2/token", realm.issuer);
    // Libraries that predate the tightening of RFC 7523 write a list of one, too.
    let audience = if client.assertion_aud_endpoint { claims.only_audience() } else { claims.sole_audience() };
    let for_us = audience.is_some_and(|aud| aud == realm.issuer || (client.assertion_aud_endpoint && aud == endpoint));
    if claims.subject() != Some(client.id.as_str()) || !for_us {
        return Err(refused("sub or aud of the assertion is wrong"));
    }
    let expires = claims.expires().ok_or(refused("the assertion does not expire"))?;
    let longest = if client.assertion_aud_endpoint { LONGEST_TO_ENDPOINT } else { LONGEST_ASSERTION };
    if expires > now + longest + realm.settings.skew {
        return Err(refused("exp of the assertion is too far ahead"));
    }
    // Refused now, one that was made for longer would be accepted in the last minutes of its life. Some libraries date
    // it back a little, for clocks that are behind.
    if claims.issued().is_some_and(|iat| expires < iat || expires > iat + longest + realm.settings.skew) {
        return Err(refused("the time between iat and exp of the assertion is too long, or none"));
    }
    if claims.not_before().is_some_and(|nbf| expires < nbf) {
        return Err(refused("nbf of the assertion is after its exp"));
    }
    let jti = claims.id().filter(|jti| !jti.is_empty()).ok_or(refused("the assertion has no jti"))?;
    // The earliest time at which it may have been made, if that clock is ahead.
    let issued = claims.issued().map_or(expires - longest, |iat| iat - realm.settings.skew);
    let expires = realm.settings.remembered(expires + realm.settings.skew);
    Ok(Change::UseAssertion { client: client.id.clone(), jti: Handle::of(jti), issued, expires })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jose::{JwkSet, SigningKey};
    use crate::oauth::client::tests::{confidential, native};
    use crate::realm::{SKEW, Settings};
    use crate::time::Span;
    use serde_json::json;

    fn params(pairs: &[(&str, &str)]) -> Params {
        Params::parse(pairs.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect()).expect("no duplicates")
    }

    fn basic(id: &str, secret: &str) -> Option<Basic> {
        Some(Basic { id: id.into(), secret: Secret::new(secret), plain: None })
    }

    fn by_header(secret: &str, plain: Option<&str>) -> Means {
        Means::Basic { secret: Secret::new(secret), plain: plain.map(Secret::new) }
    }

    #[test]
    fn rfc6749_2_3_one_method_a_request() {
        assert!(proof(&params(&[("client_secret", "x")]), basic("c1", "x")).is_err());
        let both = [("client_assertion_type", ASSERTION_TYPE), ("client_assertion", "a.b.c"), ("client_secret", "x")];
        assert!(proof(&params(&both), None).is_err());
        assert!(proof(&params(&[("client_id", "c2")]), basic("c1", "x")).is_err());
        assert!(proof(&params(&[("client_id", "c1")]), basic("c1", "x")).is_ok());
        assert!(proof(&params(&[]), None).is_err());
    }

    #[test]
    fn rfc6749_2_3_1_an_empty_secret_is_none() {
        let means = |secret| proof(&params(&[]), basic("c1", secret)).expect("one method").means.method();
        assert_eq!((means(""), means(" ")), (AuthMethod::None, AuthMethod::Basic));
        assert!(proof(&params(&[("client_secret", "x")]), basic("c1", "")).is_err());
    }

    #[test]
    fn a_client_proves_itself_only_as_registered() {
        let realm = Realm { id: "main".into(), issuer: "https://id.test".into(), settings: Settings::default() };
        let proves = |client: &Client, means: Means| {
            let proof = Proof { client: client.id.clone(), means };
            prove(&proof, Some(client), &realm, Time(0)).reply.is_ok()
        };
        let mut web = confidential("c1", "https://app.test/cb");
        assert!(proves(&web, by_header("secret", None)));
        assert!(!proves(&web, by_header("Secret", None)));
        assert!(!proves(&web, by_header("secret ", None)));
        assert!(proves(&web, by_header("decoded", Some("secret"))));
        assert!(!proves(&web, by_header("decoded", Some("Secret"))));
        assert!(!proves(&web, Means::Name));
        web.auth_methods = vec![AuthMethod::Post];
        assert!(!proves(&web, by_header("secret", None)));
        web.disabled_at = Some(Time(0));
        assert!(!proves(&web, Means::Post(Secret::new("secret"))));
        let public = native("p1", "https://app.test/cb");
        assert!(proves(&public, Means::Name));
        assert!(!proves(&public, Means::Post(Secret::new("secret"))));
    }

    /// A client that authenticates by assertions, and its key.
    fn signing() -> (Realm, SigningKey, Client) {
        let realm = Realm { id: "main".into(), issuer: "https://id.test".into(), settings: Settings::default() };
        let private = jose::generate(Alg::ES256).expect("a key");
        let key = SigningKey::from_pkcs8(Alg::ES256, "k".into(), &private).expect("a key");
        let keys = JwkSet { keys: vec![key.public_jwk()] };
        let client = Client {
            auth_methods: vec![AuthMethod::PrivateKeyJwt],
            jwks: Some(keys),
            ..confidential("c1", "https://app.test/cb")
        };
        (realm, key, client)
    }

    #[test]
    fn a_used_assertion_is_remembered_until_the_slowest_clock_refuses_it() {
        // red without `remembered` in `assert`.
        let (realm, key, client) = signing();
        let exp = 1_700_000_060;
        let claims = json!({ "iss": "c1", "sub": "c1", "aud": "https://id.test", "exp": exp, "jti": "once" });
        let assertion = Secret::new(key.sign(Typ::Jwt, &claims).expect("signed"));
        let proof = Proof { client: client.id.clone(), means: Means::Assertion(assertion) };
        let at = |now| prove(&proof, Some(&client), &realm, now);
        let used = at(Time::from_seconds(exp) - Span::seconds(60));
        let Some(Change::UseAssertion { expires, .. }) = used.changes.first() else { panic!("it is used up") };
        let slowest = *expires - SKEW - SKEW;
        assert!(at(slowest).reply.is_err() && at(slowest - Span(1)).reply.is_ok());

        // OIDC-14. red with an hour for all clients.
        let issued = |client: &Client, before: Span| {
            prove(&proof, Some(client), &realm, Time::from_seconds(exp) - before - SKEW).reply.is_ok()
        };
        let older = Client { assertion_aud_endpoint: true, ..client.clone() };
        for (client, longest) in [(&client, Span::minutes(5)), (&older, Span::hours(1))] {
            assert!(issued(client, longest) && !issued(client, longest + Span(1)), "{longest:?}");
        }
    }

    /// Red without the comparison of iat or nbf with exp: what is refused as too long is accepted just before its end.
    #[test]
    fn rfc7523_3_an_assertion_that_was_made_for_too_long_is_refused_to_its_end() {
        let (realm, key, client) = signing();
        let to_endpoint = Client { assertion_aud_endpoint: true, ..client.clone() };
        let now = 1_700_000_000;
        let times = [
            (&client, json!({ "iat": now, "exp": now + 300 }), true),
            (&client, json!({ "iat": now - 60, "nbf": now - 60, "exp": now + 300 }), true),
            (&client, json!({ "iat": now - 61, "exp": now + 300 }), false),
            (&client, json!({ "iat": now - 86_400, "exp": now + 60 }), false),
            (&client, json!({ "iat": now + 50, "exp": now + 49 }), false),
            (&client, json!({ "nbf": now + 50, "exp": now + 49 }), false),
            (&client, json!({ "exp": now + 300 }), true),
            (&to_endpoint, json!({ "iat": now - 3_600, "exp": now + 60 }), true),
            (&to_endpoint, json!({ "iat": now - 86_400, "exp": now + 60 }), false),
        ];
        for (number, (client, times, accepted)) in times.into_iter().enumerate() {
            let jti = number.to_string();
            let mut claims = json!({ "iss": "c1", "sub": "c1", "aud": "https://id.test", "jti": jti });
            claims.as_object_mut().expect("object").extend(times.as_object().expect("object").clone());
            let assertion = Secret::new(key.sign(Typ::Jwt, &claims).expect("signed"));
            let proof = Proof { client: client.id.clone(), means: Means::Assertion(assertion) };
            let proved = prove(&proof, Some(client), &realm, Time::from_seconds(now));
            assert_eq!(proved.reply.is_ok(), accepted, "{claims}");
        }
    }

    #[test]
    fn an_assertion_is_as_old_as_it_says_or_as_it_can_be() {
        let (realm, key, client) = signing();
        let (now, exp) = (1_700_000_000, 1_700_000_060);
        let issued = |iat: Option<i64>| {
            let mut claims = json!({ "iss": "c1", "sub": "c1", "aud": "https://id.test", "exp": exp, "jti": "once" });
            if let Some(iat) = iat {
                claims["iat"] = json!(iat);
            }
            let assertion = Secret::new(key.sign(Typ::Jwt, &claims).expect("signed"));
            let proof = Proof { client: client.id.clone(), means: Means::Assertion(assertion) };
            match prove(&proof, Some(&client), &realm, Time::from_seconds(now)).changes.first() {
                Some(Change::UseAssertion { issued, .. }) => *issued,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(issued(Some(now - 7)), Time::from_seconds(now - 7) - SKEW);
        assert_eq!(issued(None), Time::from_seconds(exp) - Span::minutes(5), "for so long at most it may be good");
    }
}
