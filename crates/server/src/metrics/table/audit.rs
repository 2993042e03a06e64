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
            "How long ago the database said what follows, and how many workers are quarantined; since the start, where it never \
             did. It is asked every 5 seconds: more than that, and it does not answer.",
            |now, out| out.one(now.looked.at.elapsed().as_secs_f64()),
        ),
        gauge(
            "portiere_audit_unsealed_lines",
            &[],
            "Lines that are not sealed yet. They are counted up to 100000.",
            |now, out| lag(now).for_each(|lag| out.one(lag.unsealed)),
        ),
        gauge(
            "portiere_audit_unsealed_seconds",
            &[],
            "How long the oldest line has waited that is not sealed yet.",
            |now, out| lag(now).for_each(|lag| out.one(lag.unsealed_for.whole_seconds())),
        ),
        gauge("portiere_audit_kept_lines", &[], "Lines that are sealed and kept.", |now, out| {
            lag(now).for_each(|lag| out.one(lag.kept));
        }),
        gauge(
            "portiere_audit_wrong",
            &[],
            "Things that this node found wrong with the log, so that it seals or retires no further; portiere audit status.",
            |now, out| out.one(now.from.app.audit_alarms().len()),
        ),
        gauge(
            "portiere_audit_idle",
            &[],
            "Whether this node does not seal the log, since its audit key is missing or another one than the log is sealed under. \
             Another node may.",
            |now, out| out.one(u8::from(now.from.app.audit_idle().is_some())),
        ),
        gauge(
            "portiere_audit_undelivered_lines",
            &["stream"],
            "A stream: lines that it has not delivered, also those that are not sealed yet.",
            |now, out| out.each(streams(now).map(|(name, stream)| (name, stream.lines))),
        ),
        gauge(
            "portiere_audit_undelivered_seconds",
            &["stream"],
            "A stream: how long the oldest of them has waited, since it was written.",
            |now, out| out.each(streams(now).map(|(name, stream)| (name, stream.waits.whole_seconds()))),
        ),
        gauge(
            "portiere_audit_stream_failing",
            &["stream"],
            "A stream: whether the last attempt to deliver failed; portiere audit status says why.",
            |now, out| out.each(streams(now).map(|(name, stream)| (name, u8::from(!stream.trouble.is_empty())))),
        ),
        gauge(
            "portiere_audit_stream_stuck",
            &["stream"],
            "A stream: whether it stands still at a line that its receiver refuses for good, or since it refuses every line; portiere \
             audit status says which.",
            |now, out| out.each(streams(now).map(|(name, stream)| (name, u8::from(stream.stuck)))),
        ),
    ],
};
