//! What is in the picture.

use super::*;
use crate::profile::tree::{Stack, merge};
use crate::profile::waits::{Phase, Queue, Route};

fn taken(stacks: &[(&str, &[&str], u64)]) -> Profile {
    let stacks_of = stacks.iter().map(|(thread, functions, times)| Stack {
        thread,
        functions: functions.to_vec(),
        times: *times,
        outside: None,
    });
    Profile {
        version: "1.2.3".into(),
        began: 1_800_000_000_000,
        seconds: 10.0,
        frequency: 99,
        cores: 2,
        cpu_seconds: 5.0,
        samples: stacks.iter().map(|(_, _, times)| times).sum(),
        nodes: merge(stacks_of),
        routes: Vec::new(),
        queues: Vec::new(),
    }
}

/// Returns what stands before a label, up to the beginning of the line: where the box is.
fn place<'a>(picture: &'a str, label: &str) -> &'a str {
    let end = picture.find(&format!(">{label}</text>")).unwrap_or_else(|| panic!("{label} is not in {picture}"));
    let begin = picture[..end].rfind("<svg ").unwrap();
    let line = &picture[begin..end];
    &line[..line.find('>').unwrap()]
}

#[test]
fn boxes_are_as_wide_as_they_were_seen_and_below_what_called_them() {
    let picture = picture(&taken(&[
        ("network threads", &["app::token", "aws_lc::sign"], 30),
        ("network threads", &["app::token"], 10),
        ("hashing threads", &["hasher::fill"], 60),
    ]));
    assert_eq!(place(&picture, "hashing threads"), "<svg x=\"0%\" y=\"0\" width=\"60%\" height=\"18\"");
    assert_eq!(place(&picture, "hasher::fill"), "<svg x=\"0%\" y=\"18\" width=\"60%\" height=\"18\"");
    assert_eq!(place(&picture, "app::token"), "<svg x=\"60%\" y=\"18\" width=\"40%\" height=\"18\"");
    assert_eq!(place(&picture, "sign"), "<svg x=\"60%\" y=\"36\" width=\"30%\" height=\"18\"");
    assert!(picture.contains("<title>app::token\n40 % of all samples, 10 % in itself</title>"));
    assert!(picture.contains("5.0 s of CPU, 25 % of 2 cores; 100 samples"));
}

#[test]
fn brackets_of_names_do_not_break_the_file() {
    let hostile = "<a::B as C>::\"d\" & 'e' </title><script>\u{1}";
    let mut of = taken(&[("network threads", &[hostile], 1)]);
    of.routes = vec![Route { route: "/<x>&".into(), requests: 1, seconds: 1.0, phases: Vec::new() }];
    let picture = picture(&of);
    assert!(!picture.contains("<a::B") && !picture.contains("</title><script>") && !picture.contains('\u{1}'));
    let name = "&lt;a::B as C&gt;::&quot;d&quot; &amp; &#39;e&#39; &lt;/title&gt;&lt;script&gt;";
    assert!(picture.contains(&format!("<title>{name}\n")), "{picture}");
    assert!(picture.contains(">/&lt;x&gt;&amp;</text>"));
    assert_eq!(picture.matches("<script>").count(), 1);
}

#[test]
fn boxes_too_narrow_to_be_seen_are_left_out_and_counted() {
    let of = taken(&[("network threads", &["app::often"], 9_999), ("network threads", &["app::once", "app::deep"], 1)]);
    let drawn = picture(&of);
    assert!(drawn.contains("app::often") && !drawn.contains("app::once"));
    assert!(drawn.contains("Left out: 2 boxes of less than"), "{drawn}");
}

#[test]
fn a_picture_of_very_many_functions_stays_below_a_megabyte() {
    let names: Vec<String> =
        (0..60_000).map(|at| format!("store::sqlite::a_rather_long_name_of_a_function_{at}::poll")).collect();
    let paths: Vec<[&str; 1]> = names.iter().map(|name| [name.as_str()]).collect();
    let stacks: Vec<(&str, &[&str], u64)> =
        paths.iter().enumerate().map(|(at, path)| ("network threads", &path[..], 1 + (at as u64 % 50) * 40)).collect();
    let drawn = picture(&taken(&stacks));
    assert!(drawn.len() < 1 << 20, "{}", drawn.len());
}

