//! Authorization codes (RFC 6749 §4.1.2): 256 bits, a minute, once.

use super::claims::ClaimsRequest;
use super::client::{Client, Grant};
use super::error::{Code as ErrorCode, Error};

use super::resource::{among, is_same};
use super::scope::Scope;
use super::token::{Ask, Context, Line, Person, Tokens, issue};
use crate::Fresh;
use crate::decision::{Change, Decision, Standing};
use crate::events::{Event, Kind};
use crate::fresh::{base32hex, from_base32hex, time_of};
use crate::id::{ClientId, FamilyId, LifeId, SessionId, UserId};
use crate::login::session::Session;
use crate::people::User;
use crate::secret::{Handle, Secret, base64url, from_base64url};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a person's approval comes down to; it passes unchanged from a code to all that descends from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// To what.
    pub scope: Scope,
    /// For whom (`aud`); empty: the issuer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// When they had proved who they are.
    pub auth_time: Time,
    /// How.
    pub amr: Vec<String>,
    /// To which class.
    pub acr: String,
    /// For the ID token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// Single claims asked for.
    #[serde(default)]
    pub claims: ClaimsRequest,
    /// In which session of theirs, once tokens were issued: also of a line that has outlived it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

impl Granted {
    /// RFC 8707 §2.2: of the audiences that were granted, those that a request names; all of them where it names none. Where none
    /// was granted it is the issuer, which may be named.
    pub fn audiences(&self, asked: &[String], issuer: &str) -> Result<Vec<String>, Error> {
        if self.resources.is_empty() && asked.iter().all(|uri| is_same(uri, issuer)) {
            return Ok(Vec::new());
        }
        among(&self.resources, asked).ok_or(Error::new(ErrorCode::InvalidTarget, "the resource was not granted"))
    }

    /// Whether an ID token for this client says in which groups the person is: they need not be known for any other.
    pub fn tells_groups(&self, client: &Client) -> bool {
        let single = self.claims.id_token.iter().any(|claim| claim == "groups");
        single || (client.claims_in_id_token && self.scope.has("groups"))
    }
}

/// A code as the facts tell.
#[derive(Clone, Debug)]
pub struct Code {
    /// The hash of the code, as sent.
    pub handle: Handle,
    /// To whom it was issued.
    pub client: ClientId,
    /// In which life of it.
    pub life: Option<LifeId>,
    /// For whom.
    pub user: UserId,
    /// In which session.
    pub session: SessionId,
    /// What its tokens will descend from; also where the code is found.
    pub family: FamilyId,
    /// The consent that it leans on, by when that was given: it must still stand when the code is redeemed.
    pub by_consent: Option<Time>,
    /// Where it was sent, byte for byte.
    pub redirect_uri: String,
    /// RFC 7636.
    pub challenge: Option<String>,
    /// What was approved.
    pub granted: Granted,
    /// Until when.
    pub expires: Time,
    /// When it was used.
    pub redeemed_at: Option<Time>,
}

impl Code {
    /// When it was issued: its family's id says.
    pub fn issued(&self) -> Time {
        time_of(self.family.as_str())
    }
}

/// A code with the facts around it.
#[derive(Clone, Debug)]
pub struct Found {
    /// The code.
    pub code: Code,
    /// Its session, if that still exists.
    pub session: Option<Session>,
    /// Its person, if they still exist.
    pub user: Option<User>,
    /// When that person's consent to this client was given, if it stands.
    pub consent: Option<Time>,
    /// Groups of that person.
    pub groups: Vec<String>,
    /// Whether the code was used, and what came of that has ended, or nothing came of it. Where nobody asked: no.
    pub over: bool,
}

/// A code's text: the family that it will begin (16 bytes) and chance (32 bytes), as base64url. The hash of all of it
/// is what counts.
pub fn text(family: &FamilyId, chance: [u8; 32]) -> Option<Secret> {
    let mut bytes = from_base32hex(family.as_str())?.to_vec();
    bytes.extend(chance);
    Some(Secret::new(base64url(&bytes)))
}

