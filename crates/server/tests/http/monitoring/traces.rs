//! Traces as a collector gets them: OTLP over HTTP, read here field by field.

use super::figures::{SERVED, samples};
use crate::support::*;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A collector that keeps what it is sent.
struct Collector {
    url: String,
    got: Arc<Mutex<Vec<Batch>>>,
}

/// One request to the collector.
#[derive(Clone)]
struct Batch {
    head: String,
    body: Vec<u8>,
}

/// A span, as far as it matters here.
#[derive(Clone, Debug)]
struct Span {
    trace: Vec<u8>,
    id: Vec<u8>,
    parent: Vec<u8>,
    state: String,
    name: String,
    kind: u64,
    from: u64,
    to: u64,
    attributes: HashMap<String, String>,
}

impl Collector {
    /// Answers every request with `status`.
    fn start(status: u16) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&got);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if let Some(batch) = receive(&mut stream.unwrap(), status) {
                    kept.lock().unwrap().push(batch);
                }
            }
        });
        Collector { url, got }
    }

    fn batches(&self) -> Vec<Batch> {
        self.got.lock().unwrap().clone()
    }

    /// All spans, once one is there that `wanted` wants.
    fn spans(&self, wanted: impl Fn(&Span) -> bool) -> Vec<Span> {
        let mut all = Vec::new();
        until("a span that is wanted", || {
            all = self.batches().iter().flat_map(|batch| spans(&batch.body)).collect();
            all.iter().any(&wanted)
        });
        all
    }
}

fn receive(stream: &mut TcpStream, status: u16) -> Option<Batch> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let length: usize = length.unwrap_or(0);
            if bytes.len() >= end + 4 + length {
                let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).ok()?;
                return Some(Batch { head, body: bytes[end + 4..].to_vec() });
            }
        }
        match stream.read(&mut piece) {
            Ok(count) if count > 0 => bytes.extend(&piece[..count]),
            _ => return None,
        }
    }
}

/// The fields of a protobuf message: numbers, each with a whole number or with bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (first, rest) = bytes.split_first().expect("a number");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        match tag & 7 {
            0 => found.push((tag >> 3, varint(&mut bytes), &[][..])),
            1 => {
                let (eight, rest) = bytes.split_first_chunk::<8>().expect("eight bytes");
                found.push((tag >> 3, u64::from_le_bytes(*eight), &[][..]));
                bytes = rest;
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                found.push((tag >> 3, 0, &bytes[..length]));
                bytes = &bytes[length..];
            }
            other => panic!("wire type {other}"),
        }
    }
    found
}

fn of<'a>(message: &[(u64, u64, &'a [u8])], number: u64) -> Vec<&'a [u8]> {
    message.iter().filter(|(field, ..)| *field == number).map(|(_, _, bytes)| *bytes).collect()
}

fn attributes(message: &[(u64, u64, &[u8])], number: u64) -> HashMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let pair = |bytes: &[u8]| {
        let pair = fields(bytes);
        let value = fields(of(&pair, 2)[0]);
        let value = match value[0] {
            (1, _, bytes) => text(bytes),
            (3, number, _) => number.to_string(),
            other => panic!("{other:?}"),
        };
        (text(of(&pair, 1)[0]), value)
    };
    of(message, number).into_iter().map(pair).collect()
}

/// The spans of an `ExportTraceServiceRequest`.
fn spans(body: &[u8]) -> Vec<Span> {
    let mut found = Vec::new();
    for resource_spans in of(&fields(body), 1) {
        let resource_spans = fields(resource_spans);
        let resource = attributes(&fields(of(&resource_spans, 1)[0]), 1);
        assert_eq!(resource["service.name"], "portiere");
        for scope in of(&resource_spans, 2) {
            for span in of(&fields(scope), 2) {
                let span = fields(span);
                let bytes = |number| of(&span, number).first().map_or(Vec::new(), |bytes| bytes.to_vec());
                let number = |wanted| span.iter().find(|(field, ..)| *field == wanted).map_or(0, |field| field.1);
                found.push(Span {
                    trace: bytes(1),
                    id: bytes(2),
                    parent: bytes(4),
                    state: String::from_utf8(bytes(3)).unwrap(),
                    name: String::from_utf8(bytes(5)).unwrap(),
                    kind: number(6),
                    from: number(7),
                    to: number(8),
                    attributes: attributes(&span, 9),
                });
            }
        }
    }
    found
}

