//! Requests and connections.

use crate::metrics::declare::{Group, counter, gauge, histogram};

/// Requests and connections.
pub static GROUP: Group = Group {
    about: "Requests and connections",
    metrics: &[
        counter(
            "portiere_http_requests_total",
            &["route", "method", "status"],
            "Requests that were answered. The route is a template of the server's own, never what was asked for; none where \
             no route fits.",
            |now, out| {
                now.from.requests.answers(|route, method, status, count| out.of(&[route, method, status], count));
            },
        ),
        histogram(
            "portiere_http_request_duration_seconds",
            &["route", "put_off"],
            "Time from the headers of a request to its answer, without the times that the client takes to send its body (the stage body) \
             and to read the answer, and without the stage pace; apart (put_off is yes, otherwise no) of those that were refused as \
             busy or for a rate, which is quick and would hide how long the others take.",
            |now, out| now.from.requests.times(|route, put_off, times| out.spread(&[route, put_off], times)),
        ),
        histogram(
            "portiere_http_stage_duration_seconds",
            &["stage"],
            "Time that a request spent in a stage, of those requests that were in it: body, door (other requests of the kind), fetch (reads of the database), \
             turnstile (other attempts on the same account, or from the same address), hash_queue, hash, evening (answers kept back so that their time \
             tells nothing), commit_queue, commit, sign, pace (refusals that are told in turn).",
            |now, out| now.from.requests.stages().for_each(|(stage, times)| out.spread(&[stage], &times)),
        ),
        gauge("portiere_http_requests_in_flight", &[], "Requests that are being answered.", |now, out| {
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
            "Requests that were refused for a reason that no protocol gives: busy (too many wait for a hash or for a place), database and \
             contended (others changed the same each time) are answered 503, throttled and rate 429, fault 500; the others say what was \
             wrong with a body, a form or the host.",
            |now, out| out.each(now.from.requests.refusals.sums()),
        ),
        counter(
            "portiere_oauth_errors_total",
            &["error"],
            "Errors of OAuth and OpenID Connect that were answered to a client or shown on a page, by their code. Those that \
             are sent to a redirect URI are not in it.",
            |now, out| out.each(now.from.requests.errors.sums()),
        ),
        gauge(
            "portiere_tls_certificate_expiry_timestamp_seconds",
            &[],
            "TLS: when the certificate in force ends, in Unix time.",
            |now, out| {
                if let Some(end) = now.from.tls.as_ref().and_then(|tls| tls.end()) {
                    out.one(end.seconds());
                }
            },
        ),
        counter(
            "portiere_tls_handshakes_failed_total",
            &[],
            "TLS: handshakes that came to nothing: no common version, a certificate that the client does not believe, or a client \
             that speaks no TLS or went away.",
            |now, out| now.from.tls.iter().for_each(|tls| out.one(tls.failed())),
        ),
        gauge(
            "portiere_connections",
            &[],
            "Connections that are open, without those to the metrics; by HTTP/2 each further request at the same time counts as one \
             more.",
            |now, out| {
                out.one(now.from.caps.open());
            },
        ),
        gauge(
            "portiere_connections_max",
            &[],
            "The most connections that there may be (limits.connections).",
            |now, out| {
                out.one(now.from.caps.most());
            },
        ),
        counter(
            "portiere_connections_refused_total",
            &["cap"],
            "Connections that were closed at once, and requests by HTTP/2 that were refused, because there were too many in all \
             (total) or from one address (address).",
            |now, out| {
                now.from.caps.refused().iter().for_each(|(cap, count)| out.of(&[cap], *count));
            },
        ),
        counter(
            "portiere_connections_cut_total",
            &["reason"],
            "Connections that were cut: in a TLS handshake that took too long (handshake), where nothing came in time or no more of a \
             request's headers (silent), where an answer by HTTP/2 was not taken (untaken), to make way for others \
             (made_way), or where too much came that asked for nothing (chatter).",
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
        gauge("portiere_admission_running", &["lane"], "Of these, the ones that are taken.", |now, out| {
            now.lanes.iter().for_each(|(lane, state)| out.of(&[lane], state.running));
        }),
        gauge("portiere_admission_waiting", &["lane"], "Requests that wait for a place.", |now, out| {
            now.lanes.iter().for_each(|(lane, state)| out.of(&[lane], state.waiting));
        }),
        gauge(
            "portiere_admission_expected_wait_seconds",
            &["lane"],
            "After how long a request that came now would have a place.",
            |now, out| {
                now.lanes.iter().for_each(|(lane, state)| out.of(&[lane], state.expected_wait.as_secs_f64()));
            },
        ),
        gauge(
            "portiere_admission_max_wait_seconds",
            &[],
            "The budget of waiting (limits.max_wait): what would wait longer is refused.",
            |now, out| out.one(now.from.admission.max_wait().as_secs_f64()),
        ),
        counter("portiere_admission_admitted_total", &["lane"], "Requests that had a place.", |now, out| {
            now.lanes.iter().for_each(|(lane, state)| out.of(&[lane], state.admitted_total));
        }),
        counter(
            "portiere_admission_refused_total",
            &["lane"],
            "Requests that would have waited longer than limits.max_wait for a place.",
            |now, out| now.lanes.iter().for_each(|(lane, state)| out.of(&[lane], state.refused_total)),
        ),
        counter(
            "portiere_admission_slowed_total",
            &[],
            "Refusals that waited for their turn to be told, for less than a second, since hashing went short of cores.",
            |now, out| out.one(now.from.admission.slowed()),
        ),
        gauge("portiere_ready", &[], "1 while /readyz says so; as it was asked last, every 5 seconds.", |now, out| {
            out.one(u8::from(now.looked.is_ready))
        }),
        gauge(
            "portiere_strained",
            &["queue"],
            "1 while a queue was nearly full for so long that the server is not ready (ready.strained_after): hashing, \
             database, tokens, pages, passwords.",
            |now, out| out.each(now.from.strain.all().map(|(queue, strained)| (queue, u8::from(strained)))),
        ),
    ],
};
