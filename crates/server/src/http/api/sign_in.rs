//! Coming in and going on: sign-up, sign-in, refresh.

use super::caller::{Door, Keeping};
use super::input::Input;
use super::problem::{FieldProblem, Kind, Problem};
use super::table::{REFRESH, SIGN_IN, SIGN_UP};
use crate::http::site::Site;
use crate::http::visit::Visit;
use app::api::NotIn;
use app::sign_in::Typed;
use app::sign_up::{self, NewPerson};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hyper::{HeaderMap, StatusCode};
use rules::login::password::Weak;
use rules::oauth::ErrorCode;
use rules::people::names::BadName;
use rules::secret::Secret;

/// What comes after a sign-in with a password, as long as there is no second factor.
const DONE: Option<&str> = Some("done");

/// `POST /api/v1/signup`.
pub async fn sign_up(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    match door.read(body, &SIGN_UP).await {
        Err(problem) => door.refuse(problem),
        Ok(input) => door.close(enrol(&door, &input).await, wanted(&input)),
    }
}

/// `POST /api/v1/signin`.
pub async fn sign_in(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    match door.read(body, &SIGN_IN).await {
        Err(problem) => door.refuse(problem),
        Ok(input) => door.close(enter(&door, &input).await, wanted(&input)),
    }
}

/// `POST /api/v1/refresh`: the token is in the body, or else in the cookies.
pub async fn refresh(
    State(site): State<Site>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let door = Door { site: &site, visit: &visit, headers: &headers };
    match door.read(body, &REFRESH).await {
        Err(problem) => door.refuse(problem),
        Ok(input) => match input.get("refresh_token").map(Secret::new) {
            Some(token) => door.close(renew(&door, &input, Some(token)).await, Keeping::Bearer),
            None => door.close(renew(&door, &input, None).await, Keeping::Cookies),
        },
    }
}

fn wanted(input: &Input) -> Keeping {
    if input.flag("cookies") { Keeping::Cookies } else { Keeping::Bearer }
}

async fn enrol(door: &Door<'_>, input: &Input) -> Result<Response, Problem> {
    let keeping = wanted(input);
    let client = door.client(input, keeping).await?;
    if !door.site.app.realm.settings.signup {
        return Err(Problem::of(Kind::SignupClosed));
    }
    let typed = NewPerson::new(input.text("username"), input.text("email"), input.text("password").as_bytes());
    let (browser, before) = (door.browser(keeping), door.before(keeping));
    let entered = door.site.app.enrol(&client, typed, &browser, before).await?.map_err(not_in)?;
    let mut response = door.came_in(&entered, keeping, DONE);
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

async fn enter(door: &Door<'_>, input: &Input) -> Result<Response, Problem> {
    let keeping = wanted(input);
    let client = door.client(input, keeping).await?;
    let typed = Typed::new(input.text("login"), input.text("password").as_bytes());
    let (browser, before) = (door.browser(keeping), door.before(keeping));
    let entered = door.site.app.enter(&client, typed, &browser, before).await?.map_err(not_in)?;
    Ok(door.came_in(&entered, keeping, DONE))
}

async fn renew(door: &Door<'_>, input: &Input, token: Option<Secret>) -> Result<Response, Problem> {
    let (token, keeping) = match token {
        Some(token) => (token, Keeping::Bearer),
        None => (door.kept_refresh()?, Keeping::Cookies),
    };
    let client = door.client(input, keeping).await?;
    match door.site.app.renew_account(&client, &token).await? {
        Ok(handed) => Ok(door.hand_over(&handed, keeping, None)),
        // What cannot be refreshed any more is of no use in a cookie.
        Err(error) if keeping == Keeping::Cookies && error.code == ErrorCode::InvalidGrant => {
            let mut response = door.refuse(Problem::protocol(error));
            door.forget(&mut response);
            Ok(response)
        }
        Err(error) => Err(Problem::protocol(error)),
    }
}

fn not_in(why: NotIn) -> Problem {
    match why {
        NotIn::Attempt(refusal) => Problem::attempt(refusal, Kind::WrongCredentials),
        NotIn::Person(problems) => Problem::fields(problems.into_iter().map(field_problem).collect()),
        NotIn::Tokens(error) if error.code == ErrorCode::InvalidGrant => Problem::of(Kind::WrongCredentials),
        NotIn::Tokens(error) => Problem::protocol(error),
    }
}

fn field_problem(problem: sign_up::Problem) -> FieldProblem {
    let named = |field, code, detail: &str| FieldProblem { field, code, detail: detail.to_owned() };
    match problem {
        sign_up::Problem::NameTaken => named("username", "taken", "Somebody has that name."),
        sign_up::Problem::EmailTaken => named("email", "taken", "Somebody signs in with that address."),
        sign_up::Problem::Username(why) => bad_name("username", why),
        sign_up::Problem::Email(why) => bad_name("email", why),
        sign_up::Problem::Password(why) => weak("password", why),
    }
}

fn bad_name(field: &'static str, why: BadName) -> FieldProblem {
    let (code, detail) = match why {
        BadName::Empty => ("empty", "It is empty."),
        BadName::TooLong => ("too-long", "It is too long."),
        BadName::Character => ("character", "It holds a character that it cannot have."),
        BadName::Form if field == "username" => {
            ("form", "It begins with a hyphen, or has the form of an account's id.")
        }
        BadName::Form => ("form", "It is not of the form local@domain."),
    };
    FieldProblem { field, code, detail: detail.to_owned() }
}

/// What is wrong with a new password.
pub fn weak(field: &'static str, why: Weak) -> FieldProblem {
    let (code, detail) = match why {
        Weak::TooShort { min } => ("too-short", format!("It needs at least {min} characters.")),
        Weak::TooLong => ("too-long", "It is longer than 1,024 bytes.".to_owned()),
        Weak::Common => ("common", "It is among the passwords that everybody tries first.".to_owned()),
        Weak::Personal => ("personal", "It is made of names.".to_owned()),
        Weak::NotText => ("not-text", "It is not text.".to_owned()),
    };
    FieldProblem { field, code, detail }
}
