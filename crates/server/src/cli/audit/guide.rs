//! The table of events in `docs/guide/audit.md`. Keeps it up to date.

use rules::events::Kind;
use std::path::Path;

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
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/audit.md");
    let written = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = written.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{}{END}{after}", table());
    if crate::config::environment().iter().any(|(name, _)| name == "UPDATE_DOCS") {
        std::fs::write(&file, &wanted).unwrap();
        return;
    }
    assert!(written == wanted, "docs/guide/audit.md is stale: run the tests with UPDATE_DOCS=1");
}
