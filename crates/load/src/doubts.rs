//! Reasons to doubt a comparison: a side with a limit of its own, or sides that did not do the same work.

use crate::report::{Report, is_drift};
use crate::search::in_percent;
use crate::series::{Found, Series};

/// How often a step has to be expected on a side before its absence there means anything.
const EXPECTED: f64 = 5.0;

/// Returns the reasons to doubt either side, one sentence each.
pub fn doubts(a: &Series, b: &Series) -> Vec<String> {
    let of = |(side, series): (&str, &Series)| {
        let found = series.found.is_some_and(|found| found.by_generator);
        let bound = found || series.found.is_none() && series.runs.iter().any(Report::is_bound_by_generator);
        let noisy = series.spread.is_some_and(|spread| spread.is_noisy());
        let late = series.runs.iter().any(|run| std::iter::once(run).chain(&run.beside).any(Report::is_late));
        let cut = series.cut_short.as_ref().map(|why| format!("{side} ended before its time: {why}."));
        let said = [
            bound.then(|| format!("{side} was bound by the generator: it is not the server's limit alone.")),
            late.then(|| {
                format!("{side} has its generator's lateness in its latencies: more than a tenth of the p99.")
            }),
            noisy.then(|| format!("{side} is noisy: its runs lie too far apart to be quoted.")),
            cut,
        ];
        said.into_iter().flatten().collect::<Vec<_>>()
    };
    [("A", a), ("B", b)].into_iter().flat_map(of).chain(of_targets(a, b)).chain(of_origins(a, b)).collect()
}

/// Names the target of each side, if they differ.
fn of_targets(a: &Series, b: &Series) -> Option<String> {
    let (a, b) = (a.target()?, b.target()?);
    (a != b).then(|| format!("A is of {a}, B of {b}: these may be different servers."))
}

/// Says how the machines differ on which the two results were made.
fn of_origins(a: &Series, b: &Series) -> Option<String> {
    let [a, b] = [a, b].map(|series| series.made.as_ref());
    let (a, b) = (&a?.machine, &b?.machine);
    (a != b).then(|| format!("A was measured from {a}, B from {b}: that is not the same machine."))
}

/// Says how the terms of two searches differ.
pub fn of_terms(a: &Found, b: &Found) -> Option<String> {
    let told = |found: &Found| {
        let whose = found.judged.map(|judged| format!(" of {}", judged.whose())).unwrap_or_default();
        format!("p99{whose} at or below {} ms with {} % of errors", found.p99_ms, in_percent(found.errors))
    };
    // An older result does not say whose p99 it holds.
    let judged_apart = a.judged.is_some() && b.judged.is_some() && a.judged != b.judged;
    let differ = a.p99_ms != b.p99_ms || a.errors != b.errors || judged_apart;
    differ.then(|| format!("A kept {}, B {}: these are limits of different terms.", told(a), told(b)))
}

/// Says how runs of one workload differ all the same: a provider may have been asked for other things under its name.
pub fn differences(a: &[&Report], b: &[&Report]) -> Vec<String> {
    let one_sided = |side: &str, own: &[&Report], other: &[&Report]| {
        let (noted, known) = (notes(own), notes(other));
        let noted: Vec<_> = noted.into_iter().filter(|note| !known.contains(note)).collect();
        let said = noted.iter().map(|note| format!("Of {side} alone: {note}."));
        let steps = only(own, other);
        let did =
            (!steps.is_empty()).then(|| format!("Only {side} did {}: that is not the same work.", steps.join(", ")));
        said.chain(did).collect::<Vec<_>>()
    };
    [one_sided("A", a, b), one_sided("B", b, a), Vec::from_iter(of_accounts(a, b))].concat()
}

/// Says how many accounts each side signed in with, if that differs.
fn of_accounts(a: &[&Report], b: &[&Report]) -> Option<String> {
    let [a, b] = [a, b].map(|runs| runs.iter().find_map(|run| run.accounts));
    let (a, b) = (a?, b?);
    (a != b).then(|| {
        format!("A signed in with {a} accounts, B with {b}: a server may let few attempts at a time through for each.")
    })
}

