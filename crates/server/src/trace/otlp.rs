//! Traces in the encoding of OTLP: the protobuf message `ExportTraceServiceRequest`, of which a dozen fields are
//! needed. Field numbers are those of opentelemetry-proto 1.x.

use super::Trace;
use crate::metrics::NO_ROUTE;
use app::tally::Label;
use rules::Time;
use std::time::Instant;

/// The kinds of spans that are used here.
const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
/// The status of a span whose request failed by the server's fault.
const ERROR: u64 = 2;
/// Stands for a path that is not one of ours: the client may have put anything there.
const SCRUBBED: &str = "/REDACTED";

/// The sender.
pub struct Resource {
    /// The name of the node, a new one at each start.
    pub node: String,
}

/// What a collector rejected of a batch that it answered with success (OTLP, "Partial Success"). It is not sent again.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// How many spans.
    pub spans: u64,
    /// Why, in the collector's words.
    pub why: String,
}

/// Reads an `ExportTraceServiceResponse`; one that cannot be read rejects nothing.
pub fn rejected(answer: &[u8]) -> Rejected {
    let partial = fields(answer).into_iter().find(|(number, _)| *number == 1);
    let Some((_, Field::Bytes(partial))) = partial else { return Rejected::default() };
    let mut rejected = Rejected::default();
    for (number, field) in fields(partial) {
        match (number, field) {
            (1, Field::Number(spans)) => rejected.spans = u64::try_from(spans.cast_signed()).unwrap_or(0),
            (2, Field::Bytes(why)) => rejected.why = String::from_utf8_lossy(why).chars().take(LONGEST_WHY).collect(),
            _ => {}
        }
    }
    rejected
}

/// The most characters of a collector's words that are told.
const LONGEST_WHY: usize = 200;

/// A field of a message; other types are not read.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Returns the fields of a message up to the first that cannot be read.
fn fields(message: &[u8]) -> Vec<(u64, Field<'_>)> {
    let (mut rest, mut found) = (message, Vec::new());
    while let Some(tag) = varint(&mut rest) {
        let field = match tag & 7 {
            0 => varint(&mut rest).map(Field::Number),
            2 => varint(&mut rest).and_then(|length| {
                let (bytes, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                rest = behind;
                Some(Field::Bytes(bytes))
            }),
            _ => None,
        };
        let Some(field) = field else { break };
        found.push((tag >> 3, field));
    }
    found
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// A message being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn fixed(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn nested(&mut self, field: u64, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// Writes the `trace_state` of a span, if there is one.
    fn state(&mut self, state: &str) {
        if !state.is_empty() {
            self.bytes(3, state.as_bytes());
        }
    }

    /// Writes a `KeyValue` with a text.
    fn text(&mut self, field: u64, key: &str, value: &str) {
        self.nested(field, |pair| {
            pair.bytes(1, key.as_bytes());
            pair.nested(2, |any| any.bytes(1, value.as_bytes()));
        });
    }

    /// Writes a `KeyValue` with a whole number.
    fn count(&mut self, field: u64, key: &str, value: u64) {
        self.nested(field, |pair| {
            pair.bytes(1, key.as_bytes());
            pair.nested(2, |any| any.number(3, value));
        });
    }
}

/// Returns the request that sends these traces to a collector. `now` says what time it was at an instant.
pub fn request(resource: &Resource, traces: &[Trace], now: (Instant, Time)) -> Vec<u8> {
    let mut request = Message::default();
    request.nested(1, |of_resource| {
        of_resource.nested(1, |message| {
            message.text(1, "service.name", "portiere");
            message.text(1, "service.version", env!("CARGO_PKG_VERSION"));
            message.text(1, "service.instance.id", &resource.node);
        });
        of_resource.nested(2, |scope| {
            scope.nested(1, |message| message.bytes(1, b"portiere"));
            traces.iter().for_each(|trace| spans(scope, trace, now));
        });
    });
    request.0
}

/// Writes the span of a request, and those of its stages.
fn spans(scope: &mut Message, trace: &Trace, (instant, time): (Instant, Time)) {
    let ago = instant.saturating_duration_since(trace.began).as_nanos();
    let began = (i128::from(time.0) * 1_000_000).saturating_sub_unsigned(ago);
    let at = |after: std::time::Duration| u64::try_from(began.saturating_add_unsigned(after.as_nanos())).unwrap_or(0);
    let of = &trace.of;
    scope.nested(2, |span| {
        span.bytes(1, &of.trace);
        span.bytes(2, &of.span);
        span.state(&of.state);
        if let Some(parent) = &of.parent {
            span.bytes(4, parent);
        }
        // As OpenTelemetry's conventions for HTTP want it: an unknown route is left out, and an unknown method has a
        // name of theirs.
        let method = if &*trace.method == "other" { "_OTHER" } else { &trace.method };
        let route = Some(&*trace.route).filter(|route| *route != NO_ROUTE);
        let verb = if method == "_OTHER" { "HTTP" } else { method };
        let name = route.map_or_else(|| verb.to_owned(), |route| format!("{verb} {route}"));
        span.bytes(5, name.as_bytes());
        span.number(6, SERVER);
        span.fixed(7, at(std::time::Duration::ZERO));
        span.fixed(8, at(trace.took));
        span.text(9, "http.request.method", method);
        if method == "_OTHER" {
            span.text(9, "http.request.method_original", &of.method);
        }
        span.text(9, "url.scheme", of.scheme);
        span.text(9, "url.path", if route.is_some() { &of.path } else { SCRUBBED });
        if let Some(route) = route {
            span.text(9, "http.route", route);
        }
        span.count(9, "http.response.status_code", trace.status.into());
        span.text(9, "portiere.request_id", &trace.request);
        if let Some(refused) = trace.refused {
            span.text(9, "portiere.refused", refused.name());
        }
        if trace.status >= 500 {
            span.text(9, "error.type", &trace.status.to_string());
            span.nested(15, |status| status.number(3, ERROR));
        }
    });
    for (number, lap) in trace.laps.iter().enumerate() {
        scope.nested(2, |span| {
            span.bytes(1, &of.trace);
            span.bytes(2, &of.stage(number));
            span.state(&of.state);
            span.bytes(4, &of.span);
            span.bytes(5, lap.stage.name().as_bytes());
            span.number(6, INTERNAL);
            span.fixed(7, at(lap.after));
            span.fixed(8, at(lap.after + lap.took));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_collector_rejects_is_read_and_nothing_else_is() {
        let mut answer = Message::default();
        answer.nested(1, |partial| {
            partial.number(1, 300);
            partial.bytes(2, b"span too old");
        });
        assert_eq!(rejected(&answer.0), Rejected { spans: 300, why: "span too old".to_owned() });
        let mut less = Message::default();
        less.nested(1, |partial| partial.number(1, u64::MAX));
        for nothing in
            [&b""[..], b"{}", b"\x0a\xff", b"\x0a\x00", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", &less.0]
        {
            assert_eq!(rejected(nothing), Rejected::default(), "{nothing:?}");
        }
    }
}
