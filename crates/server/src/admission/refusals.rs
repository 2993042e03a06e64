//! Whoever is told to come back, and comes back at once, again and again, leaves hashing its share of the cores.
//!
//! A refusal is quick, but not free: three hundred programs that ask anew the moment that they are refused had a machine of two
//! cores refuse 18,000 times a second, and sign in a sixth of those whom it could have. So where hashing goes short of the cores
//! while many are refused, refusals go out at a pace, which twice those of ten times the capacity keep. Whoever heeds them notices
//! nothing: who has hardly been refused of late is told at once, and nobody waits for as long as anybody is told to stay away.

use crate::net::AddressKey;
use app::rates::{Rate, Rates};
use hasher::{CpuTime, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at what hashing gets.
const LOOK: Duration = Duration::from_millis(100);
/// After so long without a refusal nothing is known any more.
const FORGET: Duration = Duration::from_secs(1);
/// Hashing goes short where it had less than this share of what it could have used. Beside sign-ins alone it has about 0.7.
const SHORT: f64 = 0.6;
/// From this share on it has enough.
const ENOUGH: f64 = 0.66;
/// Hashing that could have used less than this share of a core is not what is short of anything.
const IDLE: f64 = 0.25;
/// By how much the pace changes from look to look. Back with care: who waits comes again only after it.
const SLOWER: f64 = 1.25;
const FASTER: f64 = 1.05;
/// So many refusals for each password that is hashed are not slowed: they take an eighth of the time that it takes.
const EACH: f64 = 20.0;
/// Nor are so many a second.
const FREE: f64 = 1000.0;
/// How much of what is known of the rate of hashing is of the last look, where it was lower.
const NEWS: f64 = 0.2;
/// Nobody waits for much longer, however many do: whoever is refused is told to stay away for a second at least.
const LONGEST: Duration = Duration::from_millis(900);
/// An address that is refused no more often than that is told at once.
const FRESH: Rate = Rate { per_second: 1, burst: 5 };

/// The pace of refusals.
pub struct Refusals {
    pace: Mutex<Pace>,
    lately: Option<Rates<AddressKey>>,
    waiting: AtomicU32,
    slowed: AtomicU64,
}

/// What hashing has had, and done, since it began.
#[derive(Clone, Copy, Default)]
pub struct Hashing {
    cores: CpuTime,
    done: u64,
}

impl Hashing {
    /// By now.
    pub fn of(hasher: &Hasher) -> Self {
        Hashing { cores: hasher.cpu_time(), done: hasher.state().done_total }
    }
}

/// A refusal that waits for its turn.
pub struct Turn<'a> {
    /// How long.
    pub wait: Duration,
    waiting: &'a AtomicU32,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Relaxed);
    }
}

impl Refusals {
    /// At once, as long as nothing else is known.
    pub fn new() -> Self {
        Refusals {
            pace: Mutex::new(Pace::new()),
            lately: Rates::new(FRESH),
            waiting: AtomicU32::new(0),
            slowed: AtomicU64::new(0),
        }
    }

    /// The turn of a refusal that could go out now; `None` where it may.
    pub fn turn(
        &self,
        address: Option<AddressKey>,
        now: Instant,
        hashing: impl FnOnce() -> Hashing,
    ) -> Option<Turn<'_>> {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.many += 1;
        if pace.looked.is_none_or(|looked| now.saturating_duration_since(looked) >= LOOK) {
            pace.look(now, hashing(), self.waiting.load(Relaxed));
        }
        let each = pace.each?;
        if self.lately.as_ref().zip(address).is_some_and(|(lately, key)| lately.count(&key).is_ok()) {
            return None;
        }
        let waiting = self.waiting.fetch_add(1, Relaxed);
        let turn = Turn { wait: pace.next.saturating_duration_since(now), waiting: &self.waiting };
        pace.next = (pace.next.max(now) + each.min(LONGEST / (waiting + 1))).min(now + LONGEST);
        self.slowed.fetch_add(u64::from(!turn.wait.is_zero()), Relaxed);
        Some(turn).filter(|turn| !turn.wait.is_zero())
    }

    /// As if hashing had gone short.
    #[cfg(test)]
    pub fn slow_down(&self, each: Duration) {
        let mut pace = self.pace.lock().unwrap();
        (pace.looked, pace.each) = (Some(Instant::now() + Duration::from_secs(3600)), Some(each));
    }

    /// How many have waited.
    pub fn slowed(&self) -> u64 {
        self.slowed.load(Relaxed)
    }
}

