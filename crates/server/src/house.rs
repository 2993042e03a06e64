//! Rules of this repository that no lint checks.

use std::fs;
use std::path::{Path, PathBuf};

/// The most lines of a source file.
const LONGEST: usize = 500;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a readable folder");
    for path in entries.map(|entry| entry.expect("a readable entry").path()) {
        match path.extension() {
            _ if path.is_dir() => sources(&path, found),
            Some(kind) if kind == "rs" => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn no_source_file_is_longer_than_can_be_held() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut found);
    assert!(found.len() > 100, "the workspace is not where it was");
    let lines = |path: &PathBuf| fs::read_to_string(path).expect("text").lines().count();
    let long: Vec<_> = found.iter().filter(|path| lines(path) > LONGEST).collect();
    assert!(long.is_empty(), "cut along a noun: {long:?}");
}

#[test]
fn everything_has_its_place_on_the_page_about_the_architecture() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/architecture.md")).expect("the page");
    let mut left_out = Vec::new();
    for room in ["rules", "store", "hasher", "app", "load", "lab", "server"] {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{room}` |"))).expect("a row for each room");
        let named: Vec<&str> = row.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
        for entry in fs::read_dir(root.join("crates").join(room).join("src")).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            if !["lib", "tests"].contains(&name.as_str()) && !named.contains(&name.as_str()) {
                left_out.push(format!("{room}/{name}"));
            }
        }
    }
    assert!(left_out.is_empty(), "say what they are for: {left_out:?}");
}
