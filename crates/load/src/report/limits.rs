//! Detects limits that the generator set, not the server.

use super::Report;
use crate::cpu::DISTURBED;
use crate::desk::RECONNECT;
use crate::wire::Fault;

impl Report {
    /// Returns true if the generator was the bottleneck: the result is its own limit, and not the server's alone.
    pub fn is_bound_by_generator(&self) -> bool {
        let own = self.is_busy() || self.is_starved() || self.lacks_users() || self.lacks_means();
        own || self.beside.iter().any(Report::is_bound_by_generator)
    }

    /// Returns true if the busiest thread of the generator had no time left.
    pub fn is_busy(&self) -> bool {
        self.generator_busiest + self.waited() >= Self::BOUND
    }

    /// Returns true if others had the cores for much of the time in which the generator had work to do. An open loop
    /// rests between its starts, so the generator may be late with all of them without being busy.
    pub fn is_starved(&self) -> bool {
        self.waited() >= Self::STARVED
    }

    /// Returns true if the generator waited for a core for so long that the latencies show it.
    pub fn waits(&self) -> bool {
        self.waited() >= Self::WAITS
    }

    /// Returns true if other programs kept the cores busy, or the host took them. What other programs did is unknown
    /// where the server's own share of it is.
    pub fn is_disturbed(&self) -> bool {
        self.by_programs().unwrap_or_default() + self.stolen().unwrap_or_default() > DISTURBED
    }

    /// Returns how many cores the host took, unless that rounds to none.
    pub(crate) fn stolen(&self) -> Option<f64> {
        self.stolen_cores.filter(|cores| *cores >= 0.005)
    }

    /// Returns how many cores other programs kept busy, where that can be told from the server.
    fn by_programs(&self) -> Option<f64> {
        self.others_cores.filter(|_| self.server.is_some())
    }

    /// Says who else had the cores, if they had them for long enough.
    fn disturbance(&self) -> Option<String> {
        let others = match (self.by_programs().filter(|cores| *cores >= 0.005), self.stolen()) {
            _ if !self.is_disturbed() => return None,
            (Some(cores), None) => format!("Other programs kept {cores:.2} cores busy meanwhile"),
            (Some(cores), Some(stolen)) => {
                format!("Other programs kept {cores:.2} cores busy meanwhile, and {stolen:.2} were taken by the host")
            }
            (None, stolen) => format!("{:.2} cores were taken by the host meanwhile", stolen.unwrap_or_default()),
        };
        Some(format!("{others}: the latencies have that in them."))
    }

    /// Returns true if the generator had hardly any work, and got no core even for that.
    pub(crate) fn is_kept_out(&self) -> bool {
        self.is_starved() && self.generator_busiest < Self::IDLE
    }

    /// Returns how many cores everything else kept busy, and what "everything else" covers.
    pub(crate) fn others_told(&self) -> Option<(f64, &'static str)> {
        let whose = match self.server {
            Some(_) => "other programs",
            None => "all else on this machine, the server included if it is there",
        };
        self.others_cores.map(|cores| (cores, whose))
    }

    /// Returns zero if the wait is unknown.
    fn waited(&self) -> f64 {
        self.generator_waited.unwrap_or_default()
    }

    /// Returns the share of the time, in percent, in which the generator was ready to run and had no core; `None` where
    /// it is unknown. Older results have 0 there.
    pub fn wait_of_generator(&self) -> Option<f64> {
        self.generator_waited.filter(|waited| *waited > 0.0).map(|waited| waited * 100.0)
    }

    /// Returns true if the generator's own lateness makes up a significant part of the latencies.
    pub fn is_late(&self) -> bool {
        let late = self.lateness.is_some_and(|late| late.p99 > Self::LATE * self.latency.p99);
        late && self.iterations > 0
    }

    /// Returns how much of the p99 the generator caused, in milliseconds.
    pub(crate) fn late_by(&self) -> f64 {
        self.lateness.map_or(0.0, |late| late.p99)
    }

    /// Returns true if an open loop had too few users for its rate at the measured latency.
    pub fn lacks_users(&self) -> bool {
        self.waited_for_users as f64 > Self::MAY_WAIT * (self.iterations + self.unanswered()) as f64
    }

    /// Returns true if the generator itself ran out of ports or files for connections: not failures of the server.
    pub fn lacks_means(&self) -> bool {
        let own = [Fault::NoFiles, Fault::NoPorts].map(|fault| fault.to_string());
        let own = self.failures.iter().filter(|failure| own.contains(&failure.reason)).map(|failure| failure.count);
        own.sum::<u64>() as f64 > Self::MAY_WAIT * (self.iterations + self.unanswered()) as f64
    }

    /// Says in sentences which limits the generator set, apart from the plans that ran [beside](Report::beside).
    pub fn limits_of_generator(&self) -> Vec<String> {
        let mut said = Vec::new();
        said.extend(self.want_of_a_core());
        said.extend(self.disturbance());
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
                "{count} starts waited for a free user, or found none by the end: raise --vus (w3 has four users for each \
                 stream: lower its --rate). The waits are in the latencies of those that began."
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

    /// Says how large the generator's own lateness is relative to the latencies, if that is worth a sentence.
    fn lateness_told(&self) -> Option<String> {
        let late = self.lateness.filter(|_| self.is_late())?.p99;
        let share = late / self.latency.p99 * 100.0;
        Some(format!(
            "The generator was late with its starts: the p99 of that is {late:.2} ms, {share:.0} % of the p99 of the latencies, which have \
             it in them."
        ))
    }

    /// Says how often users paused because there was no connection, if they did.
    fn rests(&self) -> Option<String> {
        (self.rested > 0).then(|| {
            let count = self.rested;
            format!(
                "Where no connection could be made a user paused for {RECONNECT:?} before the next try, {count} x: those pauses are \
                 in the rate."
            )
        })
    }

    /// Says how the generator competed for cores with everything else on the machine, if that is worth a sentence.
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
            // Less than half a percent rounds to zero.
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
