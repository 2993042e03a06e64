//! How far the audit log is behind.

use crate::metrics::declare::{Group, gauge};
use crate::metrics::moment::Moment;
use app::audit::{Lag, Lagging};

fn lag<'a>(now: &'a Moment<'_>) -> impl Iterator<Item = &'a Lag> {
    now.seen().map(|seen| &seen.audit)
}

fn streams<'a>(now: &'a Moment<'_>) -> impl Iterator<Item = (&'a str, &'a Lagging)> {
    lag(now).flat_map(|lag| &lag.streams).map(|stream| (stream.name.as_str(), stream))
}

/// How far the audit log is behind.
pub static GROUP: Group = Group {
    about: "The audit log: the same at every node",
    metrics: &[
        gauge(
            "portiere_audit_seen_age_seconds",
            &[],
            "Time since the database last reported the values that follow, and how many workers are quarantined; if it \
             never did, time since the start. The node asks every 5 seconds; a higher value means that the database \
             does not answer.",
            |now, out| out.one(now.looked.at.elapsed().as_secs_f64()),
        ),
        gauge(
            "portiere_audit_unsealed_lines",
            &[],
            "Entries that are not sealed yet, counted up to 100000.",
            |now, out| lag(now).for_each(|lag| out.one(lag.unsealed)),
        ),
        gauge(
            "portiere_audit_unsealed_seconds",
            &[],
            "How long the oldest entry that is not sealed yet has waited.",
            |now, out| lag(now).for_each(|lag| out.one(lag.unsealed_for.whole_seconds())),
        ),
        gauge("portiere_audit_kept_lines", &[], "Entries that are sealed and kept.", |now, out| {
            lag(now).for_each(|lag| out.one(lag.kept));
        }),
        gauge(
            "portiere_audit_wrong",
            &[],
            "Problems that this node found in the log, so that it seals or retires no further, and a mark (audit.mark) \
             that it cannot keep; see portiere audit status.",
            |now, out| out.one(now.from.app.audit_alarms().len()),
        ),
        gauge(
            "portiere_audit_idle",
            &[],
            "1 while this node does not seal the log, because its audit key is missing or is not the key that the log \
             is sealed under. Another node may seal it.",
            |now, out| out.one(u8::from(now.from.app.audit_idle().is_some())),
        ),
        gauge(
            "portiere_audit_undelivered_lines",
            &["stream"],
            "A stream: entries that it has not delivered, including entries that are not sealed yet.",
            |now, out| out.each(streams(now).map(|(name, stream)| (name, stream.lines))),
        ),
        gauge(
            "portiere_audit_undelivered_seconds",
            &["stream"],
            "A stream: how long the oldest entry that it has not delivered has waited, since it was written.",
            |now, out| out.each(streams(now).map(|(name, stream)| (name, stream.waits.whole_seconds()))),
        ),
        gauge(
            "portiere_audit_stream_failing",
            &["stream"],
            "A stream: 1 if its last attempt to deliver failed; portiere audit status says why.",
            |now, out| out.each(streams(now).map(|(name, stream)| (name, u8::from(!stream.trouble.is_empty())))),
        ),
        gauge(
            "portiere_audit_stream_stuck",
            &["stream"],
            "A stream: 1 while it is stuck at an entry that its receiver refuses for good, or because the receiver \
             refuses every entry; portiere audit status says which.",
            |now, out| out.each(streams(now).map(|(name, stream)| (name, u8::from(stream.stuck)))),
        ),
    ],
};
