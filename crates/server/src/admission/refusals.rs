//! Whoever is told to come back, and comes back at once, again and again, leaves hashing its share of the cores.
//!
//! A refusal is quick, but not free: five hundred programs that ask anew the moment that they are refused had a machine of two
//! cores refuse 18,000 times a second, and sign in a sixth of those whom it could have. So where hashing goes short of the cores
//! while more are refused than at twice ten times the capacity, refusals go out at a pace. Whoever heeds them notices nothing: an
//! address that has hardly been refused of late is told at once, and nobody waits for as long as anybody is told to stay away.

use crate::net::AddressKey;
use app::rates::{Rate, Rates};
use hasher::{CpuTime, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
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
/// So many refusals for each password that is hashed may go out: they take an eighth of the time that it takes.
const EACH: f64 = 20.0;
/// So may so many a second, and so many of those who come for the first time.
const FREE: f64 = 1000.0;
/// How much of what is known of the rate of hashing is of the last look, where it was lower.
const NEWS: f64 = 0.2;
/// Nobody waits for longer, however many do: whoever is refused is told to stay away for a second at least.
const LONGEST: Duration = Duration::from_millis(900);
/// An address that is refused no more often than that is told at once.
const FRESH: Rate = Rate { per_second: 1, burst: 5 };

/// The pace of refusals.
pub struct Refusals {
    pace: Mutex<Spacing>,
    lately: Option<Rates<AddressKey>>,
    waiting: AtomicU32,
    slowed: AtomicU64,
}

/// What hashing has had, and done, since it began.
#[derive(Clone, Copy, Default)]
pub struct Hashing {
    cores: CpuTime,
    done: u64,
    /// Whether it has something to do now.
    busy: bool,
}

impl Hashing {
    /// By now.
    pub fn of(hasher: &Hasher) -> Self {
        let state = hasher.state();
        Hashing { cores: hasher.cpu_time(), done: state.done_total, busy: state.running > 0 }
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
            pace: Mutex::new(Spacing::new()),
            lately: Rates::new(FRESH),
            waiting: AtomicU32::new(0),
            slowed: AtomicU64::new(0),
        }
    }

    /// The turn of a refusal that could go out now, of whoever came then; `None` where it may.
    pub fn turn(
        &self,
        (address, came): (Option<AddressKey>, Instant),
        now: Instant,
        hashing: impl FnOnce() -> Hashing,
    ) -> Option<Turn<'_>> {
        let look = self.pace().counts(now);
        // The system is asked while nobody waits for the lock.
        if let Some(look) = look {
            let hashing = hashing();
            self.pace().judge(&look, hashing, self.waiting.load(Relaxed));
        }
        self.pace().each?;
        let is_first = || self.lately.as_ref().zip(address).is_some_and(|(lately, key)| lately.count(&key).is_ok());
        if is_first() && self.pace().may_skip() {
            return None;
        }
        let waiting = self.waiting.fetch_add(1, Relaxed);
        let mut turn = Turn { wait: Duration::ZERO, waiting: &self.waiting };
        let longest = LONGEST.saturating_sub(now.saturating_duration_since(came));
        turn.wait = self.pace().next_turn(now, waiting).min(longest);
        self.slowed.fetch_add(u64::from(!turn.wait.is_zero()), Relaxed);
        Some(turn).filter(|turn| !turn.wait.is_zero())
    }

    fn pace(&self) -> MutexGuard<'_, Spacing> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As if hashing had gone short.
    #[cfg(test)]
    pub fn slow_down(&self, each: Duration) {
        let mut pace = self.pace();
        (pace.looked, pace.each) = (Some(Instant::now() + Duration::from_secs(3600)), Some(each));
    }

    /// How many have waited.
    pub fn slowed(&self) -> u64 {
        self.slowed.load(Relaxed)
    }
}

/// How far apart refusals go out, and what that is found by.
struct Spacing {
    looked: Option<Instant>,
    seen: Hashing,
    /// Refusals since.
    many: u32,
    /// Of these, whoever was told at once although the others waited.
    first: u32,
    /// Passwords that are hashed in a second.
    hashed: f64,
    /// Between two refusals; `None` where they go out at once.
    each: Option<Duration>,
    /// When the next one's turn is.
    next: Instant,
}

/// What there was between two looks.
struct Look {
    gone: Duration,
    refused: f64,
}

impl Spacing {
    fn new() -> Self {
        Spacing {
            looked: None,
            seen: Hashing::default(),
            many: 0,
            first: 0,
            hashed: 0.0,
            each: None,
            next: Instant::now(),
        }
    }

    /// Counts one more; a look, where it is time for one.
    fn counts(&mut self, now: Instant) -> Option<Look> {
        self.many += 1;
        let gone = self.looked.map_or(Duration::MAX, |looked| now.saturating_duration_since(looked));
        if gone < LOOK {
            return None;
        }
        let refused = f64::from(self.many) / gone.as_secs_f64();
        (self.looked, self.many, self.first) = (Some(now), 0, 0);
        Some(Look { gone, refused })
    }

    /// Whether one more may be told at once: as many as cost next to nothing.
    fn may_skip(&mut self) -> bool {
        self.first += 1;
        f64::from(self.first) <= FREE * LOOK.as_secs_f64()
    }

    /// How long it is until the next one's turn, behind so many that wait.
    fn next_turn(&mut self, now: Instant, waiting: u32) -> Duration {
        let (each, places) = (self.each.unwrap_or_default(), waiting + 1);
        // Whoever hung up has left the queue.
        let turn = self.next.clamp(now, now + (each * places).min(LONGEST));
        self.next = turn + each.min(LONGEST / places);
        turn - now
    }