/// Returns the notes of all runs, without those that differ from run to run anyway.
fn notes<'a>(runs: &[&'a Report]) -> Vec<&'a str> {
    let all = runs.iter().flat_map(|run| &run.notes).filter(|note| !is_drift(note));
    let mut notes: Vec<&str> = all.map(|note| note.trim_end_matches('.')).collect();
    notes.sort_unstable();
    notes.dedup();
    notes
}

/// Returns the steps that only `own` did: those that `other` does not list, or never did although its number of
/// iterations implies many of them. Where no iteration of a side succeeded, a missing step is just one that failed.
fn only(own: &[&Report], other: &[&Report]) -> Vec<&'static str> {
    let done = |runs: &[&Report]| runs.iter().map(|run| run.iterations).sum::<u64>() as f64;
    let (of_own, of_other) = (done(own), done(other));
    if of_own == 0.0 || of_other == 0.0 {
        return Vec::new();
    }
    let mut steps: Vec<_> = own.iter().flat_map(|run| &run.steps).map(|step| step.step).collect();
    steps.sort_unstable();
    steps.dedup();
    let of = |runs: &[&Report], step| {
        let steps = runs.iter().flat_map(|run| run.steps.iter().filter(move |one| one.step == step));
        steps.fold((false, 0), |(_, count), one| (true, count + one.count + one.failed + one.refused))
    };
    let is_missing = |step: &crate::visitor::Step| {
        let ((_, often), (listed, seen)) = (of(own, *step), of(other, *step));
        often > 0 && (!listed || seen == 0 && often as f64 / of_own * of_other >= EXPECTED)
    };
    steps.into_iter().filter(is_missing).map(crate::visitor::Step::name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::made::Made;
    use crate::report::StepReport;
    use crate::search::Judged;
    use crate::visitor::Step;

    fn good() -> Series {
        Series { runs: vec![crate::report::tests::report("w1", 100, 100.0); 5], ..Series::default() }
    }

    fn found(by_generator: bool) -> Found {
        Found { rate: 9.0, not: Some(10.0), p99_ms: 500.0, errors: 0.0, judged: None, due: None, by_generator }
    }

    #[test]
    fn what_makes_a_side_worth_less_is_said_of_that_side() {
        let good = good();
        let mut bad = good.clone();
        bad.runs[3].generator_busiest = 1.0;
        bad.runs[1].lateness = Some(crate::report::Lateness { p50: 0.1, p99: 5.0 });
        bad.cut_short = Some("interrupted".to_owned());
        bad.spread = Some(crate::series::Spread { rate: 0.1, mean: Some(0.1), p99: Some(0.1), accepted: false });
        assert!(compare(&good, &good).unwrap().notes.is_empty());
        let text = compare(&good, &bad).unwrap().to_string();
        for said in [
            "B was bound by the generator",
            "B has its generator's lateness",
            "B is noisy",
            "B ended before its time: interrupted.",
        ] {
            assert!(text.contains(said) && !text.contains(&said.replace('B', "A")), "{text}");
        }
        let mut other = good.clone();
        other.runs.iter_mut().for_each(|run| run.target = "http://localhost:2".to_owned());
        let comparison = compare(&good, &other).unwrap();
        let notes = ["A is of http://localhost:1, B of http://localhost:2: these may be different servers."];
        assert_eq!(comparison.notes, notes);
        // Red without `Side`: given two files, the reader cannot tell which one was first.
        assert!(comparison.to_string().starts_with("A: http://localhost:1\nB: http://localhost:2\n"), "{comparison}");
        let from = |machine: &str| {
            let made = Made { version: "1".to_owned(), at: 0, machine: machine.to_owned() };
            Series { made: Some(made), ..good.clone() }
        };
        assert!(compare(&from("here"), &from("here")).unwrap().notes.is_empty());
        assert!(compare(&from("here"), &good).unwrap().notes.is_empty(), "of one it is not known");
        let notes = compare(&from("here"), &from("there")).unwrap().notes;
        assert_eq!(notes, ["A was measured from here, B from there: that is not the same machine."]);
        let search = |by_generator| Series { found: Some(found(by_generator)), ..Series::default() };
        let notes = compare(&search(true), &search(false)).unwrap().notes;
        assert_eq!(notes, ["A was bound by the generator: it is not the server's limit alone."]);
    }

    /// Red where searches are compared only by their limits.
    #[test]
    fn searches_of_other_workloads_are_refused_and_other_terms_are_said() {
        let search = |workload: &str, terms: Found| {
            let runs = vec![crate::report::tests::report(workload, 10, 9.0)];
            Series { runs, found: Some(terms), ..Series::default() }
        };
        let refusal = compare(&search("jwks", found(false)), &search("w1", found(false))).unwrap_err();
        assert_eq!((refusal.to_string().as_str(), refusal.exit_code()), ("A is of jwks, B of w1", 2));
        assert!(compare(&search("w1", found(false)), &search("w1", found(false))).unwrap().notes.is_empty());
        let strict = Found { p99_ms: 50.0, errors: 0.01, ..found(false) };
        let notes = compare(&search("w1", found(false)), &search("w1", strict)).unwrap().notes;
        let expected = "A kept p99 at or below 500 ms with 0 % of errors, B p99 at or below 50 ms with 1 % of errors: \
                        these are limits of different terms.";
        assert_eq!(notes, [expected]);
        // Red without `judged_apart`: only one of the two counts the slowest 5 %.
        let judged = |whose| search("w1", Found { judged: Some(whose), errors: 0.05, ..found(false) });
        let notes = compare(&judged(Judged::All), &judged(Judged::Answered)).unwrap().notes;
        assert!(
            notes[0].starts_with("A kept p99 of all at") && notes[0].contains("B p99 of the answered"),
            "{notes:?}"
        );
        assert!(compare(&judged(Judged::All), &judged(Judged::All)).unwrap().notes.is_empty());
    }

    /// Red without `differences`: two providers compare as equal work although one was asked for something else.
    #[test]
    fn other_notes_and_other_steps_under_one_name_are_said() {
        let step = |step, count| {
            let latency = Default::default();
            StepReport { step, count, refused: 0, failed: 0, latency, refusal: latency }
        };
        let mut a = good();
        a.runs.iter_mut().for_each(|run| run.steps = vec![step(Step::Login, 100), step(Step::Account, 1)]);
        let with = |steps: &[StepReport]| {
            let mut b = a.clone();
            b.runs.iter_mut().for_each(|run| run.steps = steps.to_vec());
            compare(&a, &b).unwrap().parts[0].notes.clone()
        };
        assert!(with(&[step(Step::Login, 7), step(Step::Account, 1)]).is_empty());
        let rare = with(&[step(Step::Login, 100), step(Step::Account, 0)]);
        assert_eq!(rare, ["Only A did account: that is not the same work."], "5 of 500 would have been");
        let other = with(&[step(Step::Userinfo, 100), step(Step::Account, 1)]);
        let said = ["A did login", "B did userinfo"].map(|did| format!("Only {did}: that is not the same work."));
        assert_eq!(other, said);
        let with = |accounts| {
            let mut side = a.clone();
            side.runs.iter_mut().for_each(|run| run.accounts = accounts);
            side
        };
        let notes = |a: Option<usize>, b: Option<usize>| compare(&with(a), &with(b)).unwrap().parts[0].notes.concat();
        assert!(notes(Some(10), Some(1000)).starts_with("A signed in with 10 accounts, B with 1000: "));
        assert_eq!(notes(Some(10), Some(10)) + &notes(Some(10), None), "", "of a result of before it is not known");
        let mut noted = a.clone();
        noted.runs[2].notes = vec!["userinfo in place of introspection".to_owned()];
        // Red without `is_drift`: two soaks have different figures, which says nothing about what they did.
        noted.runs[3].notes = vec!["first quarter 1.0/s, p50 1.00 ms, p99 1.00 ms; last 1.0/s".to_owned()];
        let text = compare(&noted, &a).unwrap().to_string();
        assert!(text.contains("Of A alone: userinfo in place of introspection.\n"), "{text}");
        assert!(!text.contains("first quarter"), "{text}");
    }
}
