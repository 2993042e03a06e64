//! What Linux reports of this process.

use std::fs;

/// Values from `/proc`.
pub struct Process {
    /// CPU seconds of all threads, in user and system mode.
    pub cpu: f64,
    /// Resident memory, in bytes.
    pub resident: u64,
    /// Address space, in bytes.
    pub virtual_size: u64,
    /// Threads.
    pub threads: u64,
    /// The time of the start, in seconds since 1970.
    pub started: f64,
    /// Open files and sockets.
    pub open_files: u64,
    /// The most that may be open.
    pub most_files: Option<u64>,
}

impl Process {
    /// Reads the values now; `None` on another system.
    pub fn now() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let booted = fs::read_to_string("/proc/stat").ok()?;
        let booted: f64 = booted.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let (ticks, page) = (rustix::param::clock_ticks_per_second(), rustix::param::page_size() as u64);
        let numbers = Stat::read(&stat)?;
        let seconds = |count: u64| count as f64 / ticks as f64;
        Some(Process {
            cpu: seconds(numbers.cpu),
            resident: numbers.resident * page,
            virtual_size: numbers.virtual_size,
            threads: numbers.threads,
            started: booted + seconds(numbers.started),
            open_files: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
            most_files: limit.current,
        })
    }
}

/// The fields of proc_pid_stat(5) that are used, in ticks, bytes and pages.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu: u64,
    threads: u64,
    started: u64,
    virtual_size: u64,
    resident: u64,
}

impl Stat {
    fn read(line: &str) -> Option<Self> {
        // The second field is the program's name in brackets, and may hold anything.
        let after = &line[line.rfind(')')? + 1..];
        let fields: Vec<&str> = after.split_whitespace().collect();
        // The first field after the name is number 3 of the manual.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Stat {
            cpu: field(14)? + field(15)?,
            threads: field(20)?,
            started: field(22)?,
            virtual_size: field(23)?,
            resident: field(24)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_moves_no_field() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194304 10 0 0 0 250 50 0 0 20 0 9 0 4711 1000000 300 18446744073709551615 1";
        let stat = Stat { cpu: 300, threads: 9, started: 4711, virtual_size: 1_000_000, resident: 300 };
        assert_eq!(Stat::read(line), Some(stat));
        let now = Process::now().expect("this is Linux");
        assert!(now.resident > 1 << 20 && now.open_files > 2 && now.started > 1e9);
    }
}
