//! From errors to statuses: one exhaustive match, so that a new error code does not compile until it has a status.

use super::Site;
use super::door::{AsExpected, Door};
use super::reply::{self, Forms};
use super::visit::{Asking, Visit};
use crate::config::CHANGE_PASSWORD;
use crate::metrics::Refused;
use crate::net::BodyError;
use crate::pages::{Back, BusyPage, Chrome, ErrorPage, Reason, Retry, Setback, ThrottledPage};
use app::Fault;
use app::complaint::Sparing;
use axum::response::Response;
use hyper::header;
use hyper::{Method, StatusCode};
use rules::Span;
use rules::oauth::authorize::{NO_REDIRECT, OTHER_REDIRECT, UNKNOWN_CLIENT};
use rules::oauth::client_auth::{NAME_ALONE, NOBODY};
use rules::oauth::redirect::{Mode, Response as Answer};
use rules::oauth::{Error, ErrorCode};
use serde_json::json;
use store::dialect::moving::REFUSAL;

/// When there may be room for a large body again: most of the bodies that hold it have arrived by then.
pub const BODIES_GO: Span = Span::seconds(1);

/// The code for callers that have to come back, because of us (503) or because of how often they ask (429). `slow_down`
/// is for devices that poll, and lengthens their interval for good (RFC 8628 §3.5).
const LATER: &str = "temporarily_unavailable";

const TOO_OLD: &str = "the form is too old or from another browser";
const NO_COOKIE: &str = "no cookie of this flow came with the form";

/// Why a door did not answer.
#[derive(Debug)]
pub enum Refusal {
    /// The protocol refuses the request.
    Protocol(Error),
    /// Something of ours failed or was not available.
    Fault(Fault),
    /// The body is too large, too slow or broken, or there is no room for it.
    Body(BodyError),
    /// The body is of a kind that this door does not read (RFC 9110 §15.5.16).
    MediaType,
    /// The form does not come from our page.
    Forgery,
    /// The form is too old, or of another browser; with the link that starts again what it was for, if there is one.
    Stale(Option<String>),
    /// The browser sent no flow cookie, so the form seems stale. It may keep no cookies.
    NoCookie(Option<String>),
    /// This caller has to wait.
    Wait(Span),
    /// There is no such thing.
    NotFound,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Protocol(error)
    }
}
impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Refusal::Fault(fault)
    }
}
impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        Refusal::Body(error)
    }
}

/// RFC 6749 §5.2, RFC 6750 §3.1.
fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidClient | ErrorCode::InvalidToken => StatusCode::UNAUTHORIZED,
        ErrorCode::InsufficientScope => StatusCode::FORBIDDEN,
        ErrorCode::ServerError => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::TemporarilyUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::InvalidRequest
        | ErrorCode::InvalidGrant
        | ErrorCode::UnauthorizedClient
        | ErrorCode::UnsupportedGrantType
        | ErrorCode::InvalidScope
        | ErrorCode::InvalidTarget
        | ErrorCode::AccessDenied
        | ErrorCode::UnsupportedResponseType
        | ErrorCode::LoginRequired
        | ErrorCode::ConsentRequired
        | ErrorCode::InteractionRequired
        | ErrorCode::AccountSelectionRequired
        | ErrorCode::RequestNotSupported
        | ErrorCode::RequestUriNotSupported
        | ErrorCode::RegistrationNotSupported
        | ErrorCode::UnmetAuthenticationRequirements
        | ErrorCode::AuthorizationPending
        | ErrorCode::SlowDown
        | ErrorCode::ExpiredToken
        | ErrorCode::UnsupportedTokenType => StatusCode::BAD_REQUEST,
    }
}

/// Returns what a fault is counted as.
pub fn refused_for(fault: &Fault) -> Refused {
    match fault {
        Fault::Busy(_) => Refused::Busy,
        Fault::Over(_) => Refused::Rate,
        Fault::Unavailable(_) | Fault::InDoubt(_) => Refused::Database,
        Fault::Contended(_) => Refused::Contended,
        Fault::Broken(_) | Fault::Foreign(_) => Refused::Fault,
    }
}

