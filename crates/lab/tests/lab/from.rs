//! `portiere capacity --from FILE`: what another run measured and proved.

use lab::capacity::cli::{Command, main};
use lab::capacity::outcome::Capacity;
use lab::capacity::probe::Probes;
use lab::capacity::verify::{Compared, Verification};
use load::made::Made;
use std::path::{Path, PathBuf};

/// A proof that falls short.
fn proof() -> Verification {
    let (what, figure) = ("w1, 32 users without a pause".to_owned(), "a second".to_owned());
    let compared = vec![Compared { what, figure, predicted: 368.0, measured: 250.0, allowed: 0.15 }];
    Verification { file: "capacity-prediction.json".to_owned(), compared, notes: vec![] }
}

/// Writes a measurement with a proof, as `version` saved it.
fn saved(file: &Path, version: &str) {
    let probes: Probes = serde_json::from_str(include_str!("probes.json")).unwrap();
    let made = Made { version: version.to_owned(), ..Made::here() };
    let saved = serde_json::json!({ "made": made, "probes": probes, "verification": proof() });
    std::fs::write(file, saved.to_string()).unwrap();
}

/// Runs the command; a refusal is what it says.
fn run(from: &Path, save: Option<PathBuf>, html: Option<PathBuf>) -> Result<String, String> {
    let (from, prediction) = (Some(from.to_owned()), PathBuf::from("capacity-prediction.json"));
    let command = Command { verify: false, prediction, quick: false, json: false, save, html, from };
    let mut out = Vec::new();
    let done = main(&command, (Path::new("none"), Path::new(".")), &mut out);
    done.map(|()| String::from_utf8(out).unwrap()).map_err(|refusal| format!("{refusal:?}"))
}

/// Red where only `made` and `probes` of the file are read: the page said that --verify would tell, and what was saved
/// anew had lost its proof. And where a proof that fell short decides the exit code of a run that proves nothing.
#[test]
fn the_proof_in_a_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let [from, save, html] = ["a.json", "b.json", "a.html"].map(|name| folder.path().join(name));
    for (version, is_ours) in [(env!("CARGO_PKG_VERSION"), true), ("0.0.1", false)] {
        saved(&from, version);
        let text = run(&from, Some(save.clone()), Some(html.clone())).unwrap();
        let page = std::fs::read_to_string(&html).unwrap();
        assert!(page.contains("<h2>Predicted and measured</h2>"), "{page}");
        for told in [text.split_whitespace().collect::<Vec<_>>().join(" "), page] {
            assert!(told.contains("1 of 1 predictions are outside") && told.contains("OUTSIDE"), "{told}");
            assert_eq!(told.contains("The proof is of what Portiere 0.0.1 predicted"), !is_ours, "{told}");
            assert_eq!(told.contains("--verify tells"), !is_ours, "{told}");
            assert_eq!(told.contains("the proof tells how far off they were"), is_ours, "{told}");
        }
        let again: Capacity = serde_json::from_str(&std::fs::read_to_string(&save).unwrap()).unwrap();
        assert_eq!(again.verification, Some(proof()));
        assert_eq!(again.made.unwrap().version, version, "who measured and proved");
    }
}

/// Red where only results are kept apart: the page took the place of the measurement.
#[test]
fn a_result_never_takes_the_place_of_the_measurement() {
    let folder = tempfile::tempdir().unwrap();
    let [from, link] = ["a.json", "link.html"].map(|name| folder.path().join(name));
    saved(&from, env!("CARGO_PKG_VERSION"));
    std::os::unix::fs::symlink(&from, &link).unwrap();
    let before = std::fs::read(&from).unwrap();
    for (save, html) in [(Some(from.clone()), None), (None, Some(from.clone())), (None, Some(link))] {
        let said = run(&from, save, html).unwrap_err();
        assert!(said.contains("holds the measurement that is read"), "{said}");
        assert_eq!(std::fs::read(&from).unwrap(), before);
    }
}
