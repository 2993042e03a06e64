//! Places for workers, and for callers that have not yet shown to be workers.

use crate::net::{Caps, Place};
use rules::secret::Handle;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most workers at a time.
const IN_ALL: usize = 256;
/// The most workers with one key: a worker needs one place, and has a second for a moment when it dials again. With
/// more, one machine could keep the others out, or seem to be many.
const WITH_ONE_KEY: usize = 8;

/// The workers that are here, by key.
#[derive(Default)]
pub struct Places(Mutex<HashMap<Handle, usize>>);

/// A place, released when it is dropped.
pub struct Seat {
    places: Arc<Places>,
    key: Handle,
}

impl Places {
    /// Takes a place for a worker with this key; the error says why there is none.
    pub fn take(self: &Arc<Self>, key: Handle) -> Result<Seat, String> {
        let mut here = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = here.get(&key).copied().unwrap_or(0);
        if own >= WITH_ONE_KEY {
            return Err(format!("this worker is connected {WITH_ONE_KEY} times already"));
        }
        if here.values().sum::<usize>() >= IN_ALL {
            return Err(format!("{IN_ALL} workers are connected already"));
        }
        here.insert(key, own + 1);
        Ok(Seat { places: Arc::clone(self), key })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut here = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        match here.get_mut(&self.key) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(here.remove(&self.key)),
        }
    }
}

/// How many callers may stand at the doorstep, in all and from one address.
const KNOCKING: (usize, usize) = (64, 8);

/// Callers that have not yet shown to be workers. If there are many, a newcomer takes the place of a caller that has
/// said nothing, or else of the one that has stood there longest: a worker speaks at once and shows what it is within
/// moments, so silent strangers keep no worker out, from however many addresses they come.
pub struct Doorstep {
    /// Twice as many, since a caller that is told to leave is gone only a moment later.
    caps: Arc<Caps>,
    standing: Mutex<VecDeque<Standing>>,
}

/// One of the callers.
struct Standing {
    leave: Arc<Notify>,
    has_spoken: bool,
}

/// A place at the doorstep, released when it is dropped: when the caller is let in, or leaves.
pub struct Knock {
    step: Arc<Doorstep>,
    leave: Arc<Notify>,
    _place: Place,
}

impl Knock {
    /// Notes that the caller has begun to speak.
    pub fn speaks(&self) {
        let mut standing = self.step.standing();
        if let Some(own) = standing.iter_mut().find(|one| Arc::ptr_eq(&one.leave, &self.leave)) {
            own.has_spoken = true;
        }
    }
}

impl Doorstep {
    /// Returns an empty doorstep.
    pub fn new() -> Arc<Self> {
        let caps = Caps::new(2 * KNOCKING.0, KNOCKING.1, Vec::new());
        Arc::new(Doorstep { caps, standing: Mutex::default() })
    }

    /// Returns a place for a caller from `address`, and what tells the caller to leave it.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Option<(Knock, Arc<Notify>)> {
        let place = self.caps.admit(address).ok()?;
        let leave = Arc::new(Notify::new());
        let mut standing = self.standing();
        if standing.len() >= KNOCKING.0 {
            let silent = standing.iter().position(|one| !one.has_spoken).unwrap_or(0);
            if let Some(makes_way) = standing.remove(silent) {
                makes_way.leave.notify_one();
            }
        }
        standing.push_back(Standing { leave: Arc::clone(&leave), has_spoken: false });
        drop(standing);
        Some((Knock { step: Arc::clone(self), leave: Arc::clone(&leave), _place: place }, leave))
    }

    fn standing(&self) -> MutexGuard<'_, VecDeque<Standing>> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Knock {
    fn drop(&mut self) {
        self.step.standing().retain(|one| !Arc::ptr_eq(&one.leave, &self.leave));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    #[tokio::test]
    async fn who_says_nothing_makes_way() {
        let step = Doorstep::new();
        let address = |number: usize| IpAddr::from(Ipv4Addr::new(192, 0, 2, number as u8));
        let mut here: Vec<_> = (0..KNOCKING.0).map_while(|number| step.admit(address(number / KNOCKING.1))).collect();
        assert_eq!(here.len(), KNOCKING.0);
        assert!(step.admit(address(0)).is_none(), "too many from one address");
        // One caller was let in meanwhile, and is told nothing any more. Red without `drop` of Knock.
        let (inside, quiet) = here.remove(0);
        drop(inside);
        // Red without `has_spoken`: the caller that has begun to speak would go.
        here[0].0.speaks();
        let newcomers: Vec<_> = (0..2).map_while(|number| step.admit(address(100 + number))).collect();
        assert_eq!(newcomers.len(), 2);
        // Red without `notify_one`.
        let told = |leave: Arc<Notify>| async move {
            tokio::time::timeout(Duration::from_millis(100), leave.notified()).await.is_ok()
        };
        assert!(told(Arc::clone(&here[1].1)).await);
        assert!(!told(Arc::clone(&here[0].1)).await && !told(Arc::clone(&here[2].1)).await && !told(quiet).await);
        drop((here, newcomers));
        assert_eq!((step.standing().len(), step.caps.open()), (0, 0));
    }

    #[test]
    fn one_key_has_few_places_and_all_have_many() {
        let (places, key) = (Arc::new(Places::default()), |number: u8| Handle([number; 32]));
        // Red without `own >= WITH_ONE_KEY`.
        let mut own: Vec<Seat> = (0..WITH_ONE_KEY).map_while(|_| places.take(key(0)).ok()).collect();
        assert_eq!(own.len(), WITH_ONE_KEY);
        assert!(places.take(key(0)).is_err_and(|why| why.contains("8 times")));
        // Red without `drop`.
        own.pop();
        own.extend(places.take(key(0)).ok());
        assert_eq!(own.len(), WITH_ONE_KEY);
        let others: Vec<Seat> = (8..=u8::MAX).map_while(|number| places.take(key(number)).ok()).collect();
        assert_eq!(own.len() + others.len(), IN_ALL);
        assert!(places.take(key(1)).is_err_and(|why| why.contains("256 workers")));
        drop((own, others));
        assert!(places.0.lock().unwrap().is_empty());
    }
}
