//! Pages of `docs` that are generated from tables.

use crate::config::environment;
use std::fs;
use std::path::Path;

/// Asserts that a page, or the part between two marks in it, is `wanted`. With `UPDATE_DOCS` it is rewritten instead.
#[track_caller]
pub fn is_current(page: &str, marks: Option<[&str; 2]>, wanted: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let written = fs::read_to_string(&file).unwrap_or_default();
    let wanted = match marks {
        None => wanted.to_owned(),
        Some([begin, end]) => {
            let (before, rest) = written.split_once(begin).expect("where it begins");
            let (_, after) = rest.split_once(end).expect("where it ends");
            format!("{before}{begin}{wanted}{end}{after}")
        }
    };
    match environment().iter().any(|(name, _)| name == "UPDATE_DOCS") {
        true => fs::write(&file, wanted).expect("it can be written"),
        false => assert!(written == wanted, "docs/{page} is stale: run the tests with UPDATE_DOCS=1"),
    }
}
