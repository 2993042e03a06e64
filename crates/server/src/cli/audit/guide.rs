//! The table of events in `docs/guide/audit.md`, which this test keeps up to date.

use rules::events::Kind;

const BEGIN: &str = "<!-- Generated from crates/rules/src/events.rs; `UPDATE_DOCS=1 make test` writes it again. -->\n";
const END: &str = "<!-- kinds end -->\n";

fn table() -> String {
    let row = |kind: &Kind| {
        let outcome = if kind.is_refusal() { "refused" } else { "done" };
        format!("| `{}` | {} | {outcome} |\n", kind.name(), kind.about())
    };
    let rows: String = Kind::ALL.iter().map(row).collect();
    format!("| event | what happened | outcome |\n|---|---|---|\n{rows}")
}

#[test]
fn the_guide_names_every_event() {
    crate::generated::is_current("guide/audit.md", Some([BEGIN, END]), &table());
}
