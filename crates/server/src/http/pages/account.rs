//! The account home, and its forms.

use super::{OwnForm, weakness};
use crate::http::door::Door;
use crate::http::error::Refusal;
use crate::http::extract;
use crate::http::reply::{self, Forms};
use crate::pages::{AccountPage, ApplicationRow, Notice, Problem, Profile, ProfileFields, SessionRow, Setback};
use app::account::{NotChanged, NotEnded, NotSaved, NotTaken, PasswordChange, ProfileForm};
use axum::body::Body;
use axum::response::Response;
use hyper::StatusCode;
use hyper::header::ORIGIN;
use rules::login::attempt::Refusal as Refused;
use rules::login::session::Session;
use rules::oauth::params::Params;
use rules::people::User;
use rules::people::user::LONGEST_CLAIM;
use rules::time::Time;

/// The claims that the profile form has.
const CLAIMS: [(&str, &str); 3] =
    [("name", "name_shown"), ("given_name", "given_name_shown"), ("family_name", "family_name_shown")];

/// `GET /account`.
pub async fn get(door: Door, _: Body) -> Result<Response, Refusal> {
    let Some((session, user)) = door.site.app.session_in_use(&door.browser()).await? else {
        return Ok(door.sign_in_first());
    };
    let notice = extract::query(&door.uri).ok().and_then(|params| door.notice(&params, &session));
    door.account((&session, &user), Said { notice, ..Said::default() }).await
}

/// `GET /.well-known/change-password`: leads to the form for it by way of the sign-in page, which passes a user who is
/// signed in on at once.
pub async fn where_passwords_change(door: Door, _: Body) -> Result<Response, Refusal> {
    Ok(reply::see_other(&format!("{}/login?change=1", door.site.url.path())))
}

/// What the account home says besides the account's state.
#[derive(Default)]
struct Said<'a> {
    notice: Option<Notice>,
    problems: &'a [Problem],
    /// The profile form as it was sent, if it has to be corrected.
    typed: Option<&'a Params>,
}

impl Door {
    async fn account(&self, (session, user): (&Session, &User), said: Said<'_>) -> Result<Response, Refusal> {
        let app = &self.site.app;
        let home = app.home(user).await?;
        let text = |claim| user.profile.get(claim).unwrap_or_default();
        let (name, given_name, family_name) = (text("name"), text("given_name"), text("family_name"));
        let email = user.email.as_deref().unwrap_or("");
        let (now, is_fresh) = (app.clock.now(), session.is_fresh(app.clock.now()));
        let email_kept = user.email_verified && !is_fresh;
        // A field that the user did not change shows its current value: else the next attempt would change it back.
        let field = |(name, shown), stored| {
            let typed = said.typed.and_then(|typed| typed.sent(name).filter(|now| Some(*now) != typed.sent(shown)));
            typed.unwrap_or(stored)
        };
        let sessions: Vec<SessionRow<'_>> = home.sessions.iter().map(|one| row(one, session, now)).collect();
        let scopes: Vec<Vec<&str>> = home
            .applications
            .iter()
            .map(|(_, consent)| consent.scope.tokens().iter().map(String::as_str).collect())
            .collect();
        let applications: Vec<ApplicationRow<'_>> = home
            .applications
            .iter()
            .zip(&scopes)
            .map(|((client, consent), scopes)| ApplicationRow {
                client_id: client.id.as_str(),
                name: &client.name,
                scopes,
                since: consent.granted,
            })
            .collect();
        let csrf = app.csrf(session);
        let view = AccountPage {
            csrf: &csrf,
            session: session.id.as_str(),
            notice: said.notice,
            problems: said.problems,
            profile: Profile {
                username: &user.username,
                name: &name,
                email,
                email_verified: user.email_verified,
                email_kept,
            },
            fields: ProfileFields {
                name: field(CLAIMS[0], &name),
                given_name: field(CLAIMS[1], &given_name),
                family_name: field(CLAIMS[2], &family_name),
                email: if email_kept { email } else { field(("email", "email_shown"), email) },
            },
            shown: ProfileFields { name: &name, given_name: &given_name, family_name: &family_name, email },
            minimum_password: app.realm.settings.password_min,
            sessions: &sessions,
            more_sessions: home.more_sessions,
            sessions_kept: !is_fresh,
            applications: &applications,
            now,
        };
        let chrome = self.chrome_of(user);
        Ok(reply::form(Setback::of(said.problems), &self.visit, view.render(&chrome), Forms::Stay))
    }