struct Pace {
    looked: Option<Instant>,
    seen: Hashing,
    /// Refusals since.
    many: u32,
    /// Passwords that are hashed in a second.
    hashed: f64,
    /// Between two refusals; `None` where they go out at once.
    each: Option<Duration>,
    /// When the next one's turn is.
    next: Instant,
}

impl Pace {
    fn new() -> Self {
        Pace { looked: None, seen: Hashing::default(), many: 0, hashed: 0.0, each: None, next: Instant::now() }
    }

    fn look(&mut self, at: Instant, hashing: Hashing, waiting: u32) {
        let (gone, seen) =
            (self.looked.map_or(Duration::MAX, |looked| at.saturating_duration_since(looked)), self.seen);
        let refused = f64::from(self.many) / gone.as_secs_f64();
        let done = hashing.done.saturating_sub(seen.done) as f64 / gone.as_secs_f64();
        let ran = hashing.cores.ran.saturating_sub(seen.cores.ran);
        let wanted = ran + hashing.cores.waited.saturating_sub(seen.cores.waited);
        (self.looked, self.seen, self.many) = (Some(at), hashing, 0);
        if gone > FORGET {
            (self.hashed, self.each) = (done, None);
            return;
        }
        self.hashed = done.max(self.hashed + NEWS * (done - self.hashed));
        let (each, slowest) = (self.each, Duration::from_secs_f64(1.0 / FREE.max(EACH * self.hashed)));
        // As they come; what is twice as slow cannot be told from what is slower still.
        let now = Duration::from_secs_f64(1.0 / refused);
        self.each = match ran.as_secs_f64() / wanted.as_secs_f64() {
            had if had < SHORT && wanted > gone.mul_f64(IDLE) => {
                Some(each.unwrap_or(now).mul_f64(SLOWER).min(2 * now).min(slowest))
            }
            had if had < ENOUGH && wanted > gone.mul_f64(IDLE) => each,
            // It holds nobody.
            _ if waiting == 0 => None,
            _ => each.map(|each| each.div_f64(FASTER)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    use std::net::IpAddr;

    /// What a refusal takes of two cores, and what a password.
    const REFUSAL: Duration = Duration::from_micros(45);
    const PASSWORD: Duration = Duration::from_millis(7);
    /// What hashing gets where others want all of both.
    const REST: f64 = 0.1;

    /// A machine on which refusals take cores from hashing, which wants all there is.
    struct Machine {
        now: Instant,
        hashing: Hashing,
        refused: u32,
        longest: Duration,
    }

    impl Machine {
        fn new() -> Self {
            let now = Instant::now();
            Machine { now, hashing: Hashing::default(), refused: 0, longest: Duration::ZERO }
        }

        /// Both cores are for hashing alone until then, and for a refusal after that.
        fn refuse<'a>(&mut self, refusals: &'a Refusals, at: Instant, address: Option<AddressKey>) -> Option<Turn<'a>> {
            let alone = at.saturating_duration_since(self.now);
            self.now = self.now.max(at) + REFUSAL;
            let ran = 2 * alone + (2 * REFUSAL).mul_f64(REST);
            self.hashing.cores.ran += ran;
            self.hashing.cores.waited += (2 * (alone + REFUSAL)).saturating_sub(ran);
            self.hashing.done = (self.hashing.cores.ran.as_nanos() / (2 * PASSWORD).as_nanos()) as u64;
            let turn = refusals.turn(address, self.now, || self.hashing);
            self.refused += 1;
            self.longest = self.longest.max(turn.as_ref().map_or(Duration::ZERO, |turn| turn.wait));
            turn
        }

        /// So many ask again as soon as they are refused, for so long. Gives hashing's share of the cores, how many were refused in
        /// a second, and the longest that one of them waited.
        fn crowd(&mut self, refusals: &Refusals, many: u32, seconds: f64) -> (f64, f64, Duration) {
            let (began, before) = (self.now, self.hashing.cores.ran);
            (self.refused, self.longest) = (0, Duration::ZERO);
            let mut turns: Vec<Option<Turn<'_>>> = (0..many).map(|_| None).collect();
            let mut coming: BinaryHeap<_> = (0..many as usize).map(|who| Reverse((began, who))).collect();
            while self.now - began < Duration::from_secs_f64(seconds)
                && let Some(Reverse((at, who))) = coming.pop()
            {
                turns[who] = None;
                turns[who] = self.refuse(refusals, at, None);
                coming.push(Reverse((self.now + turns[who].as_ref().map_or(Duration::ZERO, |turn| turn.wait), who)));
            }
            let took = (self.now - began).as_secs_f64();
            let share = (self.hashing.cores.ran - before).as_secs_f64() / took / 2.0;
            (share, f64::from(self.refused) / took, self.longest)
        }
    }

    #[test]
    fn who_asks_again_at_once_leaves_hashing_its_share_and_waits_for_less_than_a_second() {
        // red without a pace: hashing has a tenth, whether three hundred ask or five thousand.
        for many in [300, 1_000, 5_000] {
            let (refusals, mut machine) = (Refusals::new(), Machine::new());
            machine.crowd(&refusals, many, 4.0);
            let (share, rate, longest) = machine.crowd(&refusals, many, 4.0);
            assert!(share > SHORT - 0.02, "{many}: {share} at {rate}/s");
            assert!(longest < Duration::from_secs(1), "{many}: {longest:?}");
            assert!(refusals.slowed() > 1_000);
        }
    }

    #[test]
    fn where_hashing_has_enough_nobody_waits() {
        // red where the number of refusals decides: thirty who ask again at once take next to nothing on a machine with many cores.
        let (refusals, now) = (Refusals::new(), Instant::now());
        for (ran, waited) in [(1.0, 0.0), (0.7, 0.3), (0.0, 0.0), (0.02, 0.2)] {
            for number in 0..20_000_u32 {
                let after = Duration::from_micros(50) * number;
                let cores = CpuTime { ran: after.mul_f64(ran), waited: after.mul_f64(waited) };
                let turn = refusals.turn(None, now + after, || Hashing { cores, done: 0 });
                assert!(turn.is_none(), "{number} at {ran} and {waited}");
            }
        }
    }

    #[test]
    fn ten_times_the_capacity_is_refused_at_once() {
        // red without `EACH`: other programs on the machine, which take what hashing wants, would have everybody wait.
        let (refusals, now) = (Refusals::new(), Instant::now());
        for number in 0..20_000_u32 {
            let after = Duration::from_micros(400) * number;
            let cores = CpuTime { ran: after.mul_f64(0.4), waited: after };
            let done = u64::from(number / 9);
            let wait =
                refusals.turn(None, now + after, || Hashing { cores, done }).map_or(Duration::ZERO, |turn| turn.wait);
            assert!(wait < Duration::from_millis(2), "{number}: {wait:?}");
        }
    }

    #[test]
    fn who_comes_for_the_first_time_is_told_at_once_and_so_is_everybody_once_it_is_over() {
        let (refusals, mut machine) = (Refusals::new(), Machine::new());
        machine.crowd(&refusals, 1_000, 2.0);
        let somebody = Some(AddressKey::of(IpAddr::from([203, 0, 113, 7])));
        let at_once = (0..9).filter(|_| machine.refuse(&refusals, machine.now, somebody).is_none()).count();
        assert_eq!(at_once, FRESH.burst as usize);
        machine.now += 2 * FORGET;
        assert!(machine.refuse(&refusals, machine.now, None).is_none());
    }

    #[test]
    fn who_hangs_up_while_waiting_is_no_part_of_the_queue() {
        let (refusals, mut machine) = (Refusals::new(), Machine::new());
        machine.crowd(&refusals, 1_000, 2.0);
        assert_eq!(refusals.waiting.load(Relaxed), 0, "all of them went away");
    }
}