/// Under which family a presented code would be found; `None` when it cannot be one of ours.
pub fn family_of(text: &str) -> Option<FamilyId> {
    let bytes = from_base64url(text).filter(|bytes| bytes.len() == 48)?;
    Some(FamilyId(base32hex(bytes[..16].try_into().ok()?)))
}

/// A request to redeem a code, by a client that proved who it is.
pub struct Redemption<'a> {
    /// Who asks.
    pub client: &'a Client,
    /// The code as sent.
    pub code: &'a Secret,
    /// The redirect URI, as sent again.
    pub redirect_uri: Option<&'a str>,
    /// RFC 7636 §4.5.
    pub verifier: Option<&'a str>,
    /// Narrower audiences for the first access token, if wanted.
    pub resources: Vec<String>,
}

/// What is told of a code from before its client was disabled.
const ANOTHER: &str = "the client was another one when the code was issued";

/// What has to hold for a code to be this client's to redeem, and what is told where it does not.
fn bindings(ask: &Redemption<'_>, code: &Code) -> [(bool, &'static str); 4] {
    [
        (ask.client.id == code.client, "the code belongs to another client"),
        (ask.client.owns(code.life.as_ref(), code.issued()), ANOTHER),
        (ask.redirect_uri == Some(code.redirect_uri.as_str()), "redirect_uri is not the one of the request"),
        (verifies(ask.verifier, code.challenge.as_deref()), "code_verifier does not match"),
    ]
}

/// RFC 6749 §4.1.3: exchanges a code for tokens, at most once. Any mismatch burns it; a second use ends what the first
/// one yielded, although the request is refused. Further ones find nothing to end, and leave no line in the audit log (DS-05).
/// Nor does one that the code would not have been exchanged for: a code stands in an address, and whoever reads it there, without
/// the verifier, could otherwise end what its owner got (OAuth 2.1, draft 15, §4.1.3).
pub fn redeem(
    ask: &Redemption<'_>,
    found: Option<&Found>,
    context: &Context<'_>,
    (now, fresh): (Time, &Fresh),
) -> Decision<Tokens, Error> {
    let Some(found) = found.filter(|found| found.code.handle == ask.code.handle()) else {
        return Decision::refuse(Error::grant("the code is not valid"));
    };
    let code = &found.code;
    // Only who proved to be a client at all, or is the one it was issued to, can use it up or end what it yielded.
    if ask.client.is_public() && ask.client.id != code.client {
        return Decision::refuse(Error::grant("the code is not valid"));
    }
    let mut broken = bindings(ask, code).into_iter().filter(|(holds, _)| !holds).map(|(_, why)| why);
    if code.redeemed_at.is_some() {
        let why = "the code was used before";
        return match (found.over, broken.next()) {
            // Who proved nothing is heard of nowhere: anybody may send what stands in an address, as often as they like.
            (false, Some(_)) if !ask.client.is_public() => misuse(code, why, now),
            (true, _) | (_, Some(_)) => Decision::refuse(Error::grant(why)),
            (false, None) => misuse(code, why, now).and(Change::RevokeFamily { family: code.family.clone(), at: now }),
        };
    }
    if code.expires.has_come(now) {
        return Decision::refuse(Error::grant("the code is not valid"));
    }
    let burn = Change::BurnCode { family: code.family.clone(), at: now };
    if !ask.client.may(Grant::AuthorizationCode) {
        let error = Error::new(ErrorCode::UnauthorizedClient, "the client may not use authorization_code");
        return Decision::refuse(error).and(burn);
    }
    if let Some(why) = broken.next() {
        // It was disabled meanwhile, and whoever has the code came by it rightly.
        let refused = if why == ANOTHER { Decision::refuse(Error::grant(why)) } else { misuse(code, why, now) };
        return refused.and(burn);
    }
    let (Some(session), Some(user)) = (&found.session, &found.user) else {
        return Decision::refuse(Error::grant("the session has ended")).and(burn);
    };
    if code.by_consent.is_some() && code.by_consent != found.consent {
        return Decision::refuse(Error::grant("access was taken back")).and(burn);
    }
    let person = Person {
        user,
        session: Some(session),
        groups: &found.groups,
        granted: &code.granted,
        family: &code.family,
        line: Line::Begins,
    };
    let scope = code.granted.scope.clone();
    let resources = match code.granted.audiences(&ask.resources, &context.realm.issuer) {
        Ok(resources) => resources,
        Err(error) => return Decision::refuse(error).and(burn),
    };
    let ask = Ask { client: ask.client, way: Grant::AuthorizationCode.into(), scope, resources, person: Some(person) };
    let mut decision = issue(&ask, context, (now, fresh));
    if let Some(granted) = code.by_consent {
        let consent = Some((code.user.clone(), code.client.clone(), granted));
        // Beside what else must stand, which some engines look for at once.
        let at = decision.changes.len().min(1);
        decision.changes.insert(at, Change::Stands(Standing { consent, ..Standing::default() }));
    }
    decision.changes.insert(0, burn);
    decision
}

