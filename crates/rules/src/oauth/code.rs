//! Authorization codes (RFC 6749 §4.1.2): 256 bits, valid for a minute, used once.

use super::claims::ClaimsRequest;
use super::client::{Client, Grant};
use super::error::{Code as ErrorCode, Error};
use super::redirect::Verified;
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
use crate::realm::Realm;
use crate::secret::{Handle, Secret, base64url, from_base64url};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a user approved; it passes unchanged from a code to everything that descends from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The approved scope.
    pub scope: Scope,
    /// The audiences (`aud`); empty: the issuer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// When the user had authenticated.
    pub auth_time: Time,
    /// How the user had authenticated.
    pub amr: Vec<String>,
    /// The authentication context class that was reached.
    pub acr: String,
    /// The nonce for the ID token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// The single claims that were asked for.
    #[serde(default)]
    pub claims: ClaimsRequest,
    /// The user's session, once tokens were issued; also for a line that has outlived it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

impl Granted {
    /// Returns the granted audiences that a request names; all of them if it names none (RFC 8707 §2.2). If none was
    /// granted, the audience is the issuer, which may be named.
    pub fn audiences(&self, asked: &[String], issuer: &str) -> Result<Vec<String>, Error> {
        if self.resources.is_empty() && asked.iter().all(|uri| is_same(uri, issuer)) {
            return Ok(Vec::new());
        }
        among(&self.resources, asked).ok_or(Error::new(ErrorCode::InvalidTarget, "the resource was not granted"))
    }

    /// Whether an ID token for this client tells the user's groups; otherwise they need not be known.
    pub fn tells_groups(&self, client: &Client) -> bool {
        let single = self.claims.id_token.iter().any(|claim| claim == "groups");
        single || (client.claims_in_id_token && self.scope.has("groups"))
    }
}

/// A code as stored.
#[derive(Clone, Debug)]
pub struct Code {
    /// The hash of the code, as sent.
    pub handle: Handle,
    /// The client that it was issued to.
    pub client: ClientId,
    /// The life of the client in which it was issued.
    pub life: Option<LifeId>,
    /// The user that it was issued for.
    pub user: UserId,
    /// The session in which it was issued.
    pub session: SessionId,
    /// The family that its tokens will belong to, by which the code is found, too.
    pub family: FamilyId,
    /// When the consent that it relies on was given: that consent must still stand when the code is redeemed.
    pub by_consent: Option<Time>,
    /// The redirect URI that it was sent to, byte for byte.
    pub redirect_uri: String,
    /// The PKCE challenge (RFC 7636).
    pub challenge: Option<String>,
    /// What was approved.
    pub granted: Granted,
    /// When it expires.
    pub expires: Time,
    /// When it was used.
    pub redeemed_at: Option<Time>,
}

impl Code {
    /// When it was issued, as told by its family's id.
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
    /// Its user, if they still exist.
    pub user: Option<User>,
    /// When the user's consent to this client was given, if it stands.
    pub consent: Option<Time>,
    /// The user's groups.
    pub groups: Vec<String>,
    /// Whether the code was used, and what it yielded has ended, or it yielded nothing. False where nobody asked.
    pub over: bool,
}

/// Makes a code's text: the family that it will begin (16 bytes) and a random part (32 bytes), as base64url. Only the
/// hash of the whole text counts.
pub fn text(family: &FamilyId, chance: [u8; 32]) -> Option<Secret> {
    let mut bytes = from_base32hex(family.as_str())?.to_vec();
    bytes.extend(chance);
    Some(Secret::new(base64url(&bytes)))
}

/// Returns the family under which a presented code would be found; `None` when it cannot be one of ours.
pub fn family_of(text: &str) -> Option<FamilyId> {
    let bytes = from_base64url(text).filter(|bytes| bytes.len() == 48)?;
    Some(FamilyId(base32hex(bytes[..16].try_into().ok()?)))
}

