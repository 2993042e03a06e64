//! What this machine has: memory, and a way to step behind others.

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
