//! The process itself, under the names that all Prometheus clients use, and its traces.

use crate::metrics::declare::{Group, counter, gauge};

/// The process.
pub static GROUP: Group = Group {
    about: "The process",
    metrics: &[
        gauge("portiere_build_info", &["version"], "1, for the version that runs.", |_, out| {
            out.of(&[env!("CARGO_PKG_VERSION")], 1);
        }),
        counter(
            "portiere_trace_spans_sent_total",
            &[],
            "Spans that a collector accepted (trace.endpoint).",
            |now, out| {
                out.one(now.from.tracer.spans.sent.sum());
            },
        ),
        counter(
            "portiere_trace_spans_dropped_total",
            &["reason"],
            "Spans that were dropped: queue (more came than could be sent), export (the collector could not be reached \
             or refused them).",
            |now, out| {
                out.of(&["queue"], now.from.tracer.spans.unqueued.sum());
                out.of(&["export"], now.from.tracer.spans.undelivered.sum());
            },
        ),
        counter("process_cpu_seconds_total", &[], "CPU time, user and system, of all threads.", |now, out| {
            now.process.iter().for_each(|process| out.one(process.cpu));
        }),
        gauge("process_resident_memory_bytes", &[], "Resident memory.", |now, out| {
            now.process.iter().for_each(|process| out.one(process.resident));
        }),
        gauge("process_virtual_memory_bytes", &[], "Address space.", |now, out| {
            now.process.iter().for_each(|process| out.one(process.virtual_size));
        }),
        gauge("process_threads", &[], "Threads.", |now, out| {
            now.process.iter().for_each(|process| out.one(process.threads));
        }),
        gauge("process_open_fds", &[], "Open files and sockets.", |now, out| {
            now.process.iter().for_each(|process| out.one(process.open_files));
        }),
        gauge("process_max_fds", &[], "The most files and sockets that may be open.", |now, out| {
            now.process.iter().filter_map(|process| process.most_files).for_each(|most| out.one(most));
        }),
        gauge("process_start_time_seconds", &[], "When the process started, in seconds since 1970.", |now, out| {
            now.process.iter().for_each(|process| out.one(process.started));
        }),
    ],
};
