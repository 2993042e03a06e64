//! A call: which application, which browser, which account; and how its tokens travel.

use super::cors::Credentialed;
use super::input::Input;
use super::problem::{Kind, Problem};
use super::table::{Cookies, Operation};
use crate::admission::Pace;
use crate::http::cookies::Name;
use crate::http::cors;
use crate::http::door::{AsExpected, Door};
use crate::http::extract;
use crate::http::reply;
use app::api::{Caller, Entered, NotServed, Opened};
use app::browser::Browser;
use app::token::Handed;
use axum::body::Body;
use axum::response::Response;
use hyper::header::{AUTHORIZATION, ORIGIN};
use hyper::{HeaderMap, StatusCode};
use rules::id::FamilyId;
use rules::login::session::Session;
use rules::oauth::client::Client;
use rules::oauth::client_auth::proof;
use rules::oauth::params::{self, Params};
use rules::secret::Secret;
use serde::Serialize;

/// The header that proves that our page sent a request: any page could send its cookies.
const CSRF: &str = "x-csrf-token";
/// Members of a body by which an application identifies and authenticates itself.
const CLIENT_MEMBERS: [&str; 4] = ["client_id", "client_secret", "client_assertion", "client_assertion_type"];

/// Where the tokens of a caller are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeping {
    /// By the application: they travel in bodies and in the Authorization header.
    Bearer,
    /// In cookies that no script reads.
    Cookies,
}

/// What an account is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To read it.
    Read,
    /// To change it.
    Change,
    /// To sign out of it, even while it may not be used because the database failed over.
    Leave,
}

/// A request for an operation, as its handler gets it along with its body.
pub struct Call {
    /// The door that it came through.
    pub door: Door,
    /// Where its tokens are kept, and where new ones go.
    pub keeping: Keeping,
}

/// The response of RFC 6749 §5.1, with the next step after a sign-in. In cookie mode, it omits the tokens.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    csrf_token: Option<String>,
    expires_in: i64,
    scope: &'a str,
}

/// Carries out an operation; one that needs a password, in a place for it.
pub async fn answer<F>(
    operation: &'static Operation,
    act: fn(Call, Input) -> F,
    (door, body): (Door, Body),
) -> Result<Response, Problem>
where
    F: Future<Output = Result<Response, Problem>>,
{
    let done = async { Ok(judged(operation, act, (&door, body)).await) };
    match operation.pace {
        Pace::Passwords => door.in_place_for_password(|| done).await,
        _ => done.await,
    }
}

/// Checks the body against the table before the handler sees it. In cookie mode, a page that sends cookies may read the
/// response.
async fn judged<F>(operation: &Operation, act: fn(Call, Input) -> F, (door, body): (&Door, Body)) -> Response
where
    F: Future<Output = Result<Response, Problem>>,
{
    let read = match operation.method {
        "GET" => Ok(Input::default()),
        _ => Input::read(&door.site, &door.headers, body, operation.fields).await,
    };
    let keeping = operation.cookies.keeping(&door.headers, read.as_ref().ok());
    let answer = match read.and_then(|input| nothing_in_address(operation, door).map(|()| input)) {
        Ok(input) => act(Call { door: door.clone(), keeping }, input).await,
        Err(problem) => Err(problem),
    };
    let mut response = answer.unwrap_or_else(|problem| refused(door, problem));
    if keeping == Keeping::Cookies {
        response.extensions_mut().insert(Credentialed);
    }
    response
}

/// SR-07: refuses a query that holds what belongs in the body or the headers, since logs and histories keep addresses,
/// and says so.
fn nothing_in_address(operation: &Operation, door: &Door) -> Result<(), Problem> {
    let query = extract::pairs(door.uri.query().unwrap_or("").as_bytes());
    let query = query.map_err(|_| Problem::new(Kind::MalformedRequest, "The query is not UTF-8."))?;
    let member =
        |(name, value): &(String, String)| !value.is_empty() && operation.fields.iter().any(|field| field.name == name);
    match params::nothing_of_ours(&query).is_ok() && !query.iter().any(member) {
        true => Ok(()),
        false => Err(Problem::new(
            Kind::MalformedRequest,
            "Credentials and members of the body are not taken from the address.",
        )),
    }
}

/// Makes the response of a problem. A page of the application can read it whether or not it sends cookies: it reveals
/// nothing of an account, and often it is not known yet where the tokens are kept.
pub fn refused(door: &Door, problem: Problem) -> Response {
    let mut response = problem.to_response(&door.site, &door.visit);
    if !door.headers.contains_key(AUTHORIZATION) {
        response.extensions_mut().insert(Credentialed);
    }
    response
}

