//! The command line, from the words to the files that it writes.

use crate::of_five;
use crate::provider::{Manner, Provider};
use clap::Parser;
use load::interrupt::Interrupt;
use load::series::Series;
use std::path::PathBuf;

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    command: load::cli::Command,
}

/// A folder with the users and the secret of the client; it goes with the test.
pub struct Place(PathBuf);

impl Place {
    pub fn new(name: &str) -> Place {
        let folder = std::env::temp_dir().join(format!("load-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("people"), "ann:right\nbob:right\n").unwrap();
        std::fs::write(folder.join("secret"), "secret\n").unwrap();
        Place(folder)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub fn client(&self) -> String {
        let (people, secret) = (self.file("people"), self.file("secret"));
        format!("--client app --client-secret-file {secret} --redirect-uri http://localhost:9/cb --users {people}")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a line prints, or why it does not.
pub fn said(line: &str) -> Result<String, load::Refusal> {
    let words = std::iter::once("load").chain(line.split_whitespace());
    let program = Program::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
    let mut out = Vec::new();
    load::cli::main(&program.command, &Interrupt::default(), &mut out).map(|()| String::from_utf8(out).unwrap())
}

/// What a line prints that comes out well; once more where the machine stood still for all of its window.
pub fn done(line: &str) -> String {
    let is_empty = |refusal: &load::Refusal| refusal.to_string().starts_with("no iteration of ");
    of_five(|| said(line), |said| !said.as_ref().is_err_and(is_empty)).unwrap()
}

pub const SHORT: &str = "--warmup 50ms --duration 400ms --vus 4";

#[test]
fn a_result_is_a_table_a_file_and_a_page() {
    let (provider, place) = (Provider::start(Manner::Good), Place::new("result"));
    let (save, html) = (place.file("a.json"), place.file("a.html"));
    let line = format!("w1 {SHORT} --target {} {} --save {save} --html {html}", provider.url, place.client());
    let table = done(&line);
    assert!(table.starts_with("w1 at http://127.0.0.1:") && table.contains("authorize"), "{table}");
    let saved: Series = serde_json::from_str(&std::fs::read_to_string(&save).unwrap()).unwrap();
    assert!(saved.runs[0].iterations > 0 && saved.runs[0].timeline.len() == 10);
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.matches("<svg").count() == 3, "{page}");
    let printed: Series =
        serde_json::from_str(&done(&format!("jwks --json {SHORT} --target {}", provider.url))).unwrap();
    assert_eq!(printed.runs[0].workload, "jwks");
}

/// Red where what cannot be read is left out without a word.
#[test]
fn a_server_that_ends_in_the_window_is_noted() {
    let provider = Provider::start(Manner::Slow);
    let besides = || {
        let mut brief = std::process::Command::new("sleep").arg("0.6").spawn().unwrap();
        let line =
            format!("jwks --warmup 0s --duration 1200ms --vus 1 --target {} --server-pid {}", provider.url, brief.id());
        // One that nobody waits for is still there.
        let reaper = std::thread::spawn(move || brief.wait());
        let table = said(&line);
        reaper.join().unwrap().unwrap();
        table
    };
    // Where the machine stands still as it begins, it may have ended before the window.
    let table = of_five(besides, Result::is_ok).unwrap();
    assert!(
        table.contains("\na process of --server-pid ended in the window") && !table.contains("by the server"),
        "{table}"
    );
}

/// Red where the scope and what an API is called go to the authorization endpoint alone, which a client's own credentials never see.
#[test]
fn what_a_client_asks_for_itself_goes_to_the_token_endpoint() {
    let (provider, place) = (Provider::start(Manner::Good), Place::new("own"));
    let line = |what: &str| format!("{what} {SHORT} --target {} {}", provider.url, place.client());
    let said = |name: &str| provider.said("/token", name);
    done(&line("client_credentials"));
    assert_eq!((said("grant_type").as_deref(), said("scope")), (Some("client_credentials"), None));
    let more = "--scope read --token-param audience=api --token-param resource=https://api";
    done(&line(&format!("client_credentials {more}")));
    let [scope, audience, resource] = ["scope", "audience", "resource"].map(said);
    assert_eq!(scope.as_deref(), Some("read"));
    assert_eq!((audience.as_deref(), resource.as_deref()), (Some("api"), Some("https://api")));
    // Whoever signs in is asked for a scope once, and an API is named for each token.
    done(&line("w1 --scope openid --token-param resource=https://api"));
    assert_eq!((said("scope"), said("resource").as_deref()), (None, Some("https://api")));
    assert_eq!(provider.said("/authorize", "scope").as_deref(), Some("openid"));
    assert_eq!(
        [("/authorize", "resource"), ("/introspect", "resource")].map(|(path, name)| provider.said(path, name)),
        [None, None]
    );
}

#[test]
fn what_is_compared_with_itself_shows_no_difference() {
    let (provider, place) = (Provider::start(Manner::Slow), Place::new("compare"));
    let save = place.file("a.json");
    done(&format!("jwks {SHORT} --target {} --save {save}", provider.url));
    let table = said(&format!("compare {save} {save}")).unwrap();
    // Four users at 20 ms each have at most eighty answers in 400 ms, which is too few for a p99; a busy machine gives fewer.
    let [alike, few] = ["no difference shown", "too few for a verdict"].map(|said| table.matches(said).count());
    assert!(alike >= 1 && few >= 1 && alike + few == 6, "{table}");
    assert!(table.contains("Too few came out well in A for a verdict on "), "{table}");
    assert!(table.contains("Method: bootstrap over slices of time"), "{table}");
    let sides = ["A", "B"].map(|side| format!("{side}: {save} ({})\n", provider.url.trim_end_matches('/')));
    assert!(table.starts_with(&sides.concat()), "{table}");
    let json = said(&format!("compare --json {save} {save}")).unwrap();
    let json = serde_json::from_str::<serde_json::Value>(&json).unwrap();
    assert!(json["parts"][0]["figures"].is_array() && json["a"]["target"].is_string(), "{json}");
    assert_eq!([&json["a"]["file"], &json["b"]["file"]], [save.as_str(); 2]);
    let (none, people) = (place.file("none.json"), place.file("people"));
    std::fs::write(&none, r#"{"runs":[]}"#).unwrap();
    let refusal = said(&format!("compare {none} {none}")).unwrap_err();
    assert_eq!((refusal.to_string().as_str(), refusal.exit_code()), ("A holds no runs", 2));
    let refusal = said(&format!("compare {save} {people}")).unwrap_err();
    assert!(
        refusal.exit_code() == 2 && refusal.to_string().starts_with(&format!("{people} is not a result: ")),
        "{refusal}"
    );
}

#[test]
fn a_search_finds_where_a_slow_server_ends() {
    let (provider, place) = (Provider::start(Manner::Slow), Place::new("search"));
    let html = place.file("search.html");
    let line = format!("search jwks {SHORT} --target {} --p99 100ms --precision 30 --html {html}", provider.url);
    // Four at once, each for 20 ms: 200 a second, and less where the machine is busy. Where it stands still a trial fails, and the
    // search ends below what the server holds.
    let is_near = |said: &Result<String, load::Refusal>| {
        let found = said.as_ref().ok().and_then(|table| table.strip_prefix("Holds ")?.split_whitespace().next());
        found.is_some_and(|found| (20.0..=260.0).contains(&found.parse::<f64>().unwrap()))
    };
    let searched = of_five(|| said(&line), is_near);
    assert!(is_near(&searched), "{searched:?}");
    let table = searched.unwrap();
    assert!(table.contains("offered/s") && table.contains("does not"), "{table}");
    assert!(std::fs::read_to_string(html).unwrap().contains("Latency by throughput"));
    // Red where the trials go with the refusal.
    let none = place.file("none.json");
    let line = format!("search jwks {SHORT} --target {} --p99 1ms --rate 8 --save {none}", provider.url);
    let refusal = said(&line).unwrap_err();
    let saved: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&none).unwrap()).unwrap();
    assert!(saved["trials"].as_array().unwrap().len() > 1, "{saved:#}");
    assert!(saved["found_none"].as_str().unwrap().starts_with("no rate near 8.00/s"), "{saved:#}");
    assert!(refusal.to_string().starts_with("no rate near 8.00/s keeps p99 at or below 1ms"), "{refusal}");
    // Red where a rate at which nothing came is one that the server did not keep.
    assert!(refusal.to_string().contains("nothing is due within"), "{refusal}");
    let nothing = said(&format!("search jwks {SHORT} --target {} --rate 0.1", provider.url)).unwrap_err();
    assert!(nothing.exit_code() == 2 && nothing.to_string().starts_with("at 0.100/s nothing is due"), "{nothing}");
    assert_eq!(refusal.exit_code(), 1);
    for (line, expected) in [("search w4", "a search takes no w3, w4 or w6"), ("w5 --ramp 1s", "w5 takes no --ramp")] {
        let refusal = said(line).unwrap_err();
        assert!(refusal.to_string().starts_with(expected), "{refusal}");
    }
}

#[test]
fn the_workloads_of_several_streams_run() {
    let (provider, place) = (Provider::start(Manner::Accounts), Place::new("streams"));
    let common = format!("{SHORT} --target {} {}", provider.url, place.client());
    let w3 = done(&format!("w3 --rate 300 {}", common.replace(" --vus 4", "")));
    assert!(
        w3.starts_with("w3: profile, sign_in, sign_up\nprofile at ")
            && w3.contains("beside it: sign_in")
            && w3.contains("beside it: sign_up"),
        "{w3}"
    );
    // A line for each of five rates, and one for each of three streams beside it; with their heads. Then where it is from. A busy
    // machine may have something fail, which has a line of its own.
    let told = |w4: &String| {
        w4.lines().skip_while(|line| !line.contains("offered/s")).filter(|line| !line.contains(" x ")).count()
    };
    // Where it stands still for the first window, there is no rate to go beyond.
    let w4 =
        of_five(|| said(&format!("w4 {common}")), |w4| w4.as_ref().is_ok_and(|w4| told(w4) == 6 + 16 + 1)).unwrap();
    assert!(w4.starts_with("w4: w1, introspect, refresh, jwks\n"), "{w4}");
    assert_eq!(told(&w4), 6 + 16 + 1, "{w4}");
    assert!(w4.lines().last().is_some_and(|line| line.starts_with("Measured by Portiere ")), "{w4}");
    let w6 = done(&format!("w6 {common}"));
    assert!(w6.starts_with("w6: w1, w5\nw1 at ") && w6.contains("\nw5 at "), "{w6}");
}

#[test]
fn where_a_result_cannot_be_written_is_said_before_or_after_and_never_kept_quiet() {
    let provider = Provider::start(Manner::Good);
    let line = |more: &str| format!("jwks {SHORT} --target {} {more}", provider.url);
    let refusal = said(&line("--save /nowhere/at/all.json")).unwrap_err();
    assert!(refusal.to_string().starts_with("/nowhere/at/all.json cannot be written: "), "{refusal}");
    assert_eq!((refusal.exit_code(), provider.seen("/jwks")), (1, 0), "nothing was measured");
    let place = Place::new("unwritten");
    let save = place.file("a.json");
    assert!(said(&format!("jwks {SHORT} --target http://127.0.0.1:1 --save {save}")).is_err());
    assert!(!std::path::Path::new(&save).exists(), "nothing is left of a run that was refused");
    assert!(said(&line(&format!("--save {save} --html /nowhere/at/all.html"))).is_err());
    assert!(!std::path::Path::new(&save).exists(), "nor where the other file cannot be written");
    std::fs::write(&save, "before").unwrap();
    assert!(said(&format!("jwks {SHORT} --target http://127.0.0.1:1 --save {save}")).is_err());
    assert_eq!(std::fs::read_to_string(&save).unwrap(), "before", "what is there stays until there is a result");
    for file in ["--save /dev/full", "--html /dev/full"] {
        let refusal = said(&line(file)).unwrap_err();
        assert!(refusal.to_string().starts_with("/dev/full cannot be written: No space left"), "{refusal}");
    }
}

/// Red without `apart` in `prepared`: the page takes the place of the result that somebody waited for.
#[test]
fn a_result_and_a_page_are_not_one_file() {
    let (provider, place) = (Provider::start(Manner::Good), Place::new("apart"));
    let file = place.file("a");
    for (save, html) in [(file.clone(), file.clone()), (file.clone(), place.file("./a"))] {
        for workload in ["jwks", "search jwks"] {
            let line = format!("{workload} {SHORT} --target {} --save {save} --html {html}", provider.url);
            let refusal = said(&line).unwrap_err();
            assert_eq!((refusal.exit_code(), provider.seen("/jwks")), (2, 0), "{refusal}: nothing was measured");
            assert!(refusal.to_string().ends_with("would hold two results: name a file for each"), "{refusal}");
        }
    }
}

#[test]
fn a_run_without_any_success_is_a_failure() {
    // Where the machine stands still before the window, the one answer may come in it, or none before it.
    let stuck = || {
        let provider = Provider::start(Manner::Stuck);
        said(&format!("jwks --timeout 1s --warmup 1s --duration 3s --target {}", provider.url)).err()
    };
    let expected = Some(load::Refusal::Failure("no iteration of jwks came out well".to_owned()));
    assert_eq!(of_five(stuck, |refusal| *refusal == expected), expected);
}
