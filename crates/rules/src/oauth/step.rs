//! The next step of an authorization: signing in, choosing an account, consenting, or a code.

use super::authorize::Request;
use super::client::Client;
use super::code::{Code, Granted};
use super::consent::{self, Consent};
use super::error::{Code as ErrorCode, Error};
use super::redirect::Response;
use super::scope::Scope;
use crate::Fresh;
use crate::decision::{Change, Decision, Standing};
use crate::events::{Event, Kind};
use crate::id::{FamilyId, UserId};
use crate::login::session::{ACR_SINGLE, Session};
use crate::people::User;
use crate::realm::{Realm, is_believable};
use crate::secret::Handle;
use crate::time::{Span, Time};

/// How far a request has come. It is sealed and carried through the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The user has signed in for this request. The pages that the request went through tell so, not times: another
    /// node, with another clock, may have dated the sign-in.
    pub proved: bool,
    /// An account was chosen since.
    pub chosen: bool,
    /// Consent was given since.
    pub consented: bool,
}

/// How long after a sign-in the flow that asked for it may still count it: somebody who sits down at the browser later
/// and goes back a page has to prove who they are.
const JUST: Span = Span::minutes(5);

/// The facts that the next step depends on.
pub struct Facts<'a> {
    /// The client.
    pub client: &'a Client,
    /// The browser's live session and its user.
    pub session: Option<&'a (Session, User)>,
    /// What the user let this client have before.
    pub consent: Option<&'a Consent>,
    /// The user that a valid `id_token_hint` names.
    pub hint: Option<&'a UserId>,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sign in.
    SignIn,
    /// Create an account.
    SignUp,
    /// Choose between this account and another.
    Choose,
    /// Ask the user whether the client may have this.
    Consent(Scope),
    /// A code can be issued.
    Issue,
}

/// Decides what comes next, or refuses a request that cannot be followed.
pub fn next(request: &Request, facts: &Facts<'_>, progress: Progress, now: Time) -> Result<Step, Error> {
    let step = wanted(request, facts, progress, now)?;
    if !request.prompt.none {
        return Ok(step);
    }
    // OpenID Connect Core §3.1.2.6: with prompt=none each page becomes an error of its own.
    match step {
        Step::SignIn | Step::SignUp => Err(Error::new(ErrorCode::LoginRequired, "the person has to sign in")),
        Step::Choose => Err(Error::new(ErrorCode::AccountSelectionRequired, "the person has to choose an account")),
        Step::Consent(_) => Err(Error::new(ErrorCode::ConsentRequired, "the person has to consent")),
        Step::Issue => Ok(Step::Issue),
    }
}

fn wanted(request: &Request, facts: &Facts<'_>, progress: Progress, now: Time) -> Result<Step, Error> {
    let acrs = &request.claims.essential_acr;
    if !acrs.is_empty() && !acrs.iter().any(|acr| acr == ACR_SINGLE) {
        return Err(Error::new(ErrorCode::UnmetAuthenticationRequirements, "no sign-in here reaches that acr"));
    }
    // A sign-in dated by a clock that was ahead would be later than any request, and never too old.
    let Some((session, user)) = facts.session.filter(|(session, _)| is_believable(session.auth_time, now)) else {
        let create = request.prompt.create;
        return Ok(if create { Step::SignUp } else { Step::SignIn });
    };
    let just = progress.proved && !(session.auth_time + JUST).has_come(now);
    if request.prompt.create && !progress.proved {
        return Ok(Step::SignUp);
    }
    if request.prompt.select_account && !progress.chosen && !progress.proved {
        return Ok(Step::Choose);
    }
    if is_somebody_else(request, facts.hint, user) {
        // OpenID Connect Core §3.1.2.1: never silently for another user than the client expects.
        return match progress.proved {
            true => Err(Error::new(ErrorCode::LoginRequired, "somebody else signed in than was asked for")),
            false => Ok(Step::SignIn),
        };
    }
    // With `max_age=0`, a sign-in that was not for this request is too old, even if a clock that is ahead dated it.
    let too_old = request.max_age.is_some_and(|age| age <= Span::ZERO || session.auth_time + age < now);
    if (request.prompt.login || too_old) && !just {
        return Ok(Step::SignIn);
    }
    Ok(match needs_consent(request, facts, progress, just) {
        true => Step::Consent(request.asked()),
        false => Step::Issue,
    })
}

