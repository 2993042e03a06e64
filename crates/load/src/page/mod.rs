//! The report as an HTML page: tables and charts in one file, without scripts or external resources.

pub mod chart;

use crate::report::{Latency, Report, told};
use crate::series::{Series, Table, Trial, setbacks, tables};
use crate::timeline::{Sketch, Slice};
use chart::{Axis, Chart, Line, Scale, escaped, label};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");
/// The labeled shares of the percentile curve; each step of the axis adds a nine.
const SHARES: [(f64, &str); 5] = [(0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")];

/// Returns the page of a result.
pub fn of(series: &Series) -> String {
    let mut out = String::new();
    if let Some(made) = &series.made {
        let _ = writeln!(out, "<p class=\"soft\">{}</p>", escaped(&made.to_string()));
    }
    if let Some(found) = &series.found {
        let _ = writeln!(out, "<p><strong>{}</strong></p>", escaped(found.to_string().trim()));
    }
    if let Some(why) = &series.found_none {
        let _ = writeln!(out, "<p><strong>Found none: {}</strong></p>", escaped(why));
    }
    if let Some(why) = &series.cut_short {
        let _ = writeln!(out, "<p>Ended before its time: {}</p>", escaped(why));
    }
    if !series.trials.is_empty() {
        trials(&mut out, &series.trials);
    }
    for (number, run) in series.runs.iter().enumerate() {
        section(&mut out, run, &format!("Run {}", number + 1));
        run.beside.iter().for_each(|beside| section(&mut out, beside, "Beside it"));
    }
    if let Some(spread) = &series.spread {
        let ([rate, mean, p99], verdict) = (spread.told(), spread.verdict());
        let _ = writeln!(out, "<p>The runs vary by {rate} in rate, {mean} in mean and {p99} in p99: {verdict}.</p>");
    }
    // Several pages may be open at once, so each title names its target.
    let of = series.target().map(|target| format!(" of {target}")).unwrap_or_default();
    frame(&format!("{}: load{of}", series.title()), &out)
}

/// Returns a page that needs no other files, for light and dark mode, around the HTML in `body`.
pub fn frame(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</html>\n"
    )
}

/// Writes the trials of a sweep or a search: the curve of throughput and latency, and its numbers.
fn trials(out: &mut String, trials: &[Trial]) {
    let curve = |name: &str, of: fn(&Latency) -> f64| Line {
        name: name.to_owned(),
        // Without iterations there is no latency, which is not a latency of zero.
        points: trials
            .iter()
            .map(|Trial { report, .. }| {
                let latency = if report.iterations > 0 { of(&report.latency) } else { f64::NAN };
                (report.iterations_per_second, latency)
            })
            .collect(),
    };
    let throughput = Chart {
        title: "Latency by throughput".to_owned(),
        x: Axis::new("iterations a second that came out well", Scale::Linear),
        y: Axis::new("ms", Scale::Log),
        lines: vec![curve("p50", |l| l.p50), curve("p95", |l| l.p95), curve("p99", |l| l.p99)],
    };
    let _ = writeln!(out, "<h2>Throughput and latency</h2>\n{}", throughput.svg());
    for Table { head, rows } in tables(trials) {
        // The last cell is a sentence, and wraps where there is no room for one line.
        let says = rows.iter().any(|row| row.last().is_some_and(|last| !last.is_empty()));
        let head = if says { &head[..] } else { &head[..head.len().saturating_sub(1)] };
        let _ = write!(out, "<div class=\"wide\" tabindex=\"0\"><table><tr><th>{}", head.join("<th>"));
        for row in rows {
            let (last, cells) =
                row.split_last().map_or((String::new(), &row[..]), |(last, cells)| (escaped(last), cells));
            let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
            let _ = write!(out, "<tr><td>{}", cells.join("<td>"));
            if says {
                let _ = write!(out, "<td class=\"said\">{last}");
            }
        }
        out.push_str("</table></div>\n");
    }
    for line in setbacks(trials) {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(&line));
    }
}