fn misuse(code: &Code, why: &'static str, now: Time) -> Decision<Tokens, Error> {
    let event = Event::new(Kind::CodeMisused, now).user(&code.user).client(&code.client).session(&code.session);
    Decision::refuse(Error::grant(why)).and(Change::Record(event.detail("why", why)))
}

/// RFC 7636 §4.6: the verifier must hash to the challenge that was sent before; RFC 9700 §2.1.1: and must be absent
/// when none was sent.
pub fn verifies(verifier: Option<&str>, challenge: Option<&str>) -> bool {
    match (verifier, challenge) {
        (None, None) => true,
        (Some(verifier), Some(challenge)) => {
            let legal = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
            (43..=128).contains(&verifier.len())
                && verifier.bytes().all(legal)
                && crate::secret::same(base64url(&Sha256::digest(verifier.as_bytes())).as_bytes(), challenge.as_bytes())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::client::tests::confidential;

    #[test]
    fn groups_have_to_be_known_where_an_id_token_tells_them() {
        let granted = |scope: &str, single: &[&str]| Granted {
            scope: Scope::from(scope.to_owned()),
            resources: vec![],
            auth_time: Time(0),
            amr: vec![],
            acr: String::new(),
            nonce: None,
            claims: ClaimsRequest {
                id_token: single.iter().map(|claim| (*claim).to_owned()).collect(),
                ..ClaimsRequest::default()
            },
            session: None,
        };
        for (scope, single, claims_in_id_token, tells) in [
            ("openid groups", &[][..], true, true),
            ("openid groups", &[], false, false),
            ("openid", &["groups"], false, true),
            ("openid email", &["email"], true, false),
        ] {
            let client = Client { claims_in_id_token, ..confidential("web", "https://shop.test/cb") };
            assert_eq!(granted(scope, single).tells_groups(&client), tells, "{scope} {single:?}");
        }
    }

    #[test]
    fn rfc7636_appendix_b() {
        let (verifier, challenge) =
            ("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(verifies(Some(verifier), Some(challenge)));
        assert!(!verifies(Some(challenge), Some(challenge)), "PK-04: plain");
        assert!(!verifies(None, Some(challenge)), "PK-01");
        assert!(!verifies(Some(verifier), None), "PK-02");
        assert!(!verifies(Some(&verifier[1..]), Some(challenge)), "PK-04: 42 characters");
        assert!(!verifies(Some(&"a".repeat(129)), Some(challenge)), "PK-04: 129 characters");
        assert!(!verifies(Some(&verifier.replace('-', "+")), Some(challenge)), "PK-04: +");
    }
}
