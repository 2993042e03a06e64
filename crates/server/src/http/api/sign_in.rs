//! Signing up, signing in, and refreshing tokens.

use super::caller::Call;
use super::input::Input;
use super::problem::{FieldProblem, Kind, Problem};
use app::api::NotIn;
use app::sign_in::Typed;
use app::sign_up::{self, NewPerson};
use axum::response::Response;
use hyper::StatusCode;
use rules::login::password::Weak;
use rules::oauth::ErrorCode;
use rules::people::names::BadName;
use rules::secret::Secret;

/// The next step after a sign-in with a password, as long as there is no second factor.
const DONE: Option<&str> = Some("done");

/// `POST /api/v1/signup`.
pub async fn sign_up(call: Call, input: Input) -> Result<Response, Problem> {
    let caller = call.caller(&input).await?;
    let app = &call.door.site.app;
    if !app.realm.settings.signup {
        return Err(Problem::of(Kind::SignupClosed));
    }
    let typed = NewPerson::new(input.text("username"), input.text("email"), input.text("password").as_bytes());
    let entered = app.enroll(&caller, typed, &call.browser(&input), call.before()).await?.map_err(not_in)?;
    let mut response = call.came_in(&entered, DONE);
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// `POST /api/v1/signin`.
pub async fn sign_in(call: Call, input: Input) -> Result<Response, Problem> {
    let caller = call.caller(&input).await?;
    let typed = Typed::new(input.text("login"), input.text("password").as_bytes());
    let (app, browser) = (&call.door.site.app, call.browser(&input));
    let entered = app.enter(&caller, typed, &browser, call.before()).await?.map_err(not_in)?;
    Ok(call.came_in(&entered, DONE))
}

/// `POST /api/v1/refresh`: takes the token from the body, or else from the cookies.
pub async fn refresh(call: Call, input: Input) -> Result<Response, Problem> {
    let token = match input.get("refresh_token") {
        Some(token) => Secret::new(token),
        None => call.kept_refresh()?,
    };
    let caller = call.caller(&input).await?;
    // A refusal leaves the cookies: by then the browser may hold newer ones, from a change of the password in another
    // window, and a response cannot remove only the cookies that were sent.
    match call.door.site.app.renew_account(&caller, &token).await? {
        Ok(handed) => Ok(call.went_on(&handed)),
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
        BadName::Character if field == "username" => (
            "character",
            "It has white space, an @, an invisible character, a leading mark, or letters of more than one alphabet.",
        ),
        BadName::Character => ("character", "It holds a character that it cannot have."),
        BadName::Id => ("form", "It has the form of an account's id."),
        BadName::Form if field == "username" => ("form", "It begins with a hyphen."),
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