impl Cookies {
    /// Returns where a request's tokens are, and new ones go; its body is known only if it could be read.
    fn keeping(self, headers: &HeaderMap, input: Option<&Input>) -> Keeping {
        let kept = match self {
            Cookies::Asked => input.is_some_and(|input| input.flag("cookies")),
            Cookies::NoToken => input.is_some_and(|input| input.get("refresh_token").is_none()),
            Cookies::NoHeader => !headers.contains_key(AUTHORIZATION),
        };
        if kept { Keeping::Cookies } else { Keeping::Bearer }
    }
}

impl Call {
    /// Returns the origin of the page, if a browser names it.
    fn origin(&self) -> Result<Option<String>, Problem> {
        match (self.door.headers.contains_key(ORIGIN), cors::origin(&self.door.headers)) {
            (false, _) => Ok(None),
            (true, Some(origin)) => Ok(Some(origin)),
            (true, None) => Err(Problem::of(Kind::OriginRefused)),
        }
    }

    /// Returns the first-party client that calls. Cookies are given only to pages.
    pub async fn caller(&self, input: &Input) -> Result<Caller, Problem> {
        let sent = CLIENT_MEMBERS.into_iter().filter_map(|name| Some((name.to_owned(), input.get(name)?.to_owned())));
        let params = Params::parse(sent.collect()).map_err(Problem::protocol)?;
        let sent = extract::basic(&self.door.headers).and_then(|basic| proof(&params, basic));
        let proof = self.door.site.app.proof_in(sent).await.map_err(Problem::protocol)?;
        let origin = self.origin()?;
        if self.keeping == Keeping::Cookies && origin.is_none() {
            return Err(Problem::new(Kind::OriginRefused, "cookies are for pages: there is no Origin header"));
        }
        self.door.site.app.first_party(proof, origin.as_deref()).await?.map_err(|why| match why {
            NotServed::Client => Problem::of(Kind::ClientRefused),
            NotServed::Origin => Problem::of(Kind::OriginRefused),
        })
    }

    /// Returns the browser or device behind the application, without the session of our own pages, which is none of its
    /// business. The device token (BF-05) is kept where the tokens are.
    pub fn browser(&self, input: &Input) -> Browser {
        let browser = self.door.browser();
        let device = match self.keeping {
            Keeping::Cookies => browser.device.clone(),
            Keeping::Bearer => input.get("device_token").map(Secret::new),
        };
        Browser { session: None, flow: None, device, ..browser }
    }

    /// Opens the account of a request's access token. In cookie mode, a change needs the CSRF token as well.
    pub async fn account(&self, purpose: Purpose) -> Result<Opened, Problem> {
        let token = match self.keeping {
            Keeping::Bearer => extract::bearer(&self.door.headers).map_err(Problem::bearer)?,
            Keeping::Cookies => self.door.site.cookie(&self.door.headers, Name::Access),
        };
        let token = token.ok_or(Problem::of(Kind::TokenRefused).without_credentials())?;
        let opened = match purpose {
            Purpose::Leave => self.door.site.app.open_account_to_end(&token).await?,
            Purpose::Read | Purpose::Change => self.door.site.app.open_account(&token).await?,
        };
        let opened = opened.ok_or(Problem::of(Kind::TokenRefused))?;
        self.is_page_of(&opened.client)?;
        if purpose != Purpose::Read && self.keeping == Keeping::Cookies {
            self.own_request(&opened.family)?;
        }
        Ok(opened)
    }

    /// Returns the session to end: that of the access token, or, if the cookies hold none any more, that of the refresh
    /// token, which lasts longer and proves the same.
    pub async fn leaving(&self) -> Result<Session, Problem> {
        let problem = match self.account(Purpose::Leave).await {
            Ok(opened) => return Ok(opened.session),
            Err(problem) => problem,
        };
        let kept = self.door.site.cookie(&self.door.headers, Name::Refresh).is_some();
        if self.keeping != Keeping::Cookies || problem.kind != Kind::TokenRefused || !kept {
            return Err(problem);
        }
        let Some(line) = self.door.site.app.kept_line(&self.kept_refresh()?).await? else { return Err(problem) };
        self.is_page_of(&line.client)?;
        Ok(line.session)
    }

