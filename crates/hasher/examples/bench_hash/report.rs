//! What is printed.

use std::{
    io::{IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// All that was measured of one case. Rates are hashes a second.
#[derive(Default)]
pub struct Row {
    pub plain: Vec<f64>,
    pub pooled: Vec<f64>,
    pub pool: Vec<f64>,
    /// Rates with 1, 2, … lanes.
    pub fixed: Vec<Vec<f64>>,
    /// The lanes that the pool has chosen in the end.
    pub lanes: usize,
    /// Those that it began with.
    pub calibrated_lanes: usize,
    pub calibrated: Duration,
    pub single: Duration,
    pub single_pooled: Option<Duration>,
    /// In bytes.
    pub resident: u64,
    pub ceiling: u64,
    pub light: [Duration; 3],
}

pub fn head() {
    println!(
        "{:<16} {:>14} {:>14} {:>15} {:>11} {:>11}",
        "", "plain /s", "argon2-rust /s", "pool /s", "x plain", "x pooled"
    );
}

impl Row {
    pub fn print(self, name: &str, (plain, pooled): (f64, Option<f64>)) {
        clear();
        let over = |base: &[f64]| median(self.pool.iter().zip(base).map(|(pool, base)| pool / base).collect());
        let judged = |ratio: f64, goal: f64| format!("{ratio:.2} {}", verdict(ratio >= goal));
        let pooled = pooled.filter(|_| !self.pooled.is_empty()).map(|goal| judged(over(&self.pooled), goal));
        println!(
            "{name:<16} {:>14} {:>14} {:>15} {:>11} {:>11}",
            spread(&self.plain),
            if self.pooled.is_empty() { "-".to_owned() } else { spread(&self.pooled) },
            spread(&self.pool),
            judged(over(&self.plain), plain),
            pooled.unwrap_or_default(),
        );
        let means: Vec<_> = self.fixed.iter().map(|rates| mean(rates)).collect();
        let fixed: Vec<_> = means.iter().map(|rate| format!("{rate:.0}")).collect();
        let best = self.fixed.iter().max_by(|one, other| mean(one).total_cmp(&mean(other)));
        let of_best = best.map_or(0.0, |best| over(best));
        println!(
            "    lanes: {}, then {}: {:.0} /s; 1, 2, …: {} /s; {:.0} % of the best {}",
            self.calibrated_lanes,
            self.lanes,
            mean(&self.pool),
            fixed.join(" "),
            of_best * 100.0,
            verdict(of_best >= OF_BEST)
        );
        let single = self.single.as_secs_f64();
        let beside = self.single_pooled.map_or(String::new(), |other| {
            format!(
                ", argon2-rust {:.2} ms, {:.2} times as fast",
                other.as_secs_f64() * 1e3,
                other.as_secs_f64() / single
            )
        });
        let [half, most, worst] = self.light.map(|late| late.as_secs_f64() * 1e3);
        println!("    one alone: {:.2} ms{beside}; calibrated in {:.0?}", single * 1e3, self.calibrated);
        println!("    a light thread wakes late by {half:.2} ms (p50), {most:.2} ms (p99), {worst:.2} ms (worst)");
        let within = if self.resident <= self.ceiling + BESIDE { "ok" } else { "MUCH" };
        println!("    resident at most {} MiB, ceiling {} MiB {within}", self.resident >> 20, self.ceiling >> 20);
    }
}

/// The share of the rate with the best number of lanes that the pool has to reach.
const OF_BEST: f64 = 0.95;
/// What may be resident beside the memory of hashes, in bytes.
const BESIDE: u64 = 64 << 20;

fn verdict(reached: bool) -> &'static str {
    if reached { "ok" } else { "LOW" }
}

/// One line that is overwritten; nothing where nobody looks.
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

pub fn spread(rates: &[f64]) -> String {
    let (low, high) = rates.iter().fold((f64::MAX, 0f64), |(low, high), &rate| (low.min(rate), high.max(rate)));
    format!("{:.1} ±{:.1}", median(rates.to_vec()), (high - low) / 2.0)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub fn median(values: Vec<f64>) -> f64 {
    percentile(&values, 0.5)
}

/// The value that this share of all does not exceed.
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

/// In bytes; 0 where the system does not tell.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}
