//! Where work comes from, so that the audit log can say so, and what a request found out on its way.

use crate::App;
use crate::rates::{Over, Standing};
use rules::events::Event;
use rules::login::throttle::counted_as;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Who, or what, asked for the work.
#[derive(Clone, Debug)]
enum Source {
    /// A request with that id, from that address.
    Request(Arc<str>, IpAddr, Arc<Mutex<Found>>),
    /// An operator at the machine, by a command; their user id there.
    Operator(u32),
    /// Nobody: the work was due.
    Upkeep,
}

/// What a request found out, for whatever else is done for it.
#[derive(Debug, Default)]
struct Found {
    /// The epoch by which the request is judged.
    epoch: Option<i64>,
    /// The generation of the database server that answered when the request arrived.
    generation: u64,
    /// How its client stands under its rate limit.
    standing: Option<Standing>,
    /// Whether its client is over that limit.
    is_over: bool,
}

tokio::task_local! {
    static SOURCE: Option<Source>;
}

impl App {
    /// Does `work` as part of the request with that id, which arrived from that address just now.
    pub fn within<F: Future>(
        &self,
        request: Arc<str>,
        address: IpAddr,
        work: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let found = Found { generation: self.engine.generation(), ..Found::default() };
        SOURCE.scope(Some(Source::Request(request, address, Arc::new(Mutex::new(found)))), work)
    }
}

/// Does `work` for a command of that user of the machine.
pub fn by_operator<F: Future>(uid: u32, work: F) -> impl Future<Output = F::Output> {
    SOURCE.scope(Some(Source::Operator(uid)), work)
}

/// Does `work` because it is due.
pub(crate) fn in_upkeep<F: Future>(work: F) -> impl Future<Output = F::Output> {
    SOURCE.scope(Some(Source::Upkeep), work)
}

/// Carries the present source along with `work`, wherever that is run.
pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    SOURCE.scope(SOURCE.try_with(Clone::clone).ok().flatten(), work)
}

/// Returns the address that the request came from, as it is counted; empty outside of a request.
pub(crate) fn address() -> String {
    match SOURCE.try_with(Clone::clone) {
        Ok(Some(Source::Request(_, address, _))) => counted_as(address),
        _ => String::new(),
    }
}

/// Reads or changes what this request found out; `None` outside of a request.
fn found<T>(with: impl FnOnce(&mut Found) -> T) -> Option<T> {
    let look = |source: &Option<Source>| match source {
        Some(Source::Request(_, _, found)) => Some(with(&mut found.lock().unwrap_or_else(PoisonError::into_inner))),
        _ => None,
    };
    SOURCE.try_with(look).ok().flatten()
}

/// Notes the epoch that this request has read, and by which it is judged.
pub(crate) fn judged_at(epoch: i64) {
    found(|found| found.epoch = Some(epoch));
}

/// Returns the epoch that this request has already read: whatever else is asked for it need not read it again.
pub(crate) fn epoch() -> Option<i64> {
    found(|found| found.epoch).flatten()
}

/// Returns the generation of the database server that answered when this request arrived.
pub(crate) fn generation() -> Option<u64> {
    found(|found| found.generation)
}

/// Notes how the client of this request stands under its rate limit, once the request was counted.
pub(crate) fn stands(counted: &Result<Standing, Over>) {
    found(|found| {
        found.standing = Some(counted.map_or_else(|over| over.standing, |standing| standing));
        found.is_over = counted.is_err();
    });
}

/// Returns how the client of this request stands under its rate limit, if it has one.
pub fn standing() -> Option<Standing> {
    found(|found| found.standing).flatten()
}

/// Whether the client of this request was authenticated and refused for its own rate: no other has a part in that.
pub fn is_over_its_rate() -> bool {
    found(|found| found.is_over).unwrap_or(false)
}

/// Notes on an event in which request it happened and from where, or who caused it.
pub(crate) fn sign(event: &mut Event) {
    let Ok(Some(source)) = SOURCE.try_with(Clone::clone) else { return };
    let mut by = |who: &str| {
        event.detail.entry("by").or_insert_with(|| who.into());
    };
    match source {
        Source::Request(id, address, _) => {
            event.request = Some(id.to_string());
            event.address.get_or_insert_with(|| address.to_string());
        }
        Source::Operator(uid) => {
            by("operator");
            event.detail.insert("uid".to_owned(), uid.into());
        }
        Source::Upkeep => by("upkeep"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_ipv6_is_counted_as_one() {
        // Red with `address.to_string()` in `address`: one subscriber would take the rows of all others.
        for (from, wanted) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("64:ff9b::192.0.2.7", "192.0.2.7"),
            ("2001:db8:0:5:1::1", "2001:db8:0:5::/64"),
            ("2001:db8:0:5::2", "2001:db8:0:5::/64"),
            ("2001:db8:0:6::2", "2001:db8:0:6::/64"),
        ] {
            let asked = Source::Request("r1".into(), from.parse().unwrap(), Arc::default());
            assert_eq!(SOURCE.sync_scope(Some(asked), address), wanted, "{from}");
        }
    }
}
