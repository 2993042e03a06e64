//! Errors of the account API (RFC 9457): one kind, one status, one title.

use super::BASE;
use crate::http::error::{BODIES_GO, log, refused_for};
use crate::http::reply;
use crate::http::site::Site;
use crate::http::visit::{Asking, Visit};
use crate::metrics::Refused;
use crate::net::BodyError;
use app::Fault;
use axum::response::Response;
use hyper::StatusCode;
use hyper::header;
use rules::Span;
use rules::login::attempt::Refusal;
use rules::oauth::{Error, ErrorCode};
use serde::Serialize;
use serde_json::json;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = $status:literal $slug:literal $title:literal),+ $(,)?) => {
        /// The kinds of errors, by the last part of their `type`: these names are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind { $($(#[$doc])* $variant),+ }
        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),+];
            /// The last part of its `type`, and its `code`.
            pub fn slug(self) -> &'static str {
                match self { $(Kind::$variant => $slug),+ }
            }
            /// Its HTTP status.
            pub fn status(self) -> u16 {
                match self { $(Kind::$variant => $status),+ }
            }
            /// The same sentence every time.
            pub fn title(self) -> &'static str {
                match self { $(Kind::$variant => $title),+ }
            }
        }
    };
}

kinds! {
    /// Not JSON, a member named twice, a member missing or of the wrong type.
    MalformedRequest = 400 "malformed-request" "The request cannot be read.",
    /// The client did not authenticate (RFC 9110 §15.5.2).
    ClientRefused = 401 "client-refused" "The application did not prove that it may use the account API.",
    /// RFC 6750 §3.1.
    TokenRefused = 401 "token-refused" "The token is missing, has expired or was revoked.",
    /// The Origin header is not of the application.
    OriginRefused = 403 "origin-refused" "The request comes from a page that does not belong to the application.",
    /// The CSRF token is missing or wrong.
    CsrfRefused = 403 "csrf-refused" "The X-CSRF-Token header is missing or belongs to another sign-in.",
    /// The realm does not allow self sign-up.
    SignupClosed = 403 "signup-closed" "Only an administrator can create accounts here.",
    /// No such path.
    NotFound = 404 "not-found" "There is nothing at this address.",
    /// RFC 9110 §15.5.6.
    MethodNotAllowed = 405 "method-not-allowed" "This address does not take this method.",
    /// RFC 9110 §15.5.9.
    BodyTooSlow = 408 "body-too-slow" "The body did not come in time.",
    /// RFC 9110 §15.5.14.
    BodyTooLarge = 413 "body-too-large" "The body is too large.",
    /// RFC 9110 §15.5.16.
    UnsupportedMediaType = 415 "unsupported-media-type"
        "The body must be application/json in UTF-8, without Content-Encoding.",
    /// RFC 9110 §15.5.20.
    Misdirected = 421 "misdirected" "The server has another address.",
    /// An unknown user, a disabled one and a wrong password look the same.
    WrongCredentials = 422 "wrong-credentials" "The name or the password is wrong.",
    /// At a password change.
    WrongPassword = 422 "wrong-password" "The current password is wrong.",
    /// With `fields`.
    InvalidFields = 422 "invalid-fields" "Some fields are not acceptable.",
    /// RFC 6585 §4.
    TooManyAttempts = 429 "too-many-attempts" "Too many requests or failed attempts; try again later.",
    /// A fault of ours.
    ServerError = 500 "server-error" "The server failed.",
    /// Overload.
    Busy = 503 "busy" "The server is too busy; try again later.",
    /// The database.
    Unavailable = 503 "unavailable" "The server cannot answer at present; try again.",
}

/// What is wrong with one member of the body.
#[derive(Clone, Debug, Serialize)]
pub struct FieldProblem {
    /// The member.
    pub field: &'static str,
    /// A stable name.
    pub code: &'static str,
    /// A sentence.
    pub detail: String,
}

/// One problem, ready to be sent. It echoes nothing of the request.
#[derive(Debug)]
pub struct Problem {
    /// Its kind.
    pub kind: Kind,
    detail: Option<&'static str>,
    wait: Option<Span>,
    fields: Vec<FieldProblem>,
    fault: Option<Fault>,
    /// No credentials were sent that could be wrong.
    bare: bool,
    /// The access token in the header cannot be read.
    unreadable: bool,
}

impl Problem {
    /// Makes a problem without details.
    pub fn of(kind: Kind) -> Self {
        Problem { kind, detail: None, wait: None, fields: Vec::new(), fault: None, bare: false, unreadable: false }
    }
    /// Makes a problem with details of this occurrence.
    pub fn new(kind: Kind, detail: &'static str) -> Self {
        Problem { detail: Some(detail), ..Problem::of(kind) }
    }
    /// RFC 6750 §3.1: omits the error from the challenge, because no token was sent.
    pub fn without_credentials(self) -> Self {
        Problem { bare: true, ..self }
    }
    /// Makes a problem of members that are not acceptable.
    pub fn fields(fields: Vec<FieldProblem>) -> Self {
        Problem { fields, ..Problem::of(Kind::InvalidFields) }
    }