#[test]
fn functions_of_the_runtime_that_only_call_on_are_one_box() {
    let drawn = picture(&taken(&[
        ("network threads", &["std::start", "tokio::run", "tokio::poll", "app::token", "tokio::wake"], 9),
        ("network threads", &["std::start", "tokio::run", "tokio::poll", "tokio::park"], 1),
    ]));
    assert!(drawn.contains(">tokio::poll  (+2)</text>"), "{drawn}");
    assert!(drawn.contains("<title>std::start\ntokio::run\ntokio::poll\n"), "none of them is lost");
    assert!(drawn.contains(">app::token</text>") && drawn.contains(">tokio::wake</text>"));
}

/// Red without `ASSEMBLER`: a function whose callers were lost would count as the libraries'.
#[test]
fn assembler_of_the_cryptography_has_its_color_and_its_callers_are_told_to_be_lost() {
    let named =
        ["bn_powerx5", "__bn_sqrx8x_reduction", "mulx4x_internal", "_aesni_encrypt4", "sha256_block_data_order"];
    for (name, class) in named.map(|name| (name, "tls")).into_iter().chain([("_mi_page_free", "lib"), ("main", "lib")])
    {
        let drawn = picture(&taken(&[("network threads", &["[callers lost]", name], 1)]));
        assert!(
            drawn.contains(&format!(
                "<title>{name}\n100 % of all samples, 100 % in itself</title><rect class=\"{class}\"/>"
            )),
            "{drawn}"
        );
        assert!(drawn.contains(">[callers lost]</text>"), "{drawn}");
    }
    let drawn = picture(&taken(&[("network threads", &["[callers lost]", "tokio::run"], 1)]));
    assert!(drawn.contains(">[callers lost]</text>") && drawn.contains(">tokio::run</text>"), "two boxes: {drawn}");
    let drawn = picture(&taken(&[("network threads", &["app::read", "sqlite3_step", "md5_block"], 1)]));
    assert!(
        drawn.contains("<title>md5_block\n100 % of all samples, 100 % in itself</title><rect class=\"sql\"/>"),
        "{drawn}"
    );
}

#[test]
fn a_bar_says_what_a_route_waited_for() {
    let phase = |name: &str, share| Phase { name: name.into(), seconds: share, share };
    let mut of = taken(&[("network threads", &[], 1)]);
    of.routes = vec![Route {
        route: "/login".into(),
        requests: 4,
        seconds: 2.0,
        phases: vec![phase("hash_queue", 0.25), phase("hash", 0.5)],
    }];
    of.queues = vec![Queue { name: "password hashing".into(), mean: 1.25, most: 7 }];
    let drawn = picture(&of);
    assert_eq!(place(&drawn, "hash 50 %"), "<svg x=\"25%\" y=\"0\" width=\"50%\" height=\"18\"");
    assert_eq!(place(&drawn, "other 25 %"), "<svg x=\"75%\" y=\"0\" width=\"25%\" height=\"18\"");
    assert!(drawn.contains("4 requests, 500.0 ms in the mean, 2.0 s together"));
    assert!(drawn.contains("hash: a password is hashed") && !drawn.contains("evening: "));
    assert!(drawn.contains("password hashing: 1.2 in the mean, 7 at most"));
}

#[test]
fn every_stage_of_a_request_has_a_color_and_an_explanation() {
    for stage in app::stopwatch::Stage::ALL {
        let mut of = taken(&[("network threads", &[], 1)]);
        let phases = vec![Phase { name: stage.name().into(), seconds: 1.0, share: 1.0 }];
        of.routes = vec![Route { route: "/".into(), requests: 1, seconds: 1.0, phases }];
        let drawn = picture(&of);
        assert!(drawn.contains(&format!(">{}: ", stage.name())), "{stage:?} is not explained");
        assert!(drawn.contains(&format!(".{} {{ fill", stage.name())), "{stage:?} has no color");
        let longest = drawn.lines().filter_map(|line| line.split("20\" y=\"12\">").nth(1)).map(|text| text.find('<'));
        assert!(longest.max().flatten() <= Some(55), "a phone has no room for it: {drawn}");
    }
}

#[test]
fn a_server_with_nothing_to_do_has_a_picture_too() {
    let drawn = picture(&taken(&[]));
    assert!(drawn.contains("had nothing to do") && drawn.contains("No request was answered"));
}
