//! The result for people, in at most 100 columns: the most important part comes first.

use super::advice::{self, Change, LOOKED_AT, WORTH_IT};
use super::figure::Figure;
use super::outcome::Capacity;
use super::predict::{Forecast, LEVELS};
use super::users;
use super::verify::Verification;
use crate::report::grouped;
use load::cpu::DISTURBED;
use load::made::Made;
use std::fmt::Write as _;

/// Rows under a head; the first column is left-aligned, the others right-aligned.
pub struct Table(Vec<Vec<String>>);

impl Table {
    /// Creates a table with this head.
    pub fn new(head: &[&str]) -> Table {
        Table(vec![head.iter().map(|cell| (*cell).to_owned()).collect()])
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.0.push(cells);
    }

    /// Returns the rows, including the head.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.0
    }

    fn text(&self, out: &mut String) {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let cells = |column: usize| self.0.iter().filter_map(move |row| row.get(column));
        let widths: Vec<usize> =
            (0..columns).map(|column| cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0)).collect();
        for row in &self.0 {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Words to the left, numbers to the right.
                let words = at == 0
                    || cells(at).skip(1).any(|cell| cell.starts_with(|c: char| c.is_alphabetic()) && cell != "no");
                let gap = if at == 0 { "" } else { "  " };
                let _ = if words { write!(line, "{gap}{cell:<width$}") } else { write!(line, "{gap}{cell:>width$}") };
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
}

/// The most columns of a line.
const WIDTH: usize = 100;

/// Writes a sentence, wrapped to as many lines as it needs.
fn wrapped(out: &mut String, text: &str) {
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > WIDTH {
            out.push('\n');
            used = 0;
        }
        if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.push('\n');
}

/// Formats a rate or a time with about three digits.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 9999.5 => grouped(value.round() as i64),
        v if v >= 99.5 => format!("{value:.0}"),
        v if v >= 9.95 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Returns the whole report.
pub fn text(capacity: &Capacity) -> String {
    let mut out = String::new();
    headline(capacity).iter().chain(&origin(capacity)).for_each(|line| wrapped(&mut out, line));
    out.push('\n');
    limits(capacity).text(&mut out);
    let _ = write!(out, "\n{MILLISECONDS}\n");
    latencies(capacity).text(&mut out);
    wrapped(&mut out, &caveat(capacity));
    out.push_str("\nWhat would help: the limit would be so many times today's\n");
    changes(&capacity.changes).text(&mut out);
    notes(&capacity.changes).iter().for_each(|note| wrapped(&mut out, note));
    out.push_str("\nSign-ins a second with hash workers like this machine\n");
    staffed(capacity).text(&mut out);
    out.push_str("\nFor portiere.toml\n\n");
    out.push_str(&settings(capacity));
    out.push('\n');
    out.push_str(&people(capacity));
    out.push_str("\nMeasured\n");
    for table in measured(capacity) {
        table.text(&mut out);
        out.push('\n');
    }
    doubts(capacity).iter().for_each(|line| wrapped(&mut out, line));
    if let Some(verification) = &capacity.verification {
        out.push('\n');
        out.push_str(&proof(verification, capacity.made.as_ref()));
    }
    out
}

/// Returns the most important lines.
pub fn headline(capacity: &Capacity) -> Vec<String> {
    let Some(sign_in) = capacity.forecasts.first() else { return vec![] };
    let hashed = &capacity.probes.hashing.parameters;
    let first = format!("This machine carries {} sign-ins a second, with {hashed} and SQLite.", number(sign_in.bound));
    let mut limit = format!("The limit is set by {}", advice::limit(sign_in.bottleneck, sign_in.shares));
    if let Some((station, rate)) = sign_in.next {
        let _ = write!(limit, "; next would be {}, at {} a second", station.name(), number(rate));
    }
    limit.push('.');
    vec![first, limit]
}

/// The version that predicts.
const OURS: &str = env!("CARGO_PKG_VERSION");

/// Says when, where and by which version it was measured, with a caveat for another version: that may have needed more,
/// or less.
pub fn origin(capacity: &Capacity) -> Vec<String> {
    let Some(made) = &capacity.made else {
        return vec![
            "When and by which version this was measured is not known: the file is of before that was told.".to_owned(),
        ];
    };
    let other = (made.version != OURS).then(|| {
        let version = &made.version;
        format!(
            "The figures are those of Portiere {version}, and the prediction is that of {OURS}, which may need more or less for the same: \
             measure again on that machine before you rely on it."
        )
    });
    std::iter::once(format!("{made}.")).chain(other).collect()
}

