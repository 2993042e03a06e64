//! What is advised on a machine whose probes are known: `probes.json`, two cores.

use lab::capacity::figure::Figure;
use lab::capacity::outcome::Capacity;
use lab::capacity::probe::Probes;
use lab::capacity::{page, report, users};
use std::sync::LazyLock;

fn probes() -> Probes {
    serde_json::from_str(include_str!("probes.json")).unwrap()
}

/// What follows from them. Computed once: in tests it takes ten seconds.
fn capacity() -> Capacity {
    static CAPACITY: LazyLock<Capacity> = LazyLock::new(|| Capacity::of(probes()));
    CAPACITY.clone()
}

/// The same, where hashes of 46 MiB and one pass are computed so many times as often as the default's.
fn where_46_mib_is(times: f64) -> Probes {
    let mut probes = probes();
    let rate = |probes: &Probes, memory| {
        probes.hashing.choices.iter().find(|choice| choice.parameters.memory_kib == memory).unwrap().rate.unwrap()
    };
    let own = rate(&probes, 19_456);
    let choice = probes.hashing.choices.iter_mut().find(|choice| choice.parameters.memory_kib == 47_104).unwrap();
    choice.rate = Some(own * times);
    probes
}

#[test]
fn every_choice_that_is_as_strong_is_judged_and_what_does_not_help_is_told_too() {
    // red if only what is faster were listed.
    let changes = capacity().changes;
    let of = |what: &str| changes.iter().find(|change| change.what.contains(what)).unwrap();
    assert!(!of("m=47104 t=1").raises() && of("m=9216 t=4").raises());
    assert!(of("m=9216 t=4").limits[0] > 1.1, "sign-ins");
    assert_eq!(of("m=9216 t=4").limits[1..3], [1.0, 1.0], "what is not hashed is as fast as before");
    // Red where a password takes a worker as long as all that it has room for.
    assert!(of("a hash worker").sign_in_p95 < 1.0, "half of the hashes go to an idle machine");
    assert!(of("a hash worker").raises() && of("4 cores in place of 2").limits.iter().all(|limit| *limit > 1.5));
    let disk = of("a disk ten times as fast");
    assert!(!disk.raises() && !disk.hastens(), "{disk:?}");
    assert!(of("PostgreSQL").limits[2] < 0.5, "a round trip for each introspection");
    assert!(changes.iter().all(|change| !change.what.contains("m=19456")), "what is there is no change");
}

/// Red where the page says the note alone: of what does not help it said how it would be done.
#[test]
fn the_page_judges_each_change_as_the_text_does() {
    let mut capacity = capacity();
    let change = |limit: f64, sign_in_p95| {
        let mut change = capacity.changes[0].clone();
        (change.limits, change.sign_in_p95, change.note) = ([1.0, limit, 1.0, 1.0], sign_in_p95, "as it is".to_owned());
        change
    };
    let changes = [change(1.5, 1.0), change(0.5, 0.5), change(1.0, 0.5), change(1.0, 1.0)].to_vec();
    capacity.changes = changes;
    let (text, page) = (report::text(&capacity), page::of(&capacity));
    for said in [
        "(1) as it is",
        "(2) lowers limits, but sign-ins are sooner; as it is",
        "(3) raises no limit, but sign-ins are sooner; as it is",
        "(4) does not help; as it is",
    ] {
        assert!(text.contains(said) && page.contains(&format!("<p>{said}</p>")), "{said}: {text}\n{page}");
    }
}

#[test]
fn other_parameters_are_recommended_where_they_are_faster_and_not_smaller() {
    // red if the fastest were looked for before it is known which are large enough: there is a faster one of 9 MiB.
    let found = Capacity::of(where_46_mib_is(1.5)).settings;
    assert_eq!((found.parameters.memory_kib, found.parameters.passes), (47_104, 1), "{}", found.why);
    assert!(found.why.contains("1.50 times as fast"), "{}", found.why);
    assert_eq!(found.in_use_mib, (found.threads * found.lanes) as u64 * 46);
    let found = Capacity::of(where_46_mib_is(1.05)).settings;
    assert_eq!(found.parameters.memory_kib, 19_456, "a twentieth is not worth it: {}", found.why);
}

