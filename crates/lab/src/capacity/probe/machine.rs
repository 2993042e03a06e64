//! The machine, and who else is at work on it.

use super::{cpu, cpu_of};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Instant;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name, where the system tells.
    pub processor: String,
    /// Cores that this program may use.
    pub cores: usize,
    /// Memory that it may count on, in bytes.
    pub memory: u64,
    /// The folder on whose disk was written.
    pub disk: String,
    /// Cores that others kept busy meanwhile, on average; nothing where the system does not tell.
    pub others: Option<f64>,
}

impl Machine {
    /// This one.
    pub fn here(disk: &Path) -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Machine {
            processor: name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: hasher::tune::default_memory() * 4,
            disk: disk.display().to_string(),
            others: None,
        }
    }
}

/// How busy a machine must be with others' work for figures to be doubted, in cores.
pub const DISTURBED: f64 = 0.15;

/// Looks at what others do, from when it is made.
pub struct Watch {
    begun: Instant,
    all: Option<f64>,
    own: f64,
    pid: u32,
}

impl Watch {
    /// Beginning now; the private server of this number is not others.
    pub fn begin(pid: u32) -> Watch {
        Watch { begun: Instant::now(), all: busy(), own: own(pid), pid }
    }

    /// Cores that others have kept busy since then.
    pub fn others(&self) -> Option<f64> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let all = busy()? - self.all?;
        Some(((all - (own(self.pid) - self.own)) / seconds).max(0.0))
    }
}

fn own(pid: u32) -> f64 {
    cpu().as_secs_f64() + cpu_of(pid).as_secs_f64()
}

/// Seconds that all cores together were at work since the machine started, those that its host took away included. See
/// proc_stat(5).
fn busy() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    of_stat(&stat, rustix::param::clock_ticks_per_second() as f64)
}

fn of_stat(stat: &str, ticks: f64) -> Option<f64> {
    let fields: Vec<f64> =
        stat.lines().next()?.split_ascii_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; what guests use is in user already.
    let [user, nice, system, _, _, irq, softirq, steal, ..] = fields.as_slice() else { return None };
    Some((user + nice + system + irq + softirq + steal) / ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_not_idle_counts() {
        assert_eq!(of_stat("cpu  100 10 20 9999 8888 1 2 7 50 0\ncpu0 1", 100.0), Some(1.4));
        assert_eq!(of_stat("cpu 1 2", 100.0), None);
    }

    #[test]
    fn this_process_is_not_others() {
        let watch = Watch::begin(std::process::id());
        assert!(watch.others().is_none_or(|others| others >= 0.0));
        assert!(Machine::here(Path::new("/")).cores >= 1);
    }
}
