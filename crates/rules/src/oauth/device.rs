//! The device grant (RFC 8628).

use super::claims::ClaimsRequest;
use super::client::{Client, Grant};
use super::code::Granted;
use super::consent::{self, Consent};
use super::error::{Code as ErrorCode, Error};
use super::scope::Scope;
use super::token::{Ask, Context, Line, Person, Tokens, issue};
use crate::Fresh;
use crate::decision::{Change, Decision, Standing};
use crate::events::{Event, Kind};
use crate::id::{ClientId, FamilyId, LifeId, SessionId, UserId};
use crate::login::session::Session;
use crate::people::User;
use crate::realm::{Realm, is_believable};
use crate::secret::{Handle, Secret, mac};
use crate::time::{Span, Time};
use unicode_normalization::UnicodeNormalization;

/// RFC 8628 §3.2: how long a device waits between two polls, in seconds, unless told otherwise.
pub const INTERVAL_S: i64 = 5;
/// How much too early a poll may come and still be in time: it may travel faster than the one before it.
pub const HURRY: Span = Span::seconds(1);
/// For at least this long a device hears of a yes, however late that came: the user was told that it is connected.
pub const HEARD: Span = Span::seconds(30);
/// RFC 8628 §6.1: consonants that are hard to confuse and spell no words.
const ALPHABET: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// Letters of a user code: 34 bits.
const LENGTH: usize = 8;

/// A device's request as stored.
#[derive(Clone, Debug)]
pub struct Device {
    /// The hash of the device code.
    pub handle: Handle,
    /// The keyed hash of the user code.
    pub user_code: Handle,
    /// The client that asks.
    pub client: ClientId,
    /// The life of the client in which it asks.
    pub life: Option<LifeId>,
    /// The scope that is asked for.
    pub scope: Scope,
    /// The audiences that are asked for.
    pub resources: Vec<String>,
    /// The address that the request came from.
    pub address: String,
    /// When the device asked.
    pub asked: Time,
    /// Until when it can be answered and polled.
    pub expires: Time,
    /// Seconds that the device must wait between two polls.
    pub interval_s: i64,
    /// When it last polled.
    pub polled: Option<Time>,
    /// How far the request has come.
    pub stage: Stage,
}

/// How far a device's request has come.
#[derive(Clone, Debug)]
pub enum Stage {
    /// Nobody has answered.
    Pending,
    /// A user said no.
    Denied,
    /// A user said yes.
    Approved(Box<Approval>),
    /// Tokens were handed out.
    Redeemed,
}

/// A user's yes.
#[derive(Clone, Debug)]
pub struct Approval {
    /// The user who said yes.
    pub user: UserId,
    /// The user's session.
    pub session: SessionId,
    /// The family that the tokens will descend from.
    pub family: FamilyId,
    /// What was approved.
    pub granted: Granted,
}

/// A device's request with the facts around it.
#[derive(Clone, Debug)]
pub struct Found {
    /// The request.
    pub device: Device,
    /// The session of the user who approved it.
    pub session: Option<Session>,
    /// The user who approved it.
    pub user: Option<User>,
    /// The user's groups.
    pub groups: Vec<String>,
}

/// What the device is told (RFC 8628 §3.2).
#[derive(Debug)]
pub struct Asked {
    /// The device code.
    pub device_code: Secret,
    /// The user code, as `XXXX-XXXX`.
    pub user_code: String,
    /// How long both codes are valid, in seconds.
    pub expires_in: i64,
    /// How long to wait between two polls, in seconds.
    pub interval: i64,
}

/// Returns the keyed hash of a user code as typed. Case, spaces and hyphens do not matter (RFC 8628 §6.1), nor the
/// dashes and spaces that phones and word processors make of them, letter width, or invisible characters from copying.
pub fn user_code_handle(key: &[u8; 32], typed: &str) -> Option<Handle> {
    letters(typed).map(|letters| Handle(mac(key, &[b"user code", letters.as_bytes()])))
}

/// Returns a typed user code as the device shows it; text that is not a user code stays as it is.
pub fn as_shown(typed: &str) -> String {
    letters(typed).map_or_else(|| typed.to_owned(), |letters| format!("{}-{}", &letters[..4], &letters[4..]))
}

/// Returns the letters of a user code.
fn letters(typed: &str) -> Option<String> {
    // Composing turns the other spaces into these. The end of a line is part of no code.
    let space = |c: char| matches!(c, ' ' | '\t');
    let dash = |c: char| matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}');
    let unseen = |c: char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    let letters: String = typed.nfkc().filter(|c| !(space(*c) || dash(*c) || unseen(*c))).collect();
    let letters = letters.to_ascii_uppercase();
    (letters.len() == LENGTH && letters.bytes().all(|b| ALPHABET.contains(&b))).then_some(letters)
}

