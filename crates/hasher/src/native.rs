//! Connects the kernels to the pool: what one hashing thread computes with, in memory that it keeps.

use std::time::Duration;

use zeroize::Zeroizing;

use crate::{
    arena::Arena,
    argon2::{self, H0, Params},
    bcrypt,
    courtesy::Courtesy,
    cpu::Level,
    job::{Input, Kind, Tag},
    took,
};

/// Computes tags on one thread, in memory that it may keep from one batch to the next.
pub(crate) trait Kernel {
    /// Computes the tags of `inputs`, which are all of this kind and no more than [`Kind::most_together`].
    ///
    /// # Errors
    /// [`Fault`] when there is no memory for them.
    fn tags(&mut self, kind: Kind, inputs: &[Input]) -> Result<Vec<Tag>, Fault>;
    /// Memory that it keeps, in KiB.
    fn held(&self) -> u64;
    /// Gives memory beyond `kib` KiB back to the system, which wipes it; up to 2 MiB more may be kept, unless `kib` is
    /// 0. A batch that needs more maps it again.
    fn keep(&mut self, kib: u64);
    /// How long its thread ran since it started. `None` where that is not known: all the time.
    fn ran(&self) -> Option<Duration> {
        None
    }
}

/// A tag could not be computed; nothing is known about the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault;

/// The kernels of this crate.
pub(crate) struct Native {
    level: Level,
    arena: Arena,
    courtesy: Courtesy,
    /// The most that was requested from the arena, in KiB; the arena rounds that up to whole pages.
    held: u64,
}

impl Native {
    /// With the vector instructions of `level`.
    pub(crate) fn new(level: Level) -> Self {
        Native { level, arena: Arena::new(), courtesy: Courtesy::new(), held: 0 }
    }

    fn argon2(&mut self, params: &Params, inputs: &[Input]) -> Result<Vec<Tag>, Fault> {
        let h0s: Vec<H0> = inputs.iter().map(Input::h0).collect::<Option<_>>().ok_or(Fault)?;
        let memory = self.arena.blocks(h0s.len() * params.memory_blocks());
        let Ok(memory) = memory else {
            self.held = 0;
            return Err(Fault);
        };
        self.held = self.held.max(memory.len() as u64);
        let mut tags = vec![Zeroizing::new(vec![0; params.tag_bytes as usize]); h0s.len()];
        let pause = &mut || self.courtesy.offer();
        argon2::fill_with_pauses(self.level, params, &h0s, (memory, &mut tags), pause);
        Ok(tags)
    }
}

impl Kernel for Native {
    fn tags(&mut self, kind: Kind, inputs: &[Input]) -> Result<Vec<Tag>, Fault> {
        match kind {
            Kind::Argon2(params) => self.argon2(&params, inputs),
            Kind::Bcrypt { cost } => together(cost, inputs, &mut || self.courtesy.offer()),
            Kind::Serial(serial) => {
                let one = |input: &Input| match input {
                    Input::Serial { password, salt } => serial.tag(password, salt),
                    Input::Argon2(_) | Input::Bcrypt(_) => None,
                };
                inputs.iter().map(|input| one(input).ok_or(Fault)).collect()
            }
        }
    }

    fn held(&self) -> u64 {
        self.held
    }

    fn keep(&mut self, kib: u64) {
        self.arena.keep(usize::try_from(kib).unwrap_or(usize::MAX));
        self.held = self.held.min(self.arena.len() as u64);
    }

    fn ran(&self) -> Option<Duration> {
        took::ran()
    }
}

fn together(cost: u32, inputs: &[Input], pause: &mut dyn FnMut()) -> Result<Vec<Tag>, Fault> {
    let jobs: Vec<bcrypt::Job> = inputs.iter().map(Input::bcrypt).collect::<Option<_>>().ok_or(Fault)?;
    let mut tags = Zeroizing::new(vec![[0; bcrypt::TAG_BYTES]; jobs.len()]);
    bcrypt::crypt_with_pauses(cost, &jobs, &mut tags, pause);
    Ok(tags.iter().map(|tag| Zeroizing::new(tag.to_vec())).collect())
}

impl Input {
    fn h0(&self) -> Option<H0> {
        match self {
            Input::Argon2(h0) => Some(h0.clone()),
            Input::Bcrypt(_) | Input::Serial { .. } => None,
        }
    }
    fn bcrypt(&self) -> Option<bcrypt::Job> {
        match self {
            Input::Bcrypt(job) => Some(bcrypt::Job { flavor: job.flavor, key: job.key.clone(), salt: job.salt }),
            Input::Argon2(_) | Input::Serial { .. } => None,
        }
    }
}

/// An input of this kind to measure with, another for each `number`. `None` for kinds that run one at a time.
pub(crate) fn sample(kind: Kind, number: u8) -> Option<Input> {
    match kind {
        Kind::Argon2(_) => Some(Input::Argon2(H0::from_bytes(&[number; 64]))),
        Kind::Bcrypt { .. } => {
            let key = Zeroizing::new(vec![number; 16]);
            Some(Input::Bcrypt(bcrypt::Job { flavor: bcrypt::Flavor::B, key, salt: [number; 16] }))
        }
        Kind::Serial(_) => None,
    }
}