/// The lines on requests that the database failed. While the database is away, every request is one.
static FAILED: Sparing = Sparing::unused();
/// The lines on commits whose outcome nobody knows: there are few, which those above must not leave out.
static IN_DOUBT: Sparing = Sparing::unused();
/// The lines on what is broken here. It may be so for every request: strangers must not fill the disk with it.
static BROKEN: Sparing = Sparing::unused();

/// Logs a fault, once, at the door that it reached.
pub fn log(fault: &Fault, visit: &Visit) {
    tell(fault, &visit.request_id);
}

fn tell(fault: &Fault, request: &str) {
    let (lines, why, what) = match fault {
        Fault::Broken(why) | Fault::Foreign(why) => (&BROKEN, why, "broken"),
        // It lasts, and the operator who moves the database knows.
        Fault::Unavailable(why) if why == REFUSAL => return tracing::debug!(%request, why, "unavailable"),
        Fault::Unavailable(why) => (&FAILED, why, "unavailable"),
        Fault::InDoubt(why) => (&IN_DOUBT, why, "the outcome of a commit is unknown"),
        Fault::Contended(why) => (&FAILED, why, "contended"),
        Fault::Busy(_) | Fault::Over(_) => return,
    };
    let Some(left_out) = lines.room() else { return };
    match fault {
        Fault::Broken(_) | Fault::Foreign(_) => tracing::error!(%request, why, left_out, "{what}"),
        _ => tracing::warn!(%request, why, left_out, "{what}"),
    }
}

/// How each refusal is shown: status, code, a sentence, and how long to wait.
struct Outside {
    status: StatusCode,
    code: &'static str,
    why: &'static str,
    wait: Option<Span>,
    reason: Reason,
}