/// RFC 8628 §3.1: stores a device's request.
pub fn ask(
    client: &Client,
    (scope, resources, address): (Option<&str>, Vec<String>, &str),
    key: &[u8; 32],
    realm: &Realm,
    (now, fresh): (Time, &Fresh),
) -> Decision<Asked, Error> {
    if let Err(error) = client.registered_for(Grant::DeviceCode) {
        return Decision::refuse(error);
    }
    let asked = match scope.map(Scope::parse) {
        // RFC 6749 §3.3: by default `openid`, or if the client may not have that, everything that it is registered for.
        None => Scope::parse("openid")
            .ok()
            .filter(|who| !allowed(who, client).is_empty())
            .unwrap_or_else(|| client.scope.clone()),
        Some(Ok(asked)) => asked,
        Some(Err(why)) => return Decision::refuse(Error::new(ErrorCode::InvalidScope, why)),
    };
    let scope = allowed(&asked, client);
    if scope.is_empty() {
        return Decision::refuse(Error::new(ErrorCode::InvalidScope, "the client may have none of these scopes"));
    }
    let secret = fresh.secret("device");
    let letters = user_code(&fresh.bytes("user code"));
    let Some(user_code) = user_code_handle(key, &letters) else {
        return Decision::refuse(Error::new(ErrorCode::ServerError, "no user code could be made"));
    };
    let device = Device {
        handle: secret.handle(),
        user_code,
        client: client.id.clone(),
        life: client.life().cloned(),
        scope,
        resources,
        address: address.to_owned(),
        asked: now,
        expires: now + realm.settings.device_ttl,
        interval_s: INTERVAL_S,
        polled: None,
        stage: Stage::Pending,
    };
    let expires_in = realm.settings.device_ttl.whole_seconds();
    Decision::accept(Asked { device_code: secret, user_code: letters, expires_in, interval: INTERVAL_S })
        .and(Change::Stands(Standing { client: Some(client.id.clone()), ..Standing::default() }))
        .and(Change::AskDevice(Box::new(device)))
}

/// Makes `XXXX-XXXX` of 64 random bits, without bias that matters: 2^64 is taken modulo 20^8.
fn user_code([a, b, c, d, e, f, g, h, ..]: &[u8; 32]) -> String {
    let mut value = u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
    let mut letters = String::with_capacity(LENGTH + 1);
    for at in 0..LENGTH {
        if at == LENGTH / 2 {
            letters.push('-');
        }
        letters.push(char::from(ALPHABET[(value % 20) as usize]));
        value /= 20;
    }
    letters
}

/// Returns what a client may have of what it asks for.
fn allowed(asked: &Scope, client: &Client) -> Scope {
    let scope = asked.both(&client.scope);
    if client.may(Grant::RefreshToken) { scope } else { scope.without("offline_access") }
}

/// Returns a request as it is shown and answered: with what its client may have by now. `None` if that is nothing, or
/// the client is another one: the user would be told that the device is connected, and the device that it is not.
pub fn as_it_may(device: Device, client: &Client) -> Option<Device> {
    let scope = allowed(&device.scope, client);
    let named = !device.resources.is_empty();
    let resources: Vec<String> =
        device.resources.iter().filter(|uri| client.resources.contains(uri)).cloned().collect();
    // No resource at all would mean the issuer.
    let is_nothing = scope.is_empty() || (named && resources.is_empty());
    let may = client.is_enabled() && client.may(Grant::DeviceCode) && is_of(&device, client) && !is_nothing;
    may.then_some(Device { scope, resources, ..device })
}

impl Device {
    /// The request, without what `shown` of it lacks.
    pub fn within(mut self, shown: &Device) -> Self {
        self.scope = self.scope.both(&shown.scope);
        self.resources.retain(|uri| shown.resources.contains(uri));
        self
    }
}

/// Whether a request can still be answered.
pub fn is_open(device: &Device, now: Time) -> bool {
    matches!(device.stage, Stage::Pending) && !is_over(device, now)
}

/// Whether its time is over, or was set by a clock that was ahead.
fn is_over(device: &Device, now: Time) -> bool {
    device.expires.has_come(now) || !is_believable(device.asked, now)
}

/// The user who answers, and what the user let this client have before.
pub struct Answerer<'a> {
    /// The user's session.
    pub session: &'a Session,
    /// The user's earlier consent.
    pub consent: Option<&'a Consent>,
    /// The client that asks.
    pub client: &'a Client,
}

/// Answers a request [as it may](as_it_may) be, after the user was shown who asks and from where. A yes is remembered
/// like that of the consent page, so that its owner sees it and can take it back.
pub fn answer(device: &Device, allow: bool, who: &Answerer<'_>, (now, fresh): (Time, &Fresh)) -> Decision<(), Error> {
    let session = who.session;
    if !session.is_fresh(now) {
        return Decision::refuse(Error::new(ErrorCode::LoginRequired, "sign in again first"));
    }
    if is_over(device, now) {
        return Decision::refuse(Error::new(ErrorCode::ExpiredToken, "the request has expired"));
    }
    if !is_open(device, now) {
        return Decision::refuse(Error::grant("the request was answered"));
    }
    let event = Event::new(Kind::DeviceAnswered, now).user(&session.user).client(&device.client).session(&session.id);
    let decision = Decision::accept(())
        .and(Change::Stands(Standing {
            user: Some(session.user.clone()),
            client: Some(device.client.clone()),
            registered: Some(who.client.epoch),
            session: Some(session.id.clone()),
            handle: Some(session.handle),
            ..Standing::default()
        }))
        .and(Change::Record(event.detail("allowed", allow)));
    if !allow {
        return decision.and(Change::AnswerDevice { device: device.handle, approval: None, at: now });
    }
    let approval = Some(Box::new(approval(device, session, fresh.family(now))));
    let given = consent::given(who.consent, (&session.user, who.client), &device.scope, now);
    let answer = Change::AnswerDevice { device: device.handle, approval, at: now };
    decision.with(consent::grant(given, who.consent, session, now)).and(answer)
}

