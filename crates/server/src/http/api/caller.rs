//! A call: which application, which browser, which account; and how the answer travels.

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

/// The header that proves that a page of ours sent a request whose cookies any page could send.
const CSRF: &str = "x-csrf-token";
/// Members by which an application names and proves itself.
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
    /// To sign out of it, also while it may not be used because the database failed over.
    Leave,
}

/// A request for an operation, as its handler is handed it beside its body.
pub struct Call {
    /// The door that it came through.
    pub door: Door,
    /// Where its tokens are, and where new ones go.
    pub keeping: Keeping,
}

/// RFC 6749 §5.1, with what comes next after a sign-in. In cookies, the tokens are not told.
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

/// Does what an operation is for; what needs a password, in a place for it.
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

/// Judges the body by what the operation takes, before its handler sees it. The answer is readable for pages that send
/// cookies where tokens are kept in them.
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

/// SR-07: what belongs into the body or the headers is not taken from an address, where logs and histories keep it, and whoever
/// puts it there is told.
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

/// A problem, as the answer. A page of the application can read it whether or not it sends cookies: it tells nothing of an
/// account, and often it is not known yet where the tokens are kept.
pub fn refused(door: &Door, problem: Problem) -> Response {
    let mut response = problem.to_response(&door.site, &door.visit);
    if !door.headers.contains_key(AUTHORIZATION) {
        response.extensions_mut().insert(Credentialed);
    }
    response
}

impl Cookies {
    /// Where the tokens of a request are, and where new ones go; of its body is known only what could be read.
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
    /// The page's origin, where a browser names it.
    fn origin(&self) -> Result<Option<String>, Problem> {
        match (self.door.headers.contains_key(ORIGIN), cors::origin(&self.door.headers)) {
            (false, _) => Ok(None),
            (true, Some(origin)) => Ok(Some(origin)),
            (true, None) => Err(Problem::of(Kind::OriginRefused)),
        }
    }

    /// The first-party client that calls. Cookies are given to pages alone.
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

    /// The browser or device behind the application. The session of our own pages is none of its business. By what it is
    /// known (BF-05) is kept where the tokens are.
    pub fn browser(&self, input: &Input) -> Browser {
        let browser = self.door.browser();
        let device = match self.keeping {
            Keeping::Cookies => browser.device.clone(),
            Keeping::Bearer => input.get("device_token").map(Secret::new),
        };
        Browser { session: None, flow: None, device, ..browser }
    }

    /// The account that a request's access token opens. What changes something needs the CSRF token beside a cookie.
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

    /// The session that a request leaves: that of its access token; where the cookies keep none any more, that of the
    /// refresh token, which lasts longer and proves the same.
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

    /// A page of another origin than the client's is refused.
    fn is_page_of(&self, client: &Client) -> Result<(), Problem> {
        match self.origin()? {
            Some(origin) if !rules::oauth::first_party::lives_at(client, &origin) => {
                Err(Problem::of(Kind::OriginRefused))
            }
            _ => Ok(()),
        }
    }

    /// The answer to somebody whose access token is gone from the cookies. A page that was loaded again since has forgotten
    /// the CSRF token, without which it cannot refresh: it is told here.
    pub async fn out_of_access(&self, problem: Problem) -> Result<Response, Problem> {
        let kept =
            self.door.site.cookie(&self.door.headers, Name::Refresh).filter(|_| problem.kind == Kind::TokenRefused);
        let Some(token) = kept else { return Err(problem) };
        let Some(line) = self.door.site.app.kept_line(&token).await? else { return Err(problem) };
        self.is_page_of(&line.client)?;
        let csrf = self.door.site.app.account_csrf(&line.family);
        let mut response = problem.telling(&self.door.site, &self.door.visit, Some(&csrf));
        // A step on the way, of somebody who proved a line that lives, as every page has to take after a quarter of an hour.
        response.extensions_mut().insert(AsExpected);
        Ok(response)
    }

    /// The refresh token whose place a new one takes in the cookies.
    pub fn before(&self) -> Option<Secret> {
        self.door.site.cookie(&self.door.headers, Name::Refresh).filter(|_| self.keeping == Keeping::Cookies)
    }

    /// The refresh token in the cookies, sent by a page that knows its line's CSRF token.
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

    /// Tokens for somebody who came in, or goes on after a new password; their device is known from now on.
    pub fn came_in(&self, entered: &Entered, next: Option<&'static str>) -> Response {
        self.hand_over(&entered.handed, next, Some(&entered.device))
    }

    /// Tokens for somebody who goes on.
    pub fn went_on(&self, handed: &Handed) -> Response {
        self.hand_over(handed, None, None)
    }

    /// Tokens, handed over where the caller keeps them.
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

    /// Takes the cookies away.
    pub fn forget(&self, response: &mut Response) {
        reply::cookie(response, &self.door.site, Name::Access, None);
        reply::cookie(response, &self.door.site, Name::Refresh, None);
    }
}
