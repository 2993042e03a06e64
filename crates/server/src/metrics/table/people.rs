//! What people and applications did.

use crate::metrics::declare::{Group, counter, gauge};

/// What people and applications did.
pub static GROUP: Group = Group {
    about: "People, tokens and keys",
    metrics: &[
        counter(
            "portiere_sign_ins_total",
            &["outcome"],
            "Attempts to sign in with a password: success, refused (wrong name or password), throttled, busy (too many \
             passwords wait; at the door that is said of any form with a password, before it is known what it is for), failed \
             (database or fault).",
            |now, out| out.each(now.from.app.tally.sign_ins.sums()),
        ),
        counter("portiere_sign_ups_total", &["outcome"], "Attempts to make an account, likewise.", |now, out| {
            out.each(now.from.app.tally.sign_ups.sums())
        }),
        counter(
            "portiere_tokens_issued_total",
            &["grant"],
            "Answers with tokens in them, by grant; account_api: a sign-in through the account API.",
            |now, out| out.each(now.from.app.tally.tokens.sums()),
        ),
        counter(
            "portiere_audit_events_total",
            &["event"],
            "Lines of the audit log that this node wrote, by event.",
            |now, out| out.each(now.from.app.tally.events.sums()),
        ),
        gauge(
            "portiere_signing_key_age_seconds",
            &["alg"],
            "How long the key has been signing that signs with an algorithm. Beyond keys.rotate_after something keeps its \
             successor from coming in.",
            |now, out| out.each(now.keys.iter().map(|(alg, age)| (*alg, age.whole_seconds()))),
        ),
    ],
};