#[test]
fn a_sign_in_is_a_span_with_its_stages_below() {
    let collector = Collector::start(200);
    let folder = tempfile::tempdir().unwrap();
    let headers = folder.path().join("headers");
    std::fs::write(&headers, "Authorization: Bearer of-the-collector\n").unwrap();
    std::fs::set_permissions(&headers, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let server = Server::leaked(&[
        SERVED,
        ("PORTIERE_TRACE_ENDPOINT", &collector.url),
        ("PORTIERE_TRACE_SAMPLE", "1"),
        ("PORTIERE_TRACE_HEADERS", headers.to_str().unwrap()),
    ]);
    let person = Person::add(server);
    Browser::of(server, &person);
    let spans = collector.spans(|span| span.name == "POST /login");
    let root = spans.iter().find(|span| span.name == "POST /login").unwrap();
    assert_eq!((root.trace.len(), root.id.len(), root.parent.len(), root.kind), (16, 8, 0, 2));
    let attribute = |name: &str| root.attributes[name].as_str();
    assert_eq!((attribute("http.route"), attribute("http.response.status_code")), ("/login", "303"));
    assert!(root.state.is_empty() && !root.attributes.contains_key("http.request.method_original"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    assert!(root.from < root.to && root.to <= now && now - root.from < 120_000_000_000, "{root:?}");
    let below: Vec<_> = spans.iter().filter(|span| span.parent == root.id).collect();
    for stage in ["fetch", "hash", "commit"] {
        let span = below.iter().find(|span| span.name == stage).unwrap_or_else(|| panic!("{stage}: {below:?}"));
        assert_eq!((&span.trace, span.kind), (&root.trace, 1));
        assert!(root.from <= span.from && span.from < span.to && span.to <= root.to, "{span:?} in {root:?}");
    }
    let mut ids: Vec<_> = spans.iter().map(|span| &span.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), spans.len(), "every span has an id of its own");
    let batch = &collector.batches()[0];
    assert!(batch.head.starts_with("post /v1/traces http/1.1") && batch.head.contains("bearer of-the-collector"));
    assert!(batch.head.contains("content-type: application/x-protobuf"));
    for batch in collector.batches() {
        let told = String::from_utf8_lossy(&batch.body).into_owned();
        for secret in [&person.name, &person.email, &person.password, "127.0.0.1"] {
            assert!(!told.contains(secret), "{secret}");
        }
    }
    // They are counted once the collector's answer was read.
    until("they are counted", || samples(server)["portiere_trace_spans_sent_total"] >= 4.0);
    assert!(!server.log().contains("of-the-collector"));
}

#[test]
fn only_a_listed_proxy_says_what_a_request_is_a_part_of() {
    // red with `true` in place of via_proxy in http/front.rs.
    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const STATE: &str = "vendor=opaque,other=1";
    let header = |flags: &str| format!("00-{TRACE}-b7ad6b7169203331-{flags}");
    let collector = Collector::start(200);
    let traced = [("PORTIERE_TRACE_ENDPOINT", collector.url.as_str())];
    let with = |sample: &'static str, more: &[(&'static str, &'static str)]| {
        let more = more.iter().copied().chain([("PORTIERE_TRACE_SAMPLE", sample)]);
        Server::leaked(&traced.into_iter().chain(more).collect::<Vec<_>>())
    };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let strange = with("1", &[]);
    let of_stranger = Call::get("/oauth2/jwks").header("traceparent", &header("01")).header("tracestate", STATE);
    strange.send(&of_stranger.header("x-forwarded-proto", "https")).must_be(200);
    let spans = collector.spans(|span| span.name == "GET /oauth2/jwks");
    assert!(spans.iter().all(|span| hex(&span.trace) != TRACE && span.state.is_empty()), "a stranger was believed");
    assert!(spans.iter().filter(|span| span.kind == 2).all(|span| span.attributes["url.scheme"] == "http"));
    let behind = with("0", &[("PORTIERE_PROXY_TRUSTED", "127.0.0.1")]);
    let of_proxy = Call::get("/oauth2/jwks").header("traceparent", &header("01")).header("tracestate", STATE);
    behind.send(&of_proxy.header("x-forwarded-proto", "https").header("x-forwarded-for", "203.0.113.7")).must_be(200);
    behind.send(&Call::get("/setup").header("traceparent", &header("00")));
    behind.get("/healthz").must_be(200);
    let spans = collector.spans(|span| hex(&span.trace) == TRACE);
    let root = spans.iter().find(|span| hex(&span.trace) == TRACE && span.kind == 2).unwrap();
    assert_eq!((root.name.as_str(), hex(&root.parent).as_str()), ("GET /oauth2/jwks", "b7ad6b7169203331"));
    assert_eq!(root.attributes["url.scheme"], "https", "as the visitor asked the proxy");
    assert!(spans.iter().filter(|span| hex(&span.trace) == TRACE).all(|span| span.state == STATE), "{spans:?}");
    behind.stop();
    let names: Vec<_> = collector.spans(|_| true).into_iter().map(|span| span.name).collect();
    assert!(!names.contains(&"GET /setup".to_owned()), "its caller does not keep the trace");
}

#[test]
fn a_collector_that_takes_nothing_holds_up_nobody() {
    let collector = Collector::start(400);
    let server = Server::leaked(&[SERVED, ("PORTIERE_TRACE_ENDPOINT", &collector.url), ("PORTIERE_TRACE_SAMPLE", "1")]);
    // Nothing listens there.
    let away =
        Server::leaked(&[SERVED, ("PORTIERE_TRACE_ENDPOINT", "http://127.0.0.1:1/"), ("PORTIERE_TRACE_SAMPLE", "1")]);
    for server in [server, away] {
        for _ in 0..1500 {
            server.get("/healthz").must_be(200);
        }
    }
    let dropped =
        |server, reason: &str| samples(server)[&format!("portiere_trace_spans_dropped_total{{reason=\"{reason}\"}}")];
    until("spans are dropped", || {
        dropped(server, "export") > 0.0 && dropped(away, "queue") + dropped(away, "export") > 0.0
    });
    assert_eq!(samples(server)["portiere_trace_spans_sent_total"], 0.0);
    until("it is told", || server.log().contains("traces do not reach the collector"));
}

#[test]
fn a_span_says_what_the_conventions_require_of_every_request() {
    // Red without url.path, url.scheme or http.request.method_original in trace/otlp.rs, or with a method less in metrics/requests.rs.
    let collector = Collector::start(200);
    let server = Server::leaked(&[SERVED, ("PORTIERE_TRACE_ENDPOINT", &collector.url), ("PORTIERE_TRACE_SAMPLE", "1")]);
    let long = format!("/assets/{}", "x".repeat(2000));
    for (method, path, route, told) in [
        ("GET", "/login?hint=of-the-query", Some("/login"), "/login"),
        ("PUT", "/login", Some("/login"), "/login"),
        ("DELETE", "/account", Some("/account"), "/account"),
        ("TRACE", "/setup", Some("/setup"), "/setup"),
        ("PATCH", "/api/v1/me", Some("/api/v1/me"), "/api/v1/me"),
        ("GET", "/assets/none.css", Some("/assets/{name}"), "/assets/none.css"),
        ("HEAD", long.as_str(), Some("/assets/{name}"), &long[..256]),
        ("BREW", "/device", Some("/device"), "/device"),
        ("get", "/try", Some("/try"), "/try"),
        ("POST", "/invitations/typed-by-mistake", None, "/REDACTED"),
    ] {
        let known = !["BREW", "get"].contains(&method);
        let named = if known { method } else { "HTTP" };
        let name = route.map_or_else(|| named.to_owned(), |route| format!("{named} {route}"));
        server.send(&Call::new(method, path));
        let spans = collector.spans(|span| span.name == name);
        let root = spans.iter().find(|span| span.name == name).unwrap();
        let said = |attribute: &str| root.attributes.get(attribute).map(String::as_str);
        assert_eq!((said("url.scheme"), said("url.path")), (Some("http"), Some(told)), "{method} {path}");
        assert_eq!(said("http.request.method"), Some(if known { method } else { "_OTHER" }));
        assert_eq!(said("http.request.method_original"), (!known).then_some(method));
        assert_eq!(said("http.route"), route);
    }
    for batch in collector.batches() {
        let told = String::from_utf8_lossy(&batch.body).into_owned();
        assert!(!told.contains("typed-by-mistake") && !told.contains("of-the-query"), "{told}");
    }
    server.kill();
}
