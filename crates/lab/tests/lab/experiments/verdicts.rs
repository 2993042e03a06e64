//! From values to sentences.

use super::group;
use lab::experiments::{ALL, named};
use lab::report::{Bound, Expect, Finding, Group, Ratio, Verdict, findings, summary, times};

const ONE: [f64; 5] = [100.0, 110.0, 90.0, 105.0, 95.0];

fn text(group: &Group) -> String {
    let findings = findings(group);
    assert_eq!(findings.len(), 1);
    findings[0].text.clone()
}

#[test]
fn a_ratio_inside_the_noise_is_no_difference() {
    // 12 % more in the middle, and the rounds do not agree.
    let other = [140.0, 100.0, 115.0, 90.0, 125.0];
    let Verdict::Undecided(ratio) = Verdict::of(&ONE, &other) else { panic!("{:?}", Verdict::of(&ONE, &other)) };
    assert!(ratio.low < 1.0 && ratio.high > 1.0 && ratio.middle > 1.1, "{ratio:?}");
    let told = text(&group(&[("a", &[], &ONE), ("b", &[Expect::More], &other)]));
    assert!(told.starts_with("b, beside a: no difference in hashes a second is shown (0."), "{told}");
}

#[test]
fn what_every_round_shows_is_a_difference_even_where_the_rounds_themselves_differ() {
    // A machine that becomes slower and slower, for both alike.
    let (a, b) = ([100.0, 80.0, 60.0, 50.0, 40.0], [112.0, 90.0, 66.0, 56.0, 44.4]);
    let Verdict::Differs(ratio) = Verdict::of(&a, &b) else { panic!("{:?}", Verdict::of(&a, &b)) };
    assert!((ratio.middle - 1.115).abs() < 0.01 && ratio.low > 1.09 && ratio.high < 1.14, "{ratio:?}");
    let told = text(&group(&[("a", &[], &a), ("b", &[Expect::Open], &b)]));
    assert_eq!(told, "b, beside a: hashes a second 11.5 % higher (1.10 to 1.13).");
}

/// Student's t for two degrees of freedom is 4.303; the logarithms of the ratios are ln 2 and that ± 0.1.
#[test]
fn the_interval_is_that_of_the_mean_of_the_logarithms() {
    let ratios = [2.0, 2.0 * 0.1_f64.exp(), 2.0 * (-0.1_f64).exp()];
    let Verdict::Differs(ratio) = Verdict::of(&[1.0; 3], &ratios) else { panic!() };
    let half = 4.303 * 0.1 / 3.0_f64.sqrt();
    assert!((ratio.middle - 2.0).abs() < 1e-9, "{ratio:?}");
    assert!((ratio.low.ln() - (2.0_f64.ln() - half)).abs() < 1e-6, "{ratio:?}");
    assert!((ratio.high.ln() - (2.0_f64.ln() + half)).abs() < 1e-6, "{ratio:?}");
}

#[test]
fn the_same_is_said_only_where_the_whole_interval_is_near_one() {
    let near = ONE.map(|value| value * 1.01);
    assert!(matches!(Verdict::of(&ONE, &near), Verdict::Same(_)));
    let told = text(&group(&[("a", &[], &ONE), ("b", &[Expect::Same], &near)]));
    assert_eq!(told, "b, beside a: hashes a second the same within 5 % (1.01 to 1.01).");
    // Near one in the middle is not enough.
    assert!(matches!(Verdict::of(&ONE, &[103.0, 100.0, 103.0, 92.0, 106.0]), Verdict::Undecided(_)));
}

#[test]
fn too_little_is_no_verdict() {
    let values: [(&[f64], &[f64]); 5] = [
        (&[1.0], &[2.0]),
        (&[], &[]),
        (&[1.0, 1.0], &[2.0]),
        (&[0.0, 1.0], &[2.0, 2.0]),
        (&[1.0, 1.0], &[f64::NAN, 2.0]),
    ];
    for (a, b) in values {
        assert_eq!(Verdict::of(a, b), Verdict::Unknown, "{a:?} {b:?}");
    }
    let told = text(&group(&[("a", &[], &[1.0]), ("b", &[Expect::More], &[2.0])]));
    assert_eq!(told, "b, beside a: too little was measured to compare hashes a second.");
}

#[test]
fn what_was_expected_is_told_from_what_was_not() {
    let (double, half, near) = (ONE.map(|v| v * 2.0), ONE.map(|v| v / 3.0), ONE.map(|v| v * 1.001));
    let noise = [140.0, 100.0, 115.0, 90.0, 125.0];
    for (expected, values, meets) in [
        (Expect::More, double, Some(true)),
        (Expect::More, half, Some(false)),
        (Expect::More, near, Some(false)),
        (Expect::More, noise, None),
        (Expect::Less, half, Some(true)),
        (Expect::Less, double, Some(false)),
        (Expect::Less, noise, None),
        (Expect::Same, near, Some(true)),
        (Expect::Same, double, Some(false)),
        (Expect::Same, noise, None),
        (Expect::Nearly, near, Some(true)),
        (Expect::Nearly, double, Some(true)),
        (Expect::Nearly, ONE.map(|v| v * 0.93), Some(true)),
        (Expect::Nearly, ONE.map(|v| v * 0.85), Some(false)),
        (Expect::Nearly, noise, None),
        (Expect::Open, double, None),
    ] {
        assert_eq!(Verdict::of(&ONE, &values).meets(expected), meets, "{expected:?} {values:?}");
    }
}