fn section(out: &mut String, run: &Report, title: &str) {
    let (workload, pace, target) = (escaped(&run.workload), escaped(&run.pace), escaped(&run.target));
    let _ =
        writeln!(out, "<h2>{title}: {workload}</h2>\n<p class=\"soft\">{target}; {pace}; {} s</p>", label(run.seconds));
    for note in run.limits_of_generator().iter().chain(&run.notes) {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(note));
    }
    figures(out, run);
    table(out, run);
    if !run.timeline.is_empty() {
        let _ = writeln!(out, "<h3>Latency over time</h3>\n{}", latencies(&run.timeline).svg());
        let _ = writeln!(out, "<h3>Rate over time</h3>\n{}", rates(&run.timeline).svg());
        let _ = writeln!(out, "<h3>Percentiles</h3>\n{}", percentiles(&run.timeline).svg());
    }
    if climbs(&run.timeline) {
        let _ = writeln!(out, "<h3>Throughput and latency</h3>\n{}", knee(&run.timeline).svg());
    }
}

fn figures(out: &mut String, run: &Report) {
    let Report { iterations, failed, refused, unfinished, .. } = run;
    let (rate, requests) = (label(run.iterations_per_second), label(run.requests_per_second));
    let _ = writeln!(
        out,
        "<p><strong>{rate} iterations/s</strong>, {requests} requests/s; {iterations} done, {failed} failed, \
         {refused} refused, {unfinished} unfinished.</p>"
    );
    if let Some(accounts) = run.accounts {
        let _ = writeln!(out, "<p>Accounts to sign in with: {accounts}.</p>");
    }
    if let Some(opened) = run.connections_opened.filter(|opened| *opened > 0) {
        let _ = writeln!(
            out,
            "<p>{opened} connections were made in the window, and their handshakes are in the latencies.</p>"
        );
    }
    if let Some(cores) = run.generator_cores {
        let (cores, busiest) = (label(cores), label(run.generator_busiest * 100.0));
        let server = run.server.map(|server| format!(" The server used {} cores.", label(server.cores)));
        let server = server.unwrap_or_default();
        let _ =
            writeln!(out, "<p>The generator used {cores} cores, its busiest thread {busiest} % of one.{server}</p>");
    }
    if let Some((cores, whose)) = run.others_told() {
        let _ = writeln!(out, "<p>Kept busy by {whose}: {} cores.</p>", label(cores));
    }
    if let Some(cores) = run.stolen() {
        let _ = writeln!(out, "<p>Taken by the host: {} cores.</p>", label(cores));
    }
    if let Some(waited) = run.wait_of_generator() {
        let _ = writeln!(out, "<p>The generator waited for a core {} % of the time.</p>", label(waited));
    }
    if let Some(late) = run.lateness {
        let (p50, p99) = (label(late.p50), label(late.p99));
        let _ = writeln!(out, "<p>What found a free user began late by {p50} ms (p50) and {p99} ms (p99).</p>");
    }
}

fn table(out: &mut String, run: &Report) {
    out.push_str("<div class=\"wide\" tabindex=\"0\"><table><tr><th>ms<th>count<th>mean<th>p50<th>p90<th>p95<th>p99<th>p99.9<th>max");
    let mut row = |name: &str, count: u64, latency: &Latency| {
        let Latency { mean, p50, p90, p95, p99, p999, max } = *latency;
        let _ = write!(out, "<tr><td>{}<td>{count}", escaped(name));
        for value in [mean, p50, p90, p95, p99, p999, max] {
            let _ = write!(out, "<td>{}", told(count, value));
        }
    };
    row("iteration", run.iterations, &run.latency);
    for step in run.steps.iter().filter(|step| step.count > 0) {
        row(step.step.name(), step.count, &step.latency);
    }
    out.push_str("</table></div>\n");
    for failure in &run.failures {
        let _ = writeln!(out, "<p>{} x {}</p>", failure.count, escaped(&failure.to_string()));
    }
    for refusal in &run.refusals {
        let _ = writeln!(out, "<p>{} x {}</p>", refusal.count, escaped(&refusal.to_string()));
    }
}

fn middle(slice: &Slice) -> f64 {
    slice.from + slice.seconds / 2.0
}

fn latencies(timeline: &[Slice]) -> Chart {
    // Without iterations there is no latency, which is not a latency of zero.
    let quantile = |slice: &Slice, share| if slice.done > 0 { slice.latencies.quantile(share) } else { f64::NAN };
    let line = |name: &str, share| Line {
        name: name.to_owned(),
        points: timeline.iter().map(|slice| (middle(slice), quantile(slice, share))).collect(),
    };
    Chart {
        title: "Latency over time".to_owned(),
        x: Axis::new("seconds", Scale::Linear),
        y: Axis::new("ms", Scale::Log),
        lines: vec![line("p50", 0.5), line("p95", 0.95), line("p99", 0.99)],
    }
}

