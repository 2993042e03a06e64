//! Places for workers.

use rules::secret::Handle;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Workers at a time.
const IN_ALL: usize = 256;
/// Of them with one key: a worker needs one, and has a second for a moment when it dials again. More than that would let
/// one machine keep the others out, or seem to be many.
const WITH_ONE_KEY: usize = 8;

/// Who is here, by key.
#[derive(Default)]
pub struct Places(Mutex<HashMap<Handle, usize>>);

/// A place, given back when it is dropped.
pub struct Seat {
    places: Arc<Places>,
    key: Handle,
}

impl Places {
    /// A place for a worker of this key; else why there is none.
    pub fn take(self: &Arc<Self>, key: Handle) -> Result<Seat, String> {
        let mut here = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = here.get(&key).copied().unwrap_or(0);
        if own >= WITH_ONE_KEY {
            return Err(format!("this worker is here {WITH_ONE_KEY} times already"));
        }
        if here.values().sum::<usize>() >= IN_ALL {
            return Err(format!("{IN_ALL} workers are here already"));
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

#[cfg(test)]
mod tests {
    use super::*;

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
