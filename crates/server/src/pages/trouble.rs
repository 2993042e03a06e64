//! Pages for errors and delays, and the page that only passes a response on.

use super::chrome::{Back, harmless};
use super::messages::Messages;

/// What went wrong, in words for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The application sent a request that cannot be answered.
    BadRequest,
    /// The application is not registered here, or is disabled.
    UnknownClient,
    /// The address to return to is not one that the application registered.
    WrongRedirect,
    /// The application is not allowed to do this.
    ClientForbidden,
    /// The application asked for access that it is not allowed.
    WrongScope,
    /// The user, or a rule, refused.
    Denied,
    /// The request did not arrive completely.
    Slow,
    /// The form is too old or was opened in another browser: start again.
    Stale,
    /// No cookie came: the form seems stale, or the browser keeps no cookies.
    NoCookie,
    /// The form was sent from another site.
    ForeignForm,
    /// There is no such page.
    NotFound,
    /// The page exists, but not for this method.
    WrongMethod,
    /// Likewise, for a page that is the response to a form.
    FormAnswer,
    /// The request is larger than what is read.
    TooLarge,
    /// The request names a host that is not served here.
    WrongHost,
    /// A fault of the server.
    Fault,
    /// The server is not ready, or cannot write.
    Unavailable,
}

impl Reason {
    /// Returns the reason for an error code of RFC 6749 §4.1.2.1 and §5.2, or of OpenID Connect Core §3.1.2.6.
    pub fn of_code(code: &str) -> Reason {
        match code {
            "unauthorized_client" | "unsupported_response_type" | "unsupported_grant_type" => Reason::ClientForbidden,
            "invalid_client" => Reason::UnknownClient,
            "invalid_scope" | "invalid_target" => Reason::WrongScope,
            "access_denied" => Reason::Denied,
            "server_error" => Reason::Fault,
            "temporarily_unavailable" => Reason::Unavailable,
            _ => Reason::BadRequest,
        }
    }

    /// Returns whether a user who came without an application can start again here.
    fn begins_anew(self) -> bool {
        matches!(self, Reason::Stale | Reason::NoCookie | Reason::FormAnswer)
    }

    /// Returns whether only those who run the application or this server can help: nothing that the request says is
    /// trusted enough to lead anywhere (RFC 9700 §4.11.2).
    fn is_for_operators(self) -> bool {
        matches!(self, Reason::UnknownClient | Reason::WrongRedirect)
    }

    /// Returns whether the way on is shown as an address.
    fn names_address(self) -> bool {
        self == Reason::WrongHost
    }

    fn key(self) -> &'static str {
        match self {
            Reason::BadRequest => "error.bad_request",
            Reason::UnknownClient => "error.unknown_client",
            Reason::WrongRedirect => "error.wrong_redirect",
            Reason::ClientForbidden => "error.client_forbidden",
            Reason::WrongScope => "error.wrong_scope",
            Reason::Denied => "error.denied",
            Reason::Slow => "error.slow",
            Reason::Stale => "error.stale",
            Reason::NoCookie => "error.no_cookie",
            Reason::ForeignForm => "error.foreign_form",
            Reason::NotFound => "error.not_found",
            Reason::WrongMethod => "error.wrong_method",
            Reason::FormAnswer => "error.form_answer",
            Reason::TooLarge => "error.too_large",
            Reason::WrongHost => "error.wrong_host",
            Reason::Fault => "error.fault",
            Reason::Unavailable => "error.unavailable",
        }
    }
}

/// An error, shown on our own page.
#[derive(Clone, Copy, Debug)]
pub struct ErrorPage<'a> {
    /// The HTTP status, shown small.
    pub status: u16,
    /// What to tell the user.
    pub reason: Reason,
    /// The error code for the application's developers, such as `invalid_request`; empty if there is none.
    pub code: &'a str,
    /// One sentence for the application's developers, in English; never text from the request.
    pub detail: Option<&'a str>,
    /// The id to look for in the log.
    pub request_id: &'a str,
    /// The way back to the application, error parameters included, if client and redirect URI are valid.
    pub back: Option<Back<'a>>,
    /// Where on this server to start again, if not at the sign-in page.
    pub anew: Option<&'a str>,
    /// Whether the same address can simply be opened again.
    pub repeats: bool,
}

/// The same step again, for a user who has to come back.
#[derive(Clone, Copy, Debug)]
pub enum Retry<'a> {
    /// The requested page.
    Page,
    /// The form that was sent, to the same address.
    Form {
        /// What was typed or chosen: name and value.
        fields: &'a [(&'a str, &'a str)],
        /// If the current and the new password have to be typed again: the fewest characters of the new one.
        minimum: Option<usize>,
    },
}

/// 503: the server is overloaded, or its database is away.
#[derive(Clone, Copy, Debug)]
pub struct BusyPage<'a> {
    /// Whether the database is away.
    pub away: bool,
    /// Whole seconds to wait, as in `Retry-After`.
    pub seconds: i64,
    /// The id to look for in the log.
    pub request_id: &'a str,
    /// How to go on afterwards.
    pub retry: Option<Retry<'a>>,
}

/// 429: this caller has asked too often.
#[derive(Clone, Copy, Debug)]
pub struct ThrottledPage<'a> {
    /// Whole seconds to wait, as in `Retry-After`.
    pub seconds: i64,
    /// The id to look for in the log.
    pub request_id: &'a str,
    /// How to go on afterwards.
    pub retry: Option<Retry<'a>>,
}

/// An authorization response by POST (OAuth 2.0 Form Post Response Mode), sent by script or by hand.
#[derive(Clone, Copy, Debug)]
pub struct FormPostPage<'a> {
    /// The verified redirect URI.
    pub action: &'a str,
    /// The application's name.
    pub client: &'a str,
    /// The response's parameters: name and value.
    pub fields: &'a [(&'a str, &'a str)],
}

impl Retry<'_> {
    fn is_form(&self) -> bool {
        matches!(self, Retry::Form { .. })
    }

    fn fields(&self) -> &[(&str, &str)] {
        match self {
            Retry::Page => &[],
            Retry::Form { fields, .. } => fields,
        }
    }

    fn minimum(&self) -> Option<usize> {
        match self {
            Retry::Page => None,
            Retry::Form { minimum, .. } => *minimum,
        }
    }
}

impl ErrorPage<'_> {
    /// Returns whether the same request may be answered the next time.
    fn may_pass(&self) -> bool {
        self.repeats && matches!(self.reason, Reason::Fault | Reason::Unavailable)
    }
}

impl BusyPage<'_> {
    fn title(&self) -> &'static str {
        if self.away { "error.unavailable" } else { "busy.title" }
    }

    fn text(&self, t: &Messages) -> String {
        let sent = matches!(self.retry, Some(Retry::Form { .. }));
        let key = match (self.away, sent) {
            (true, true) => "away.form",
            (true, false) => "away.text",
            (false, true) => "busy.form",
            (false, false) => "busy.text",
        };
        t.with_wait(key, self.seconds)
    }
}

impl ThrottledPage<'_> {
    fn text(&self, t: &Messages) -> String {
        t.with_wait("throttled.text", self.seconds)
    }
}

impl FormPostPage<'_> {
    fn target(&self) -> &str {
        harmless(self.action)
    }
}

super::page!(ErrorPage<'_>, "error.html");
super::page!(BusyPage<'_>, "busy.html");
super::page!(ThrottledPage<'_>, "throttled.html");
super::page!(FormPostPage<'_>, "form_post.html");