impl Refusal {
    fn outside(&self, site: &Site) -> Outside {
        let new = |status, code, why, reason| Outside { status, code, why, wait: None, reason };
        match self {
            Refusal::Protocol(error) => {
                let code = error.code.name();
                new(status_of(error.code), code, error.why, reason_of(error))
            }
            Refusal::Fault(Fault::Busy(wait)) => Outside {
                wait: Some(*wait),
                ..new(StatusCode::SERVICE_UNAVAILABLE, LATER, "busy", Reason::Unavailable)
            },
            Refusal::Fault(Fault::Over(over)) => Outside {
                wait: Some(over.wait.into()),
                ..new(StatusCode::TOO_MANY_REQUESTS, LATER, "too many requests", Reason::Denied)
            },
            Refusal::Fault(Fault::Unavailable(_) | Fault::InDoubt(_) | Fault::Contended(_)) => Outside {
                wait: Some(site.strain.database_back()),
                ..new(StatusCode::SERVICE_UNAVAILABLE, LATER, "unavailable", Reason::Unavailable)
            },
            Refusal::Fault(Fault::Broken(_) | Fault::Foreign(_)) => {
                new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", "a fault of the server", Reason::Fault)
            }
            Refusal::Body(BodyError::TooLarge) => {
                new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request", "the body is too large", Reason::TooLarge)
            }
            Refusal::Body(BodyError::TooSlow) => {
                new(StatusCode::REQUEST_TIMEOUT, "invalid_request", "the body came too slowly", Reason::Slow)
            }
            Refusal::Body(BodyError::Broken) => {
                new(StatusCode::BAD_REQUEST, "invalid_request", "the body broke off", Reason::Slow)
            }
            Refusal::Body(BodyError::NoRoom) => Outside {
                wait: Some(BODIES_GO),
                ..new(StatusCode::SERVICE_UNAVAILABLE, LATER, "busy", Reason::Unavailable)
            },
            Refusal::MediaType => new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "invalid_request",
                "the body must be application/x-www-form-urlencoded, without Content-Encoding",
                Reason::BadRequest,
            ),
            Refusal::Forgery => new(
                StatusCode::FORBIDDEN,
                "invalid_request",
                "the form does not come from our page",
                Reason::ForeignForm,
            ),
            Refusal::Stale(_) => new(StatusCode::FORBIDDEN, "invalid_request", TOO_OLD, Reason::Stale),
            Refusal::NoCookie(_) => new(StatusCode::FORBIDDEN, "invalid_request", NO_COOKIE, Reason::NoCookie),
            Refusal::Wait(wait) => Outside {
                wait: Some(*wait),
                ..new(StatusCode::TOO_MANY_REQUESTS, LATER, "too many attempts", Reason::Denied)
            },
            Refusal::NotFound => new(StatusCode::NOT_FOUND, "not_found", "there is no such page", Reason::NotFound),
        }
    }

    /// Returns why the server itself refused; `None` if the protocol did.
    fn refused(&self) -> Option<Refused> {
        Some(match self {
            Refusal::Protocol(_) | Refusal::NotFound => return None,
            Refusal::Fault(fault) => refused_for(fault),
            Refusal::Body(BodyError::TooLarge) => Refused::BodyTooLarge,
            Refusal::Body(BodyError::TooSlow) => Refused::BodyTooSlow,
            Refusal::Body(BodyError::Broken) => Refused::BodyBroken,
            Refusal::Body(BodyError::NoRoom) => Refused::Busy,
            Refusal::MediaType => Refused::MediaType,
            Refusal::Forgery => Refused::ForeignForm,
            Refusal::Stale(_) | Refusal::NoCookie(_) => Refused::StaleForm,
            Refusal::Wait(_) => Refused::Throttled,
        })
    }

    /// Marks the response with what the metrics count.
    fn mark(&self, response: &mut Response) {
        if let Refusal::Protocol(error) = self {
            response.extensions_mut().insert(error.code);
        }
        if let Some(refused) = self.refused() {
            response.extensions_mut().insert(refused);
        }
    }

    fn log(&self, visit: &Visit) {
        if let Refusal::Fault(fault) = self {
            log(fault, visit);
        }
    }

    /// Returns the setback to show with the form, if its sender may send it again later: how long that takes.
    pub fn setback(&self, site: &Site) -> Option<Setback> {
        let Outside { status, wait, .. } = self.outside(site);
        let seconds = wait?.whole_seconds();
        Some(match status {
            StatusCode::TOO_MANY_REQUESTS => Setback::Throttled { seconds },
            _ => Setback::Busy {
                seconds,
                away: matches!(self, Refusal::Fault(Fault::Unavailable(_) | Fault::InDoubt(_))),
            },
        })
    }

    /// Completes a page made for this refusal: its headers, what is counted, and the log.
    pub fn tell_on(&self, response: &mut Response, site: &Site, visit: &Visit) {
        self.log(visit);
        self.put_off(response, self.outside(site).wait);
        self.mark(response);
    }

    /// Renders the refusal for client libraries (RFC 6749 §5.2).
    pub fn to_json(&self, site: &Site, visit: &Visit) -> Response {
        self.log(visit);
        let outside = self.outside(site);
        let body = json!({ "error": outside.code, "error_description": outside.why }).to_string();
        let mut response = reply::json(outside.status, body);
        self.mark(&mut response);
        self.put_off(&mut response, outside.wait);
        if matches!(self, Refusal::Protocol(Error { code: ErrorCode::AuthorizationPending, .. })) {
            response.extensions_mut().insert(AsExpected);
        }
        if let Some(challenge) = self.challenge(visit.asking) {
            reply::set(response.headers_mut(), header::WWW_AUTHENTICATE, &challenge);
        }
        response
    }

    /// RFC 6749 §5.2: returns the challenge, if the client tried the Authorization header or nothing. Libraries read a
    /// challenge and not the body: if a secret in the body is wrong, they would report only that there was a challenge.
    fn challenge(&self, asking: Asking) -> Option<String> {
        let Refusal::Protocol(Error { code: code @ ErrorCode::InvalidClient, why }) = self else { return None };
        let asked = asking == Asking::Tried || (asking == Asking::Untried && [NOBODY, NAME_ALONE].contains(why));
        let said = format!("error=\"{}\", error_description=\"{why}\"", code.name());
        asked.then(|| format!("Basic realm=\"token endpoint\", charset=\"UTF-8\", {said}"))
    }

    /// Renders the refusal of a resource server (RFC 6750 §3).
    pub fn to_bearer(&self, site: &Site, visit: &Visit) -> Response {
        let mut response = self.to_json(site, visit);
        if let Refusal::Protocol(Error {
            code: ErrorCode::InvalidToken | ErrorCode::InsufficientScope | ErrorCode::InvalidRequest,
            ..
        }) = self
        {
            let outside = self.outside(site);
            let challenge = format!("Bearer error=\"{}\", error_description=\"{}\"", outside.code, outside.why);
            reply::set(response.headers_mut(), header::WWW_AUTHENTICATE, &challenge);
        }
        response
    }

    /// Renders the refusal as a page. `back` is the way to tell the application, where it may be told.
    pub fn to_page(&self, door: &Door, chrome: &Chrome<'_>, back: Option<(&str, &Answer)>) -> Response {
        let (visit, outside) = (&door.visit, self.outside(&door.site));
        let request_id = &*visit.request_id;
        // A GET or HEAD can simply be repeated; a form is another matter (`again`).
        let repeats = matches!(door.method, Method::GET | Method::HEAD);
        let retry = repeats.then_some(Retry::Page);
        let html = match (outside.status, outside.wait) {
            (StatusCode::TOO_MANY_REQUESTS, Some(wait)) => {
                ThrottledPage { seconds: wait.whole_seconds(), request_id, retry }.render(chrome)
            }
            (_, Some(wait)) => {
                let away = matches!(self, Refusal::Fault(Fault::Unavailable(_) | Fault::InDoubt(_)));
                BusyPage { away, seconds: wait.whole_seconds(), request_id, retry }.render(chrome)
            }
            _ => {
                let url = back.map(|(_, answer)| answer.to.with(answer.mode, &answer.fields));
                let posted: Vec<(&str, &str)> = posted(back).map(|(name, value)| (*name, value.as_str())).collect();
                let back = back.zip(url.as_deref()).map(|((name, _), url)| Back { name, url, posted: &posted });
                let status = outside.status.as_u16();
                let of_application = self.is_of_application();
                ErrorPage {
                    status,
                    reason: outside.reason,
                    code: if of_application { outside.code } else { "" },
                    detail: of_application.then_some(outside.why),
                    request_id,
                    back,
                    anew: self.anew(),
                    repeats,
                }
                .render(chrome)
            }
        };
        let forms = posted(back).next().and(back).map_or(Forms::Stay, |(_, answer)| Forms::Post(answer.to.origin()));
        let mut response = reply::page(outside.status, visit, html, forms);
        self.tell_on(&mut response, &door.site, visit);
        response
    }

    /// Adds a way to start again to a refusal that came too late and has none.
    pub fn or_anew(self, way: impl FnOnce() -> Option<String>) -> Self {
        if let Refusal::Stale(None) = self { Refusal::Stale(way()) } else { self }
    }

    /// Returns whether it is about what an application sent: its developers need the code and the sentence. To anybody
    /// else the sentence would say the page's heading again, in English.
    fn is_of_application(&self) -> bool {
        matches!(self, Refusal::Protocol(_) | Refusal::MediaType)
    }

    /// Returns where somebody who came too late can start again.
    fn anew(&self) -> Option<&str> {
        match self {
            Refusal::Stale(anew) | Refusal::NoCookie(anew) => anew.as_deref(),
            _ => None,
        }
    }

    /// Says in headers when to come back, if coming back helps.
    fn put_off(&self, response: &mut Response, wait: Option<Span>) {
        match (self, wait) {
            (Refusal::Fault(Fault::Busy(_)), Some(wait)) => reply::busy(response, wait),
            (_, Some(wait)) => reply::retry_after(response, wait),
            (_, None) => {}
        }
        if let Refusal::Fault(Fault::Over(over)) = self {
            reply::rate_limit(response, &over.standing);
        }
    }
}