#[test]
fn ratios_are_said_as_people_say_them() {
    for (factor, said) in
        [(2.5, "2.50 times as high"), (1.034, "3.4 % higher"), (0.8, "20 % lower"), (0.25, "1/4.00 as high")]
    {
        // A hair's breadth apart, so that there is an interval.
        let values = [ONE[0] * factor, ONE[1] * factor * 1.0001, ONE[2] * factor];
        let told = text(&group(&[("a", &[], &ONE[..3]), ("b", &[Expect::Open], &values)]));
        let near = (factor - 1.0_f64).abs() < 0.05;
        assert_eq!(told.contains(said), !near, "{told}");
    }
    // Values that go astray do not become figures with ten digits.
    let told = text(&group(&[("a", &[], &[1.0, 1.0]), ("b", &[Expect::Open], &[1.0, 9.0])]));
    assert_eq!(told, "b, beside a: no difference in hashes a second is shown (the rounds differ too much).");
}

/// Red where values that stand for what could not be measured get an interval, as if they had been.
#[test]
fn a_ratio_to_a_bound_is_a_bound_and_has_no_interval() {
    let (dozen, fifth) = (ONE.map(|value| value * 12.0), ONE.map(|value| value / 5.0));
    let told = |bounds: [Option<Bound>; 2], values: &[f64]| {
        let mut group = group(&[("a", &[], &ONE), ("b", &[Expect::More], values)]);
        group.rows.iter_mut().zip(bounds).for_each(|(row, bound)| row.bounds = vec![bound]);
        (text(&group), group.verdict(1, 0).meets(Expect::More))
    };
    let (least, most) = (Some(Bound::AtLeast), Some(Bound::AtMost));
    let said = |text: &str, met| (format!("b, beside a: {text}."), met);
    let (more, less) = ("hashes a second at least 12 times as high", "hashes a second at most 1/5.00 as high");
    assert_eq!(told([most, None], &dozen), said(more, Some(true)));
    assert_eq!(told([None, least], &dozen), said(more, Some(true)));
    assert_eq!(told([least, most], &fifth), said(less, Some(false)));
    // The truth could be on the other side, or anywhere.
    let nothing = said("too little was measured to compare hashes a second", None);
    for bounds in [[least, None], [None, most], [most, most]] {
        assert_eq!(told(bounds, &dozen), nothing, "{bounds:?}");
    }
}

#[test]
fn what_all_findings_come_to() {
    let finding = |expected, open| Finding { text: String::new(), expected, open, is_shown: true };
    let of = |all: &[Option<bool>]| summary(&all.iter().map(|one| finding(*one, false)).collect::<Vec<_>>());
    let (yes, no, open) = (Some(true), Some(false), None);
    assert_eq!(of(&[yes]), "The hypothesis holds on this machine, in the one comparison.");
    assert_eq!(of(&[yes, yes, yes]), "The hypothesis holds on this machine, in all 3 comparisons.");
    assert_eq!(
        of(&[yes, open]),
        "The hypothesis holds in 1 of 2 comparisons on this machine; the rest is not decided."
    );
    assert_eq!(
        of(&[open, open]),
        "Neither the hypothesis nor its opposite is shown on this machine, in all 2 comparisons."
    );
    assert_eq!(of(&[no]), "On this machine the hypothesis holds in 0 of 1 comparisons, and does not in 1.");
    assert_eq!(
        of(&[yes, no, open]),
        "On this machine the hypothesis holds in 1 of 3 comparisons, and does not in 1; one is not decided."
    );
    assert_eq!(summary(&[finding(None, true)]), "Nothing was expected beforehand: see the figures.");
}

#[test]
fn names_are_found_in_the_order_of_the_report_and_unknown_ones_get_the_nearest() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let found = named(&names(&["logging", "lanes", "logging"])).unwrap();
    assert_eq!(found.iter().map(|one| one.name).collect::<Vec<_>>(), ["lanes", "logging"]);
    for (wrong, nearest) in
        [("lane", "lanes"), ("jornal", "journal"), ("worker", "workers"), ("groupcommit", "group-commit")]
    {
        let refusal = named(&names(&["lanes", wrong])).unwrap_err();
        assert_eq!(refusal.exit_code(), 2);
        let line = refusal.to_string();
        assert!(line.starts_with(&format!("no experiment is called {wrong}; the nearest are {nearest}, ")), "{line}");
    }
}

#[test]
fn every_experiment_says_what_it_is() {
    for (at, one) in ALL.iter().enumerate() {
        assert!(ALL[..at].iter().all(|other| other.name != one.name), "{} twice", one.name);
        assert!(one.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", one.name);
        for text in [one.hypothesis, one.method] {
            assert!(text.ends_with('.') && !text.contains("  "), "{}: {text}", one.name);
        }
        assert!(
            one.published.is_none_or(|published| !published.rows.is_empty() && !published.source.is_empty()),
            "{}",
            one.name
        );
    }
}

#[test]
fn the_same_is_refuted_only_where_nothing_that_is_called_the_same_is_left() {
    // red where any difference refutes it: 1.02 is within five per cent, and the interval reaches it.
    let of = |low, high| Verdict::Differs(Ratio { middle: (low + high) / 2.0, low, high }).meets(Expect::Same);
    assert_eq!([of(1.01, 1.09), of(0.9, 0.97), of(1.05, 1.2), of(0.5, 0.94)], [None, None, Some(false), Some(false)]);
}

#[test]
fn a_small_factor_keeps_two_digits() {
    let said: Vec<_> = [0.00241, 0.042, 0.1, 0.5, 3.0, 0.0].map(times).to_vec();
    assert_eq!(said, ["0.0024", "0.042", "0.10", "0.50", "3.00", "0.00"]);
}
