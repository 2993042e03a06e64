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
             passwords wait; at admission, any form with a password counts, before its purpose is known), failed \
             (database or fault).",
            |now, out| out.each(now.from.app.tally.sign_ins.sums()),
        ),
        counter(
            "portiere_sign_ups_total",
            &["outcome"],
            "Attempts to create an account, by the same outcomes.",
            |now, out| out.each(now.from.app.tally.sign_ups.sums()),
        ),
        counter(
            "portiere_tokens_issued_total",
            &["grant"],
            "Answers that contain tokens, by grant; account_api: a sign-in through the account API.",
            |now, out| out.each(now.from.app.tally.tokens.sums()),
        ),
        counter(
            "portiere_audit_events_total",
            &["event"],
            "Audit log entries that this node wrote, by event.",
            |now, out| out.each(now.from.app.tally.events.sums()),
        ),
        gauge(
            "portiere_signing_key_age_seconds",
            &["alg"],
            "How long the key that signs with an algorithm has been signing. Beyond keys.rotate_after, something keeps \
             its successor from taking over.",
            |now, out| out.each(now.keys.iter().map(|(alg, age)| (*alg, age.whole_seconds()))),
        ),
    ],
};
