//! Command lines, and the plans that they result in.

use super::*;
use clap::Parser;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    options: Options,
}

fn plan(line: &str) -> Result<Plan, Refusal> {
    let options = Command::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{error}")).options;
    options.check(false).and_then(|()| options.plan())
}

#[test]
fn defaults_are_a_closed_loop_of_twenty() {
    let plan = plan("load jwks").unwrap();
    assert_eq!(plan.pace, Pace::Closed { visitors: 20, pause: Duration::ZERO });
    assert_eq!(plan.target.to_string(), "http://localhost:8080/");
}

#[test]
fn another_machine_is_reached_when_it_is_owned() {
    let plan = plan("load --i-own-this-host jwks --target http://192.0.2.1:81").unwrap();
    assert_eq!(plan.reach.addresses(&plan.target).unwrap(), ["192.0.2.1:81".parse().unwrap()]);
}

#[test]
fn workloads_have_their_own_pace_unless_told_otherwise() {
    let people = std::env::temp_dir().join(format!("load-people-{}", std::process::id()));
    std::fs::write(&people, "ann:x\n").unwrap();
    let people = people.to_str().unwrap();
    let of = |line: &str| {
        let line = format!("load {line} --client a --redirect-uri http://localhost/cb --users {people}");
        let plan = plan(&line).unwrap();
        (plan.workload, plan.pace, plan.shape)
    };
    let second = Duration::from_secs(1);
    let (closed, open) = (|pause| Pace::Closed { visitors: 20, pause }, |rate| Pace::Open { rate, visitors: 100 });
    assert_eq!(of("w2"), (Workload::Traffic, closed(second), Shape::Steady));
    assert_eq!(of("w2 --pause 2s"), (Workload::Traffic, closed(second * 2), Shape::Steady));
    assert_eq!(of("w4").1, Pace::Closed { visitors: 40, pause: Duration::ZERO });
    assert_eq!(of("w4 --vus 10").1, Pace::Closed { visitors: 10, pause: Duration::ZERO });
    assert_eq!(of("w5"), (Workload::Day, open(100.0), Shape::Day));
    assert_eq!(plan("load jwks --rate 9 --arrivals poisson").unwrap().arrivals, Arrivals::Poisson);
    assert_eq!(of("w1 --ramp 1s"), (Workload::Flow, closed(Duration::ZERO), Shape::Ramp(second)));
    std::fs::remove_file(people).unwrap();
}

