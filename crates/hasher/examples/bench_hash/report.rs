//! The printed report.

use std::{
    io::{IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// All that was measured for one case. Rates are hashes per second.
#[derive(Default)]
pub struct Row {
    pub plain: Vec<f64>,
    pub pooled: Vec<f64>,
    pub pool: Vec<f64>,
    /// Rates with 1, 2, … lanes.
    pub fixed: Vec<Vec<f64>>,
    /// The lanes that the pool had chosen in the end.
    pub lanes: usize,
    /// The lanes that it began with.
    pub calibrated_lanes: usize,
    pub calibrated: Duration,
    pub single: Duration,
    pub kernels: Kernels,
    /// In bytes.
    pub resident: u64,
    pub ceiling: u64,
    pub light: [Duration; 3],
}

/// How long one hash takes with each kernel without a pool.
pub type Kernels = Vec<(&'static str, Duration)>;

pub fn head() {
    println!(
        "{:<16} {:>14} {:>14} {:>15} {:>16} {:>16}",
        "", "plain /s", "argon2-rust /s", "pool /s", "x plain", "x pooled"
    );
}

impl Row {
    /// Prints the row, and returns how many goals were missed.
    pub fn print(self, name: &str, (plain, pooled): (Option<f64>, Option<f64>)) -> usize {
        clear();
        let mut verdicts = Verdicts::default();
        let [over_plain, over_pooled] = [&self.plain, &self.pooled].map(|base| self.over(base));
        println!(
            "{name:<16} {:>14} {:>14} {:>15} {:>16} {:>16}",
            spread(&self.plain, 1),
            if self.pooled.is_empty() { "-".to_owned() } else { spread(&self.pooled, 1) },
            spread(&self.pool, 1),
            verdicts.least(&over_plain, plain),
            if self.pooled.is_empty() { String::new() } else { verdicts.least(&over_pooled, pooled) },
        );
        let means: Vec<_> = self.fixed.iter().map(|rates| mean(rates)).collect();
        let fixed: Vec<_> = means.iter().map(|rate| format!("{rate:.0}")).collect();
        let best = self.fixed.iter().max_by(|one, other| mean(one).total_cmp(&mean(other)));
        let of_best = best.map_or(0.0, |best| median(self.over(best)));
        println!(
            "    lanes: {}, then {}: {:.0} /s; 1, 2, …: {} /s; {:.0} % of the best {}",
            self.calibrated_lanes,
            self.lanes,
            mean(&self.pool),
            fixed.join(" "),
            of_best * 100.0,
            verdicts.of(of_best >= OF_BEST, "LOW")
        );
        self.print_alone(&mut verdicts);
        let [half, most, worst] = self.light.map(|late| late.as_secs_f64() * 1e3);
        let late = verdicts.of(self.light[1] <= LIGHT, "LATE");
        println!(
            "    a light thread wakes late by {half:.2} ms (p50), {most:.2} ms (p99) {late}, {worst:.2} ms (worst)"
        );
        let told = match self.resident {
            0 => "the system does not tell",
            resident => verdicts.of(resident <= self.ceiling + BESIDE, "MUCH"),
        };
        println!("    resident at most {} MiB, ceiling {} MiB: {told}", self.resident >> 20, self.ceiling >> 20);
        verdicts.missed
    }

    fn print_alone(&self, verdicts: &mut Verdicts) {
        let single = self.single.as_secs_f64();
        let best = self.kernels.iter().map(|(_, time)| time.as_secs_f64()).fold(f64::INFINITY, f64::min);
        let kernels = self.kernels.iter().map(|(name, time)| format!("{name} {:.2} ms", time.as_secs_f64() * 1e3));
        println!(
            "    one alone: {:.2} ms in the pool, {}: {:.2} times the best {}; calibrated in {:.0?}",
            single * 1e3,
            kernels.collect::<Vec<_>>().join(", "),
            single / best,
            verdicts.of(single <= best * ALONE, "SLOW"),
            self.calibrated
        );
    }

    /// The ratios of the pool's rates to those of another contestant, round by round.
    fn over(&self, base: &[f64]) -> Vec<f64> {
        self.pool.iter().zip(base).map(|(pool, base)| pool / base).collect()
    }
}

/// Says for each figure whether it reaches its goal, and counts those that do not.
#[derive(Default)]
struct Verdicts {
    missed: usize,
}

impl Verdicts {
    fn of(&mut self, reached: bool, otherwise: &'static str) -> &'static str {
        self.missed += usize::from(!reached);
        if reached { "ok" } else { otherwise }
    }

    /// The median of these ratios and half of their range; the median should be no less than `goal`.
    fn least(&mut self, ratios: &[f64], goal: Option<f64>) -> String {
        let said = goal.map(|goal| self.of(median(ratios.to_vec()) >= goal, "LOW"));
        format!("{} {}", spread(ratios, 2), said.unwrap_or_default())
    }
}

/// The share of the rate with the best number of lanes that the pool has to reach.
const OF_BEST: f64 = 0.95;
/// How much may be resident beside the memory of hashes, in bytes.
const BESIDE: u64 = 64 << 20;

/// How many times as long as with the best kernel one password may take in an idle pool.
const ALONE: f64 = 1.05;
/// How late a thread of ordinary priority may be, 99 times of 100, while all cores hash.
const LIGHT: Duration = Duration::from_millis(10);

/// Overwrites one line with the progress; does nothing where nobody looks.
pub fn progress(name: &str, what: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{name}: {what}");
    }
}

fn clear() {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K");
    }
}

/// The median of the measured values, and half of their range.
fn spread(values: &[f64], digits: usize) -> String {
    let (low, high) = values.iter().fold((f64::MAX, 0f64), |(low, high), &value| (low.min(value), high.max(value)));
    format!("{:.digits$} ±{:.digits$}", median(values.to_vec()), (high - low) / 2.0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub fn median(values: Vec<f64>) -> f64 {
    percentile(&values, 0.5)
}

/// The value that this share of all values does not exceed.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (share * sorted.len() as f64) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

/// Watches how much more memory becomes resident from now on.
pub struct Watch {
    before: u64,
    most: Arc<AtomicU64>,
}

impl Watch {
    pub fn new() -> Self {
        let most = Arc::new(AtomicU64::new(0));
        let seen = Arc::downgrade(&most);
        thread::spawn(move || {
            while let Some(most) = seen.upgrade() {
                most.fetch_max(resident(), Ordering::Relaxed);
                drop(most);
                thread::sleep(Duration::from_millis(5));
            }
        });
        Watch { before: resident(), most }
    }
    /// The most so far, in bytes.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed).saturating_sub(self.before)
    }
}

/// Resident memory in bytes; 0 where the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}