/// Returns the fields that the way back posts, if the application wants a form (Form Post Response Mode §2).
fn posted<'a>(back: Option<(&str, &'a Answer)>) -> impl Iterator<Item = &'a (&'static str, String)> {
    let answer = back.map(|(_, answer)| answer).filter(|answer| answer.mode == Mode::FormPost);
    answer.into_iter().flat_map(|answer| &answer.fields)
}

fn reason_of(error: &Error) -> Reason {
    match *error {
        UNKNOWN_CLIENT => Reason::UnknownClient,
        NO_REDIRECT | OTHER_REDIRECT => Reason::WrongRedirect,
        error => Reason::of_code(error.code.name()),
    }
}

/// Returns a refusal of the door in the form that programs read, at paths where only programs ask: a page in their log
/// says nothing. `None` at paths that people visit.
pub fn for_programs(door: &Door, status: StatusCode, why: &str) -> Option<Response> {
    let path = door.path();
    let of_people = ["/oauth2/authorize", "/oauth2/logout", CHANGE_PASSWORD];
    let seen_by_people = of_people.iter().any(|page| path.starts_with(page));
    let asked_by_programs =
        !seen_by_people && (["/.well-known/", "/oauth2/"].iter().any(|part| path.starts_with(part)));
    let body = json!({ "error": ErrorCode::InvalidRequest.name(), "error_description": why });
    asked_by_programs.then(|| reply::json(status, body.to_string()))
}

