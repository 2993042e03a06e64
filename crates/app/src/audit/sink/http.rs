//! Entries as lines of JSON by POST. A receiver has them when it answers 2xx.

use super::Refused;
use crate::audit::deliver::json_lines;
use crate::reach::{Inbox, OpenError, Target, Tls, retry_after};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, InvalidHeaderValue, USER_AGENT};
use hyper::http::response::Parts as Head;
use rules::Time;
use rules::audit::Line;
use rules::fresh::from_base32hex;
use rules::realm::Realm;
use rules::secret::hexadecimal;
use zeroize::Zeroizing;

/// Refusals that are not about what was sent, but about who sends it, where to, when, and in which form: another batch
/// would be refused as well.
pub(super) const OTHERWISE: [StatusCode; 23] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::PAYMENT_REQUIRED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::NOT_ACCEPTABLE,
    StatusCode::PROXY_AUTHENTICATION_REQUIRED,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::CONFLICT,
    StatusCode::GONE,
    StatusCode::LENGTH_REQUIRED,
    StatusCode::PRECONDITION_FAILED,
    StatusCode::URI_TOO_LONG,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::EXPECTATION_FAILED,
    StatusCode::MISDIRECTED_REQUEST,
    StatusCode::LOCKED,
    StatusCode::FAILED_DEPENDENCY,
    StatusCode::TOO_EARLY,
    StatusCode::UPGRADE_REQUIRED,
    StatusCode::PRECONDITION_REQUIRED,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
];

/// An HTTP server.
pub struct Http {
    inbox: Inbox,
    headers: HeaderMap,
    key: Option<hmac::Key>,
}

/// What authenticates us to a receiver.
#[derive(Default)]
pub struct Credentials {
    /// Sent as `Authorization: Bearer`.
    pub token: Option<Zeroizing<Vec<u8>>>,
    /// The key that signs each request.
    pub key: Option<Zeroizing<Vec<u8>>>,
    /// Header fields that go with each request. They replace ours, except those that name and sign a batch.
    pub headers: HeaderMap,
}

impl Http {
    /// At `https://…`, with TLS as `tls` says, or `http://…` on this machine.
    ///
    /// # Errors
    /// What is wrong with the URL or the credentials, or which file cannot be used.
    pub fn new(url: &str, tls: &Tls, credentials: Credentials) -> Result<Self, OpenError> {
        let target = Http::target(url).map_err(OpenError::Settings)?;
        let inbox = Inbox::at("the HTTP server of the audit log", target, tls)?;
        let headers = fixed(&credentials).map_err(|why| OpenError::Settings(why.to_owned()))?;
        let key = credentials.key.as_ref().map(|key| hmac::Key::new(hmac::HMAC_SHA256, key));
        Ok(Http { inbox, headers, key })
    }

    /// Reads such a URL.
    pub fn target(url: &str) -> Result<Target, String> {
        let target = Target::parse(url)?;
        match target.scheme.as_str() {
            "https" | "http" if target.keeps_secrets() => Ok(target),
            "http" => Err("must be https, except on this machine".to_owned()),
            _ => Err("must begin with https://".to_owned()),
        }
    }

    /// Closes the connection that is kept, once it was not used for a while.
    pub(super) fn let_go(&self) {
        self.inbox.let_go();
    }

    pub(super) async fn send(&self, realm: &Realm, lines: &[Line]) -> Result<(), Refused> {
        let body = Bytes::from(json_lines(&realm.id, lines));
        let fields = self.fields(lines, &body).map_err(|error| Refused::because(error.to_string()))?;
        judge(&self.inbox.post(fields, body).await.map(|(head, _)| head).map_err(|lost| match lost.reached {
            true => Refused::in_the_midst(lost.why),
            false => Refused::because(lost.why),
        })?)
    }

    /// Returns the header fields that name the batch and show who sends it.
    fn fields(&self, lines: &[Line], body: &[u8]) -> Result<HeaderMap, InvalidHeaderValue> {
        let mut fields = self.headers.clone();
        if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
            fields.insert("portiere-batch", format!("{}-{}", name(&first.id), name(&last.id)).try_into()?);
            if let Some(key) = &self.key {
                fields.insert("portiere-signature", signature(key, last.at, body).try_into()?);
            }
        }
        Ok(fields)
    }
}

/// Names an entry in a header field: by its id, or by a hash of an id that is not of our form. Somebody who writes into
/// the database can give an entry an id that no field can have, or that is longer than any receiver takes.
fn name(id: &str) -> String {
    match from_base32hex(id) {
        Some(_) => id.to_owned(),
        None => hexadecimal(digest(&SHA256, id.as_bytes()).as_ref()),
    }
}

/// The header fields of each request.
fn fixed(credentials: &Credentials) -> Result<HeaderMap, &'static str> {
    let mut fields = HeaderMap::new();
    fields.insert(USER_AGENT, HeaderValue::from_static(concat!("portiere/", env!("CARGO_PKG_VERSION"))));
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    if let Some(token) = &credentials.token {
        let value = Zeroizing::new([b"Bearer ".as_slice(), token].concat());
        let mut value =
            HeaderValue::from_bytes(&value).map_err(|_| "its token has characters that a header cannot have")?;
        value.set_sensitive(true);
        fields.insert(AUTHORIZATION, value);
    }
    if credentials.token.is_some() && credentials.headers.contains_key(AUTHORIZATION) {
        return Err("both its headers (Authorization) and token_file set a token: give only one of them");
    }
    fields.extend(credentials.headers.clone());
    Ok(fields)
}

/// `t=SECONDS,v1=HEX`: HMAC-SHA-256 over the seconds, a dot and the body. The time is that of the last entry, so that
/// entries which are sent again are signed the same.
fn signature(key: &hmac::Key, at: Time, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(at.seconds().to_string().as_bytes());
    context.update(b".");
    context.update(body);
    format!("t={},v1={}", at.seconds(), hexadecimal(context.sign().as_ref()))
}

fn judge(head: &Head) -> Result<(), Refused> {
    let status = head.status;
    let why = match status {
        status if status.is_success() => return Ok(()),
        status if status.is_redirection() => format!("the receiver answered {status}: redirects are not followed"),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            format!("the receiver answered {status}: check the token, or what audit.http.headers has in its place")
        }
        status => format!("the receiver answered {status}"),
    };
    let for_good = status.is_client_error() && !OTHERWISE.contains(&status);
    // 503 says that it is only the moment (RFC 9110 §15.6.4).
    let doubtful = status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE;
    Err(Refused { why, after: retry_after(head), for_good, doubtful })
}