/// Whether the client expects another user than this one.
pub fn is_somebody_else(request: &Request, hint: Option<&UserId>, user: &User) -> bool {
    let expected = &request.claims.subjects;
    hint.is_some_and(|hint| hint != &user.id) || !(expected.is_empty() || expected.contains(&user.id.0))
}

/// Whether the user must be asked. A trusted client is asked for only with `prompt=consent`. For others, an earlier
/// consent is remembered, except where nothing else would show the user what happens (RFC 8252 §8.6).
fn needs_consent(request: &Request, facts: &Facts<'_>, progress: Progress, just: bool) -> bool {
    if progress.consented {
        return false;
    }
    if request.prompt.consent {
        return true;
    }
    if facts.client.trusted {
        return false;
    }
    let covered = facts.consent.is_some_and(|consent| request.asked().is_within(&consent.scope));
    !covered || (facts.client.is_unassured(&request.redirect_uri) && !just)
}

/// Issues a code: one row, bound to client, redirect URI, verifier, session and everything that must still stand.
pub fn issue(
    request: &Request,
    facts: &Facts<'_>,
    progress: Progress,
    realm: &Realm,
    (now, fresh): (Time, &Fresh),
) -> Decision<Response, Error> {
    match next(request, facts, progress, now) {
        Ok(Step::Issue) => {}
        Ok(_) => return Decision::refuse(Error::new(ErrorCode::InteractionRequired, "something was left out")),
        Err(error) => return Decision::refuse(error),
    }
    let Some((session, user)) = facts.session else {
        return Decision::refuse(Error::new(ErrorCode::LoginRequired, "the person has to sign in"));
    };
    let family = fresh.family(now);
    let Some(secret) = super::code::text(&family, fresh.bytes("code")) else {
        return Decision::refuse(Error::new(ErrorCode::ServerError, "no code could be made"));
    };
    let given = || consent::given(facts.consent, (&user.id, facts.client), &request.asked(), now);
    let remembered = progress.consented.then(given);
    let by_consent = match &remembered {
        Some(consent) => Some(consent.granted),
        None => facts.consent.filter(|_| !facts.client.trusted).map(|consent| consent.granted),
    };
    let name = Name { handle: secret.handle(), family, by_consent };
    let code = code_for(request, (facts.client, session), name, realm.settings.code_ttl, now);
    let event = Event::new(Kind::CodeIssued, now).user(&user.id).client(&request.client).session(&session.id);
    Decision::accept(request.back.response(&realm.issuer, vec![("code", secret.reveal().to_owned())]))
        .with(remembered.map(|consent| consent::grant(consent, facts.consent, session, now)).into_iter().flatten())
        .and(Change::Stands(Standing {
            user: Some(user.id.clone()),
            client: Some(request.client.clone()),
            registered: Some(facts.client.epoch),
            session: Some(session.id.clone()),
            handle: Some(session.handle),
            consent: by_consent.map(|granted| (user.id.clone(), request.client.clone(), granted)),
            ..Standing::default()
        }))
        .and(Change::IssueCode(Box::new(code)))
        .with(session.touch(&realm.settings, now))
        .and(Change::Record(event))
}

/// What a code is known by, and the consent that it relies on.
struct Name {
    handle: Handle,
    family: FamilyId,
    by_consent: Option<Time>,
}