fn rates(timeline: &[Slice]) -> Chart {
    let line = |name: &str, of: fn(&Slice) -> u64| Line {
        name: name.to_owned(),
        points: timeline.iter().map(|slice| (middle(slice), of(slice) as f64 / slice.seconds)).collect(),
    };
    let mut lines = vec![line("done", Slice::managed)];
    for (name, of) in [("failed", (|slice| slice.failed) as fn(&Slice) -> u64), ("refused", |slice| slice.refused)] {
        if timeline.iter().any(|slice| of(slice) > 0) {
            lines.push(line(name, of));
        }
    }
    let y = Axis::new("iterations/s", Scale::Linear);
    Chart { title: "Rate over time".to_owned(), x: Axis::new("seconds", Scale::Linear), y, lines }
}

/// Draws latency by the share of iterations at or below it: each step to the right is ten times rarer.
fn percentiles(timeline: &[Slice]) -> Chart {
    let mut all = Sketch::default();
    timeline.iter().for_each(|slice| all.merge(&slice.latencies));
    let rarity = |share: f64| 1.0 / (1.0 - share);
    // No rarer than one in all the iterations that there were.
    let seen = |share: &f64| rarity(*share) <= all.count() as f64;
    let shares = (0..=40).map(|at| 1.0 - 0.5 * 0.1f64.powf(f64::from(at) / 10.0)).filter(seen);
    let points = shares.map(|share| (rarity(share), all.quantile(share))).collect();
    let ticks = SHARES.iter().map(|(share, text)| (rarity(*share), (*text).to_owned())).collect();
    Chart {
        title: "Latency by percentile".to_owned(),
        x: Axis { title: "share of iterations", scale: Scale::Log, ticks, told: Some(share) },
        y: Axis::new("ms", Scale::Log),
        lines: vec![Line { name: "latency".to_owned(), points }],
    }
}

