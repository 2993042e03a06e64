//! The machine, and what else runs on it.

use super::{cpu, cpu_of};
use crate::private::Cores;
use crate::report::machine::is_memory;
use load::cpu::of_cores;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// The machine that is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name, if the system tells.
    pub processor: String,
    /// Cores that this program may use.
    pub cores: usize,
    /// Memory that it may count on, in bytes.
    pub memory: u64,
    /// The folder whose disk was written to.
    pub disk: String,
    /// Whether that disk is memory.
    #[serde(default)]
    pub is_memory: bool,
    /// The processor time that this program may use, in cores, if that is limited (cgroups(7)).
    #[serde(default)]
    pub quota: Option<f64>,
    /// The cores that its threads may run on, if the system tells.
    #[serde(default)]
    pub pinned: Option<usize>,
    /// What it means that some of its cores are hardware threads of the same core; `None` if none are.
    #[serde(default)]
    pub siblings: Option<String>,
    /// Cores that others kept busy meanwhile, on average; `None` if the system does not tell.
    pub others: Option<f64>,
    /// Cores that the host gave to others meanwhile, on average; `None` if the system does not tell. Files from before
    /// it was told apart have it in `others`.
    #[serde(default)]
    pub stolen: Option<f64>,
}

impl Machine {
    /// Describes this machine.
    pub fn here(disk: &Path) -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Machine {
            processor: name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: hasher::tune::default_memory() * 4,
            disk: disk.display().to_string(),
            is_memory: is_memory(disk),
            quota: quota(Path::new("/")),
            pinned: Cores::all().ok().map(|cores| cores.count()),
            siblings: Cores::all().ok().and_then(|cores| cores.remark("This program")),
            others: None,
            stolen: None,
        }
    }
}

/// Returns the lowest limit of processor time of the groups around this process, in cores (cgroups(7), version 2).
fn quota(root: &Path) -> Option<f64> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limit = |group: &Path| {
        let text = std::fs::read_to_string(root.join("sys/fs/cgroup").join(group).join("cpu.max")).ok()?;
        let (time, period) = text.trim().split_once(' ')?;
        Some(time.parse::<f64>().ok()? / period.parse::<f64>().ok().filter(|period| *period > 0.0)?)
    };
    Path::new(path).ancestors().filter_map(limit).min_by(f64::total_cmp)
}

/// Watches what others do, from its creation on.
pub struct Watch {
    begun: Instant,
    all: Option<load::cpu::Cores>,
    own: Duration,
    pid: u32,
}

impl Watch {
    /// Begins now; the private server with this PID does not count as others.
    pub fn begin(pid: u32) -> Watch {
        Watch { begun: Instant::now(), all: of_cores(&[pid]), own: own(pid), pid }
    }

    /// Returns the cores that other programs have kept busy since then, and those that the host took away.
    pub fn others(&self) -> (Option<f64>, Option<f64>) {
        let since = of_cores(&[self.pid]).zip(self.all).and_then(|(now, before)| now.since(before));
        let ours = own(self.pid).saturating_sub(self.own);
        let cores = |time: Duration| time.as_secs_f64() / self.begun.elapsed().as_secs_f64();
        let others = since.map(|since| cores(since.worked.saturating_sub(ours)));
        (others, since.map(|since| cores(since.stolen)))
    }
}

fn own(pid: u32) -> Duration {
    cpu() + cpu_of(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_all_groups_around_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(quota(root.path()), None);
        write("proc/self/cgroup", "0::/pods/one\n");
        assert_eq!(quota(root.path()), None);
        write("sys/fs/cgroup/pods/one/cpu.max", "max 100000\n");
        assert_eq!(quota(root.path()), None, "no limit");
        write("sys/fs/cgroup/pods/cpu.max", "150000 100000\n");
        assert_eq!(quota(root.path()), Some(1.5));
        write("sys/fs/cgroup/pods/one/cpu.max", "50000 100000\n");
        assert_eq!(quota(root.path()), Some(0.5));
    }

    #[test]
    fn this_process_is_not_others() {
        let watch = Watch::begin(std::process::id());
        let (others, stolen) = watch.others();
        assert!([others, stolen].into_iter().flatten().all(|cores| cores >= 0.0));
        assert!(Machine::here(Path::new("/")).cores >= 1);
    }
}
