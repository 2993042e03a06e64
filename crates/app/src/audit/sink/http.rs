//! Lines of JSON by POST. A receiver has them when it answers 2xx.

use super::Refused;
use crate::audit::deliver::json_lines;
use crate::reach::{Target, connect, tls};
use aws_lc_rs::hmac;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode, body::Incoming};
use hyper_util::rt::TokioIo;
use rules::Time;
use rules::audit::{Line, hexadecimal};
use rules::realm::Realm;
use rustls::ClientConfig;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// The most of an answer's body that is read, to be thrown away.
const ANSWER: usize = 64 << 10;

/// Refusals that are not about what was sent, but about who sends it, where to, and when.
const OTHERWISE: [StatusCode; 9] = [
    StatusCode::UNAUTHORIZED,
    StatusCode::FORBIDDEN,
    StatusCode::NOT_FOUND,
    StatusCode::METHOD_NOT_ALLOWED,
    StatusCode::PROXY_AUTHENTICATION_REQUIRED,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::MISDIRECTED_REQUEST,
    StatusCode::TOO_EARLY,
    StatusCode::TOO_MANY_REQUESTS,
];

/// An HTTP server.
pub struct Http {
    target: Target,
    tls: Option<Arc<ClientConfig>>,
    authorization: Option<HeaderValue>,
    key: Option<hmac::Key>,
}

impl Http {
    /// At `https://…`, or `http://…` on this machine; `authorities` vouch for it, else those of the system. With a token it
    /// is told who we are, with a key it can prove it.
    pub fn new(
        url: &str,
        authorities: Option<&Path>,
        token: Option<&Zeroizing<Vec<u8>>>,
        key: Option<&Zeroizing<Vec<u8>>>,
    ) -> Result<Self, String> {
        let target = Http::target(url)?;
        let tls = if target.scheme == "https" { Some(tls(authorities)?) } else { None };
        let authorization = token.map(|token| {
            let value = Zeroizing::new([b"Bearer ".as_slice(), token].concat());
            let mut value =
                HeaderValue::from_bytes(&value).map_err(|_| "its token has characters that no header has")?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        let key = key.map(|key| hmac::Key::new(hmac::HMAC_SHA256, key));
        Ok(Http { target, tls, authorization: authorization.transpose()?, key })
    }

    /// Reads such a URL.
    pub fn target(url: &str) -> Result<Target, String> {
        let target = Target::parse(url)?;
        match target.scheme.as_str() {
            "https" => Ok(target),
            "http" if target.is_local() => Ok(target),
            "http" => Err("must be https, except on this machine".to_owned()),
            _ => Err("must begin with https://".to_owned()),
        }
    }

    pub(super) async fn send(&self, realm: &Realm, lines: &[Line]) -> Result<(), Refused> {
        let port = if self.tls.is_some() { 443 } else { 80 };
        let link = connect(&self.target, port, self.tls.as_ref()).await.map_err(Refused::because)?;
        let broken = |error: hyper::Error| Refused::because(format!("{}: {error}", self.target.authority()));
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(link)).await.map_err(broken)?;
        let request = self.request(realm, lines)?;
        let asked = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            judge(response).await
        };
        // The connection ends with the answer, or answers with its end.
        tokio::pin!(asked);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            answer = &mut asked => answer,
            ended = &mut connection => match ended {
                Ok(()) => asked.await,
                Err(error) => Err(broken(error)),
            },
        }
    }

    fn request(&self, realm: &Realm, lines: &[Line]) -> Result<Request<Full<Bytes>>, Refused> {
        let body = Bytes::from(json_lines(&realm.id, lines));
        let mut request = Request::post(self.target.path.as_str())
            .header(HOST, self.target.authority())
            .header(USER_AGENT, concat!("portiere/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/x-ndjson");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
            request = request.header("portiere-batch", format!("{}-{}", first.id, last.id));
            if let Some(key) = &self.key {
                request = request.header("portiere-signature", signature(key, last.at, &body));
            }
        }
        request.body(Full::new(body)).map_err(|error| Refused::because(error.to_string()))
    }
}

/// `t=SECONDS,v1=HEX`: HMAC-SHA-256 over the seconds, a dot and the body. The time is that of the last line, so that lines
/// which are sent again are signed the same.
fn signature(key: &hmac::Key, at: Time, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(at.seconds().to_string().as_bytes());
    context.update(b".");
    context.update(body);
    format!("t={},v1={}", at.seconds(), hexadecimal(context.sign().as_ref()))
}

async fn judge(response: Response<Incoming>) -> Result<(), Refused> {
    let status = response.status();
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let why = match status {
        status if status.is_success() => {
            // What it says is read, so that it may finish, and thrown away.
            let _ = Limited::new(response.into_body(), ANSWER).collect().await;
            return Ok(());
        }
        status if status.is_redirection() => format!("the receiver answered {status}: redirects are not followed"),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            format!("the receiver answered {status}: is the token right?")
        }
        status => format!("the receiver answered {status}"),
    };
    let for_good = status.is_client_error() && !OTHERWISE.contains(&status);
    Err(Refused { why, after: after.map(Duration::from_secs), for_good })
}