    /// Refuses a page of another origin than the client's.
    fn is_page_of(&self, client: &Client) -> Result<(), Problem> {
        match self.origin()? {
            Some(origin) if !rules::oauth::first_party::lives_at(client, &origin) => {
                Err(Problem::of(Kind::OriginRefused))
            }
            _ => Ok(()),
        }
    }

    /// Answers a page whose access token is gone from the cookies. A page that was reloaded since has lost the CSRF
    /// token, without which it cannot refresh: the answer has it.
    pub async fn out_of_access(&self, problem: Problem) -> Result<Response, Problem> {
        let kept =
            self.door.site.cookie(&self.door.headers, Name::Refresh).filter(|_| problem.kind == Kind::TokenRefused);
        let Some(token) = kept else { return Err(problem) };
        // Who saw a token once must not be able to ask, with that token for ever, whether the line lives.
        let line = self.door.site.app.kept_line(&token).await?.filter(|line| line.is_recent);
        let Some(line) = line else { return Err(problem) };
        self.is_page_of(&line.client)?;
        let csrf = self.door.site.app.account_csrf(&line.family);
        let mut response = problem.telling(&self.door.site, &self.door.visit, Some(&csrf));
        // An expected step, for a caller who proved a live line: every page has to take it after a quarter of an hour.
        response.extensions_mut().insert(AsExpected);
        Ok(response)
    }

    /// Returns the refresh token in the cookies that a new one replaces.
    pub fn before(&self) -> Option<Secret> {
        self.door.site.cookie(&self.door.headers, Name::Refresh).filter(|_| self.keeping == Keeping::Cookies)
    }

    /// Returns the refresh token in the cookies, if the page knows the CSRF token of its line.
    pub fn kept_refresh(&self) -> Result<Secret, Problem> {
        let refused = || Problem::of(Kind::TokenRefused);
        let token = self.door.site.cookie(&self.door.headers, Name::Refresh).ok_or_else(refused)?;
        let line = self.door.site.app.line_of(&token).ok_or_else(refused)?;
        self.own_request(&line)?;
        Ok(token)
    }

    fn own_request(&self, line: &FamilyId) -> Result<(), Problem> {
        let mut lines = self.door.headers.get_all(CSRF).iter().map(|value| value.to_str().unwrap_or(""));
        match (lines.next(), lines.next()) {
            (Some(token), None) if self.door.site.app.account_csrf_holds(line, token) => Ok(()),
            _ => Err(Problem::of(Kind::CsrfRefused)),
        }
    }

    /// Hands tokens to a user who signed in, or changed the password, and makes the device known.
    pub fn came_in(&self, entered: &Entered, next: Option<&'static str>) -> Response {
        self.hand_over(&entered.handed, next, Some(&entered.device))
    }

    /// Hands new tokens to a session that goes on.
    pub fn went_on(&self, handed: &Handed) -> Response {
        self.hand_over(handed, None, None)
    }

    /// Hands tokens over where the caller keeps them.
    fn hand_over(&self, handed: &Handed, next: Option<&'static str>, device: Option<&Secret>) -> Response {
        let kept = self.keeping == Keeping::Cookies;
        let (access, refresh) = (handed.access_token.reveal(), handed.refresh_token.as_ref());
        let line = refresh.and_then(|token| self.door.site.app.line_of(token)).filter(|_| kept);
        let answer = Answer {
            next,
            access_token: (!kept).then_some(access),
            refresh_token: refresh.map(|token| token.reveal()).filter(|_| !kept),
            token_type: (!kept).then_some("Bearer"),
            device_token: device.map(Secret::reveal).filter(|_| !kept),
            csrf_token: line.map(|line| self.door.site.app.account_csrf(&line)),
            expires_in: handed.expires_in,
            scope: &handed.scope,
        };
        let mut response = reply::json(StatusCode::OK, serde_json::to_vec(&answer).unwrap_or_default());
        if kept {
            reply::cookie(&mut response, &self.door.site, Name::Access, Some(access));
            reply::cookie(&mut response, &self.door.site, Name::Refresh, refresh.map(|token| token.reveal()));
            if let Some(device) = device {
                reply::device_cookie(&mut response, &self.door.site, device);
            }
        }
        response
    }

    /// Removes the cookies.
    pub fn forget(&self, response: &mut Response) {
        reply::cookie(response, &self.door.site, Name::Access, None);
        reply::cookie(response, &self.door.site, Name::Refresh, None);
    }
}
