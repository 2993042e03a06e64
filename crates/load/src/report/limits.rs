//! Where the generator was what set a limit, and not the server.

use super::Report;
use crate::wire::Fault;

impl Report {
    /// True when the generator was the bottleneck: what it measured is its own limit, and not the server's alone.
    pub fn is_bound_by_generator(&self) -> bool {
        let own = self.is_busy() || self.lacks_users() || self.lacks_means();
        own || self.beside.iter().any(Report::is_bound_by_generator)
    }

    /// True when the busiest thread of the generator had no time left.
    pub fn is_busy(&self) -> bool {
        self.generator_busiest + self.generator_waited >= Self::BOUND
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
        if self.is_busy() {
            let [busiest, waited] = [self.generator_busiest, self.generator_waited].map(|share| share * 100.0);
            // Less than half a per cent is none.
            let waited =
                if waited < 0.5 { String::new() } else { format!(" and waited for one {waited:.0} % of the time") };
            said.push(format!(
                "The generator was the bottleneck: its busiest thread was at {busiest:.0} % of a core{waited} (--threads)."
            ));
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
        said
    }
}