    fn judge(&mut self, &Look { gone, refused }: &Look, hashing: Hashing, waiting: u32) {
        let seen = std::mem::replace(&mut self.seen, hashing);
        let done = hashing.done.saturating_sub(seen.done) as f64 / gone.as_secs_f64();
        if gone > FORGET {
            (self.hashed, self.each) = (done, None);
            return;
        }
        let ran = hashing.cores.ran.saturating_sub(seen.cores.ran);
        let wanted = ran + hashing.cores.waited.saturating_sub(seen.cores.waited);
        self.hashed = done.max(self.hashed + NEWS * (done - self.hashed));
        let (allowed, share) = (FREE.max(EACH * self.hashed), ran.as_secs_f64() / wanted.as_secs_f64());
        self.each = match self.each {
            // What a thread waited is known once it runs: one that has not run at all is short of everything, or has nothing to do.
            each if wanted < gone.mul_f64(IDLE) && hashing.busy => each,
            each if wanted < gone.mul_f64(IDLE) || share > ENOUGH => {
                each.map(|each| each.div_f64(FASTER)).filter(|_| waiting > 0)
            }
            each if share > SHORT => each,
            // It is not they who take the cores.
            None if refused < allowed => None,
            each => {
                let apart = Duration::from_secs_f64(1.0 / refused);
                // What is twice as slow as they come cannot be told from what is slower still.
                let slower = each.unwrap_or(apart).mul_f64(SLOWER).min(2 * apart);
                Some(slower.min(Duration::from_secs_f64(1.0 / allowed)))
            }
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
            let turn = refusals.turn((address, self.now), self.now, || self.hashing);
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
                let turn = refusals.turn((None, now + after), now + after, || Hashing { cores, ..Hashing::default() });
                assert!(turn.is_none(), "{number} at {ran} and {waited}");
            }
        }
    }

    #[test]
    fn ten_times_the_capacity_is_refused_at_once() {
        // red without `allowed`: other programs on the machine, which take what hashing wants, would have everybody wait.
        let (refusals, now) = (Refusals::new(), Instant::now());
        for number in 0..20_000_u32 {
            let after = Duration::from_micros(400) * number;
            let cores = CpuTime { ran: after.mul_f64(0.4), waited: after };
            let done = u64::from(number / 9);
            let turn = refusals.turn((None, now + after), now + after, || Hashing { cores, done, busy: true });
            assert!(turn.is_none(), "{number}");
        }
    }

    #[test]
    fn who_comes_for_the_first_time_is_told_at_once_and_so_is_everybody_once_it_is_over() {
        let (refusals, mut machine) = (Refusals::new(), Machine::new());
        machine.crowd(&refusals, 1_000, 2.0);
        let somebody = Some(AddressKey::of(IpAddr::from([203, 0, 113, 7])));
        let at_once = (0..9).filter(|_| machine.refuse(&refusals, machine.now, somebody).is_none()).count();
        assert!((FRESH.burst as usize..9).contains(&at_once), "{at_once}");
        machine.now += 2 * FORGET;
        assert!(machine.refuse(&refusals, machine.now, None).is_none());
    }

    #[test]
    fn who_hangs_up_while_waiting_is_no_part_of_the_queue() {
        let (refusals, mut machine) = (Refusals::new(), Machine::new());
        machine.crowd(&refusals, 1_000, 2.0);
        assert_eq!(refusals.waiting.load(Relaxed), 0, "all of them went away");
        let wait = machine.refuse(&refusals, machine.now, None).map(|turn| turn.wait);
        assert!(wait < Some(Duration::from_millis(2)), "nobody is before them: {wait:?}");
    }

    #[test]
    fn what_waited_for_the_door_already_does_not_wait_for_another_second() {
        let (refusals, mut machine) = (Refusals::new(), Machine::new());
        machine.crowd(&refusals, 5_000, 2.0);
        let _first = machine.refuse(&refusals, machine.now, None);
        let _second = machine.refuse(&refusals, machine.now, None).expect("somebody is before them");
        let came = machine.now - Duration::from_secs(1);
        assert!(refusals.turn((None, came), machine.now, || machine.hashing).is_none());
    }

    #[test]
    fn addresses_without_number_are_not_all_told_at_once() {
        // red without `may_skip`: a network has as many addresses as it likes.
        let (refusals, mut machine) = (Refusals::new(), Machine::new());
        machine.crowd(&refusals, 1_000, 2.0);
        let mut turns = Vec::new();
        for number in 0..400_u32 {
            let address = AddressKey::of(IpAddr::from(number.to_be_bytes()));
            turns.push(machine.refuse(&refusals, machine.now, Some(address)));
        }
        assert!(turns.iter().flatten().count() > 100);
    }

    #[test]
    fn hashing_that_did_not_run_at_all_is_no_reason_to_go_faster() {
        // red where only what is told counts: what a thread waited is told once it runs.
        let (refusals, now) = (Refusals::new(), Instant::now());
        refusals.slow_down(Duration::from_millis(1));
        let mut pace = refusals.pace();
        let look = Look { gone: LOOK, refused: 5_000.0 };
        pace.judge(&look, Hashing { busy: true, ..Hashing::default() }, 9);
        assert_eq!(pace.each, Some(Duration::from_millis(1)));
        pace.judge(&look, Hashing::default(), 9);
        assert!(pace.each < Some(Duration::from_millis(1)));
        assert!(pace.next_turn(now, 0).is_zero());
    }
}
