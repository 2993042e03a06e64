//! What this machine has: memory, a processor with a name, and a way to step behind others.

use crate::cpu::Level;

/// Bytes of memory taken for granted where the machine does not tell.
const UNKNOWN: u64 = 2 << 30;

/// Memory that this process may count on, in bytes: the machine's, or its container's limit where that is lower.
pub(crate) fn memory() -> u64 {
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    let machine = installed().unwrap_or(UNKNOWN);
    limit.map_or(machine, |limit: u64| limit.min(machine))
}

#[cfg(target_os = "linux")]
fn installed() -> Option<u64> {
    let info = rustix::system::sysinfo();
    // The field's width depends on the architecture.
    #[allow(clippy::useless_conversion)]
    let total = u64::from(info.totalram);
    total.checked_mul(u64::from(info.mem_unit).max(1)).filter(|&bytes| bytes > 0)
}

#[cfg(not(target_os = "linux"))]
fn installed() -> Option<u64> {
    None
}

/// What measurements of speed depend on, in one line: a calibration is valid where this is the same.
pub(crate) fn fingerprint(threads: usize, level: Level) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("{}, {}, {threads} threads, hasher {version}", processor(), level.name())
}

/// The processor's name, and whatever else tells it from others.
fn processor() -> String {
    const FIELDS: [&str; 8] =
        ["model name", "cpu family", "model", "stepping", "CPU implementer", "CPU variant", "CPU part", "CPU revision"];
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // The first processor stands for all.
    let first = info.split("\n\n").next().unwrap_or_default();
    let fields = first.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()));
    let known: Vec<_> = fields.filter(|(name, _)| FIELDS.contains(name)).map(|(_, value)| value).collect();
    if known.is_empty() { std::env::consts::ARCH.to_owned() } else { known.join(" ") }
}

/// Lowers the scheduling priority of the calling thread by `steps` of niceness. On Linux niceness belongs to a thread;
/// elsewhere it would lower the whole process, so nothing is done.
#[cfg(target_os = "linux")]
pub(crate) fn step_back(steps: u8) {
    // Raising one's own niceness needs no right; were it refused, hashing would only be less polite.
    let _ = rustix::process::nice(i32::from(steps));
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn step_back(_steps: u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_known() {
        assert!(memory() >= 64 << 20, "{}", memory());
    }

    #[test]
    fn a_fingerprint_is_one_line_and_tells_machines_apart() {
        let print = fingerprint(2, Level::Portable);
        assert!(print.lines().count() == 1 && print.len() > 20, "{print}");
        assert_eq!(print, fingerprint(2, Level::Portable));
        assert_ne!(print, fingerprint(3, Level::Portable));
        assert_ne!(print, fingerprint(2, Level::Avx2));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn niceness_belongs_to_the_thread_that_asks() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        let stepped = std::thread::spawn(move || {
            step_back(3);
            nice()
        });
        assert_eq!(stepped.join().unwrap(), (before + 3).min(19));
        assert_eq!(nice(), before);
    }
}