    /// Shows the page again, and does nothing, if a form comes from a page that is older than the session is now,
    /// because something was changed in another window. What was typed is kept if that page was of the same session,
    /// and the browser names our origin (CS-01).
    async fn out_of_date(&self, why: Refusal) -> Result<Response, Refusal> {
        if !matches!(why, Refusal::Stale(None)) || !self.headers.contains_key(ORIGIN) {
            return Err(why);
        }
        let Some((session, user)) = self.site.app.session(&self.browser()).await? else {
            return Ok(self.sign_in_first());
        };
        let typed = self.sent().filter(|sent| sent.get("session") == Some(session.id.as_str()));
        let said = Said { notice: None, problems: &[Problem::Elsewhere], typed };
        let mut response = self.account((&session, &user), said).await?;
        // The form is refused for what it did not prove, not for what was typed.
        *response.status_mut() = StatusCode::FORBIDDEN;
        why.tell_on(&mut response, &self.site, &self.visit);
        Ok(response)
    }

    fn sign_in_first(&self) -> Response {
        reply::see_other(&format!("{}/login", self.site.url.path()))
    }

    /// Leads to the account home, which tells only this session what was done: any link may hold the code.
    pub fn done(&self, notice: Notice, session: &Session) -> Response {
        let (code, seal) = (notice.code(), self.site.app.seal_notice(notice.code(), session));
        reply::see_other(&format!("{}/account?done={code}&seal={seal}", self.site.url.path()))
    }

    fn notice(&self, params: &Params, session: &Session) -> Option<Notice> {
        let (code, seal) = (params.get("done")?, params.get("seal")?);
        self.site.app.notice_holds(code, seal, session).then(|| Notice::of_code(code))?
    }
}

fn row<'a>(shown: &'a Session, own: &Session, now: Time) -> SessionRow<'a> {
    SessionRow {
        id: shown.id.as_str(),
        agent: &shown.agent,
        address: &shown.address,
        signed_in: shown.created,
        // The stored time of the own session is up to five minutes old.
        last_seen: if shown.id == own.id { now } else { shown.last_seen },
        current: shown.id == own.id,
    }
}

/// Defines forms of the account home: what each does once the form is found in order.
macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident => $act:ident;)+) => {$(
        $(#[$doc])*
        pub async fn $name(door: Door, body: Body) -> Result<Response, Refusal> {
            match door.own_form(body).await {
                Ok(Some(form)) => $act(&door, &form).await,
                Ok(None) => Ok(door.sign_in_first()),
                Err(why) => door.out_of_date(why).await,
            }
        }
    )+};
}

forms! {
    /// `POST /account/profile`: `name`, `given_name`, `family_name`, `email`; each with `_shown`, its value when the
    /// form was shown; `session`, the session of the form. A field that is not sent stays as it is.
    profile => save_profile;
    /// `POST /account/sessions/revoke`: `id`.
    end_session => end_one;
    /// `POST /account/sessions/revoke-others`.
    end_others => end_all_others;
    /// `POST /account/applications/revoke`: `client_id`.
    remove_access => revoke_access;
}

/// `POST /account/signout`.
pub async fn sign_out(door: Door, body: Body) -> Result<Response, Refusal> {
    // A form of a session that has ended, or of a page older than the session is now, leads to the page for signing
    // out, which says whether somebody is signed in, and who.
    let out = door.site.link("/oauth2/logout", &[]);
    match door.own_form_to_end(body).await {
        Ok(Some(form)) => leave(&door, &form).await,
        Ok(None) => Ok(reply::see_other(&out)),
        Err(why) => Err(why.or_anew(|| Some(out))),
    }
}

/// `POST /account/password`: `current`, `new`. The place is taken before the database is asked for the session.
pub async fn password(door: Door, body: Body) -> Result<Response, Refusal> {
    let change = async || match door.own_form(body).await {
        Ok(Some(form)) => change_password(&door, &form).await,
        Ok(None) => Ok(door.sign_in_first()),
        Err(why) => door.out_of_date(why).await,
    };
    door.in_place_for_password(change).await
}