/// Returns the limits and what sets them.
pub fn limits(capacity: &Capacity) -> Table {
    let mut table = Table::new(&["A SECOND", "LIMIT", "AT 75 %", "SET BY", "THEN"]);
    for one in &capacity.forecasts {
        let next = one.next.map_or_else(
            || "nothing else".to_owned(),
            |(station, rate)| format!("{} at {}", station.name(), number(rate)),
        );
        table.row(vec![
            one.operation.name().to_owned(),
            number(one.bound),
            number(one.bound * 0.75),
            advice::limit(one.bottleneck, one.shares),
            next,
        ]);
    }
    table
}

/// Returns the note below the latencies.
pub fn caveat(capacity: &Capacity) -> String {
    let is_ours = capacity.made.as_ref().is_some_and(|made| made.version == OURS);
    let told = match capacity.verification {
        Some(_) if is_ours => "the proof tells how far off they were here",
        _ => "--verify tells how far off they are here",
    };
    format!(
        "These come from the model, and are rather too short. In proofs the measured 95th percentiles were 0.9 to 2.5 \
         times as long; {told}."
    )
}

/// What the figures of [`latencies`] mean.
pub const MILLISECONDS: &str = "Milliseconds by how much of the limit is used: median / 95 % / 99 %";

/// Returns the latencies by the used share of the limit.
pub fn latencies(capacity: &Capacity) -> Table {
    let heads: Vec<String> = LEVELS.iter().map(|share| format!("{:.0} %", share * 100.0)).collect();
    let mut table = Table::new(&["", &heads[0], &heads[1], &heads[2], &heads[3]]);
    let cell = |one: &Forecast, at: usize| {
        let found = one.levels.get(at).map(|level| level.outcome).unwrap_or_default();
        format!("{} / {} / {}", number(found.p50), number(found.p95), number(found.p99))
    };
    for one in &capacity.forecasts {
        let mut row = vec![one.operation.name().to_owned()];
        row.extend((0..LEVELS.len()).map(|at| cell(one, at)));
        table.row(row);
    }
    table
}

/// Returns the effects of the changes.
pub fn changes(changes: &[Change]) -> Table {
    let mut head = vec!["".to_owned()];
    head.extend(LOOKED_AT.map(|operation| operation.name().to_owned()));
    head.push("sign-in p95".to_owned());
    let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    for (at, change) in changes.iter().enumerate() {
        let times = |value: f64| match value {
            v if v >= WORTH_IT => format!("{value:.2}x"),
            v if v <= 1.0 / WORTH_IT => format!("{value:.2}x"),
            _ => "no".to_owned(),
        };
        let mut row = vec![format!("{} ({})", change.what, at + 1)];
        row.extend(change.limits.map(times));
        row.push(format!("{:.2}x", change.sign_in_p95));
        table.row(row);
    }
    table
}

/// Returns the sign-ins by number of hash workers.
pub fn staffed(capacity: &Capacity) -> Table {
    let mut table = Table::new(&["WORKERS", "LIMIT", "SET BY"]);
    for one in &capacity.workers {
        let by = advice::limit(one.bottleneck, one.shares);
        table.row(vec![one.workers.to_string(), number(one.bound), by]);
    }
    table
}

/// Returns a note for each change: whether it helps comes first.
pub fn notes(changes: &[Change]) -> Vec<String> {
    let note = |(at, change): (usize, &Change)| format!("({}) {}{}", at + 1, verdict(change), change.note);
    changes.iter().enumerate().map(note).collect()
}

/// Says whether a change helps, if its effect on the limits does not show that.
fn verdict(change: &Change) -> &'static str {
    match (change.raises(), change.hastens()) {
        (true, _) => "",
        (false, true) if change.lowers() => "lowers limits, but sign-ins are sooner; ",
        (false, true) => "raises no limit, but sign-ins are sooner; ",
        (false, false) => "does not help; ",
    }
}

/// Returns settings to paste into the configuration.
pub fn settings(capacity: &Capacity) -> String {
    let found = &capacity.settings;
    let parameters = found.parameters;
    format!(
        "[hash]\nthreads = {}\nmemory = \"{}MiB\"  # a ceiling; {} side by side on each, which the server finds out, take {}MiB\n\n\
         [hash.argon2]  # {}\nmemory_kib = {}\npasses = {}\nlanes = {}\n\n[store]\nreaders = {}\n",
        found.threads,
        found.memory_mib,
        found.lanes,
        found.in_use_mib,
        found.why,
        parameters.memory_kib,
        parameters.passes,
        parameters.lanes,
        found.readers
    )
}

