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
