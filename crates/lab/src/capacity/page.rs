//! The result as a page: one file, without scripts or external resources, for light and dark mode.

use super::demand::Operation;
use super::outcome::Capacity;
use super::predict::Forecast;
use super::report::{self, Table};
use load::page::chart::{Axis, Chart, Line, Scale, escaped};
use load::page::frame;
use std::fmt::Write as _;

/// Returns the page.
pub fn of(capacity: &Capacity) -> String {
    let mut out = String::new();
    let [first, rest @ ..] = &report::headline(capacity)[..] else { return frame("Capacity", &out) };
    let _ = writeln!(out, "<p><strong>{}</strong></p>", escaped(first));
    rest.iter().chain(&report::origin(capacity)).for_each(|line| paragraph(&mut out, line));
    if let Some(verification) = &capacity.verification {
        let _ = writeln!(
            out,
            "<h2>Predicted and measured</h2>\n<pre tabindex=\"0\">{}</pre>",
            escaped(&report::proof(verification, capacity.made.as_ref()))
        );
    }
    out.push_str("<h2>Limits</h2>\n");
    table(&mut out, &report::limits(capacity));
    let _ = writeln!(out, "<h2>Latency by load</h2>\n<p>{}</p>", report::MILLISECONDS);
    table(&mut out, &report::latencies(capacity));
    paragraph(&mut out, &report::caveat(capacity));
    for forecast in capacity.forecasts.iter().filter(|one| one.operation != Operation::Userinfo) {
        let _ = writeln!(out, "<h3>{}</h3>\n{}", escaped(forecast.operation.name()), curve(forecast).svg());
    }
    out.push_str("<h2>What would help</h2>\n<p>The limit would be so many times today's.</p>\n");
    table(&mut out, &report::changes(&capacity.changes));
    report::notes(&capacity.changes).iter().for_each(|note| paragraph(&mut out, note));
    out.push_str("<h2>Hash workers</h2>\n<p>Sign-ins a second with so many workers like this machine.</p>\n");
    table(&mut out, &report::staffed(capacity));
    let _ = writeln!(out, "<h2>Settings</h2>\n<pre tabindex=\"0\">{}</pre>", escaped(&report::settings(capacity)));
    let _ = writeln!(out, "<h2>People a month</h2>\n<pre tabindex=\"0\">{}</pre>", escaped(&report::people(capacity)));
    let _ = writeln!(out, "<h2>Measured</h2>\n{}\n{}", lanes(capacity).svg(), commits(capacity).svg());
    report::measured(capacity).iter().for_each(|one| table(&mut out, one));
    report::doubts(capacity).iter().for_each(|line| paragraph(&mut out, line));
    frame("Capacity", &out)
}

fn paragraph(out: &mut String, text: &str) {
    let _ = writeln!(out, "<p>{}</p>", escaped(text));
}

fn table(out: &mut String, table: &Table) {
    out.push_str("<div class=\"wide\" tabindex=\"0\"><table>");
    for (at, row) in table.rows().iter().enumerate() {
        // An empty corner cell is not the head of a column.
        let cell = |text: &str| if at == 0 && !text.is_empty() { "<th>" } else { "<td>" };
        out.push_str("<tr>");
        row.iter().for_each(|text| out.extend([cell(text), &escaped(text)]));
    }
    out.push_str("</table></div>\n");
}

fn curve(forecast: &Forecast) -> Chart {
    let line = |name: &str, of: fn(&super::simulate::Outcome) -> f64| Line {
        name: name.to_owned(),
        points: forecast.levels.iter().map(|level| (level.offered, of(&level.outcome))).collect(),
    };
    Chart {
        title: format!("Latency of {} by rate", forecast.operation.name()),
        x: Axis::new("a second", Scale::Linear),
        y: Axis::new("ms", Scale::Log),
        lines: vec![line("p50", |o| o.p50), line("p95", |o| o.p95), line("p99", |o| o.p99)],
    }
}

fn lanes(capacity: &Capacity) -> Chart {
    let hashing = &capacity.probes.hashing;
    let mut threads: Vec<usize> = hashing.lanes.iter().map(|lane| lane.threads).collect();
    threads.dedup();
    let line = |count: usize| Line {
        name: format!("{count} thread{}", if count == 1 { "" } else { "s" }),
        points: hashing.of_threads(count).map(|lane| (lane.together as f64, lane.rate.value)).collect(),
    };
    Chart {
        title: "Hashes a second by how many stand side by side on a thread".to_owned(),
        x: Axis::new("side by side", Scale::Linear),
        y: Axis::new("hashes a second", Scale::Linear),
        lines: threads.into_iter().map(line).collect(),
    }
}

fn commits(capacity: &Capacity) -> Chart {
    let points = capacity.probes.storage.groups.iter().map(|one| (one.writers as f64, one.rate.value)).collect();
    Chart {
        title: "Batches a second by how many write".to_owned(),
        x: Axis::new("writers at a time", Scale::Linear),
        y: Axis::new("batches a second", Scale::Linear),
        lines: vec![Line { name: "batches a second".to_owned(), points }],
    }
}