/// Returns the arithmetic of people per month.
pub fn people(capacity: &Capacity) -> String {
    let found = &capacity.users;
    let round = |value: f64| grouped((value / 1000.0).round() as i64 * 1000);
    format!(
        "People a month: {} by this arithmetic, which is worth what its assumptions are\n  \
         {} operations of a day's mix a second in the morning: {:.0} % of the limit\n  \
         / {} the morning beside the mean of a day  x 86,400 s\n  \
         / {} operations a day for each who comes, one sign-in among them\n  \
         / {:.2} of those who come in a month come on a day\n",
        round(found.monthly),
        number(found.rate),
        users::USED * 100.0,
        users::PEAK,
        users::OPERATIONS,
        users::DAILY
    )
}

/// Formats a figure, with its spread if there are several samples.
fn shown(figure: &Figure, rounds: u32) -> String {
    if is_single(figure, rounds) {
        return number(figure.value);
    }
    let noisy = if figure.is_noisy() { " noisy" } else { "" };
    format!("{} ±{:.0} %{noisy}", number(figure.value), figure.spread * 100.0)
}

/// A single sample has a spread of zero, which says nothing.
fn is_single(figure: &Figure, rounds: u32) -> bool {
    rounds == 1 && figure.spread == 0.0
}

/// Returns the measurements that everything is based on.
pub fn measured(capacity: &Capacity) -> Vec<Table> {
    let probes = &capacity.probes;
    let shown = |figure: &Figure| shown(figure, probes.rounds);
    let mut hashes = Table::new(&["hashes a second, by side by side", "1", "2", "3", "4", "5", "6", "7", "8", "±"]);
    let mut threads: Vec<usize> = probes.hashing.lanes.iter().map(|lane| lane.threads).collect();
    threads.dedup();
    for count in threads {
        let mut row =
            vec![format!("{}, {count} thread{}", probes.hashing.parameters, if count == 1 { "" } else { "s" })];
        row.extend(probes.hashing.of_threads(count).map(|lane| number(lane.rate.value)));
        row.resize(hashes.rows()[0].len() - 1, String::new());
        let rates = probes.hashing.of_threads(count).map(|lane| lane.rate);
        let widest = rates.max_by(|one, other| one.spread.total_cmp(&other.spread)).unwrap_or_default();
        let single = is_single(&widest, probes.rounds);
        row.push(if single { "-".to_owned() } else { format!("{:.0} %", widest.spread * 100.0) });
        hashes.row(row);
    }
    let mut tables = vec![hashes];
    if !probes.hashing.choices.is_empty() {
        let mut choices = Table::new(&["recommended by others", "one hash, ms", "a second", "side by side", "MiB"]);
        for choice in &probes.hashing.choices {
            let some = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
            choices.row(vec![
                format!("{}: {}", choice.source, choice.parameters),
                some(choice.single_ms),
                some(choice.rate),
                choice.together.map_or_else(|| "-".to_owned(), |count| count.to_string()),
                choice.memory.map_or_else(|| "-".to_owned(), |bytes| (bytes >> 20).to_string()),
            ]);
        }
        tables.push(choices);
    }
    let mut tokens = Table::new(&["a second on one core", "signed", "checked"]);
    for one in &probes.signatures {
        tokens.row(vec![one.alg.clone(), shown(&one.sign), shown(&one.verify)]);
    }
    let mut commits = Table::new(&["writers at a time", "batches a second", "together", "commit ms", "µs of CPU each"]);
    for one in &probes.storage.groups {
        let [rate, together, commit, cpu] =
            [one.rate, one.together, one.commit_ms, one.cpu_us].map(|figure| shown(&figure));
        commits.row(vec![one.writers.to_string(), rate, together, commit, cpu]);
    }
    tables.extend([tokens, commits, rest(capacity)]);
    tables
}

fn rest(capacity: &Capacity) -> Table {
    let probes = &capacity.probes;
    let (http, storage, memory) = (&probes.http, &probes.storage, &probes.memory);
    let shown = |figure: &Figure| shown(figure, probes.rounds);
    let mut rest = Table::new(&["", ""]);
    let mut line = |what: &str, value: String| rest.row(vec![what.to_owned(), value]);
    line("one hash alone, ms", shown(&probes.hashing.single_ms));
    if let Some(rested) = &probes.hashing.rested_ms {
        line("one hash now and then, ms", shown(rested));
    }
    line("hashes a second, the server's pool", shown(&http.pool));
    line("point reads a second, one core", shown(&storage.reads));
    line("point reads a second, all cores", shown(&storage.reads_all));
    line("requests a second, generator beside", shown(&http.rate));
    line("µs of CPU each, server", shown(&http.server_us));
    line("µs of CPU each, generator", shown(&http.generator_us));
    line("a request now and then, ms", shown(&http.rested.p50_ms));
    line("the same while all cores hash, ms", shown(&http.hashing.p50_ms));
    line("µs of CPU each then, server", shown(&http.hashing.server_us));
    line("the same where many come, server", shown(&http.often.server_us));
    if let Some(left) = http.often.hashes_left {
        line("hashing beside those, % of alone", shown(&Figure { value: left.value * 100.0, ..left }));
    }
    line("memory, one core, GB/s", shown(&memory.alone));
    if let Some(under) = &memory.under_hashing {
        line("the same while the others hash", shown(under));
    }
    rest
}

