//! The issuance gate. Every grant ends here, and no other code can issue tokens.

use super::claims::ClaimsRequest;
use super::client::{AccessFormat, Client, Grant};
use super::code::Granted;
use super::error::{Code as ErrorCode, Error};
use super::family::{Family, Refresh, RefreshToken, Sealing};
use super::first_party;
use super::scope::Scope;
use super::userinfo;
use crate::Fresh;
use crate::decision::{Change, Decision, Standing};
use crate::events::{Event, Kind};
use crate::fresh::time_of;
use crate::id::{ClientId, FamilyId, LifeId};
use crate::jose::Alg;
use crate::login::session::Session;
use crate::people::User;
use crate::realm::{Realm, is_believable};
use crate::secret::{Handle, Secret, base64url};
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The realm and its secrets, as every grant needs them.
pub struct Context<'a> {
    /// The issuer.
    pub realm: &'a Realm,
    /// Secrets behind refresh tokens.
    pub sealing: &'a Sealing,
}

/// A request for tokens, as a grant has established it.
pub struct Ask<'a> {
    /// The client that asks, having proved who it is.
    pub client: &'a Client,
    /// The way in which it came to ask.
    pub way: Way,
    /// The scope that it asks for.
    pub scope: Scope,
    /// The audiences that it asks for; empty: the issuer.
    pub resources: Vec<String>,
    /// The user on whose behalf it asks; `None`: its own.
    pub person: Option<Person<'a>>,
}

/// The ways that lead to tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A grant that the client registered.
    Grant(Grant),
    /// A sign-in on a first-party client's own screens, for the account API and nothing else.
    FirstParty,
}

impl From<Grant> for Way {
    fn from(grant: Grant) -> Self {
        Way::Grant(grant)
    }
}

impl Way {
    /// Its name in the audit log.
    fn name(self) -> &'static str {
        match self {
            Way::Grant(grant) => grant.name(),
            Way::FirstParty => "first_party",
        }
    }
    /// Whether a line that begins this way may be refreshed by `client`.
    fn goes_on(self, client: &Client) -> bool {
        match self {
            Way::Grant(_) => client.may(Grant::RefreshToken),
            Way::FirstParty => true,
        }
    }
}

/// The user on whose behalf tokens are issued.
pub struct Person<'a> {
    /// The user.
    pub user: &'a User,
    /// The user's session; `None` where the approval outlives it.
    pub session: Option<&'a Session>,
    /// The names of the user's groups.
    pub groups: &'a [String],
    /// What the user approved.
    pub granted: &'a Granted,
    /// The family that the tokens descend from.
    pub family: &'a FamilyId,
    /// Whether the line of tokens begins here or goes on.
    pub line: Line,
}

/// The state of a line of tokens.
pub enum Line {
    /// It begins: the gate makes the family.
    Begins,
    /// It goes on, with this refresh token.
    GoesOn {
        /// The refresh token that the client has from now on.
        refresh: Secret,
        /// The change that makes it the current one, unless it is that already.
        rotation: Option<Box<Change>>,
        /// When the family ends, whatever happens.
        ends: Time,
    },
}

/// How a line of tokens goes on from here.
#[derive(Default)]
struct Course {
    refresh: Option<Secret>,
    changes: Vec<Change>,
    /// When the family ends, and the session that it is bound to, even if they are used until then.
    ends: Vec<Time>,
}

/// What is handed out; it is signed after the changes are committed.
#[derive(Debug)]
pub struct Tokens {
    /// The access token.
    pub access: Access,
    /// How long the access token is valid.
    pub expires_in: Span,
    /// The scope of the access token.
    pub scope: Scope,
    /// The ID token, which tells the client who signed in.
    pub id: Option<IdToken>,
    /// The refresh token.
    pub refresh: Option<Secret>,
}

/// An access token, about to be made.
#[derive(Debug)]
pub enum Access {
    /// To be signed (RFC 9068).
    Jwt {
        /// The algorithm to sign it with.
        alg: Alg,
        /// Typed `JWT` instead of `at+jwt`.
        plain_typ: bool,
        /// Its claims.
        claims: Box<AccessClaims>,
    },
    /// A random value.
    Opaque(Secret),
}

/// The claims of an access token (RFC 9068 §2.2).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AccessClaims {
    /// The issuer.
    pub iss: String,
    /// The user, or the client itself.
    pub sub: String,
    /// The audience.
    pub aud: Audience,
    /// When it expires, in seconds since 1970.
    pub exp: i64,
    /// When it was issued, in seconds since 1970.
    pub iat: i64,
    /// `FAMILY.CHANCE`, or `CHANCE~LIFE` for a client's own token.
    pub jti: String,
    /// The client that it was issued to.
    pub client_id: String,
    /// The scope; left out if it is empty (RFC 6749 §3.3: one token at least).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// When the user authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_time: Option<i64>,
    /// The authentication context class that was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acr: Option<String>,
    /// How the user authenticated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amr: Vec<String>,
}

