use super::declare::Kind;
use super::{guide, table};
use std::collections::HashSet;

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
    crate::generated::is_current("guide/monitoring.md", Some(guide::MARKS), &format!("\n{}", guide::markdown()));
}