#[test]
fn people_a_month_follow_from_the_limit_as_it_is_printed() {
    let capacity = capacity();
    let day = capacity.forecasts.iter().find(|one| one.operation.name() == "a day's mix").unwrap().bound;
    let found = &capacity.users;
    assert_eq!(found.rate, day * users::USED);
    assert_eq!(found.mean, found.rate / users::PEAK);
    assert_eq!(found.daily, found.mean * 86_400.0 / users::OPERATIONS);
    assert_eq!(found.monthly, found.daily / users::DAILY);
    let told = report::people(&capacity);
    assert!(told.starts_with("People a month: ") && told.contains("x 86,400 s"), "{told}");
}

#[test]
fn settings_are_toml_with_the_names_of_the_configuration() {
    let capacity = capacity();
    let text = report::settings(&capacity);
    for line in ["[hash]", "[hash.argon2]", "[store]", "threads = 2", "memory_kib = 19456", "passes = 2", "lanes = 1"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// Red without `is_single`: each was told to be "±0 %", as if that were known.
#[test]
fn one_sample_is_not_told_to_be_exact() {
    fn unspread(value: &mut serde_json::Value) {
        if let Some(spread) = value.get_mut("spread") {
            *spread = 0.0.into();
        }
        match value {
            serde_json::Value::Object(members) => members.values_mut().for_each(unspread),
            serde_json::Value::Array(items) => items.iter_mut().for_each(unspread),
            _ => {}
        }
    }
    let told = |rounds: u32| {
        let mut saved = serde_json::to_value(capacity()).unwrap();
        unspread(&mut saved);
        saved["probes"]["rounds"] = rounds.into();
        let capacity: Capacity = serde_json::from_value(saved).unwrap();
        [report::text(&capacity), page::of(&capacity)]
    };
    for (one, three) in told(1).into_iter().zip(told(3)) {
        assert!(!one.contains("±0 %") && one.contains("one hash alone, ms"), "{one}");
        assert!(three.contains("±0 %"), "three that are alike are: {three}");
    }
}

/// Red where nothing divided by nothing was a figure: the page said NaN, and what was saved could not be read again.
#[test]
fn a_pool_that_hashed_nothing_meanwhile_is_told_and_is_no_figure() {
    let mut probes = probes();
    (probes.http.pool, probes.http.often.hashes_left) = (Figure::of(&[f64::NAN]), None);
    let capacity = Capacity::of(probes);
    let saved: Capacity = serde_json::from_str(&serde_json::to_string(&capacity).unwrap()).unwrap();
    let (text, page) = (report::text(&saved), page::of(&saved));
    for told in [&text, &page] {
        assert!(told.contains("could not be measured") && !told.contains("NaN") && !told.contains("inf "), "{told}");
    }
}

/// Red where what the host took counts as other programs: the reader looks for them here, and there are none.
#[test]
fn the_host_is_told_apart_from_other_programs() {
    let told = |others: Option<f64>, stolen: Option<f64>| {
        let mut capacity = capacity();
        (capacity.probes.machine.others, capacity.probes.machine.stolen) = (others, stolen);
        report::doubts(&capacity).join("\n")
    };
    let rest = " meanwhile: this is less than the machine carries";
    for (others, stolen, said) in [
        (Some(0.5), Some(0.0), "Other programs kept 0.50 cores busy"),
        (Some(0.5), None, "Other programs kept 0.50 cores busy"),
        (Some(0.0), Some(0.4), "\nThe host of this machine took away 0.40 cores"),
        (Some(0.1), Some(0.1), "Other programs kept 0.10 cores busy and the host of this machine took away 0.10 cores"),
    ] {
        let told = told(others, stolen);
        assert!(told.contains(&format!("{said}{rest}")), "{told}");
    }
    for (others, stolen) in [(None, None), (Some(0.1), Some(0.01)), (Some(0.01), Some(0.1))] {
        assert!(!told(others, stolen).contains("meanwhile"), "it hardly counts");
    }
}