/// One audience as text, several as a list (RFC 7519 §4.1.3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

impl Audience {
    /// Whether `who` is among them.
    pub fn has(&self, who: &str) -> bool {
        match self {
            Audience::One(one) => one == who,
            Audience::Many(many) => many.iter().any(|one| one == who),
        }
    }

    /// The resources that it names.
    pub fn resources(&self) -> &[String] {
        match self {
            Audience::One(one) => std::slice::from_ref(one),
            Audience::Many(many) => many,
        }
    }
}

/// An ID token, about to be signed; `at_hash` is added once the access token is at hand.
#[derive(Debug)]
pub struct IdToken {
    /// The algorithm to sign it with.
    pub alg: Alg,
    /// Its claims.
    pub claims: Map<String, Value>,
}

/// An opaque access token as stored.
#[derive(Clone, Debug)]
pub struct Opaque {
    /// The hash of the token.
    pub handle: Handle,
    /// The claims that a JWT in its place would have.
    pub claims: AccessClaims,
    /// When it expires.
    pub expires: Time,
}

/// Returns the family part of a `jti`.
pub fn family_of(jti: &str) -> Option<FamilyId> {
    jti.split_once('.').map(|(family, _)| FamilyId(family.to_owned()))
}

/// Returns the life of its client that a client's own token belongs to, from its `jti`. Older releases see it as
/// chance.
pub(crate) fn life_of(jti: &str) -> Option<LifeId> {
    jti.split_once('~').map(|(_, life)| life.into())
}

/// The gate: checks what every grant must have checked, begins the family if need be, and says what to hand out.
pub fn issue(ask: &Ask<'_>, context: &Context<'_>, (now, fresh): (Time, &Fresh)) -> Decision<Tokens, Error> {
    if let Err(error) = admit(ask, context.realm, now) {
        return Decision::refuse(error);
    }
    let client = ask.client;
    let course = ask.person.as_ref().map(|person| course(ask, person, context, (now, fresh))).unwrap_or_default();
    // It never says that it lasts longer than it does.
    let most = now + context.realm.settings.access_ttl;
    let expires = course.ends.into_iter().fold(most, Time::min);
    let claims = access_claims(ask, context.realm, (now, expires), fresh);
    let mut event = Event::new(Kind::TokensIssued, now).client(&client.id).detail("grant", ask.way.name());
    if let Some(person) = &ask.person {
        event = event.user(&person.user.id);
        event.session = person.session.map(|session| session.id.clone());
    }
    let access = match client.access_format {
        AccessFormat::Opaque => Access::Opaque(fresh.secret("access")),
        AccessFormat::Jwt => {
            Access::Jwt { alg: client.access_alg, plain_typ: client.access_typ_jwt, claims: Box::new(claims.clone()) }
        }
    };
    let opaque = match &access {
        Access::Jwt { .. } => None,
        Access::Opaque(secret) => {
            Some(Change::IssueOpaque(Box::new(Opaque { handle: secret.handle(), claims, expires })))
        }
    };
    let id = ask.person.as_ref().and_then(|person| id_token(ask, person, context.realm, now));
    let tokens = Tokens {
        access,
        expires_in: Span(expires.since(now).0 / 1000 * 1000),
        scope: ask.scope.clone(),
        id,
        refresh: course.refresh,
    };
    Decision::accept(tokens).and(standing(ask)).with(course.changes).with(opaque).and(Change::Record(event))
}

/// Begins or continues the line of tokens of a user.
fn course(ask: &Ask<'_>, person: &Person<'_>, context: &Context<'_>, at: (Time, &Fresh)) -> Course {
    match &person.line {
        Line::GoesOn { refresh, rotation, ends } => Course {
            refresh: Some(refresh.clone()),
            changes: rotation.iter().map(|rotation| (**rotation).clone()).collect(),
            ends: person.session.map(|session| session.expires).into_iter().chain([*ends]).collect(),
        },
        Line::Begins => begin(ask, person, context, at),
    }
}

