//! What the head of a request says about its body.

use super::*;
use bytes::Bytes;
use hyper::body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll};

const FORM: &str = "application/x-www-form-urlencoded";

#[tokio::test]
async fn a_form_that_is_packed_or_in_no_charset_of_ours_is_refused_as_such() {
    // Red without the codings, or the charsets, of is_said_to_be in http/extract.rs.
    let house = House::open(&[]).await;
    let fields = [("grant_type", "refresh_token"), ("client_id", "notes"), ("refresh_token", "t")];
    let of =
        |kind: &str| Ask { headers: vec![("content-type", kind.to_owned())], ..Ask::post("/oauth2/token", &fields) };
    for said in ["gzip", "br", "GZIP", "identity, gzip", "x"] {
        for path in ["/oauth2/token", "/oauth2/revoke", "/oauth2/introspect", "/oauth2/device", "/login", "/device"] {
            let packed = Ask { path: path.to_owned(), ..of(FORM) }.with("content-encoding", said);
            let answer = packed.at(&house).await;
            // RFC 9110 §12.5.3.
            assert_eq!((answer.status, answer.header("accept-encoding")), (415, Some("identity")), "{path}: {said}");
        }
    }
    for charset in ["utf-16", "\"UTF-16LE\"", "shift_jis", ""] {
        assert_eq!(of(&format!("{FORM}; charset={charset}")).at(&house).await.status, 415, "{charset}");
    }
    for charset in ["utf-8", "UTF-8", "utf8", "\"utf-8\"", "\"Utf-8\"; x=y", "ISO-8859-1", "us-ascii"] {
        assert_ne!(of(&format!("{FORM};charset={charset}")).at(&house).await.status, 415, "{charset}");
    }
    for kind in [FORM.to_owned(), FORM.to_ascii_uppercase(), format!("{FORM}; boundary=x"), format!("{FORM};")] {
        assert_ne!(of(&kind).at(&house).await.status, 415, "{kind}");
    }
    assert_ne!(of(FORM).with("content-encoding", "Identity").at(&house).await.status, 415);
    // RFC 5789 §3.1.
    let patch = Ask::new("PATCH", "/api/v1/password").with("content-type", "text/plain").at(&house).await;
    assert_eq!((patch.status, patch.header("accept-patch")), (415, Some("application/json")));
    assert_eq!(patch.header("accept-encoding"), None);
}

/// A body that records whether anything asked for it.
struct Watched(Arc<AtomicBool>);

impl hyper::body::Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.store(true, SeqCst);
        Poll::Ready(None)
    }
}

/// Returns the status, how many failures the client has left, and whether the body was asked for.
async fn judged(house: &House, ask: &Ask, expects: bool) -> (u16, Option<String>, bool) {
    let asked = Arc::new(AtomicBool::new(false));
    let peer = Peer { address: format!("{}:4000", ask.from).parse().unwrap(), tls: true };
    let request = Request::builder().method(ask.method).uri(&ask.path).extension(peer).header("host", ask.host);
    let request = ask.headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
    let request = if expects { request.header("expect", "100-Continue") } else { request };
    let request = request.body(Body::new(Watched(Arc::clone(&asked)))).unwrap();
    let response = house.doors.clone().oneshot(request).await.unwrap();
    let left = response.headers().get("ratelimit-remaining").map(|left| left.to_str().unwrap().to_owned());
    (response.status().as_u16(), left, asked.load(SeqCst))
}

#[tokio::test]
async fn whoever_asks_before_a_body_that_nobody_would_look_at_is_told_how_it_went() {
    // Red without `waits` in http/door.rs; for the first six, without `of_no_body`, one by one.
    let rates = [("limits.failures_burst", "2"), ("limits.failures_per_address", "1")];
    let house = House::open(&rates).await;
    let json = "application/json";
    let of = |method, path: &str, kind: &str| Ask::new(method, path).with("content-type", kind);
    for (at, (status, ask)) in [
        (404, of("POST", "/nothing", FORM)),
        (405, of("DELETE", "/login", FORM)),
        (404, of("POST", "/api/v1/nothing", json)),
        (404, of("POST", "/api/v1/", json)),
        (405, of("DELETE", "/api/v1/signin", json)),
        (421, of("POST", "/oauth2/token", FORM).host("elsewhere.test")),
        (415, of("POST", "/oauth2/token", "text/plain")),
        (415, of("POST", "/oauth2/token", json)),
        (415, of("POST", "/oauth2/token", FORM).with("content-encoding", "gzip")),
        (415, of("POST", "/login", "multipart/form-data; boundary=x")),
        (415, of("POST", "/api/v1/signin", FORM)),
        (415, of("PATCH", "/api/v1/password", "text/plain")),
    ]
    .into_iter()
    .enumerate()
    {
        let (ask, other) = (ask.clone().from(&format!("192.0.2.{at}")), ask.from(&format!("198.51.100.{at}")));
        let counted = Some("1".to_owned());
        assert_eq!(judged(&house, &ask, true).await, (status, counted.clone(), false), "{} {}", ask.method, ask.path);
        assert_eq!(judged(&house, &other, false).await, (status, counted, true), "{} {}", ask.method, ask.path);
    }
    // A body that nobody states is looked at, since there may be none; asked for first, there is one.
    let unstated = Ask::new("POST", "/oauth2/token").from("192.0.2.99");
    assert_eq!(judged(&house, &unstated, true).await, (415, Some("1".to_owned()), false));
    for (address, ask) in [
        ("203.0.113.7", of("POST", "/oauth2/token", FORM)),
        ("203.0.113.8", of("POST", "/login", FORM)),
        ("203.0.113.9", of("POST", "/api/v1/signin", json)),
    ] {
        let (_, _, asked) = judged(&house, &ask.from(address), true).await;
        assert!(asked, "what is looked at is asked for");
    }
}
