//! The files that come with it: alerts, a dashboard, the guide. What they name is there.

use super::figures::{SERVED, names, promtool};
use crate::support::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Metrics of the guide's tables, each with its sentence.
fn documented() -> Vec<(String, String)> {
    let guide = read("docs/guide/monitoring.md");
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.trim_end_matches('`').to_owned();
        let sentence = cells.last()?.to_owned();
        (name.starts_with("portiere_") || name.starts_with("process_")).then_some((name, sentence))
    };
    guide.lines().filter_map(row).collect()
}

/// Whether a sentence is about what the tests' server does not have: another database, workers, a stream, a certificate.
fn elsewhere(sentence: &str) -> bool {
    if ["A worker:", "A stream:", "TLS:"].iter().any(|begin| sentence.starts_with(begin)) {
        return true;
    }
    let of_servers = ["A server:", "PostgreSQL:", "MySQL, MariaDB:"].iter().any(|begin| sentence.starts_with(begin));
    let of_file = sentence.starts_with("SQLite: ");
    if on_file() { of_servers } else { of_file || of_servers }
}

/// Every word that can only be a metric, without what a histogram adds.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let metrics = words.filter(|word| word.starts_with("portiere_") || word.starts_with("process_"));
    let bare = |word: &str| {
        let suffix = ["_bucket", "_sum", "_count"].into_iter().find_map(|suffix| word.strip_suffix(suffix));
        suffix.unwrap_or(word).to_owned()
    };
    metrics.map(bare).collect()
}

#[test]
fn what_the_guide_explains_is_there_and_nothing_else() {
    let server = Server::leaked(&[SERVED]);
    Browser::of(server, &Person::add(server));
    let (live, documented) = (names(server), documented());
    assert!(documented.len() > 50, "{}", documented.len());
    let missing: Vec<_> =
        documented.iter().filter(|(name, sentence)| !live.contains(name) && !elsewhere(sentence)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let explained: BTreeSet<_> = documented.into_iter().map(|(name, _)| name).collect();
    assert_eq!(live.difference(&explained).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn dashboard_and_alerts_name_only_what_is_there() {
    let server = Server::leaked(&[SERVED]);
    Browser::of(server, &Person::add(server));
    let live = names(server);
    let other: BTreeSet<_> =
        documented().into_iter().filter(|(_, sentence)| elsewhere(sentence)).map(|(name, _)| name).collect();
    for source in ["deploy/grafana/portiere.json", "deploy/prometheus/alerts.yml", "deploy/prometheus/alerts_test.yml"]
    {
        let named = named(&read(source));
        assert!(named.len() > 10, "{source}");
        let unknown: Vec<_> = named.iter().filter(|name| !live.contains(*name) && !other.contains(*name)).collect();
        assert!(unknown.is_empty(), "{source}: {unknown:?}");
    }
}

#[test]
fn the_dashboard_shows_something_of_everything_and_all_that_is_refused() {
    // red without the rows on hash workers and the audit log, or the panel of who is refused at the door.
    let shown = named(&read("deploy/grafana/portiere.json"));
    let guide = read("docs/guide/monitoring.md");
    let (_, tables) = guide.split_once("## Every metric").unwrap();
    let groups: Vec<_> = tables.split("\n### ").skip(1).collect();
    assert!(groups.len() >= 7, "{}", groups.len());
    for group in groups {
        let metrics: Vec<_> = group.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        let missing: Vec<_> = metrics.iter().filter(|name| !shown.contains(**name)).collect();
        assert!(missing.len() * 2 <= metrics.len(), "most of this is not on it: {missing:?}");
        let refused: Vec<_> = missing.iter().filter(|name| name.ends_with("_refused_total")).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }
}

#[test]
fn prometheus_takes_the_configuration_and_the_alerts_fire_as_they_say() {
    let folder = file("deploy/prometheus");
    let path = |name: &str| folder.join(name).display().to_string();
    promtool(&["check", "config", "--syntax-only", &path("prometheus.yml")], "");
    promtool(&["check", "rules", "--lint=all", "--lint-fatal", &path("alerts.yml")], "");
    promtool(&["test", "rules", &path("alerts_test.yml")], "");
    let (alerts, tests) = (read("deploy/prometheus/alerts.yml"), read("deploy/prometheus/alerts_test.yml"));
    let alerts: Vec<_> = alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 10);
    let untested: Vec<_> =
        alerts.into_iter().filter(|alert| !tests.contains(&format!("alertname: {alert}\n"))).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

#[test]
fn the_dashboard_is_one_that_grafana_reads() {
    let dashboard: serde_json::Value = serde_json::from_str(&read("deploy/grafana/portiere.json")).unwrap();
    assert!(dashboard["uid"].is_string() && dashboard["schemaVersion"].as_u64() >= Some(39));
    let panels = dashboard["panels"].as_array().unwrap();
    let charts: Vec<_> = panels.iter().filter(|panel| panel["type"] != "row").collect();
    assert!(charts.len() >= 15);
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    for panel in charts {
        let place = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{}", panel["title"]);
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty() && targets.iter().all(|target| target["expr"].is_string()), "{}", panel["title"]);
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
    }
}
