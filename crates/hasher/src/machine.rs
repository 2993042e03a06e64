//! What this machine has: memory, and a processor with a name.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use crate::cpu::Level;

/// Bytes of memory that are assumed where the machine does not tell.
const UNKNOWN: u64 = 2 << 30;

/// Memory that this process may count on, in bytes: the machine's, or the limit of its container or service where that
/// is lower. `None` where the system does not tell.
pub(crate) fn memory() -> Option<u64> {
    installed().into_iter().chain(limit(Path::new("/"))).min()
}

/// A quarter of that, or of what is assumed, in bytes: what hashing takes unless told otherwise.
pub(crate) fn quarter() -> u64 {
    memory().unwrap_or(UNKNOWN) / 4
}

/// `bytes`, but no more than `there` are: a higher ceiling would be none. Where that is unknown, the caller knows
/// better than a guess.
pub(crate) fn capped(bytes: u64, there: Option<u64>) -> u64 {
    there.map_or(bytes, |there| bytes.min(there))
}

/// The least limit that a control group of this process, or one around it, sets below the file system's `root`. A
/// container that sees only its own groups finds its limit at their root, whatever path it is told.
fn limit(root: &Path) -> Option<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    groups.lines().filter_map(|line| limit_of(&root.join("sys/fs/cgroup"), line)).min()
}

/// The least limit at or above the group of one line of `/proc/self/cgroup`: `number:controllers:path` (cgroups(7)).
fn limit_of(mounts: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, Path::new(fields.next()?));
    // Version 2 is mounted there alone, or beside version 1.
    let (homes, files): (&[&str], &[&str]) = match controllers {
        "" => (&["", "unified"], &["memory.max", "memory.high"]),
        _ if controllers.split(',').any(|name| name == "memory") => (&["memory"], &["memory.limit_in_bytes"]),
        _ => return None,
    };
    // Beyond memory.high the system slows a process down; neither file has a number where there is no limit.
    let read = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let inside: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let groups = homes.iter().flat_map(|home| inside.ancestors().map(move |group| mounts.join(home).join(group)));
    groups.flat_map(|group| files.iter().map(move |file| group.join(file))).filter_map(read).min()
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

/// What measured speeds depend on, in one line: a calibration is valid where this line is the same.
pub(crate) fn fingerprint(threads: usize, level: Level) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("{}, {}, {threads} threads, hasher {version}", processor(), level.name())
}

/// The processor's name, and all that tells it from others: Linux only. Elsewhere it is the architecture.
fn processor() -> String {
    const FIELDS: [&str; 8] =
        ["model name", "cpu family", "model", "stepping", "CPU implementer", "CPU variant", "CPU part", "CPU revision"];
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // The first processor stands for all.
    let first = info.split("\n\n").next().unwrap_or_default();
    let fields = first.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()));
    let known: Vec<_> = fields.filter(|(name, _)| FIELDS.contains(name)).map(|(_, value)| value).collect();
    if known.is_empty() { std::env::consts::ARCH.to_owned() } else { known.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_is_known() {
        assert!(memory() >= Some(64 << 20), "{:?}", memory());
    }

    /// Red where the assumed memory is a cap, too: on a machine that does not tell, 8 requested GiB would be two.
    #[test]
    fn only_what_is_known_is_a_cap() {
        let gib = |count: u64| count << 30;
        assert_eq!(capped(gib(8), None), gib(8));
        assert_eq!(capped(gib(8), Some(gib(4))), gib(4));
        assert_eq!(capped(gib(1), Some(gib(4))), gib(1));
    }

    /// The limit in a file system with these files.
    fn limit_with(name: &str, files: &[(&str, &str)]) -> Option<u64> {
        let root = std::env::temp_dir().join(format!("hasher-cgroup-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = limit(&root);
        fs::remove_dir_all(&root).unwrap();
        found
    }

    #[test]
    fn the_least_limit_of_all_groups_around_counts() {
        const GROUPS: &str = "sys/fs/cgroup";
        let two = |files: &[(&str, &str)]| {
            let paths: Vec<_> = files.iter().map(|(path, _)| format!("{GROUPS}/{path}")).collect();
            let mut all = vec![("proc/self/cgroup", "0::/system.slice/portiere.service\n")];
            all.extend(paths.iter().zip(files).map(|(path, (_, text))| (path.as_str(), *text)));
            limit_with("two", &all)
        };
        let service = "system.slice/portiere.service";
        let of = |group: &str, file: &str| format!("{group}/{file}");
        assert_eq!(two(&[(&of(service, "memory.max"), "1000\n"), (&of(service, "memory.high"), "max\n")]), Some(1000));
        assert_eq!(two(&[(&of(service, "memory.max"), "max\n"), (&of(service, "memory.high"), "700\n")]), Some(700));
        assert_eq!(two(&[(&of(service, "memory.max"), "900"), ("system.slice/memory.max", "800")]), Some(800));
        assert_eq!(two(&[(&of(service, "memory.max"), "600"), ("system.slice/memory.high", "800")]), Some(600));
        assert_eq!(two(&[("memory.max", "500")]), Some(500), "a container that sees only its own");
        assert_eq!(two(&[("system.slice/other/memory.max", "5"), ("unified/memory.max", "400")]), Some(400));
        assert_eq!(two(&[(&of(service, "memory.max"), "max"), ("system.slice/memory.max", "nonsense")]), None);
    }

    #[test]
    fn version_1_has_limits_too() {
        let one = |line: &str, path: &str| {
            let lines = format!("9:name=systemd:/\n{line}\n0::/\n");
            let file = format!("sys/fs/cgroup/memory/{path}memory.limit_in_bytes");
            limit_with("one", &[("proc/self/cgroup", &lines), (&file, "300\n")])
        };
        assert_eq!(one("4:memory:/docker/abc", "docker/abc/"), Some(300));
        assert_eq!(one("4:memory:/docker/abc", "docker/"), Some(300));
        assert_eq!(one("4:memory:/docker/abc", ""), Some(300), "a container that sees only its own");
        assert_eq!(one("4:cpu,memory:/../abc", "abc/"), Some(300));
        assert_eq!(one("4:memory:/docker/abc", "docker/other/"), None);
        assert_eq!(one("4:memoryless:/docker/abc", "docker/abc/"), None);
        assert_eq!(limit_with("none", &[("sys/fs/cgroup/memory.max", "5")]), None);
    }

    #[test]
    fn a_fingerprint_is_one_line_and_tells_machines_apart() {
        let print = fingerprint(2, Level::Portable);
        assert!(print.lines().count() == 1 && print.len() > 20, "{print}");
        assert_eq!(print, fingerprint(2, Level::Portable));
        assert_ne!(print, fingerprint(3, Level::Portable));
        assert_ne!(print, fingerprint(2, Level::Avx2));
    }
}
