//! What the pool is compared with: other libraries, one thread per core, each as fast as it can be.

use std::{
    error::Error,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use argon2_rust::{
    __internal::{Arena, Instance, fill_first_blocks, fill_memory_blocks_traced, finalize, initial_hash},
    Algorithm, Argon2, Backend, Params, Version,
    params::{Memory, TagLen},
};
use hasher::{
    Level,
    argon2::{Block, Cost, H0, Params as OurParams, Tag, fill},
    bcrypt::{Flavor, Job, TAG_BYTES, crypt},
};

use crate::{PASSWORD, What, cores};

const SALT: [u8; 16] = [7; 16];

/// Computes one hash; false if that failed.
pub type Hash = Box<dyn FnMut() -> bool + Send>;

/// Hashes per second of plain calls, each of which allocates its own memory.
pub fn plain(what: What, span: Duration) -> Result<f64, Box<dyn Error>> {
    match what {
        What::Argon2 { memory, passes } => {
            let params = argon2::Params::new(memory, passes, 1, None).map_err(|error| error.to_string())?;
            let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
            Ok(rate(span, || {
                let argon2 = argon2.clone();
                move || argon2.hash_password_into(PASSWORD, &SALT, &mut [0; 32]).is_ok()
            }))
        }
        What::Bcrypt => Ok(rate(span, || || bcrypt::hash_with_salt(PASSWORD, 10, SALT).is_ok())),
    }
}

/// Hashes per second of `argon2-rust` with memory that is kept; `None` for what it does not support.
pub fn pooled(what: What, level: Level, span: Duration) -> Result<Option<f64>, Box<dyn Error>> {
    let What::Argon2 { memory, passes } = what else { return Ok(None) };
    let params = params(memory, passes)?;
    Ok(Some(rate(span, || one_by_one(params, level))))
}

/// One hash after the other by each kernel for one hash: ours, without a pool, and a library's. Their memory is warm
/// already.
pub fn alone(what: What, level: Level) -> Result<[(&'static str, Hash); 2], Box<dyn Error>> {
    let mut kernels: [(&'static str, Hash); 2] = match what {
        What::Argon2 { memory, passes } => {
            [("the kernel", own(memory, passes, level)?), ("argon2-rust", one_by_one(params(memory, passes)?, level))]
        }
        What::Bcrypt => {
            let theirs: Hash = Box::new(|| bcrypt::hash_with_salt(PASSWORD, 10, SALT).is_ok());
            [("the kernel", Box::new(own_bcrypt)), ("bcrypt", theirs)]
        }
    };
    for (_, hash) in &mut kernels {
        hash();
    }
    Ok(kernels)
}

fn own(memory: u32, passes: u32, level: Level) -> Result<Hash, Box<dyn Error>> {
    let params = OurParams::new(hasher::Algorithm::Argon2id, hasher::Version::V19, Cost::new(memory, passes, 1)?, 32)?;
    let mut memory = vec![Block::ZERO; params.memory_blocks()];
    Ok(Box::new(move || {
        let h0 = H0::new(&params, PASSWORD, &SALT, b"", b"");
        let mut tags = [Tag::default()];
        fill(level, &params, &[h0], &mut memory, &mut tags);
        !tags[0].is_empty()
    }))
}

fn own_bcrypt() -> bool {
    let job = Job { flavor: Flavor::B, key: PASSWORD.to_vec().into(), salt: SALT };
    let mut tags = [[0; TAG_BYTES]];
    crypt(10, &[job], &mut tags);
    tags[0] != [0; TAG_BYTES]
}

fn params(memory: u32, passes: u32) -> Result<Params, Box<dyn Error>> {
    let params = Params::builder().memory(Memory::kib(memory.into())).passes(passes).lanes(1).threads(1);
    Ok(params.tag_len(TagLen::bytes(32)).build().map_err(|error| format!("{error:?}"))?)
}

/// Computes one hash after the other in the same memory: with its pooled hasher or, with AVX-512 masked off, by the
/// same steps with its AVX2 kernel, which cannot be chosen in any other way.
fn one_by_one(params: Params, level: Level) -> Hash {
    if level == Level::best() {
        let mut hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hasher();
        return Box::new(move || hasher.hash_into(PASSWORD, &SALT, &mut [0; 32]).is_ok());
    }
    let mut arena = Arena::new(params.memory_blocks() as usize).ok();
    Box::new(move || arena.as_mut().is_some_and(|arena| masked(&params, arena).is_some()))
}

#[allow(unsafe_code, reason = "the only way to its AVX2 kernel on a CPU with AVX-512")]
fn masked(params: &Params, arena: &mut Arena) -> Option<[u8; 32]> {
    let mut seed = initial_hash(Algorithm::Argon2id, Version::V0x13, params, PASSWORD, &SALT, &[], &[]).ok()?;
    let (blocks, _, lane) = params.memory_layout();
    fill_first_blocks(&mut seed, arena.as_mut_slice(), 1, lane).ok()?;
    let memory = arena.as_mut_ptr();
    // SAFETY: the arena has `blocks` blocks, aligned, nobody else has it, and it outlives the instance.
    let instance = unsafe { Instance::new(memory, blocks as usize, Algorithm::Argon2id, Version::V0x13, params) };
    if !Backend::Avx2.is_available() {
        return None;
    }
    // SAFETY: this CPU has AVX2, and the instance is as it has to be.
    unsafe { fill_memory_blocks_traced(&instance, Backend::Avx2, None) }.ok()?;
    let mut tag = [0; 32];
    finalize(&instance, &mut tag).ok()?;
    Some(tag)
}

/// Hashes per second with one thread per core, each with its own value from `make`, all measured while all are busy.
fn rate<F: FnMut() -> bool>(span: Duration, make: impl Fn() -> F + Sync) -> f64 {
    let over = AtomicBool::new(false);
    let each = || {
        let mut hash = make();
        hash();
        let (begun, mut done) = (Instant::now(), 0);
        while !over.load(Ordering::Relaxed) && hash() {
            done += 1;
            if begun.elapsed() >= span {
                over.store(true, Ordering::Relaxed);
            }
        }
        f64::from(done) / begun.elapsed().as_secs_f64()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores()).map(|_| scope.spawn(each)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
    })
}
