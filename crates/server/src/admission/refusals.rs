//! Clients that are refused, and ask again at once, again and again, must leave hashing its share of the cores.
//!
//! A refusal is quick, but not free: five hundred programs that retried at once made a machine of two cores refuse
//! 18,000 times a second, and sign in a sixth of the users it could. So if hashing is short of cores and there are half
//! as many refusals again as at ten times the capacity, they go out at a pace. Clients that heed them notice nothing: an
//! address hardly refused of late is told at once, and nobody waits for a refusal as long as it asks them to stay away.

use crate::net::AddressKey;
use app::rates::{Rate, Rates};
use hasher::{CpuTime, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time between two looks at how hashing fares.
const LOOK: Duration = Duration::from_millis(100);
/// After so long without a refusal, nothing is known any more.
const FORGET: Duration = Duration::from_secs(1);
/// Hashing is short if it had less than this share of what it could have used. Beside sign-ins alone it has 0.7 on a fast
/// machine and over 0.8 on a slow one, where the rest weighs less.
const SHORT: f64 = 0.78;
/// From this share on, it has enough.
const ENOUGH: f64 = 0.84;
/// Hashing that could have used less than this share of a core is short of nothing.
const IDLE: f64 = 0.25;
/// The factors by which the pace changes per look. It recovers slowly: of clients that wait, those that ask again are
/// seen only seconds later.
const SLOWER: f64 = 1.25;
const FASTER: f64 = 1.01;
/// So many refusals may go out per hashed password. At ten times the capacity there are nine for each, or eleven where they
/// and the load itself take a part of the cores.
const EACH: f64 = 14.0;
/// So many refusals may go out per second in any case, and so many of addresses hardly refused before.
const FREE: f64 = 1000.0;
/// The weight of the last look in the rate of hashing, if the rate was lower then.
const NEWS: f64 = 0.2;
/// A refusal waits for less than this share of the time for which it tells its client to stay away. A client that
/// heeds it then never loses by it.
const OF_ABSENCE: f64 = 0.9;
/// If all that wait go out within this time, there is no crowd that the pace holds up.
const NEXT_TO_NOTHING: Duration = Duration::from_millis(2);
/// No refusal waits longer, however long its client should stay away: it holds a connection.
const LONGEST: Duration = Duration::from_millis(2_700);
/// An address that is refused no more often than this is told at once.
const FRESH: Rate = Rate { per_second: 1, burst: 5 };

/// The pace of refusals.
pub struct Refusals {
    pace: Mutex<Spacing>,
    lately: Option<Rates<AddressKey>>,
    waiting: AtomicU32,
    slowed: AtomicU64,
}

/// What hashing has used, and done, since it began.
#[derive(Clone, Copy, Default)]
pub struct Hashing {
    cores: CpuTime,
    done: u64,
    /// Whether it has something to do now.
    busy: bool,
}

impl Hashing {
    /// Reads the current values.
    pub fn of(hasher: &Hasher) -> Self {
        let state = hasher.state();
        Hashing { cores: hasher.cpu_time(), done: state.done_total, busy: state.running > 0 }
    }
}

/// A refusal that is ready.
pub struct Ready {
    /// `None` if nothing is counted for the address.
    pub address: Option<AddressKey>,
    /// When its request came.
    pub came: Instant,
    /// How long it asks its client to stay away.
    pub absence: Duration,
}

/// A refusal that waits for its turn.
pub struct Turn<'a> {
    /// How long it waits.
    pub wait: Duration,
    waiting: &'a AtomicU32,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Relaxed);
    }
}

impl Refusals {
    /// Sends refusals at once, as long as nothing else is known.
    pub fn new() -> Self {
        Refusals {
            pace: Mutex::new(Spacing::new()),
            lately: Rates::new(FRESH),
            waiting: AtomicU32::new(0),
            slowed: AtomicU64::new(0),
        }
    }

    /// Returns the turn of a refusal; `None` if it may go out now.
    pub fn turn(&self, ready: &Ready, now: Instant, hashing: impl FnOnce() -> Hashing) -> Option<Turn<'_>> {
        let look = self.pace().counts(now);
        // The system is asked without holding the lock.
        if let Some(look) = look {
            let hashing = hashing();
            self.pace().judge(&look, hashing, self.waiting.load(Relaxed));
        }
        self.pace().each?;
        let is_first =
            || self.lately.as_ref().zip(ready.address).is_some_and(|(lately, key)| lately.count(&key).is_ok());
        if is_first() && self.pace().may_skip() {
            return None;
        }
        let waiting = self.waiting.fetch_add(1, Relaxed);
        let mut turn = Turn { wait: Duration::ZERO, waiting: &self.waiting };
        let longest = ready.absence.mul_f64(OF_ABSENCE).min(LONGEST);
        let longest = longest.saturating_sub(now.saturating_duration_since(ready.came));
        turn.wait = self.pace().next_turn(now, waiting).min(longest);
        self.slowed.fetch_add(u64::from(!turn.wait.is_zero()), Relaxed);
        Some(turn).filter(|turn| !turn.wait.is_zero())
    }

    fn pace(&self) -> MutexGuard<'_, Spacing> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts as if hashing were short of cores.
    #[cfg(test)]
    pub fn slow_down(&self, each: Duration) {
        let mut pace = self.pace();
        (pace.looked, pace.each) = (Some(Instant::now() + Duration::from_secs(3600)), Some(each));
    }

    /// Returns how many refusals have waited.
    pub fn slowed(&self) -> u64 {
        self.slowed.load(Relaxed)
    }
}