fn code_for(request: &Request, (client, session): (&Client, &Session), name: Name, ttl: Span, now: Time) -> Code {
    Code {
        handle: name.handle,
        client: request.client.clone(),
        life: client.life().cloned(),
        user: session.user.clone(),
        session: session.id.clone(),
        family: name.family,
        by_consent: name.by_consent,
        redirect_uri: request.redirect_uri.clone(),
        challenge: request.challenge.clone(),
        granted: Granted {
            scope: request.scope.clone(),
            resources: request.resources.clone(),
            auth_time: session.auth_time,
            amr: session.amr.clone(),
            acr: session.acr().to_owned(),
            nonce: request.nonce.clone(),
            claims: request.claims.clone(),
            session: None,
        },
        expires: now + ttl,
        redeemed_at: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::login::cookie::Seal;
    use crate::login::session::{Entry, Method, Origin, enter};
    use crate::oauth::authorize::read;
    use crate::oauth::client::tests::confidential;
    use crate::oauth::params::Params;
    use crate::people::user::tests::person;
    use crate::realm::{SKEW, Settings};

    const NOW: Time = Time(1_000_000_000);

    fn realm() -> Realm {
        let settings = Settings { signup: true, ..Settings::default() };
        Realm { id: "main".into(), issuer: "https://id.test".into(), settings }
    }

    /// The next step for a request that began just before, of a user whose sign-in is dated `dated`.
    fn then(dated: Time, ask: (&str, &str)) -> Step {
        at(dated, ask, true)
    }

    fn at(dated: Time, (name, value): (&str, &str), proved: bool) -> Step {
        let (client, user) = (Client { trusted: true, ..confidential("c1", "https://app.test/cb") }, person("ada"));
        let pairs = [
            ("client_id", "c1"),
            ("redirect_uri", "https://app.test/cb"),
            ("response_type", "code"),
            ("scope", "openid"),
            ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
            ("code_challenge_method", "S256"),
            (name, value),
        ];
        let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let read = read(&Params::parse(pairs).expect("no duplicates"), Some(&client), &realm());
        let Ok(request) = read else { panic!("{name}={value} cannot be read") };
        let entry = Entry { user: &user, method: Method::Password, before: None, origin: &Origin::default() };
        let entered = enter(&entry, &Settings::default(), &Seal::new([0; 32]), (NOW, &Fresh::new([1; 32])))
            .reply
            .expect("starts");
        let session = (Session { auth_time: dated, ..entered.session }, user);
        let facts = Facts { client: &client, session: Some(&session), consent: None, hint: None };
        let progress = Progress { proved, chosen: false, consented: false };
        next(&request, &facts, progress, NOW).expect("a step")
    }

    #[test]
    fn who_did_not_sign_in_for_this_request_is_asked_whatever_the_clocks_say() {
        // red where times are compared: the clock of the node that dated the sign-in may be ahead of this node's.
        for dated in [NOW - Span::minutes(1), NOW, NOW + Span(1), NOW + SKEW] {
            for ask in [("prompt", "login"), ("max_age", "0")] {
                assert_eq!(at(dated, ask, false), Step::SignIn, "{ask:?} {dated:?}");
                assert_ne!(at(dated, ask, true), Step::SignIn, "{ask:?} {dated:?}");
            }
            assert_eq!(at(dated, ("prompt", "select_account"), false), Step::Choose, "{dated:?}");
            assert_eq!(at(dated, ("prompt", "create"), false), Step::SignUp, "{dated:?}");
            assert_ne!(at(dated, ("prompt", "create"), true), Step::SignUp, "{dated:?}");
            assert_ne!(at(dated, ("max_age", "3600"), false), Step::SignIn, "{dated:?}");
        }
    }

    #[test]
    fn a_sign_in_that_a_clock_dated_that_was_ahead_counts_for_nothing() {
        // red without `is_believable` in `wanted`.
        let asks = [
            ("display", "page"),
            ("max_age", "0"),
            ("max_age", "3600"),
            ("prompt", "login"),
            ("prompt", "select_account"),
            ("prompt", "consent"),
        ];
        let believed = NOW + SKEW + SKEW;
        for ask in asks {
            for dated in [believed + Span(1), NOW + Span::hours(1), NOW + Span::days(365)] {
                assert_eq!(then(dated, ask), Step::SignIn, "{ask:?} {dated:?}");
            }
            assert_ne!(then(believed, ask), Step::SignIn, "{ask:?}");
            assert_ne!(then(NOW, ask), Step::SignIn, "{ask:?}");
        }
        assert_eq!(then(believed + Span(1), ("prompt", "create")), Step::SignUp);
        for old in [("max_age", "3600"), ("prompt", "login")] {
            assert_eq!(then(NOW - Span::hours(2), old), Step::SignIn, "{old:?}");
        }
    }
}
