use super::declare::Kind;
use super::{guide, table};
use std::collections::HashSet;
use std::path::Path;

#[test]
fn names_follow_the_conventions() {
    let mut seen = HashSet::new();
    for metric in table::all() {
        let name = metric.name;
        assert!(seen.insert(name), "{name} is there twice");
        assert!(name.starts_with("portiere_") || name.starts_with("process_"), "{name}");
        assert_eq!(name.ends_with("_total"), metric.kind == Kind::Counter, "{name}");
        assert!(metric.help.ends_with('.') && !metric.help.contains(['\n', '\\']), "{name}: {}", metric.help);
        assert!(!metric.labels.contains(&"le"), "{name}");
    }
}

#[test]
fn the_guide_explains_every_metric() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/monitoring.md");
    let page = std::fs::read_to_string(&file).expect("the guide");
    let [begin, end] = guide::MARKS;
    let (before, rest) = page.split_once(begin).expect("where it begins");
    let (was, after) = rest.split_once(end).expect("where it ends");
    let wanted = format!("\n{}", guide::markdown());
    if crate::config::environment().iter().any(|(name, _)| name == "UPDATE_DOCS") {
        std::fs::write(&file, format!("{before}{begin}{wanted}{end}{after}")).expect("it can be written");
        return;
    }
    assert!(was == wanted, "docs/guide/monitoring.md is stale: run the tests with UPDATE_DOCS=1");
}