    /// Names a member that is to blame.
    pub fn about(mut self, field: FieldProblem) -> Self {
        self.fields.push(field);
        self
    }

    /// Returns why the server itself refused; `None` if the caller is to blame.
    fn refused(&self) -> Option<Refused> {
        match (&self.fault, self.kind) {
            (Some(fault), _) => Some(refused_for(fault)),
            (None, Kind::TooManyAttempts) => Some(Refused::Throttled),
            (None, Kind::BodyTooLarge) => Some(Refused::BodyTooLarge),
            (None, Kind::BodyTooSlow) => Some(Refused::BodyTooSlow),
            (None, Kind::UnsupportedMediaType) => Some(Refused::MediaType),
            (None, Kind::CsrfRefused) => Some(Refused::ForeignForm),
            _ => None,
        }
    }

    /// Makes the response of RFC 9457 §3, with `code` and, if members are to blame, `fields`.
    pub fn to_response(&self, site: &Site, visit: &Visit) -> Response {
        self.telling(site, visit, None)
    }

    /// Makes the same response, with `csrf_token` if the page needs it to go on. Logs faults of the server, once, here.
    pub fn telling(&self, site: &Site, visit: &Visit, csrf: Option<&str>) -> Response {
        if let Some(fault) = &self.fault {
            log(fault, visit);
        }
        let (kind, slug) = (self.kind, self.kind.slug());
        let mut body = json!({
            "type": uri(kind, site.url.as_str()),
            "title": kind.title(),
            "status": kind.status(),
            "code": slug,
        });
        body["csrf_token"] = json!(csrf);
        body["detail"] = self.detail.map_or(serde_json::Value::Null, Into::into);
        if !self.fields.is_empty() {
            body["fields"] = json!(self.fields);
        }
        if let Some(members) = body.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        let status = StatusCode::from_u16(kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = reply::plain(status, "application/problem+json", body.to_string());
        reply::private(response.headers_mut());
        match (self.wait, &self.fault) {
            (Some(wait), Some(Fault::Busy(_))) => reply::busy(&mut response, wait),
            (Some(wait), _) => reply::retry_after(&mut response, wait),
            (None, _) if kind == Kind::Unavailable => {
                reply::retry_after(&mut response, site.strain.database_back());
            }
            (None, _) => {}
        }
        if let Some(Fault::Over(over)) = &self.fault {
            reply::rate_limit(&mut response, &over.standing);
        }
        if let Some(refused) = self.refused() {
            response.extensions_mut().insert(refused);
        }
        let challenge = match kind {
            Kind::ClientRefused if visit.asking != Asking::Page => {
                Some("Basic realm=\"account API\", charset=\"UTF-8\"")
            }
            // RFC 6750 §3: at least one parameter follows the scheme.
            Kind::TokenRefused if self.bare => Some("Bearer realm=\"account API\""),
            Kind::TokenRefused => Some("Bearer error=\"invalid_token\""),
            Kind::MalformedRequest if self.unreadable => Some("Bearer error=\"invalid_request\""),
            _ => None,
        };
        if let Some(challenge) = challenge {
            reply::set(response.headers_mut(), header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Returns the `type` of a kind.
pub fn uri(kind: Kind, issuer: &str) -> String {
    format!("{issuer}{BASE}/problems/{}", kind.slug())
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        let (kind, wait) = match &fault {
            Fault::Busy(wait) => (Kind::Busy, Some(*wait)),
            Fault::Over(over) => (Kind::TooManyAttempts, Some(over.wait.into())),
            // How long that may take is known where the response is made.
            Fault::Unavailable(_) | Fault::InDoubt(_) | Fault::Contended(_) => (Kind::Unavailable, None),
            Fault::Broken(_) | Fault::Foreign(_) => (Kind::ServerError, None),
        };
        Problem { wait, fault: Some(fault), ..Problem::of(kind) }
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Problem::of(Kind::BodyTooLarge),
            BodyError::TooSlow => Problem::of(Kind::BodyTooSlow),
            BodyError::Broken => Problem::new(Kind::MalformedRequest, "the body broke off"),
            BodyError::NoRoom => Fault::Busy(BODIES_GO).into(),
        }
    }
}

impl Problem {
    /// Makes the problem of a refused attempt; `wrong` is the kind for a wrong password here.
    pub fn attempt(refusal: Refusal, wrong: Kind) -> Self {
        match refusal {
            Refusal::Wrong => Problem::of(wrong),
            Refusal::Wait(wait) => Problem { wait: Some(wait), ..Problem::of(Kind::TooManyAttempts) },
        }
    }
    /// Makes the problem of an `Authorization` header that holds no bearer token (RFC 6750 §3.1).
    pub fn bearer(error: Error) -> Self {
        Problem { unreadable: true, ..Problem::protocol(error) }
    }
    /// Makes the problem of a refusal by the protocol's rules.
    pub fn protocol(error: Error) -> Self {
        let kind = match error.code {
            ErrorCode::InvalidClient | ErrorCode::UnauthorizedClient => Kind::ClientRefused,
            ErrorCode::InvalidGrant | ErrorCode::InvalidToken => Kind::TokenRefused,
            _ => Kind::MalformedRequest,
        };
        Problem::new(kind, error.why)
    }
}