/// A request to redeem a code, by a client that proved who it is.
pub struct Redemption<'a> {
    /// The client that asks.
    pub client: &'a Client,
    /// The code as sent.
    pub code: &'a Secret,
    /// The redirect URI, as sent again.
    pub redirect_uri: Option<&'a str>,
    /// The PKCE verifier (RFC 7636 §4.5).
    pub verifier: Option<&'a str>,
    /// Narrower audiences for the first access token, if wanted.
    pub resources: Vec<String>,
}

/// The reason given for a code that was issued before its client was disabled.
const ANOTHER: &str = "the client was disabled or removed after the code was issued";

/// Returns what has to hold for a code to be this client's to redeem, with the reason given where it does not.
fn bindings(ask: &Redemption<'_>, code: &Code) -> [(bool, &'static str); 4] {
    [
        (ask.client.id == code.client, "the code belongs to another client"),
        (ask.client.owns(code.life.as_ref(), code.issued()), ANOTHER),
        (ask.redirect_uri == Some(code.redirect_uri.as_str()), "redirect_uri is not the one of the request"),
        (verifies(ask.verifier, code.challenge.as_deref()), "code_verifier does not match"),
    ]
}

/// Returns why a request would by now not be answered with this code, if that is so: what its client may do changes at
/// once. Whatever else a request is judged by is judged again by the gate, where tokens are issued.
fn overtaken(client: &Client, code: &Code, realm: &Realm) -> Option<&'static str> {
    if Verified::accept(client, &code.redirect_uri).is_none() {
        return Some("the redirect URI is no longer registered");
    }
    let bound = code.challenge.is_some() || client.may_leave_out_pkce(realm);
    (!bound).then_some("the client has to use PKCE by now")
}

/// RFC 6749 §4.1.3: exchanges a code for tokens, at most once. Any mismatch burns it. A second use is refused and ends
/// what the first one yielded; further ones find nothing to end, and leave no line in the audit log (DS-05). A second
/// use that would have been refused the first time, too, ends nothing: a code stands in an address, and anybody who
/// reads it there, without the verifier, could otherwise end what its owner got (OAuth 2.1, draft 15, §4.1.3).
pub fn redeem(
    ask: &Redemption<'_>,
    found: Option<&Found>,
    context: &Context<'_>,
    (now, fresh): (Time, &Fresh),
) -> Decision<Tokens, Error> {
    let decision = judge(ask, found, context, (now, fresh));
    match ask.client.registered_for(Grant::AuthorizationCode) {
        // What it presented is burnt all the same, and told to nobody.
        Err(error) => Decision { reply: Err(error), ..decision },
        Ok(()) => decision,
    }
}