async fn save_profile(door: &Door, form: &OwnForm) -> Result<Response, Refusal> {
    let sent = |name| form.params.sent(name).map(str::trim);
    // Only what the user changed: an operator, or another window, may have changed the rest since the page was loaded.
    let changed = |name, shown| sent(name).filter(|typed| Some(*typed) != sent(shown));
    let claims: Vec<_> =
        CLAIMS.into_iter().filter_map(|(claim, shown)| Some((claim, changed(claim, shown)?))).collect();
    let email = changed("email", "email_shown");
    let problem = match door.site.app.save_profile(&form.session, &ProfileForm { claims: &claims, email }).await? {
        Ok(()) => return Ok(door.done(Notice::ProfileSaved, &form.session)),
        Err(NotSaved::Email(_)) => Problem::Email,
        Err(NotSaved::Claim(field, _)) if sent(field).is_some_and(|typed| typed.len() > LONGEST_CLAIM) => {
            Problem::NameLong { field }
        }
        Err(NotSaved::Claim(field, _)) => Problem::Name { field },
        Err(NotSaved::SignInAgain) => Problem::EmailKept,
        Err(NotSaved::SignedOut) => return Ok(door.sign_in_first()),
    };
    let said = Said { problems: &[problem], typed: Some(&form.params), notice: None };
    door.account((&form.session, &form.user), said).await
}

async fn change_password(door: &Door, form: &OwnForm) -> Result<Response, Refusal> {
    let bytes = |name| form.params.get(name).unwrap_or("").as_bytes();
    let whose = (&form.session, &form.user);
    let typed = PasswordChange::new(bytes("current"), bytes("new"));
    let problem = match door.site.app.change_password(whose, typed, &form.browser).await? {
        Ok(changed) => {
            let mut response = door.done(Notice::PasswordChanged, &changed.started.session);
            reply::session_cookie(&mut response, &door.site, &changed.started);
            reply::device_cookie(&mut response, &door.site, &changed.device);
            return Ok(response);
        }
        Err(NotChanged::New(weak)) => weakness(weak),
        Err(NotChanged::SignedOut | NotChanged::Client(_)) => return Ok(door.sign_in_first()),
        Err(NotChanged::Current(Refused::Wrong)) => Problem::CurrentPassword,
        Err(NotChanged::Current(Refused::Wait(wait))) => Problem::Throttled { seconds: wait.whole_seconds() },
    };
    door.account(whose, Said { problems: &[problem], ..Said::default() }).await
}

async fn end_one(door: &Door, form: &OwnForm) -> Result<Response, Refusal> {
    let id = form.params.get("id").unwrap_or("").into();
    match door.site.app.leave_one((&form.session, &form.user), &id, &form.browser).await? {
        Ok(()) if id == form.session.id => leave(door, form).await,
        Ok(()) => Ok(door.done(Notice::SessionEnded, &form.session)),
        Err(why) => not_ended(door, form, why).await,
    }
}

async fn not_ended(door: &Door, form: &OwnForm, why: NotEnded) -> Result<Response, Refusal> {
    match why {
        NotEnded::Unknown => Err(Refusal::NotFound),
        NotEnded::SignedOut => Ok(door.sign_in_first()),
        NotEnded::SignInAgain => {
            let said = Said { problems: &[Problem::SessionsKept], ..Said::default() };
            door.account((&form.session, &form.user), said).await
        }
    }
}

async fn end_all_others(door: &Door, form: &OwnForm) -> Result<Response, Refusal> {
    let started = match door.site.app.leave_everywhere_else(&form.session).await? {
        Ok(started) => started,
        Err(why) => return not_ended(door, form, why).await,
    };
    let mut response = door.done(Notice::OthersEnded, &started.session);
    reply::session_cookie(&mut response, &door.site, &started);
    Ok(response)
}

async fn revoke_access(door: &Door, form: &OwnForm) -> Result<Response, Refusal> {
    let client = form.params.get("client_id").unwrap_or("").into();
    let app = &door.site.app;
    match app.revoke_consent(&form.session, &client).await? {
        Err(NotTaken::SignedOut) => Ok(door.sign_in_first()),
        // If another tab has removed the access already, it is removed.
        Err(NotTaken::Nothing) if app.find_client(&client).await?.is_none() => Err(Refusal::NotFound),
        Ok(()) | Err(NotTaken::Nothing) => Ok(door.done(Notice::AccessRemoved, &form.session)),
    }
}

async fn leave(door: &Door, form: &OwnForm) -> Result<Response, Refusal> {
    door.site.app.leave(&form.session, &form.browser).await?;
    Ok(door.signed_out(None))
}