/// Returns reasons to doubt the figures.
pub fn doubts(capacity: &Capacity) -> Vec<String> {
    let probes = &capacity.probes;
    let machine = &probes.machine;
    let mut lines = vec![format!(
        "On {} core{} ({}), {} MiB of memory, the disk of {}; {} sample{} of each.",
        machine.cores,
        if machine.cores == 1 { "" } else { "s" },
        machine.processor,
        machine.memory >> 20,
        machine.disk,
        probes.rounds,
        if probes.rounds == 1 { "" } else { "s" }
    )];
    if machine.is_memory {
        lines
            .push("That disk is memory: what commits cost is not what they cost on a disk (--data FOLDER).".to_owned());
    }
    if let Some(quota) = machine.quota.filter(|quota| machine.pinned.is_none_or(|pinned| *quota < pinned as f64)) {
        lines.push(format!(
            "This program may use {quota:.2} cores' time (cpu.max of its cgroup), on whichever cores. The model counts whole cores: \
             where threads spread over more, all of them stand still once that is used up, which no percentile here knows. Pin it to \
             cores (cpuset) or do not rely on it."
        ));
    }
    if let Some(siblings) = &machine.siblings {
        lines.push(format!(
            "{siblings} Hashes were measured on all of them at once, signatures and reads on one thread at a time: refreshes and \
             introspections are fewer than is said here where all are busy."
        ));
    }
    lines.extend(disturbed(machine.others.unwrap_or(0.0), machine.stolen.unwrap_or(0.0)));
    if probes.http.often.hashes_left.is_none() {
        lines.push("What requests take from hashing could not be measured, and is not in this.".to_owned());
    }
    if probes.rounds == 1 {
        lines.push("One sample says nothing about noise: without --quick there are three.".to_owned());
    }
    lines
}

/// Says who else used the cores meanwhile, if it was so much that it counts: this many cores by other programs, and
/// this many that the host took away.
fn disturbed(others: f64, stolen: f64) -> Option<String> {
    /// Less would be printed as nothing.
    const SHOWN: f64 = 0.005;
    let programs = (others >= SHOWN).then(|| format!("Other programs kept {others:.2} cores busy"));
    let host = (stolen >= SHOWN).then(|| format!("the host of this machine took away {stolen:.2} cores"));
    let who = match (programs, host) {
        (Some(programs), Some(host)) => format!("{programs} and {host}"),
        (Some(programs), None) => programs,
        (None, Some(host)) => host.replacen('t', "T", 1),
        (None, None) => return None,
    };
    let line = format!("{who} meanwhile: this is less than the machine carries, and not exact.");
    (others + stolen > DISTURBED).then_some(line)
}

/// Compares predictions with measurements. A proof that was saved is of what the version that measured predicted.
pub fn proof(verification: &Verification, made: Option<&Made>) -> String {
    let mut out = String::new();
    if made.is_none_or(|made| made.version != OURS) {
        let theirs = made.map_or_else(|| "an earlier version".to_owned(), |made| format!("Portiere {}", made.version));
        let line = format!("The proof is of what {theirs} predicted; what {OURS} predicts is not proved.");
        wrapped(&mut out, &line);
    }
    let _ = match verification.shortfall() {
        None => writeln!(out, "Verified: every prediction is as near as it should be."),
        Some(why) => writeln!(out, "{why}:"),
    };
    let mut table = Table::new(&["", "predicted", "measured", "off by", "allowed", ""]);
    for one in &verification.compared {
        // On a machine busy with something else the server may have got nothing done.
        let off_by = if one.measured > 0.0 { format!("{:+.0} %", one.difference() * 100.0) } else { "-".to_owned() };
        table.row(vec![
            format!("{}, {}", one.what, one.figure),
            number(one.predicted),
            number(one.measured),
            off_by,
            format!("{:.0} %", one.allowed * 100.0),
            if one.is_within() { "within" } else { "OUTSIDE" }.to_owned(),
        ]);
    }
    table.text(&mut out);
    verification.notes.iter().for_each(|note| wrapped(&mut out, note));
    let file = &verification.file;
    let beside =
        "The load generator ran on the same cores, in the runs as in the prediction, which was written before to";
    wrapped(&mut out, &format!("{beside} {file}."));
    out
}