fn approval(device: &Device, session: &Session, family: FamilyId) -> Approval {
    Approval {
        user: session.user.clone(),
        session: session.id.clone(),
        family,
        granted: Granted {
            scope: device.scope.clone(),
            resources: device.resources.clone(),
            auth_time: session.auth_time,
            amr: session.amr.clone(),
            acr: session.acr().to_owned(),
            nonce: None,
            claims: ClaimsRequest::default(),
            session: None,
        },
    }
}

/// Whether a client asked for this in its current life: requests from an earlier life belong to nobody any more.
pub fn is_of(device: &Device, client: &Client) -> bool {
    device.client == client.id && client.owns(device.life.as_ref(), device.asked)
}

/// RFC 8628 §3.4: answers a device's poll, which may name narrower audiences than were granted.
pub fn poll(
    (client, resources): (&Client, &[String]),
    found: Option<&Found>,
    context: &Context<'_>,
    (now, fresh): (Time, &Fresh),
) -> Decision<Tokens, Error> {
    if let Err(error) = client.registered_for(Grant::DeviceCode) {
        return Decision::refuse(error);
    }
    let Some(found) = found.filter(|found| is_of(&found.device, client)) else {
        return Decision::refuse(Error::grant("the device code is not valid"));
    };
    let device = &found.device;
    if is_over(device, now) {
        return Decision::refuse(Error::new(ErrorCode::ExpiredToken, "the device code has expired"));
    }
    match &device.stage {
        Stage::Redeemed => Decision::refuse(Error::grant("the device code was used before")),
        Stage::Denied => Decision::refuse(Error::new(ErrorCode::AccessDenied, "the request was denied")),
        Stage::Pending => wait(device, now),
        Stage::Approved(approval) => redeem((client, resources), found, approval, context, (now, fresh)),
    }
}

/// RFC 8628 §3.5: a device that polls too early has to wait five seconds longer from then on. A poll that another node
/// dated far ahead of this clock says nothing about that.
fn wait(device: &Device, now: Time) -> Decision<Tokens, Error> {
    let (at, of) = (now, device.handle);
    let apart = |polled: Time| now.since(polled).max(polled.since(now));
    let early = |polled: Time| apart(polled) + HURRY < Span::seconds(device.interval_s);
    if device.polled.is_some_and(early) {
        let slower = Change::SlowDevice { device: of, at, interval_s: device.interval_s + 5 };
        return Decision::refuse(Error::new(ErrorCode::SlowDown, "poll less often")).and(slower);
    }
    // Of any number of parallel polls, one is in time: the others find that the device has polled.
    let error = Error::new(ErrorCode::AuthorizationPending, "nobody has answered yet");
    Decision::refuse(error).and(Change::PollDevice { device: of, at, seen: device.polled })
}

fn redeem(
    (client, resources): (&Client, &[String]),
    found: &Found,
    approval: &Approval,
    context: &Context<'_>,
    at: (Time, &Fresh),
) -> Decision<Tokens, Error> {
    let Some(user) = &found.user else {
        return Decision::refuse(Error::new(ErrorCode::AccessDenied, "the account is gone"));
    };
    // Tokens that outlive the session do so here, too: a user may sign out right after saying yes, and the device asks
    // only every few seconds.
    let offline = approval.granted.scope.has("offline_access");
    let session = found.session.as_ref().filter(|session| !offline || session.is_live(&context.realm.settings, at.0));
    if session.is_none() && !offline {
        return Decision::refuse(Error::new(ErrorCode::AccessDenied, "the session has ended"));
    }
    let person = Person {
        user,
        session,
        groups: &found.groups,
        granted: &approval.granted,
        family: &approval.family,
        line: Line::Begins,
    };
    let scope = approval.granted.scope.clone();
    let resources = match approval.granted.audiences(resources, &context.realm.issuer) {
        Ok(resources) => resources,
        Err(error) => return Decision::refuse(error),
    };
    let ask = Ask { client, way: Grant::DeviceCode.into(), scope, resources, person: Some(person) };
    let mut decision = issue(&ask, context, at);
    if decision.reply.is_ok() {
        decision.changes.insert(0, Change::RedeemDevice { device: found.device.handle, at: at.0 });
    }
    decision
}

#[cfg(test)]
mod tests;
