//! Where the generator was what set a limit, and not the server.

use super::Report;
use crate::cpu::DISTURBED;
use crate::desk::RECONNECT;
use crate::wire::Fault;

impl Report {
    /// True when the generator was the bottleneck: what it measured is its own limit, and not the server's alone.
    pub fn is_bound_by_generator(&self) -> bool {
        let own = self.is_busy() || self.is_starved() || self.lacks_users() || self.lacks_means();
        own || self.beside.iter().any(Report::is_bound_by_generator)
    }

    /// True when the busiest thread of the generator had no time left.
    pub fn is_busy(&self) -> bool {
        self.generator_busiest + self.waited() >= Self::BOUND
    }

    /// True when others had the cores for much of the time in which the generator had something to do. An open loop rests between
    /// its starts: it need not be busy to be late with all of them.
    pub fn is_starved(&self) -> bool {
        self.waited() >= Self::STARVED
    }

    /// True when the generator waited for a core so long that it is seen in the latencies.
    pub fn waits(&self) -> bool {
        self.waited() >= Self::WAITS
    }

    /// True when other programs, and not the server, kept the cores busy; never where it is not known which of that was the server.
    pub fn is_disturbed(&self) -> bool {
        self.server.is_some() && self.others_cores.is_some_and(|cores| cores > DISTURBED)
    }

    /// True when it hardly had anything to do, and had no core even for that.
    pub(crate) fn is_kept_out(&self) -> bool {
        self.is_starved() && self.generator_busiest < Self::IDLE
    }

    /// How many cores all else kept busy, and what that is.
    pub(crate) fn others_told(&self) -> Option<(f64, &'static str)> {
        let whose = match self.server {
            Some(_) => "other programs",
            None => "all else on this machine, the server included if it is there",
        };
        self.others_cores.map(|cores| (cores, whose))
    }

    /// Nothing where it is not known.
    fn waited(&self) -> f64 {
        self.generator_waited.unwrap_or_default()
    }

    /// The share of the time in which the generator was ready and had no core, in per cent; `None` where that is not known. A result
    /// of before had 0 there.
    pub fn wait_of_generator(&self) -> Option<f64> {
        self.generator_waited.filter(|waited| *waited > 0.0).map(|waited| waited * 100.0)
    }

    /// True when a part of the latencies that matters is the generator's own lateness.
    pub fn is_late(&self) -> bool {
        let late = self.lateness.is_some_and(|late| late.p99 > Self::LATE * self.latency.p99);
        late && self.iterations > 0
    }

    /// How much of its p99 was not the server's, in milliseconds.
    pub(crate) fn late_by(&self) -> f64 {
        self.lateness.map_or(0.0, |late| late.p99)
    }

    /// True when an open loop had too few users for its rate at the latency that there was.
    pub fn lacks_users(&self) -> bool {
        self.waited_for_users as f64 > Self::MAY_WAIT * (self.iterations + self.unanswered()) as f64
    }

    /// True when the generator itself had no port left for a connection, or no file: the server did not fail by that.
    pub fn lacks_means(&self) -> bool {
        let own = [Fault::NoFiles, Fault::NoPorts].map(|fault| fault.to_string());
        let own = self.failures.iter().filter(|failure| own.contains(&failure.reason)).map(|failure| failure.count);
        own.sum::<u64>() as f64 > Self::MAY_WAIT * (self.iterations + self.unanswered()) as f64
    }

    /// In sentences: by what the generator set a limit of its own, apart from what ran [beside](Report::beside).
    pub fn limits_of_generator(&self) -> Vec<String> {
        let mut said = Vec::new();
        said.extend(self.want_of_a_core());
        if let Some(cores) = self.others_cores.filter(|_| self.is_disturbed()) {
            said.push(format!("Other programs kept {cores:.2} cores busy meanwhile: the latencies have that in them."));
        }
        said.extend(self.lateness_told());
        if self.generator_waited.is_none() {
            said.push(
                "How long the generator waited for a core is not known: the system does not tell (schedstat)."
                    .to_owned(),
            );
        }
        if self.lacks_users() {
            let count = self.waited_for_users;
            said.push(format!(
                "{count} starts waited for a free user, or found none by the end: raise --vus, where there is one. The waits \
                 are in the latencies of those that began."
            ));
        }
        if self.lacks_means() {
            said.push(
                "The generator had no port or file left for some connections: those failures are its own.".to_owned(),
            );
        }
        said.extend(self.rests());
        said
    }

    /// What its own lateness is beside the latencies, where that is worth a sentence.
    fn lateness_told(&self) -> Option<String> {
        let late = self.lateness.filter(|_| self.is_late())?.p99;
        let share = late / self.latency.p99 * 100.0;
        Some(format!(
            "The generator was late with its starts: the p99 of that is {late:.2} ms, {share:.0} % of the p99 of the latencies, which have \
             it in them."
        ))
    }

    /// What it did where there was no connection, if that was ever so.
    fn rests(&self) -> Option<String> {
        (self.rested > 0).then(|| {
            let count = self.rested;
            format!(
                "Where no connection could be made a user paused for {RECONNECT:?} before the next try, {count} x: those pauses are \
                 in the rate."
            )
        })
    }

    /// How the generator fared beside what else ran on the machine, where that is worth a sentence.
    fn want_of_a_core(&self) -> Option<String> {
        let [busiest, waited] = [self.generator_busiest, self.waited()].map(|share| share * 100.0);
        if self.is_kept_out() {
            return Some(format!(
                "Others had the cores: the generator, which used {busiest:.0} % of one, waited for one {waited:.0} % of the time, and the \
                 latencies have that in them. Give it a core that nobody else has."
            ));
        }
        if self.is_starved() {
            return Some(format!(
                "The generator was the bottleneck: it waited for a core {waited:.0} % of the time, and the latencies have that in \
                 them. Give it a core that nobody else has."
            ));
        }
        if self.is_busy() {
            // Less than half a per cent is none.
            let waited =
                if waited < 0.5 { String::new() } else { format!(" and waited for one {waited:.0} % of the time") };
            let busy = "The generator was the bottleneck: its busiest thread was at";
            return Some(format!("{busy} {busiest:.0} % of a core{waited} (--threads)."));
        }
        self.waits().then(|| {
            format!("The generator waited for a core {waited:.0} % of the time, and the latencies have that in them.")
        })
    }
}
