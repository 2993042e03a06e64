//! A steady rate with a burst: the generic cell rate algorithm (ITU-T I.371), whose only state is when everything that
//! was counted will have drained.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Keys are spread over this many locks.
const SHARDS: usize = 16;
/// Keys under one lock at a time: about four megabytes in all. Beyond that, the keys nearest to being forgotten are.
const KEYS: usize = 4096;

/// No caller is told to come back later than this, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;

/// How many a second, and how many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many a second, in the long run.
    pub per_second: u32,
    /// How many at once, from a caller that was quiet.
    pub burst: u32,
}

/// How a caller stands under a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// How many at once, at most.
    pub limit: u32,
    /// How many at once, now.
    pub remaining: u32,
    /// How long until `remaining` is `limit` again.
    pub reset: Duration,
    /// When the last that was counted will have drained, in nanoseconds since the rate began.
    drains: u64,
}

/// A caller is over a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over {
    /// When to come back: after the callers that were told before.
    pub wait: Duration,
    /// How the caller stands.
    pub standing: Standing,
}

/// One rate, applied to each key separately.
pub struct Rates<K> {
    rate: Rate,
    began: Instant,
    chance: RandomState,
    drained: [Mutex<HashMap<K, Held>>; SHARDS],
}

/// What is known of a key, in nanoseconds since the rate began.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// When all that was counted will have drained.
    until: u64,
    /// When the caller that was told last is to come back. No place is kept for it; but many callers behind one address
    /// do not all come at the same moment.
    told: u64,
}

impl<K: Clone + Eq + Hash> Rates<K> {
    /// Creates a limit at `rate`; `None` where nothing is limited.
    pub fn new(rate: Rate) -> Option<Self> {
        (rate.per_second > 0).then(|| Rates {
            rate: Rate { burst: rate.burst.max(1), ..rate },
            began: Instant::now(),
            chance: RandomState::new(),
            drained: std::array::from_fn(|_| Mutex::default()),
        })
    }

    /// Counts one for `key`.
    ///
    /// # Errors
    /// [`Over`]: it is one too many, and is not counted.
    pub fn count(&self, key: &K) -> Result<Standing, Over> {
        self.count_at(key, self.now())
    }

