//! The turns that variants take, and what becomes of an experiment that goes wrong.

use super::experiment;
use lab::experiments::bench::Bench;
use lab::experiments::{Experiment, Halt, make};
use lab::report::{Bound, End, Expect, Group, Row, Sheet, figure};
use std::path::PathBuf;

/// Its server is never started.
fn program() -> PathBuf {
    PathBuf::from("/nowhere/portiere")
}

fn pair() -> Group {
    Group::new("both", &[figure("hashes a second", "/s")], vec![Row::new("a", &[]), Row::new("b", &[Expect::More])])
}

#[test]
fn variants_take_turns_round_by_round() {
    let (mut told, mut calls) = (Vec::new(), Vec::new());
    let mut watcher = |what: &str| told.push(what.to_owned());
    let mut bench = Bench::new(program(), true, &mut watcher);
    let (rounds, mut sheet) = (bench.rounds(), Sheet::default());
    bench
        .turns(&mut sheet, pair(), &mut [1.0, 2.0], |_, subject| {
            calls.push(*subject);
            Ok(vec![*subject * calls.len() as f64])
        })
        .unwrap();
    assert_eq!(calls, [1.0, 2.0].repeat(rounds));
    assert_eq!(sheet.groups[0].rows[1].of(0)[..2], [4.0, 8.0]);
    assert_eq!(told[..3], ["both, a, round 1 of 3", "both, b, round 1 of 3", "both, a, round 2 of 3"]);
}

#[test]
fn what_was_measured_before_something_went_wrong_is_kept_in_whole_rounds() {
    let run: fn(&mut Bench<'_>, &mut Sheet) -> Result<(), Halt> = |bench, sheet| {
        let mut left = 3;
        bench.turns(sheet, pair(), &mut [1.0, 2.0], |_, subject| {
            left -= 1;
            if left < 0 { Err(Halt::Failed("the disk is full".to_owned())) } else { Ok(vec![*subject]) }
        })
    };
    let mut watcher = |_: &str| {};
    let outcome = make(Experiment { run, ..experiment() }, &mut Bench::new(program(), true, &mut watcher));
    assert_eq!(outcome.end, End::Failed("the disk is full".to_owned()));
    let values: Vec<_> = outcome.sheet.groups[0].rows.iter().map(|row| row.of(0)).collect();
    assert_eq!(values, [vec![1.0], vec![2.0]], "the second round was not whole");
    assert_eq!(outcome.conclusion, "Ended before its time: the disk is full.");
}

#[test]
fn a_value_too_many_is_not_shown_under_the_name_of_another() {
    let mut watcher = |_: &str| {};
    let (mut bench, mut sheet) = (Bench::new(program(), true, &mut watcher), Sheet::default());
    let ended = bench.turns(&mut sheet, pair(), &mut [1.0, 2.0], |_, subject| Ok(vec![*subject, 7.0]));
    assert_eq!(ended, Err(Halt::Failed("2 figures were measured in place of 1".to_owned())));
    assert!(sheet.groups.is_empty());
}

#[test]
fn a_group_that_takes_long_has_fewer_rounds() {
    let mut watcher = |_: &str| {};
    let mut bench = Bench::new(program(), false, &mut watcher);
    let mut sheet = Sheet::default();
    let group = Group { most_rounds: 2, ..pair() };
    bench.turns(&mut sheet, group, &mut [1.0, 2.0], |_, subject| Ok(vec![*subject])).unwrap();
    assert_eq!(sheet.groups[0].rows[0].of(0).len(), 2);
    bench.turns(&mut sheet, pair(), &mut [1.0, 2.0], |_, subject| Ok(vec![*subject])).unwrap();
    assert_eq!(sheet.groups[1].rows[0].of(0).len(), 5);
}

#[test]
fn what_stands_for_a_measurement_is_marked_in_the_row_that_it_is_of() {
    let mut watcher = |_: &str| {};
    let (mut bench, mut sheet) = (Bench::new(program(), true, &mut watcher), Sheet::default());
    let bound = [Some(Bound::AtMost)];
    let turn = |bench: &mut Bench<'_>, subject: &mut f64| {
        if *subject == 2.0 {
            bench.bound(&bound);
        }
        Ok(vec![*subject])
    };
    bench.turns(&mut sheet, pair(), &mut [1.0, 2.0], turn).unwrap();
    let bounds: Vec<_> = sheet.groups[0].rows.iter().map(|row| row.bounds.as_slice()).collect();
    assert_eq!(bounds, [&[][..], &bound[..]]);
}

#[test]
fn what_one_round_could_not_measure_is_not_measured_by_another() {
    // red where the bounds of a round replace those of the rounds before.
    let mut row = Row::new("a", &[]);
    row.add(vec![0.067, 1e4], vec![Some(Bound::AtMost), Some(Bound::AtLeast)]);
    row.add(vec![0.133, 1e4], vec![None, Some(Bound::AtLeast)]);
    row.add(vec![60.0, 1e2], vec![]);
    assert_eq!(row.bounds, [Some(Bound::AtMost), Some(Bound::AtLeast)]);
}

#[test]
fn what_cannot_be_made_here_says_why_and_remarks_stand_beside_the_figures() {
    let run: fn(&mut Bench<'_>, &mut Sheet) -> Result<(), Halt> = |bench, _| {
        bench.remark("Look out.");
        bench.remark("Look out.");
        Err(Halt::Skipped("2 cores are needed".to_owned()))
    };
    let mut watcher = |_: &str| {};
    let mut bench = Bench::new(program(), true, &mut watcher);
    let outcome = make(Experiment { run, ..experiment() }, &mut bench);
    assert_eq!((outcome.conclusion.as_str(), outcome.sheet.notes.len()), ("Skipped: 2 cores are needed.", 1));
    assert!(bench.remarks().is_empty(), "they belong to one experiment");
    // A server that does not start is a line as well.
    let run: fn(&mut Bench<'_>, &mut Sheet) -> Result<(), Halt> = |bench, _| bench.servers(&[bench.setup()]).map(drop);
    let outcome = make(Experiment { run, ..experiment() }, &mut bench);
    assert!(outcome.conclusion.contains("/nowhere/portiere cannot be run: "), "{}", outcome.conclusion);
}