/// Formats the share at or below, given that one in `rarity` is above, with as many digits as its axis can show.
fn share(rarity: f64) -> String {
    let digits = rarity.log10().floor().max(0.0) as usize;
    let digits = if digits == 0 { 0 } else { digits - 1 };
    let text = format!("{:.digits$}", 100.0 - 100.0 / rarity);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// Returns true if the load varied over time.
fn climbs(timeline: &[Slice]) -> bool {
    let levels = || timeline.iter().map(|slice| slice.level);
    levels().fold(0.0, f64::max) > 1.5 * levels().fold(f64::INFINITY, f64::min)
}

/// The number of levels that a ramp is drawn with: one point per slice is a scribble if neighboring rates go up and
/// down.
const LEVELS: usize = 12;

/// Draws a ramp: the rate managed at each of its levels, from the lowest to the highest, and the latency there.
fn knee(timeline: &[Slice]) -> Chart {
    let highest = timeline.iter().map(|slice| slice.level).fold(f64::MIN_POSITIVE, f64::max);
    let rung = |slice: &Slice| ((slice.level / highest * LEVELS as f64).ceil() as usize).clamp(1, LEVELS) - 1;
    let mut rungs = vec![(Sketch::default(), 0, 0.0); LEVELS];
    for slice in timeline {
        let (latencies, managed, seconds) = &mut rungs[rung(slice)];
        latencies.merge(&slice.latencies);
        *managed += slice.managed();
        *seconds += slice.seconds;
    }
    // Without iterations there is no latency, which is not a latency of zero.
    rungs.retain(|(latencies, ..)| latencies.count() > 0);
    let line = |name: &str, share| {
        let point =
            |(latencies, managed, seconds): &(Sketch, u64, f64)| (*managed as f64 / seconds, latencies.quantile(share));
        Line { name: name.to_owned(), points: rungs.iter().map(point).collect() }
    };
    Chart {
        title: "Latency by throughput, from level to level".to_owned(),
        x: Axis::new("iterations a second", Scale::Linear),
        y: Axis::new("ms", Scale::Log),
        lines: vec![line("p50", 0.5), line("p99", 0.99)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report;

    fn page(series: &Series) -> String {
        let page = of(series);
        assert!(!page.contains("<script") && !page.contains("http-equiv") && !page.contains("NaN"), "{page}");
        for outside in ["src=", "href=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
        page
    }

    #[test]
    fn a_page_stands_alone_and_shows_light_and_dark() {
        let page = page(&Series::of(vec![report("jwks", 100, 100.0)]));
        assert!(page.contains("prefers-color-scheme: dark") && page.matches("<svg").count() == 3, "{page}");
        assert!(
            page.contains("100 iterations/s") && page.contains("<title>jwks: load of http://localhost:1</title>"),
            "{page}"
        );
    }

    /// With PAGES_DIR set, writes a page there, to be viewed in a browser: its server has a long name.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "the folder is chosen by whoever runs this test, not by an operator")]
    fn a_sample_page_can_be_written() {
        let Some(folder) = std::env::var_os("PAGES_DIR").map(std::path::PathBuf::from) else { return };
        let mut run = report("w1", 100, 100.0);
        run.target = format!("https://{}.example.org", "n".repeat(60));
        let trial = Trial { offered: 50.0, holds: Some(true), judged: None, report: run.clone() };
        let series = Series { trials: vec![trial], ..Series::of(vec![run]) };
        let folder = folder.join("reports");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("load.html"), page(&series)).unwrap();
    }

    /// Red where `latencies` omits empty slices.
    #[test]
    fn a_server_that_dies_in_the_middle_has_the_same_time_in_every_chart() {
        let mut run = report("jwks", 100, 100.0);
        let dead = Slice { from: 60.0, done: 0, failed: 9, latencies: Sketch::default(), ..run.timeline[0].clone() };
        run.timeline.push(dead);
        let page = page(&Series::of(vec![run]));
        assert_eq!(page.matches(r#"text-anchor="middle">60</text>"#).count(), 2, "{page}");
    }

    /// Red where a chart of rates counts what was due: a server offered more than its capacity would seem to manage it.
    #[test]
    fn rates_are_those_of_what_ended_meanwhile() {
        let mut run = report("jwks", 100, 100.0);
        run.timeline[0].ended = Some(40);
        let timeline = [run.timeline[0].clone(), Slice { ended: None, ..run.timeline[0].clone() }];
        let rates: Vec<_> = rates(&timeline).lines[0].points.iter().map(|point| point.1).collect();
        assert_eq!(rates, [40.0, 100.0]);
        assert_eq!(knee(&timeline[..1]).lines[0].points[0].0, 40.0);
    }

    /// Red where a trial without an answer is the fastest of all.
    #[test]
    fn a_trial_in_which_nothing_came_out_well_has_no_latency() {
        let trial =
            |count| Trial { offered: 50.0, holds: None, judged: None, report: report("w1", count, count as f64) };
        let series = Series { trials: vec![trial(40), trial(0)], ..Series::default() };
        let page = page(&series);
        assert_eq!(page.matches("<circle").count(), 3, "{page}");
        assert!(page.contains("<td>0.0<td>0<td>0<td>0<td>–<td>–<td>–</table>"), "{page}");
        let text = series.to_string();
        let ends: Vec<_> = text.lines().skip(1).map(|line| line.chars().count()).collect();
        assert_eq!(ends[0], ends[1], "{text}");
    }

    /// Red where a point states its position on the axis: `latency: 144 at 100` says nothing about 99 %.
    #[test]
    fn a_point_says_its_value_and_its_share_with_units() {
        let rarity = |share: f64| 1.0 / (1.0 - share);
        assert_eq!([0.5, 0.9, 0.99, 0.999, 0.9999].map(|of| share(rarity(of))), SHARES.map(|(_, text)| text));
        let near = [1.7, 2.7, 0.5].map(|at| share(rarity(1.0 - 0.5 * 0.1f64.powf(at))));
        assert_eq!(near, ["99 %", "99.9 %", "84 %"]);
        let page = page(&Series::of(vec![report("jwks", 1000, 100.0)]));
        for said in [" ms at 99 %</title>", " ms at 50 %</title>", " seconds</title>", "iterations/s at "] {
            assert!(page.contains(said), "{said}: {page}");
        }
    }

    #[test]
    fn what_a_generator_could_not_do_is_a_note() {
        let mut run = report("w1", 90, 90.0);
        run.waited_for_users = 9;
        let page = page(&Series::of(vec![run]));
        assert!(page.contains("<p class=\"note\">9 starts waited for a free user"), "{page}");
    }

    /// Red where a column of remarks is there without any: it took the table past the edge of the page.
    #[test]
    fn a_column_of_remarks_is_there_where_there_are_any() {
        let mut run = report("w1", 500, 50.0);
        run.beside = vec![report("jwks", 500, 50.0)];
        let trial = |holds| Trial { offered: 50.0, holds, judged: None, report: run.clone() };
        let page = |holds| of(&Series { trials: vec![trial(holds)], ..Series::default() });
        assert_eq!(page(Some(true)).matches("<td class=\"said\">").count(), 1);
        assert_eq!(page(None).matches("<td class=\"said\">").count(), 0);
        assert!(page(None).contains("<th>p99<tr>"), "{}", page(None));
    }

    #[test]
    fn what_a_server_said_is_not_markup() {
        let mut run = report("jwks", 1, 1.0);
        let reason = "500 <img src=x onerror=alert(1)>".to_owned();
        let first = Some("<img>".to_owned());
        run.failures = vec![crate::report::Failure { step: crate::visitor::Step::Jwks, reason, first, count: 1 }];
        run.notes = vec!["<b>".to_owned()];
        run.target = "<i>".to_owned();
        let page = of(&Series::of(vec![run]));
        assert!(page.contains("500 &lt;img") && page.contains("first &lt;img") && !page.contains("<img"), "{page}");
        assert!(page.contains("&lt;b&gt;") && page.contains("&lt;i&gt;"));
    }

    /// Red where each slice is a point: the line of a noisy ramp goes back and forth over itself.
    #[test]
    fn the_curve_of_a_noisy_ramp_goes_one_way() {
        let like = report("jwks", 100, 100.0).timeline[0].clone();
        let slice = |at: u64| {
            let ended = if at.is_multiple_of(2) { at * 12 } else { at * 8 };
            Slice { level: at as f64, from: at as f64, ended: Some(ended), ..like.clone() }
        };
        let timeline: Vec<_> = (1..=60).map(slice).collect();
        let points = &knee(&timeline).lines[0].points;
        assert!(points.len() == LEVELS && points.is_sorted_by_key(|point| point.0), "{points:?}");
        // The slices at the top are one point, and a level without any success is none.
        let mut flat = timeline[..10].to_vec();
        flat.extend((0..50).map(|_| timeline[59].clone()));
        flat[..5].iter_mut().for_each(|slice| slice.latencies = Sketch::default());
        assert_eq!(knee(&flat).lines[0].points.len(), 2);
    }

    #[test]
    fn what_was_refused_and_how_the_generator_fared_is_on_the_page() {
        let mut run = report("w2", 90, 90.0);
        (run.generator_waited, run.generator_busiest) = (Some(0.805), 0.03);
        let latency = Latency { p50: 0.8, ..Latency::default() };
        let step = crate::visitor::Step::Userinfo;
        run.refusals = vec![crate::report::Refusals { step, status: 429, count: 6856, latency }];
        let page = page(&Series { programme: Some("w3".to_owned()), ..Series::of(vec![run]) });
        assert!(page.contains("<p>6856 x userinfo refused with 429, p50 0.80 ms</p>"), "{page}");
        assert!(page.contains("<p>The generator waited for a core 80.5 % of the time.</p>"), "{page}");
        assert!(
            page.contains("<p class=\"note\">Others had the cores: the generator, which used 3 % of one, waited"),
            "{page}"
        );
        // Red without `title`.
        assert!(page.contains("<title>w3: load of http://localhost:1</title>") && page.contains("Run 1: w2"), "{page}");
    }

    #[test]
    fn a_ramp_and_a_search_have_a_curve_of_throughput() {
        let mut run = report("jwks", 100, 100.0);
        let next = Slice { level: 10.0, from: 1.0, ..run.timeline[0].clone() };
        run.timeline.push(next);
        assert!(page(&Series::of(vec![run.clone()])).contains("from level to level"));
        let beside = vec![report("jwks & more", 7, 7.0)];
        let report = Report { beside, generator_busiest: 1.0, ..run.clone() };
        let trial = Trial { offered: 50.0, holds: Some(false), judged: None, report };
        let page = page(&Series { runs: vec![], trials: vec![trial], ..Series::default() });
        // Red without `said`: the verdict ran past the edge of the page.
        assert!(
            page.contains("td.said { white-space: normal;") && page.contains("<td class=\"said\">does not hold, "),
            "{page}"
        );
        assert!(page.contains("Latency by throughput") && page.contains("does not hold, generator bound"), "{page}");
        assert!(
            page.contains("<th>p50 ms<th>p95<th>p99<th>") && page.contains("<td>jwks &amp; more<td>7.00<td>"),
            "{page}"
        );
    }
}