/// The interval between refusals, and what determines it.
struct Spacing {
    looked: Option<Instant>,
    seen: Hashing,
    /// Refusals since the last look.
    many: u32,
    /// Of these, the refusals sent at once although others waited.
    first: u32,
    /// Passwords hashed per second.
    hashed: f64,
    /// The interval between two refusals; `None` if they go out at once.
    each: Option<Duration>,
    /// When the next refusal's turn is.
    next: Instant,
}

/// What happened between two looks.
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

    /// Counts one more refusal; returns a look, if it is time for one.
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

    /// Returns whether one more may go out at once: as many may as cost next to nothing.
    fn may_skip(&mut self) -> bool {
        self.first += 1;
        f64::from(self.first) <= FREE * LOOK.as_secs_f64()
    }

    /// Returns how long it is until the turn of the next refusal, with so many waiting before it.
    fn next_turn(&mut self, now: Instant, waiting: u32) -> Duration {
        let (each, places) = (self.each.unwrap_or_default(), waiting + 1);
        // A client that hung up has left the queue.
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
            // A thread's wait is known once it runs: one that has not run at all is short of everything, or idle.
            each if wanted < gone.mul_f64(IDLE) && hashing.busy => each,
            each if wanted < gone.mul_f64(IDLE) || share > ENOUGH => {
                each.map(|each| each.div_f64(FASTER)).filter(|_| waiting > 0)
            }
            Some(each) if each * waiting < NEXT_TO_NOTHING => None,
            each if share > SHORT => each,
            // It is not the refused clients that take the cores.
            None if refused < allowed => None,
            each => {
                let slower = each.unwrap_or(Duration::from_secs_f64(1.0 / refused)).mul_f64(SLOWER);
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

    /// The time that a refusal, and a password, take of two cores.
    const REFUSAL: Duration = Duration::from_micros(100);
    const PASSWORD: Duration = Duration::from_millis(7);
    /// The share that hashing gets if others want all of both cores.
    const REST: f64 = 0.1;

    /// A machine on which refusals take cores from hashing, which wants all it can get.
    struct Machine {
        now: Instant,
        hashing: Hashing,
        /// How long clients are told to stay away.
        absence: Duration,
        refused: u32,
        longest: Duration,
    }

    impl Machine {
        fn new() -> Self {
            let now = Instant::now();
            let absence = Duration::from_secs(3);
            Machine { now, hashing: Hashing::default(), absence, refused: 0, longest: Duration::ZERO }
        }

        /// Until then, both cores are for hashing alone; after that, for a refusal.
        fn refuse<'a>(&mut self, refusals: &'a Refusals, at: Instant, address: Option<AddressKey>) -> Option<Turn<'a>> {
            let alone = at.saturating_duration_since(self.now);
            self.now = self.now.max(at) + REFUSAL;
            let ran = 2 * alone + (2 * REFUSAL).mul_f64(REST);
            self.hashing.cores.ran += ran;
            self.hashing.cores.waited += (2 * (alone + REFUSAL)).saturating_sub(ran);
            self.hashing.done = (self.hashing.cores.ran.as_nanos() / (2 * PASSWORD).as_nanos()) as u64;
            let ready = Ready { address, came: self.now, absence: self.absence };
            let turn = refusals.turn(&ready, self.now, || self.hashing);
            self.refused += 1;
            self.longest = self.longest.max(turn.as_ref().map_or(Duration::ZERO, |turn| turn.wait));
            turn
        }

        /// So many clients ask again as soon as they are refused, for so long. Returns hashing's share of the cores,
        /// the refusals per second, and the longest that one of them waited.
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

    fn ready(came: Instant) -> Ready {
        Ready { address: None, came, absence: Duration::from_secs(3) }
    }

    #[test]
    fn who_asks_again_at_once_leaves_hashing_its_share() {
        // Red without a pace: hashing has a tenth, whether three hundred ask or five thousand. Red for five thousand if
        // nobody waits for longer than a second: that alone makes 5,000 refusals a second.
        for many in [300, 1_000, 5_000] {
            let (refusals, mut machine) = (Refusals::new(), Machine::new());
            machine.crowd(&refusals, many, 4.0);
            let (share, rate, _) = machine.crowd(&refusals, many, 6.0);
            assert!(share > SHORT - 0.02, "{many}: {share} at {rate}/s");
            assert!(refusals.slowed() > 1_000);
        }
    }

    #[test]
    fn nobody_waits_for_a_refusal_as_long_as_it_asks_them_to_stay_away() {
        // Red with one limit for all: who is to come back in a second would hear of it in two.
        for (seconds, most) in [(0, 0.0), (1, 0.9), (2, 1.8), (3600, 2.7)] {
            let (refusals, mut machine) = (Refusals::new(), Machine::new());
            machine.absence = Duration::from_secs(seconds);
            let (_, _, longest) = machine.crowd(&refusals, 5_000, 8.0);
            assert!(longest <= Duration::from_secs_f64(most), "{seconds} s: {longest:?}");
            assert!(longest >= Duration::from_secs_f64(most / 2.0), "{seconds} s: {longest:?}");
        }
    }

    #[test]
    fn where_hashing_has_enough_nobody_waits() {
        // Red where the number of refusals decides: thirty clients that ask again at once take few of many cores.
        let (refusals, now) = (Refusals::new(), Instant::now());
        for (ran, waited) in [(1.0, 0.0), (0.9, 0.1), (0.0, 0.0), (0.02, 0.2)] {
            for number in 0..20_000_u32 {
                let after = Duration::from_micros(50) * number;
                let cores = CpuTime { ran: after.mul_f64(ran), waited: after.mul_f64(waited) };
                let turn = refusals.turn(&ready(now + after), now + after, || Hashing { cores, ..Hashing::default() });
                assert!(turn.is_none(), "{number} at {ran} and {waited}");
            }
        }
    }

    #[test]
    fn ten_times_the_capacity_is_refused_at_once() {
        // Red without `allowed`: everybody would wait because other programs take the cores that hashing wants.
        let (refusals, now) = (Refusals::new(), Instant::now());
        for number in 0..20_000_u32 {
            let after = Duration::from_micros(400) * number;
            let cores = CpuTime { ran: after.mul_f64(0.4), waited: after };
            let done = u64::from(number / 9);
            let turn = refusals.turn(&ready(now + after), now + after, || Hashing { cores, done, busy: true });
            assert!(turn.is_none(), "{number}");
        }
    }

    #[test]
    fn after_a_crowd_ten_times_the_capacity_is_refused_at_once_again() {
        // Red without NEXT_TO_NOTHING: the pace stayed where hashing never gets all that it could use.
        let (refusals, mut machine) = (Refusals::new(), Machine::new());
        machine.crowd(&refusals, 1_000, 3.0);
        assert!(refusals.pace().each.is_some());
        let (began, mut waited) = (machine.now, 0);
        for number in 0..4_000_u32 {
            let turn = machine.refuse(&refusals, began + Duration::from_micros(750) * number, None);
            waited += u32::from(turn.is_some() && number > 1_000);
        }
        assert!(waited == 0 && refusals.pace().each.is_none(), "{waited}");
        // Red with the pace kept where hashing has neither too little nor enough.
        let look = Look { gone: LOOK, refused: 900.0 };
        let cores = CpuTime { ran: LOOK.mul_f64(1.6), waited: LOOK.mul_f64(0.4) };
        let mut pace = refusals.pace();
        (pace.seen, pace.each) = (Hashing::default(), Some(Duration::from_millis(1)));
        pace.judge(&look, Hashing { cores, done: 8, busy: true }, 1);
        assert_eq!(pace.each, None);
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
    fn what_waited_for_the_door_already_does_not_wait_as_long_again() {
        let (refusals, mut machine) = (Refusals::new(), Machine::new());
        machine.crowd(&refusals, 5_000, 2.0);
        let _first = machine.refuse(&refusals, machine.now, None);
        let _second = machine.refuse(&refusals, machine.now, None).expect("somebody is before them");
        assert!(refusals.turn(&ready(machine.now - LONGEST), machine.now, || machine.hashing).is_none());
    }

    #[test]
    fn addresses_without_number_are_not_all_told_at_once() {
        // Red without `may_skip`: a network has as many addresses as it likes.
        let (refusals, mut machine) = (Refusals::new(), Machine::new());
        refusals.slow_down(Duration::from_millis(1));
        let mut turns = Vec::new();
        for number in 0..400_u32 {
            let address = AddressKey::of(IpAddr::from(number.to_be_bytes()));
            turns.push(machine.refuse(&refusals, machine.now, Some(address)));
        }
        let waiting = turns.iter().flatten().count();
        assert!((290..=300).contains(&waiting), "{waiting}");
    }

    #[test]
    fn hashing_that_did_not_run_at_all_is_no_reason_to_go_faster() {
        // Red where only reported time counts: the time that a thread waited is reported once it runs.
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