    /// Takes back one that was counted and left its sender with the standing `counted`: as much of it as has not
    /// drained yet. Otherwise something slow that succeeds would take back what others of that key failed at.
    pub fn give_back(&self, key: &K, counted: &Standing) {
        self.give_back_at(key, counted, self.now());
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Nanoseconds in which one drains.
    fn each(&self) -> u64 {
        1_000_000_000 / u64::from(self.rate.per_second)
    }

    fn count_at(&self, key: &K, now: u64) -> Result<Standing, Over> {
        let (each, full) = (self.each(), self.each() * u64::from(self.rate.burst));
        let mut keys = self.shard(key);
        let drained = keys.get(key).map_or(0, |held| held.until).max(now);
        let next = drained + each;
        if next - now > full {
            let standing = self.standing(drained, now);
            let wait = keys.get_mut(key).map_or(0, |held| held.tell(next - full, each, now));
            return Err(Over { wait: Duration::from_nanos(wait), standing });
        }
        match keys.get_mut(key) {
            Some(held) => held.until = next,
            None => {
                make_room(&mut keys, now);
                keys.insert(key.clone(), Held { until: next, told: 0 });
            }
        }
        Ok(self.standing(next, now))
    }

    fn give_back_at(&self, key: &K, counted: &Standing, now: u64) {
        let mut keys = self.shard(key);
        let Some(held) = keys.get_mut(key) else { return };
        held.until = held.until.saturating_sub(self.each().min(counted.drains.saturating_sub(now)));
        if held.until <= now {
            keys.remove(key);
        }
    }

    /// Returns the standing of a caller whose count will have drained at `drains`.
    fn standing(&self, drains: u64, now: u64) -> Standing {
        let left = drains - now;
        let used = u32::try_from(left.div_ceil(self.each())).unwrap_or(u32::MAX);
        let remaining = self.rate.burst.saturating_sub(used);
        Standing { limit: self.rate.burst, remaining, reset: Duration::from_nanos(left), drains }
    }

    fn shard(&self, key: &K) -> MutexGuard<'_, HashMap<K, Held>> {
        let place = self.chance.hash_one(key) as usize % SHARDS;
        self.drained[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Returns how long the next caller must wait, where the first may come at `free` and one more every `each`.
    fn tell(&mut self, free: u64, each: u64, now: u64) -> u64 {
        let latest = self.until.min(now + LONGEST).max(free);
        self.told = free.max(self.told + each).min(latest);
        self.told - now
    }
}

/// Forgets the keys that have drained; if that is not enough, the half that is nearest to it.
fn make_room<K: Clone + Eq + Hash>(keys: &mut HashMap<K, Held>, now: u64) {
    if keys.len() < KEYS {
        return;
    }
    keys.retain(|_, held| held.until > now);
    if keys.len() >= KEYS {
        let mut all: Vec<u64> = keys.values().map(|held| held.until).collect();
        let (_, middle, _) = all.select_nth_unstable(KEYS / 2);
        let middle = *middle;
        keys.retain(|_, held| held.until > middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn rates(per_second: u32, burst: u32) -> Rates<u32> {
        Rates::new(Rate { per_second, burst }).unwrap()
    }

    #[test]
    fn a_burst_then_a_steady_rate_and_each_key_by_itself() {
        let rates = rates(2, 3);
        let left: Vec<u32> = (0..3).map(|_| rates.count_at(&1, 0).unwrap().remaining).collect();
        assert_eq!(left, [2, 1, 0]);
        let over = rates.count_at(&1, 0).unwrap_err();
        assert_eq!((over.wait, over.standing.remaining, over.standing.limit), (Duration::from_millis(500), 0, 3));
        assert!(rates.count_at(&2, 0).is_ok());
        assert!(rates.count_at(&1, SECOND / 2 - 1).is_err());
        assert!(rates.count_at(&1, SECOND / 2).is_ok());
        // In the long run two a second, however often a caller knocks.
        let admitted = (0..1000).filter(|tick| rates.count_at(&1, SECOND + tick * SECOND / 100).is_ok()).count();
        assert!((20..=23).contains(&admitted), "{admitted}");
    }

    #[test]
    fn many_who_are_over_are_told_to_come_one_after_the_other() {
        // Red where everybody is told of the first free place: all of them would come at that moment.
        let rates = rates(10, 1000);
        for _ in 0..1000 {
            rates.count_at(&1, 0).unwrap();
        }
        let told = || rates.count_at(&1, SECOND / 20).unwrap_err().wait.as_millis();
        let waits: Vec<u128> = (0..4).map(|_| told()).collect();
        assert_eq!(waits, [50, 150, 250, 350]);
        assert_eq!((0..2000).map(|_| told()).max(), Some(60_000), "nobody for longer than that");
        let few = Rates::<u32>::new(Rate { per_second: 1, burst: 3 }).unwrap();
        assert!((0..3).all(|_| few.count_at(&1, 0).is_ok()));
        let most = (0..100).map(|_| few.count_at(&1, 0).unwrap_err().wait).max();
        assert_eq!(most, Some(Duration::from_secs(3)), "by then all has drained");
    }

    #[test]
    fn what_is_given_back_was_never_counted() {
        let rates = rates(1, 2);
        for _ in 0..100 {
            let counted = rates.count_at(&1, 5).unwrap();
            rates.give_back_at(&1, &counted, 5);
        }
        assert!(rates.shard(&1).is_empty());
        let counted = rates.count_at(&1, 5).unwrap();
        assert_eq!(counted.remaining, 1);
    }

    #[test]
    fn what_has_drained_meanwhile_takes_back_no_other() {
        let rates = rates(10, 2);
        let slow = rates.count_at(&1, 0).unwrap();
        let half = rates.count_at(&2, 0).unwrap();
        let failed = rates.count_at(&1, SECOND).unwrap();
        rates.give_back_at(&1, &slow, SECOND);
        assert_eq!(rates.count_at(&1, SECOND).unwrap().remaining, failed.remaining - 1);
        rates.give_back_at(&2, &half, SECOND / 20);
        assert!(!rates.shard(&2).contains_key(&2), "all that was left of it");
    }

    #[test]
    fn a_flood_of_keys_takes_no_more_memory_and_frees_nobody_who_is_over() {
        let rates = rates(1, 100);
        for _ in 0..100 {
            rates.count_at(&0, 0).unwrap();
        }
        for key in 1..200_000 {
            rates.count_at(&key, 0).unwrap();
        }
        let held: usize = rates.drained.iter().map(|keys| keys.lock().unwrap().len()).sum();
        assert!(held <= SHARDS * KEYS, "{held}");
        assert!(rates.count_at(&0, 0).is_err());
    }

    #[test]
    fn no_rate_is_no_limit() {
        assert!(Rates::<u32>::new(Rate { per_second: 0, burst: 9 }).is_none());
    }
}
