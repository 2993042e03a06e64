//! The cores of the machine that a thread, and everything that it starts, may run on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Some cores of the machine, by number. What the system calls a core may be one of several hardware threads of a core;
/// one thread of each core comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(Vec<usize>);

impl Cores {
    /// Returns the cores that the calling thread may run on.
    ///
    /// # Errors
    /// A message, if the system does not tell.
    pub fn all() -> Result<Cores, String> {
        let set =
            sched_getaffinity(None).map_err(|error| format!("the cores of this machine are not known: {error}"))?;
        Ok(Cores(apart((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect(), siblings)))
    }

    /// Returns the first `count` of these: only one hardware thread of each core, as long as there are enough cores.
    ///
    /// # Errors
    /// A message, if there are fewer.
    pub fn first(&self, count: usize) -> Result<Cores, String> {
        match self.0.get(..count) {
            Some(first) if count > 0 => Ok(Cores(first.to_vec())),
            _ => Err(format!("{count} cores are needed, but only {} may be used on this machine", self.0.len())),
        }
    }

    /// Returns these cores without `others`; `None` if nothing is left.
    pub fn without(&self, others: &Cores) -> Option<Cores> {
        let rest: Vec<usize> = self.0.iter().copied().filter(|core| !others.0.contains(core)).collect();
        (!rest.is_empty()).then_some(Cores(rest))
    }

    /// Returns a remark about `who` runs on these, if some of them are hardware threads of the same core.
    pub fn remark(&self, who: &str) -> Option<String> {
        let (second, all) = (second(&self.0, siblings), self.0.len());
        (second > 0).then(|| {
            let cores = all - second;
            let cores = if cores == 1 { "one core".to_owned() } else { format!("{cores} cores") };
            format!("{who} had {all} hardware threads of {cores}: two threads of a core do less than two cores.")
        })
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Does `work` with the calling thread on these cores; threads and processes started by it stay there.
    ///
    /// # Errors
    /// A message, if the system does not allow it.
    pub fn hold<T>(&self, work: impl FnOnce() -> T) -> Result<T, String> {
        let refused = |error| format!("cannot pin threads to {} of the cores here: {error}", self.0.len());
        let before = sched_getaffinity(None).map_err(refused)?;
        let mut set = CpuSet::new();
        self.0.iter().for_each(|core| set.set(*core));
        sched_setaffinity(None, &set).map_err(refused)?;
        let _back = Back(before);
        Ok(work())
    }
}

/// Returns the hardware threads of this thread's core, listed as `0,4` or `0-1` (the kernel's `cputopology`); only
/// itself if the system does not tell.
fn siblings(thread: usize) -> Vec<usize> {
    let file = format!("/sys/devices/system/cpu/cpu{thread}/topology/thread_siblings_list");
    std::fs::read_to_string(file).ok().and_then(|list| listed(&list)).unwrap_or_else(|| vec![thread])
}

fn listed(list: &str) -> Option<Vec<usize>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').map(range).collect::<Option<Vec<_>>>().map(|ranges| ranges.into_iter().flatten().collect())
}

/// Returns how many of the `threads` before this one belong to the same core.
fn before(thread: usize, threads: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> usize {
    let own = siblings(thread);
    threads.iter().take_while(|other| **other != thread).filter(|other| own.contains(other)).count()
}

/// Orders threads: one of each core first, then the second ones, and so on.
fn apart(threads: Vec<usize>, siblings: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    let mut ordered = threads.clone();
    ordered.sort_by_cached_key(|thread| before(*thread, &threads, &siblings));
    ordered
}

/// Returns how many threads are not the first of their core.
fn second(threads: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> usize {
    threads.iter().filter(|thread| before(**thread, threads, &siblings) > 0).count()
}

/// Does `work` on `cores`, or on any core if there are none.
///
/// # Errors
/// As [`Cores::hold`].
pub fn on<T>(cores: Option<&Cores>, work: impl FnOnce() -> T) -> Result<T, String> {
    match cores {
        Some(cores) => cores.hold(work),
        None => Ok(work()),
    }
}

/// Restores where the thread may run, however its work ends.
struct Back(CpuSet);

impl Drop for Back {
    fn drop(&mut self) {
        // It could run there a moment ago; if that has been taken away meanwhile, it stays where it is.
        let _ = sched_setaffinity(None, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_held_to_its_cores_and_let_go_again() {
        let all = Cores::all().unwrap();
        let one = all.first(1).unwrap();
        let (inside, started) =
            one.hold(|| (Cores::all().unwrap(), std::thread::spawn(|| Cores::all().unwrap()).join().unwrap())).unwrap();
        assert_eq!((&inside, &started), (&one, &one), "and so are those that it starts");
        assert_eq!(Cores::all().unwrap(), all);
        drop(std::panic::catch_unwind(|| one.hold(|| panic!("on purpose"))));
        assert_eq!(Cores::all().unwrap(), all, "after a panic, too");
    }

    /// Red where cores are taken in numerical order: neighbors may be two threads of one core.
    #[test]
    fn one_thread_of_each_core_comes_first() {
        let neighbors = |thread: usize| vec![thread / 2 * 2, thread / 2 * 2 + 1];
        assert_eq!(apart((0..6).collect(), neighbors), [0, 2, 4, 1, 3, 5]);
        // The first thread of a core may belong to somebody else.
        assert_eq!(apart(vec![1, 2, 3], neighbors), [1, 2, 3]);
        let halves = |thread: usize| vec![thread % 4, thread % 4 + 4];
        assert_eq!(apart((0..8).collect(), halves), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(apart(vec![3, 1], |thread| vec![thread]), [3, 1]);
        assert_eq!(
            [second(&[0, 2, 4], neighbors), second(&[0, 2, 4, 1], neighbors), second(&[1, 0], neighbors)],
            [0, 1, 1]
        );
    }

    #[test]
    fn the_threads_of_a_core_are_read_as_the_kernel_lists_them() {
        assert_eq!(listed("0,4\n"), Some(vec![0, 4]));
        assert_eq!(listed("2-3,10\n"), Some(vec![2, 3, 10]));
        assert_eq!((listed(""), listed("a"), listed("1-")), (None, None, None));
        assert_eq!(siblings(usize::MAX), [usize::MAX]);
    }

    #[test]
    fn more_cores_than_there_are_is_a_sentence() {
        let few = Cores(vec![0, 3]);
        assert_eq!(few.first(3).unwrap_err(), "3 cores are needed, but only 2 may be used on this machine");
        assert!(few.first(0).is_err());
        assert_eq!(few.without(&few.first(1).unwrap()), Some(Cores(vec![3])));
        assert_eq!((few.without(&few), few.count()), (None, 2));
    }
}