/// Checks what no grant may leave out.
fn admit(ask: &Ask<'_>, realm: &Realm, now: Time) -> Result<(), Error> {
    let client = ask.client;
    if let Some(why) = client.refusal() {
        return Err(Error::client(why));
    }
    match ask.way {
        Way::Grant(grant) => admit_grant(ask, grant, realm)?,
        Way::FirstParty => first_party::admit(client, (&ask.scope, &ask.resources), realm)?,
    }
    let Some(person) = &ask.person else { return Ok(()) };
    if !person.user.is_enabled() {
        return Err(Error::grant("the account may not be used"));
    }
    let dated = [time_of(person.family.as_str()), person.granted.auth_time];
    if !dated.into_iter().all(|dated| is_believable(dated, now)) {
        return Err(Error::grant("the approval was dated by a clock that was ahead"));
    }
    if !ask.scope.is_within(&person.granted.scope) {
        return Err(Error::new(ErrorCode::InvalidScope, "the scope is wider than what was granted"));
    }
    let session_lives = person.session.is_none_or(|s| s.user == person.user.id && s.is_live(&realm.settings, now));
    if session_lives { Ok(()) } else { Err(Error::grant("the session has ended")) }
}

/// Checks that a client registered what it asks for, single claims included, and still registers it (RT-02). The
/// account API cannot be registered: tokens for it come only from a sign-in on a first-party client's own screens.
fn admit_grant(ask: &Ask<'_>, grant: Grant, realm: &Realm) -> Result<(), Error> {
    let client = ask.client;
    client.registered_for(grant)?;
    let mut single = ask.person.iter().flat_map(|person| person.granted.claims.scopes());
    // OpenID Connect Core §11: it means nothing without refresh tokens.
    let lasts = ask.person.is_some() && ask.scope.has("offline_access") && !client.may(Grant::RefreshToken);
    if lasts || !ask.scope.is_within(&client.scope) || single.any(|scope| !client.scope.has(scope)) {
        return Err(match ask.person {
            Some(_) => Error::grant("the client may no longer have this scope"),
            None => Error::new(ErrorCode::InvalidScope, "the client may not have this scope"),
        });
    }
    let account = first_party::audience(realm);
    if ask.resources.iter().any(|uri| !client.resources.contains(uri) || *uri == account) {
        return Err(match ask.person {
            Some(_) => Error::grant("the client may no longer have this resource"),
            None => Error::new(ErrorCode::InvalidTarget, "the client has no such resource"),
        });
    }
    Ok(())
}

/// A revocation that committed first wins: everything that the tokens rely on is found again inside the batch. A
/// rotation finds its family itself; without one, the token that is handed out again must still be the current one.
fn standing(ask: &Ask<'_>) -> Change {
    let person = ask.person.as_ref();
    let goes_on = person.and_then(|person| match &person.line {
        Line::GoesOn { refresh, rotation: None, .. } => Some((person.family.clone(), refresh.handle())),
        _ => None,
    });
    let (family, current) = goes_on.unzip();
    Change::Stands(Standing {
        user: person.map(|person| person.user.id.clone()),
        client: Some(ask.client.id.clone()),
        registered: Some(ask.client.epoch),
        session: person.and_then(|person| person.session).map(|session| session.id.clone()),
        family,
        current,
        ..Standing::default()
    })
}

/// Begins a family: its row, and its refresh token if the client may have one.
fn begin(ask: &Ask<'_>, person: &Person<'_>, context: &Context<'_>, (now, fresh): (Time, &Fresh)) -> Course {
    let settings = &context.realm.settings;
    let offline = ask.scope.has("offline_access");
    let token = ask
        .way
        .goes_on(ask.client)
        .then(|| RefreshToken::make(person.family, fresh.bytes("refresh"), context.sealing))
        .flatten();
    let session = person.session.filter(|_| !offline);
    let (idle, absolute) = match &token {
        Some(_) => (settings.refresh_idle, settings.refresh_absolute),
        None => (settings.access_ttl + settings.skew, settings.access_ttl + settings.skew),
    };
    let family = Family {
        id: person.family.clone(),
        client: ask.client.id.clone(),
        life: ask.client.life().cloned(),
        user: person.user.id.clone(),
        session: session.map(|session| session.id.clone()),
        granted: Granted { nonce: None, session: person.session.map(|at| at.id.clone()), ..person.granted.clone() },
        refresh: token.as_ref().map(|token| Refresh { current: token.secret.handle(), previous: None, turn: 0 }),
        created: now,
        idle_until: now + idle,
        expires: now + absolute,
        revoked_at: None,
    };
    Course {
        refresh: token.map(|token| token.secret),
        ends: session.map(|session| session.expires).into_iter().chain([family.expires]).collect(),
        changes: vec![Change::StartFamily(Box::new(family))],
    }
}

