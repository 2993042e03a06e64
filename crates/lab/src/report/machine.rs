//! The machine, as far as figures depend on it. Nothing here identifies the machine.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the CPU.
    pub cpu: String,
    /// Cores that may be used.
    pub cores: usize,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Time to append 4 KiB to a file and sync it, in milliseconds: the median of many. `None` where it could not be measured.
    pub fsync_ms: Option<f64>,
    /// The device of the private servers' folders, as the system numbers it: runs on different devices are not one run.
    #[serde(default)]
    pub disk: Option<u64>,
    /// Whether that is not a disk, but memory, where a synced write costs nothing.
    #[serde(default)]
    pub is_memory: bool,
    /// System and release.
    pub system: String,
}

impl Machine {
    /// Describes this machine, with the disk that `folder` is on.
    pub fn look(folder: &Path) -> Machine {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        let field = |text: &str, name: &str| {
            let line =
                text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':').map(str::trim));
            line.unwrap_or_default().to_owned()
        };
        let (cpu, memory) = (field(&read("/proc/cpuinfo"), "model name"), field(&read("/proc/meminfo"), "MemTotal"));
        let kib = memory.split(' ').next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or_default();
        let system = rustix::system::uname();
        Machine {
            cpu: if cpu.is_empty() { system.machine().to_string_lossy().into_owned() } else { cpu },
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            memory_gib: (kib / f64::from(1 << 20) * 10.0).round() / 10.0,
            fsync_ms: fsync_ms(folder).ok(),
            disk: folder.metadata().ok().map(|folder| folder.dev()),
            is_memory: is_memory(folder),
            system: format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy()),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cpu, cores, memory_gib, fsync_ms, system, disk: _, is_memory: _ } = self;
        let word = if *cores == 1 { "core" } else { "cores" };
        write!(f, "{cpu}, {cores} {word}, {memory_gib:.1} GiB, {system}; a synced write of 4 KiB ")?;
        match fsync_ms {
            Some(millis) => write!(f, "takes {millis:.2} ms"),
            None => f.write_str("could not be measured"),
        }
    }
}

/// Whether a folder is on tmpfs or ramfs.
pub fn is_memory(folder: &Path) -> bool {
    const KINDS: [u32; 2] = [0x0102_1994, 0x8584_58F6];
    // The field's sign and size (32 or 64 bits) depend on the platform; the numbers have 32 bits.
    rustix::fs::statfs(folder).is_ok_and(|found| KINDS.contains(&(found.f_type as u32)))
}

fn fsync_ms(folder: &Path) -> std::io::Result<f64> {
    const WRITES: usize = 200;
    let mut file: File = tempfile::tempfile_in(folder)?;
    let mut took = Vec::with_capacity(WRITES);
    for _ in 0..WRITES {
        file.write_all(&[1; 4096])?;
        let begun = Instant::now();
        file.sync_data()?;
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    Ok(took[WRITES / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_from_a_disk() {
        assert!(is_memory(Path::new("/dev/shm")) && !is_memory(Path::new("/proc")));
    }
}