fn judge(
    ask: &Redemption<'_>,
    found: Option<&Found>,
    context: &Context<'_>,
    (now, fresh): (Time, &Fresh),
) -> Decision<Tokens, Error> {
    let Some(found) = found.filter(|found| found.code.handle == ask.code.handle()) else {
        return Decision::refuse(Error::grant("the code is not valid"));
    };
    let code = &found.code;
    // Only a client that proved who it is, or that the code was issued to, can use it up or end what it yielded.
    if !ask.client.proves_itself() && ask.client.id != code.client {
        return Decision::refuse(Error::grant("the code is not valid"));
    }
    let mut broken = bindings(ask, code).into_iter().filter(|(holds, _)| !holds).map(|(_, why)| why);
    if code.redeemed_at.is_some() {
        let why = "the code was used before";
        return match (found.over, broken.next()) {
            // A caller that proved nothing leaves no trace: anybody can send what stands in an address, again and
            // again.
            (false, Some(_)) if ask.client.proves_itself() => misuse(code, why, now),
            (true, _) | (_, Some(_)) => Decision::refuse(Error::grant(why)),
            (false, None) => misuse(code, why, now).and(Change::RevokeFamily { family: code.family.clone(), at: now }),
        };
    }
    if code.expires.has_come(now) {
        return Decision::refuse(Error::grant("the code is not valid"));
    }
    let burn = Change::BurnCode { family: code.family.clone(), at: now };
    if let Some(why) = broken.next() {
        // The client was disabled meanwhile, and the caller came by the code rightly.
        let refused = if why == ANOTHER { Decision::refuse(Error::grant(why)) } else { misuse(code, why, now) };
        return refused.and(burn);
    }
    if let Some(why) = overtaken(ask.client, code, context.realm) {
        return Decision::refuse(Error::grant(why)).and(burn);
    }
    if let Err(error) = ask.client.registered_for(Grant::AuthorizationCode) {
        return Decision::refuse(error).and(burn);
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
        // Beside the other facts that must stand, which some engines look up together.
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

/// RFC 7636 §4.6: the verifier must hash to the challenge that was sent before. RFC 9700 §2.1.1: there must be no
/// verifier if no challenge was sent.
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
    use crate::login::cookie::Seal;
    use crate::login::session::{Entry, Method, Origin, enter};
    use crate::oauth::client::AuthMethod;
    use crate::oauth::client::tests::confidential;
    use crate::oauth::family::Sealing;
    use crate::people::user::tests::person;
    use crate::realm::Settings;

    const NOW: Time = Time(1_700_000_000_000);
    const REDIRECT: &str = "https://web.test/cb";
    const RESOURCE: &str = "https://api.test/";

    /// A client from which an authorization takes all that it can.
    fn web() -> Client {
        let web = confidential("web", REDIRECT);
        Client { pkce_optional: true, trusted: true, resources: vec![RESOURCE.into()], ..web }
            .registered(NOW, &Fresh::new([1; 32]))
    }

    /// A code for that client, without a challenge.
    fn in_flight() -> (Secret, Found) {
        let (user, fresh) = (person("ada"), Fresh::new([2; 32]));
        let entry = Entry { user: &user, method: Method::Password, before: None, origin: &Origin::default() };
        let session =
            enter(&entry, &Settings::default(), &Seal::new([0; 32]), (NOW, &fresh)).reply.expect("starts").session;
        let family = fresh.family(NOW);
        let secret = text(&family, [3; 32]).expect("ours");
        let code = Code {
            handle: secret.handle(),
            client: "web".into(),
            life: web().life().cloned(),
            user: user.id.clone(),
            session: session.id.clone(),
            family,
            by_consent: None,
            redirect_uri: REDIRECT.into(),
            challenge: None,
            granted: Granted {
                scope: Scope::from("openid email offline_access".to_owned()),
                resources: vec![RESOURCE.into()],
                auth_time: NOW,
                amr: vec![],
                acr: String::new(),
                nonce: None,
                claims: ClaimsRequest::default(),
                session: None,
            },
            expires: NOW + crate::Span::minutes(1),
            redeemed_at: None,
        };
        let (session, user) = (Some(session), Some(user));
        (secret, Found { code, session, user, consent: None, groups: vec![], over: false })
    }

    fn redeemed(client: &Client, (code, found): &(Secret, Found)) -> Decision<Tokens, Error> {
        let realm = Realm { id: "main".into(), issuer: "https://id.test".into(), settings: Settings::default() };
        let context = Context { realm: &realm, sealing: &Sealing { tag: [1; 32], grace: [2; 32] } };
        let ask = Redemption { client, code, redirect_uri: Some(REDIRECT), verifier: None, resources: vec![] };
        redeem(&ask, Some(found), &context, (NOW, &Fresh::new([4; 32])))
    }

    const USES_PKCE: &str = "the client has to use PKCE by now";
    const NO_SCOPE: &str = "the client may no longer have this scope";

    type Edit = (&'static str, fn(&mut Client), &'static str);

    /// By what an authorization is judged, a change to it, and what is said of a code that was issued before.
    const EDITS: [Edit; 13] = [
        ("redirect_uris", |client| client.redirect_uris[0].push('2'), "the redirect URI is no longer registered"),
        ("grants", |client| client.grants = vec![Grant::RefreshToken], "the client is not registered for this grant"),
        ("grants", |client| client.grants = vec![Grant::AuthorizationCode], NO_SCOPE),
        ("scope", |client| client.scope = Scope::from("openid offline_access".to_owned()), NO_SCOPE),
        ("auth_methods", |client| client.auth_methods = vec![AuthMethod::None], USES_PKCE),
        ("native", |client| client.native = true, USES_PKCE),
        ("pkce_optional", |client| client.pkce_optional = false, USES_PKCE),
        ("resources", |client| client.resources.clear(), "the client may no longer have this resource"),
        ("trusted", |client| *client = client.clone().distrusted(NOW, &Fresh::new([5; 32])), ANOTHER),
        ("revived_at", |client| *client = client.clone().revived(NOW, &Fresh::new([5; 32])), ANOTHER),
        ("life", |client| *client = client.clone().registered(NOW, &Fresh::new([5; 32])), ANOTHER),
        ("disabled_at", |client| client.disabled_at = Some(NOW), "the client is disabled"),
        (
            "unknown",
            |client| drop(client.unknown.insert("grants".into(), "telepathy".into())),
            "the client has settings that only a newer version knows",
        ),
    ];

    /// Every field, so that a new one has to say whether an authorization is judged by it.
    fn judged_by(client: &Client) -> [&'static str; 12] {
        let Client {
            redirect_uris: _,
            grants: _,
            scope: _,
            auth_methods: _,
            native: _,
            pkce_optional: _,
            resources: _,
            trusted: _,
            revived_at: _,
            life: _,
            disabled_at: _,
            unknown: _,
            // By these it is not.
            id: _,
            name: _,
            secret: _,
            post_logout_redirect_uris: _,
            jwks: _,
            id_token_alg: _,
            access_format: _,
            access_alg: _,
            access_typ_jwt: _,
            resource_server: _,
            first_party: _,
            claims_in_id_token: _,
            no_id_token_on_refresh: _,
            assertion_aud_endpoint: _,
            created: _,
            epoch: _,
            later: _,
        } = client;
        [
            "redirect_uris",
            "grants",
            "scope",
            "auth_methods",
            "native",
            "pkce_optional",
            "resources",
            "trusted",
            "revived_at",
            "life",
            "disabled_at",
            "unknown",
        ]
    }

    #[test]
    fn a_code_in_flight_yields_nothing_that_its_client_would_not_be_sent_by_now() {
        // red without `overtaken`, or without `lasts` in token.rs, admit_grant.
        assert!(redeemed(&web(), &in_flight()).reply.is_ok());
        assert!(judged_by(&web()).iter().all(|field| EDITS.iter().any(|(edited, ..)| edited == field)));
        for (field, edit, why) in EDITS {
            let mut client = web();
            edit(&mut client);
            let Decision { changes, reply } = redeemed(&client, &in_flight());
            assert_eq!(reply.err().map(|error| error.why), Some(why), "{field}");
            assert!(matches!(changes[..], [Change::BurnCode { .. }]), "{field}: nobody did wrong: {changes:?}");
        }
    }

    #[test]
    fn a_code_that_was_used_ends_what_it_yielded_wherever_answers_go_by_now() {
        // red where `overtaken` is asked before it is known that the code was used.
        let (code, mut found) = in_flight();
        found.code.redeemed_at = Some(NOW);
        let client = Client { redirect_uris: vec!["https://web.test/2".into()], ..web() };
        let Decision { changes, reply } = redeemed(&client, &(code, found));
        assert!(reply.is_err());
        assert!(changes.iter().any(|change| matches!(change, Change::RevokeFamily { .. })), "{changes:?}");
    }

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