fn access_claims(ask: &Ask<'_>, realm: &Realm, (now, expires): (Time, Time), fresh: &Fresh) -> AccessClaims {
    let chance = base64url(&fresh.bytes("jti")[..16]);
    let aud = match ask.resources.as_slice() {
        [] => Audience::One(realm.issuer.clone()),
        [one] => Audience::One(one.clone()),
        many => Audience::Many(many.to_vec()),
    };
    let person = ask.person.as_ref();
    AccessClaims {
        iss: realm.issuer.clone(),
        sub: person.map_or_else(|| own_subject(&ask.client.id), |person| person.user.id.0.clone()),
        aud,
        exp: expires.seconds(),
        iat: now.seconds(),
        jti: match (person, ask.client.life()) {
            (Some(person), _) => format!("{}.{chance}", person.family),
            (None, Some(life)) => format!("{chance}~{life}"),
            (None, None) => chance,
        },
        client_id: ask.client.id.0.clone(),
        scope: ask.scope.to_string(),
        auth_time: person.map(|person| person.granted.auth_time.seconds()),
        acr: person.map(|person| person.granted.acr.clone()),
        amr: person.map(|person| person.granted.amr.clone()).unwrap_or_default(),
    }
}

/// RFC 9700 §4.15: the subject of a client's own token cannot be mistaken for a user's id, which holds no colon.
fn own_subject(client: &ClientId) -> String {
    format!("client:{client}")
}

/// OpenID Connect Core §2 and §12.2: true to what happened, also after a refresh. If a refresh narrows the scope below
/// `openid` (RFC 6749 §6), no ID token is asked for (OpenID Connect Core §3.1.2.1), and the answer says so.
fn id_token(ask: &Ask<'_>, person: &Person<'_>, realm: &Realm, now: Time) -> Option<IdToken> {
    let goes_on = matches!(person.line, Line::GoesOn { .. });
    if !ask.scope.has("openid") || (goes_on && ask.client.no_id_token_on_refresh) {
        return None;
    }
    let mut claims = Map::new();
    if ask.client.claims_in_id_token {
        claims.extend(userinfo::claims_of(person.user, person.groups, &ask.scope, &ClaimsRequest::default().userinfo));
    }
    let single = &person.granted.claims.id_token;
    claims.extend(userinfo::claims_of(person.user, person.groups, &Scope::default(), single));
    claims.insert("iss".into(), json!(realm.issuer));
    claims.insert("sub".into(), json!(person.user.id));
    claims.insert("aud".into(), json!(ask.client.id));
    claims.insert("azp".into(), json!(ask.client.id));
    claims.insert("exp".into(), json!((now + realm.settings.id_ttl).seconds()));
    claims.insert("iat".into(), json!(now.seconds()));
    claims.insert("auth_time".into(), json!(person.granted.auth_time.seconds()));
    claims.insert("acr".into(), json!(person.granted.acr));
    claims.insert("amr".into(), json!(person.granted.amr));
    if let Some(nonce) = person.granted.nonce.as_ref().filter(|_| !goes_on) {
        claims.insert("nonce".into(), json!(nonce));
    }
    // A line that outlives its session still says which one it was, or a hint would name any session of this user.
    if let Some(session) = person.session.map(|session| &session.id).or(person.granted.session.as_ref()) {
        claims.insert("sid".into(), json!(session));
    }
    Some(IdToken { alg: ask.client.id_token_alg, claims })
}

/// Issues a client's own access token (RFC 6749 §4.4).
pub fn own(
    client: &Client,
    scope: Option<&str>,
    resources: Result<Vec<String>, Error>,
    context: &Context<'_>,
    at: (Time, &Fresh),
) -> Decision<Tokens, Error> {
    let resources = match client.registered_for(Grant::ClientCredentials).and(resources) {
        Ok(_) if !client.proves_itself() => {
            let why = "a public or native client has no tokens of its own";
            return Decision::refuse(Error::new(ErrorCode::UnauthorizedClient, why));
        }
        Ok(resources) => resources,
        Err(error) => return Decision::refuse(error),
    };
    let asked = match scope.map(Scope::parse) {
        None => {
            super::scope::STANDARD.iter().fold(client.scope.clone(), |scope, about_people| scope.without(about_people))
        }
        Some(Err(why)) => return Decision::refuse(Error::new(ErrorCode::InvalidScope, why)),
        Some(Ok(asked)) if asked.is_empty() => {
            return Decision::refuse(Error::new(ErrorCode::InvalidScope, "scope names none"));
        }
        Some(Ok(asked)) => asked,
    };
    // Scopes about a user mean nothing without one.
    if super::scope::STANDARD.iter().any(|about_people| asked.has(about_people)) {
        return Decision::refuse(Error::new(ErrorCode::InvalidScope, "there is no person to whom these scopes apply"));
    }
    let way = Grant::ClientCredentials.into();
    issue(&Ask { client, way, scope: asked, resources, person: None }, context, at)
}
