//! Writes the meaning of every metric from the table into `docs/guide/monitoring.md`. A test keeps it up to date.

use super::table::GROUPS;
use std::fmt::Write as _;

/// The marks where the generated part of the guide begins and ends.
pub const MARKS: [&str; 2] = [
    "<!-- Generated from crates/server/src/metrics/table; `UPDATE_DOCS=1 make test` writes it again. -->",
    "<!-- End of what is generated. -->",
];

/// Writes one table for each group.
pub fn markdown() -> String {
    let mut out = String::new();
    for group in GROUPS {
        let _ = writeln!(out, "\n### {}\n\n| metric | kind | labels | what it says |\n|---|---|---|---|", group.about);
        for metric in group.metrics {
            let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let cells = [format!("`{}`", metric.name), metric.kind.name().to_owned(), labels.join(", ")];
            let _ = writeln!(out, "| {} | {} |", cells.join(" | "), metric.help.replace('|', "\\|"));
        }
    }
    out.push('\n');
    out
}
