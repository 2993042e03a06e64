//! Requests and connections.

use crate::metrics::declare::{Group, counter, gauge, histogram};

/// Requests and connections.
pub static GROUP: Group = Group {
    about: "Requests and connections",
    metrics: &[
        counter(
            "portiere_http_requests_total",
            &["route", "method", "status"],
            "Requests that were answered. The route is a template of the server's own, never the path of the request; \
             none if no route matches.",
            |now, out| {
                now.from.requests.answers(|route, method, status, count| out.of(&[route, method, status], count));
            },
        ),
        histogram(
            "portiere_http_request_duration_seconds",
            &["route", "put_off"],
            "Time from the headers of a request to its answer, without the time that the client takes to send the body \
             (the stage body) and to read the answer, and without the stage pace. Requests refused as busy or for a \
             rate are apart (put_off is yes, otherwise no): their quick refusals would hide how long other requests \
             take.",
            |now, out| now.from.requests.times(|route, put_off, times| out.spread(&[route, put_off], times)),
        ),
        histogram(
            "portiere_http_stage_duration_seconds",
            &["stage"],
            "Time that a request spent in a stage, of the requests that were in it: body, door (other requests of the \
             kind), fetch (reads of the database), turnstile (other attempts on the same account, or from the same \
             address), hash_queue, hash, evening (answers delayed so that their time tells nothing), commit_queue, \
             commit, sign, pace (refusals sent in turn).",
            |now, out| now.from.requests.stages().for_each(|(stage, times)| out.spread(&[stage], &times)),
        ),
        gauge("portiere_http_requests_in_flight", &[], "Requests in flight.", |now, out| {
            out.one(now.from.requests.in_flight());
        }),
        counter(
            "portiere_http_requests_abandoned_total",
            &[],
            "Requests whose client went away before the answer.",
            |now, out| out.one(now.from.requests.abandoned.sum()),
        ),
        counter("portiere_http_requests_slow_total", &[], "Requests that took longer than log.slow.", |now, out| {
            out.one(now.from.requests.slow.sum());
        }),
        counter(
            "portiere_refusals_total",
            &["reason"],
            "Requests that were refused for a reason that no protocol defines. busy (too many wait for a hash or for a \
             place), database and contended (each time, others had changed the same data) are answered with 503, \
             throttled and rate with 429, fault with 500. The other reasons say what was wrong with a body, a form or \
             the host.",
            |now, out| out.each(now.from.requests.refusals.sums()),
        ),
        counter(
            "portiere_oauth_errors_total",
            &["error"],
            "OAuth and OpenID Connect errors that were returned to a client or shown on a page, by error code. Errors \
             sent to a redirect URI are not included.",
            |now, out| out.each(now.from.requests.errors.sums()),
        ),
        gauge(
            "portiere_tls_certificate_expiry_timestamp_seconds",
            &[],
            "TLS: when the certificate in use expires, in Unix time.",
            |now, out| {
                if let Some(end) = now.from.tls.as_ref().and_then(|tls| tls.end()) {
                    out.one(end.seconds());
                }
            },
        ),
        counter(
            "portiere_tls_handshakes_failed_total",
            &[],
            "TLS: handshakes that failed: no common version, a certificate that the client does not trust, or a client \
             that speaks no TLS or went away.",
            |now, out| now.from.tls.iter().for_each(|tls| out.one(tls.failed())),
        ),
        gauge(
            "portiere_connections",
            &[],
            "Open connections, without connections to the metrics. With HTTP/2, each further concurrent request counts \
             as one more.",
            |now, out| {
                out.one(now.from.caps.open());
            },
        ),
        gauge("portiere_connections_max", &[], "The most connections allowed (limits.connections).", |now, out| {
            out.one(now.from.caps.most());
        }),
        counter(
            "portiere_connections_refused_total",
            &["cap"],
            "Connections that were closed at once, and HTTP/2 requests that were refused, because there were too many \
             in total (total) or from one address (address).",
            |now, out| {
                now.from.caps.refused().iter().for_each(|(cap, count)| out.of(&[cap], *count));
            },
        ),
        counter(
            "portiere_connections_cut_total",
            &["reason"],
            "Connections that were cut because a TLS handshake took too long (handshake), nothing or no more of a \
             request's headers came in time (silent), the client did not take an HTTP/2 answer (untaken), others \
             needed the place (made_way), or too much came that asked for nothing (chatter).",
            |now, out| {
                now.from.caps.cut().iter().for_each(|(why, count)| out.of(&[why], *count));
            },
        ),
        gauge(
            "portiere_admission_places",
            &["lane"],
            "Places for requests of a kind: tokens, pages, passwords; and for operators' commands.",
            |now, out| {
                now.lanes.iter().for_each(|(lane, state)| out.of(&[lane], state.places));
            },
        ),
        gauge("portiere_admission_running", &["lane"], "Places that are taken.", |now, out| {
            now.lanes.iter().for_each(|(lane, state)| out.of(&[lane], state.running));
        }),
        gauge("portiere_admission_waiting", &["lane"], "Requests that wait for a place.", |now, out| {
            now.lanes.iter().for_each(|(lane, state)| out.of(&[lane], state.waiting));
        }),
        gauge(
            "portiere_admission_expected_wait_seconds",
            &["lane"],
            "How long a request that arrives now would wait for a place.",
            |now, out| {
                now.lanes.iter().for_each(|(lane, state)| out.of(&[lane], state.expected_wait.as_secs_f64()));
            },
        ),
        gauge(
            "portiere_admission_max_wait_seconds",
            &[],
            "The longest wait allowed (limits.max_wait); a request that would wait longer is refused.",
            |now, out| out.one(now.from.admission.max_wait().as_secs_f64()),
        ),
        counter("portiere_admission_admitted_total", &["lane"], "Requests that got a place.", |now, out| {
            now.lanes.iter().for_each(|(lane, state)| out.of(&[lane], state.admitted_total));
        }),
        counter(
            "portiere_admission_refused_total",
            &["lane"],
            "Requests that were refused because they would have waited longer than limits.max_wait for a place.",
            |now, out| now.lanes.iter().for_each(|(lane, state)| out.of(&[lane], state.refused_total)),
        ),
        counter(
            "portiere_admission_slowed_total",
            &[],
            "Refusals that waited for their turn, for less time than they ask their client to stay away, because hashing was short of cores.",
            |now, out| out.one(now.from.admission.slowed()),
        ),
        gauge(
            "portiere_ready",
            &[],
            "1 while /readyz reports ready, as of the last check; checked every 5 seconds.",
            |now, out| out.one(u8::from(now.looked.is_ready)),
        ),
        gauge(
            "portiere_strained",
            &["queue"],
            "1 while a queue has been nearly full for so long that the server is not ready (ready.strained_after): \
             hashing, database, tokens, pages, passwords.",
            |now, out| out.each(now.from.strain.all().map(|(queue, strained)| (queue, u8::from(strained)))),
        ),
    ],
};
