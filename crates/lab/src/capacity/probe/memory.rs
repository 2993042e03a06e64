//! Memory bandwidth: of one core alone, and beside cores that hash.

use super::hash::no_memory;
use crate::capacity::figure::Figure;
use hasher::{Policy, tune};
use load::Refusal;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

/// How fast memory is copied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// GB per second that one core reads and writes while the others rest.
    pub alone: Figure,
    /// The same while every other core hashes; `None` on a machine with one core.
    pub under_hashing: Option<Figure>,
}

/// Larger than the caches of most machines.
const BUFFER: usize = 96 << 20;
const SPAN: Duration = Duration::from_millis(200);

/// Measures memory, sample by sample.
pub struct Probe {
    from: Vec<u64>,
    to: Vec<u64>,
    others: usize,
    alone: Vec<f64>,
    under_hashing: Vec<f64>,
}

impl Probe {
    /// Prepares to measure beside this many hashing cores.
    ///
    /// # Errors
    /// [`Refusal::Failure`] if there is no memory for the buffers.
    pub fn new(others: usize) -> Result<Probe, Refusal> {
        let words = BUFFER / size_of::<u64>();
        let filled = |with: u64| {
            let mut buffer = Vec::new();
            buffer.try_reserve_exact(words).map_err(|_| no_memory(BUFFER as u64))?;
            buffer.resize(words, with);
            Ok(buffer)
        };
        let (from, to) = (filled(1)?, filled(2)?);
        Ok(Probe { from, to, others, alone: vec![], under_hashing: vec![] })
    }

    /// Takes one more sample of everything; each hashing core runs `together` passwords side by side.
    pub fn round(&mut self, together: usize) {
        let alone = self.copy();
        self.alone.push(alone);
        let others = self.others;
        if others > 0 {
            let under = thread::scope(|scope| {
                let hashing = scope.spawn(move || {
                    tune::rate(Policy::default().cost(), (others, together), SPAN * 2);
                });
                // They begin by mapping their memory.
                thread::sleep(SPAN / 4);
                let rate = self.copy();
                // Their own rate does not matter.
                let _ = hashing.join();
                rate
            });
            self.under_hashing.push(under);
        }
    }

    /// Returns GB per second, read and written.
    fn copy(&mut self) -> f64 {
        let (begun, mut bytes) = (Instant::now(), 0);
        while begun.elapsed() < SPAN {
            self.to.copy_from_slice(black_box(&self.from));
            black_box(&mut self.to);
            bytes += 2 * BUFFER;
        }
        bytes as f64 / begun.elapsed().as_secs_f64() / 1e9
    }

    /// Returns the results.
    pub fn done(self) -> Memory {
        let under = (!self.under_hashing.is_empty()).then(|| Figure::of(&self.under_hashing));
        Memory { alone: Figure::of(&self.alone), under_hashing: under }
    }
}