#[test]
fn what_would_be_given_in_vain_is_refused() {
    for (line, is_search, expected) in [
        ("w1 --no-account-api", false, "--no-account-api is for what can go without: w2"),
        ("sign_up --no-account-api", false, "--no-account-api is for what can go without: w2"),
        ("w3 --no-account-api", false, "w3 signs up through the account API"),
        ("w1 --no-sign-ups", false, "--no-sign-ups is a variant of w3"),
        ("w4 --no-sign-ups", false, "--no-sign-ups is a variant of w3"),
        ("w6 --no-sign-ups", false, "--no-sign-ups is a variant of w3"),
        ("w4 --no-password", false, "--no-password is a variant of w1"),
        ("w4 --no-refresh", false, "--no-refresh is a variant of w1"),
        ("w3 --vus 9", false, "w3 takes no --vus"),
        ("w3 --pause 1s", false, "w3 takes no --pause"),
        ("w4 --repeat 2", false, "w4 takes no --repeat"),
        ("w4 --rate 9", false, "w4 takes no --rate"),
        ("w4 --ramp 1s", false, "w4 takes no --ramp"),
        ("w4 --pause 1s", false, "w4 takes no --pause"),
        ("w5 --ramp 1s", false, "w5 takes no --ramp"),
        ("w5 --pause 1s", false, "w5 takes no --pause"),
        ("w1 --arrivals poisson", false, "a closed loop takes no --arrivals"),
        ("w1 --rate 9 --heed-retry-after", false, "an open loop takes no --heed-retry-after"),
        ("w3 --heed-retry-after", false, "an open loop takes no --heed-retry-after"),
        ("w5 --heed-retry-after", false, "an open loop takes no --heed-retry-after"),
        ("w1 --heed-retry-after", true, "an open loop takes no --heed-retry-after"),
        ("introspect --no-introspection", false, "--no-introspection leaves nothing of introspect"),
        (
            "jwks --introspect-client api --introspect-secret-file x",
            false,
            "--introspect-client is for what introspects",
        ),
        ("w4", true, "a search takes no w3, w4 or w6"),
        ("w1 --repeat 2", true, "a search takes no --repeat"),
        ("w1 --ramp 1s", true, "a search takes no --ramp"),
        ("w1 --pause 1s", true, "a search takes no --pause"),
        ("w2 --no-sign-ups", true, "--no-sign-ups is a variant of w3"),
    ] {
        let words = std::iter::once("load").chain(line.split(' '));
        let options = Command::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).options;
        let refusal = options.check(is_search).unwrap_err();
        assert!(refusal.to_string().starts_with(expected) && refusal.exit_code() == 2, "{line}: {refusal}");
    }
    for line in [
        "w1 --no-password --no-refresh --ramp 1s",
        "w3 --no-sign-ups --repeat 2",
        "w4 --vus 9",
        "w4 --no-introspection",
        "introspect --introspect-client api --introspect-secret-file x",
        "w6 --rate 9",
        "w1 --rate 9 --arrivals poisson",
        "w4 --arrivals poisson",
        "w2 --pause 2s",
        "w1 --heed-retry-after",
    ] {
        let words = std::iter::once("load").chain(line.split(' '));
        let options = Command::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).options;
        assert_eq!(options.check(false), Ok(()), "{line}");
    }
}

/// Red without `lead_to` in `reach`: nothing would know where the target is.
#[test]
fn what_the_target_leads_to_is_judged_by_the_target() {
    let here = crate::wire::Url::parse("http://localhost:1/").unwrap();
    let led = |line: &str| plan(line).ok().unwrap().reach.addresses(&here).err();
    let far = "load jwks --target http://192.0.2.1 --i-own-this-host";
    assert_eq!(led(far), Some(crate::wire::Wrong::ThisMachine));
    assert_eq!([led(&format!("{far} --i-own-this-host=localhost")), led("load jwks")], [None; 2]);
}

#[test]
fn what_cannot_work_is_one_line() {
    for (line, expected) in [
        ("load jwks --target http://example.com", "http://example.com/: only this machine may be measured"),
        ("load jwks --target ftp://localhost", "ftp://localhost: only http:// and https:// URLs"),
        ("load jwks --target https://localhost --ca /dev/null", "/dev/null: contains no certificate"),
        ("load jwks --target http://192.0.2.1 --i-own-this-host=192.0.2.2", "http://192.0.2.1/: only this machine"),
        ("load jwks --connect-to 192.0.2.1:80", "--connect-to 192.0.2.1:80: only this machine"),
        ("load jwks --connect-to node-1", "--connect-to node-1: not HOST:PORT"),
        ("load jwks --ramp 30s", "the ramp must be longer than zero and no longer than --duration"),
        ("load jwks --no-sign-ups", "--no-sign-ups is a variant of w3"),
        ("load jwks --no-password", "--no-password is a variant of w1"),
        ("load jwks --vus 0", "at least one virtual user"),
        ("load jwks --rate 0", "the rate must be above zero"),
        ("load jwks --rate 1e30", "the rate must be at most 100 million per second"),
        ("load w3 --rate 1e30", "the rate must be at most 100 million per second"),
        ("load w1", "this workload needs --client"),
        ("load w1 --client a --redirect-uri http://localhost/cb", "this workload needs --users"),
        ("load client_credentials --client a", "client_credentials needs a client secret"),
        ("load w1 --users /nowhere/at/all", "/nowhere/at/all: "),
    ] {
        let refusal = plan(line).err().unwrap();
        assert!(refusal.to_string().starts_with(expected), "{refusal}");
        assert_eq!(refusal.exit_code(), 2);
    }
}
