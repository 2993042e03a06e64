//! Which cores of the machine a thread, and whatever it starts, may run on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Some cores of the machine, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores(Vec<usize>);

impl Cores {
    /// Those that the calling thread may run on.
    ///
    /// # Errors
    /// A sentence, where the system does not tell.
    pub fn all() -> Result<Cores, String> {
        let set =
            sched_getaffinity(None).map_err(|error| format!("the cores of this machine are not known: {error}"))?;
        Ok(Cores((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()))
    }

    /// The first `count` of these.
    ///
    /// # Errors
    /// A sentence, where there are fewer.
    pub fn first(&self, count: usize) -> Result<Cores, String> {
        match self.0.get(..count) {
            Some(first) if count > 0 => Ok(Cores(first.to_vec())),
            _ => Err(format!("{count} cores are needed, and this machine lets {} be used", self.0.len())),
        }
    }

    /// Those of these that `others` are not among; `None` where nothing is left.
    pub fn without(&self, others: &Cores) -> Option<Cores> {
        let rest: Vec<usize> = self.0.iter().copied().filter(|core| !others.0.contains(core)).collect();
        (!rest.is_empty()).then_some(Cores(rest))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Does `work` with the calling thread on these cores; threads and processes that it starts stay there.
    ///
    /// # Errors
    /// A sentence, where the system does not allow it.
    pub fn hold<T>(&self, work: impl FnOnce() -> T) -> Result<T, String> {
        let refused = |error| format!("threads cannot be kept on {} of the cores here: {error}", self.0.len());
        let before = sched_getaffinity(None).map_err(refused)?;
        let mut set = CpuSet::new();
        self.0.iter().for_each(|core| set.set(*core));
        sched_setaffinity(None, &set).map_err(refused)?;
        let _back = Back(before);
        Ok(work())
    }
}

/// `work` on `cores`, or wherever it may be without any.
///
/// # Errors
/// As [`Cores::hold`].
pub fn on<T>(cores: Option<&Cores>, work: impl FnOnce() -> T) -> Result<T, String> {
    match cores {
        Some(cores) => cores.hold(work),
        None => Ok(work()),
    }
}

/// Lets the thread run where it could before, whatever ends its work.
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

    #[test]
    fn more_cores_than_there_are_is_a_sentence() {
        let few = Cores(vec![0, 3]);
        assert_eq!(few.first(3).unwrap_err(), "3 cores are needed, and this machine lets 2 be used");
        assert!(few.first(0).is_err());
        assert_eq!(few.without(&few.first(1).unwrap()), Some(Cores(vec![3])));
        assert_eq!((few.without(&few), few.count()), (None, 2));
    }
}