/// Answers 405 and lists the allowed methods (RFC 9110 §15.5.6).
pub fn wrong_method(door: &Door, allowed: &[Method]) -> Response {
    let allowed: Vec<&str> = allowed.iter().map(Method::as_str).collect();
    let allowed = allowed.join(", ");
    let why = format!("this method is not allowed here; allowed: {allowed}");
    let told = for_programs(door, StatusCode::METHOD_NOT_ALLOWED, &why);
    let mut response = told.unwrap_or_else(|| wrong_method_page(door));
    reply::set(response.headers_mut(), header::ALLOW, &allowed);
    response
}

fn wrong_method_page(door: &Door) -> Response {
    let visit = &door.visit;
    let chrome = door.chrome(None);
    // A browser that asks for the response to a form with GET; a program is told which methods are allowed.
    let is_asked_for = matches!(door.method, Method::GET | Method::HEAD);
    let (base, path) = (door.site.url.path(), door.path());
    let below = |part: &str| path.starts_with(part);
    let is_form = !below("/oauth2") || path == "/oauth2/logout/confirm";
    let first = ["/account", "/device", "/setup"].into_iter().find(|part| below(part)).unwrap_or("/");
    let anew = format!("{base}{first}");
    let page = ErrorPage {
        status: 405,
        reason: if is_asked_for && is_form { Reason::FormAnswer } else { Reason::WrongMethod },
        code: "",
        detail: None,
        request_id: &visit.request_id,
        back: None,
        anew: Some(&anew),
        repeats: false,
    };
    reply::page(StatusCode::METHOD_NOT_ALLOWED, visit, page.render(&chrome), Forms::Stay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::tests::said;

    #[test]
    fn no_fault_fills_the_disk_however_many_meet_it() {
        // Red where an arm of `log` takes no room: one line for each request of a stranger.
        let why = || "it is so".to_owned();
        let faults = [
            (Fault::Broken(why()), true),
            (Fault::Unavailable(why()), true),
            (Fault::InDoubt(why()), true),
            (Fault::Contended(why()), true),
            (Fault::Unavailable(REFUSAL.to_owned()), false),
            (Fault::Busy(Span::seconds(1)), false),
        ];
        for (fault, is_told) in faults {
            let lines = said(|| (0..1_000).for_each(|_| tell(&fault, "r1"))).len();
            // Other tests may share the room, and a second may pass meanwhile.
            assert!(lines <= 40 && (lines == 0 || is_told), "{fault:?}: {lines}");
        }
    }
}
