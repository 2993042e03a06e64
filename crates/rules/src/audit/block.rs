//! Blocks, and where their chain begins.

use super::Line;
use super::key::{Key, Keys};
use crate::id::RealmId;
use crate::secret::{from_hexadecimal, hexadecimal, same};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Lines that were sealed together, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number: 1 and upwards, without gaps.
    pub number: i64,
    /// The position of its first line in the whole log, from 1.
    pub first: i64,
    /// The position of its last line.
    pub last: i64,
    /// When its oldest line was written.
    pub oldest: Time,
    /// When its newest line was written.
    pub newest: Time,
    /// When it was sealed.
    pub sealed_at: Time,
    /// The key that it is sealed under.
    pub key: String,
    /// SHA-256 over its lines.
    pub digest: Vec<u8>,
    /// What tells which of its lines was changed: see [`Leaf`].
    pub leaves: Vec<u8>,
    /// The code of the previous block.
    pub before: Vec<u8>,
    /// Its code.
    pub mac: Vec<u8>,
}

/// What a block stores of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The line's id; of one that is longer, the first 255 bytes.
    pub id: Vec<u8>,
    /// The first half of its hash.
    pub hash: [u8; 16],
}

/// The end or the beginning of a chain: a block's number, its last position and its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The block.
    pub number: i64,
    /// The position of its last line.
    pub last: i64,
    /// Its code, in hexadecimal.
    pub mac: String,
}

/// The beginning of a chain whose oldest blocks were removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The newest block that was removed.
    pub number: i64,
    /// The position of its last line.
    pub last: i64,
    /// Its code.
    pub mac: Vec<u8>,
    /// When it was removed.
    pub removed_at: Time,
    /// The key that the checkpoint is sealed under.
    pub key: String,
    /// The code over all of this.
    pub seal: Vec<u8>,
}

impl Link {
    /// The link before the first block.
    pub fn beginning() -> Self {
        Link { number: 0, last: 0, mac: hexadecimal(&[0; 32]) }
    }
    /// Returns the code's bytes.
    pub fn code(&self) -> Vec<u8> {
        from_hexadecimal(&self.mac).unwrap_or_default()
    }
}

impl From<&Block> for Link {
    fn from(block: &Block) -> Self {
        Link { number: block.number, last: block.last, mac: hexadecimal(&block.mac) }
    }
}

impl From<&Checkpoint> for Link {
    fn from(checkpoint: &Checkpoint) -> Self {
        Link { number: checkpoint.number, last: checkpoint.last, mac: hexadecimal(&checkpoint.mac) }
    }
}

/// The realm, the key and the time of sealing.
pub struct Sealing<'a> {
    /// The realm.
    pub realm: &'a RealmId,
    /// The key to seal under.
    pub key: &'a Key,
    /// The time now.
    pub now: Time,
}

impl Sealing<'_> {
    /// Seals these lines, which it sorts, as the block that follows `end`.
    pub fn block(&self, end: &Link, lines: &mut [Line]) -> Block {
        lines.sort_by(|one, other| one.id.cmp(&other.id));
        let times = || lines.iter().map(|line| line.at);
        let mut block = Block {
            number: end.number + 1,
            first: end.last + 1,
            last: end.last + i64::try_from(lines.len()).unwrap_or(i64::MAX),
            oldest: times().min().unwrap_or(self.now),
            newest: times().max().unwrap_or(self.now),
            sealed_at: self.now,
            key: self.key.id().to_owned(),
            digest: digest(lines).to_vec(),
            leaves: leaves(lines),
            before: end.code(),
            mac: Vec::new(),
        };
        block.mac = block.code(self.realm, self.key).to_vec();
        block
    }

    /// Seals the fact that everything up to the block `until` was removed.
    pub fn checkpoint(&self, until: &Link) -> Checkpoint {
        let mut checkpoint = Checkpoint {
            number: until.number,
            last: until.last,
            mac: until.code(),
            removed_at: self.now,
            key: self.key.id().to_owned(),
            seal: Vec::new(),
        };
        checkpoint.seal = checkpoint.code(self.realm, self.key).to_vec();
        checkpoint
    }
}

impl Block {
    /// How many lines it has.
    pub fn lines(&self) -> i64 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }

    fn code(&self, realm: &RealmId, key: &Key) -> [u8; 32] {
        let numbers = [self.number, self.first, self.last, self.oldest.0, self.newest.0, self.sealed_at.0];
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        key.code(&[
            b"portiere audit block 1",
            realm.as_str().as_bytes(),
            &numbers,
            self.key.as_bytes(),
            &self.digest,
            &self.leaves,
            &self.before,
        ])
    }

    /// Whether it is as it was sealed; `None` if its key is not here.
    pub fn is_sealed(&self, realm: &RealmId, keys: &Keys) -> Option<bool> {
        keys.find(&self.key).map(|key| same(&self.code(realm, key), &self.mac))
    }

    /// Returns what it stores of its lines; `None` if that is not in the form that this program writes.
    pub fn leaves(&self) -> Option<Vec<Leaf>> {
        let (mut rest, mut leaves) = (self.leaves.as_slice(), Vec::new());
        while let Some((length, after)) = rest.split_first() {
            let (id, after) = after.split_at_checked(usize::from(*length))?;
            let (hash, after) = after.split_first_chunk::<16>()?;
            leaves.push(Leaf { id: id.to_vec(), hash: *hash });
            rest = after;
        }
        Some(leaves)
    }
}

impl Checkpoint {
    fn code(&self, realm: &RealmId, key: &Key) -> [u8; 32] {
        let numbers = [self.number, self.last, self.removed_at.0].map(i64::to_be_bytes).concat();
        let realm = realm.as_str().as_bytes();
        key.code(&[b"portiere audit checkpoint 1", realm, &numbers, self.key.as_bytes(), &self.mac])
    }

    /// Whether it is as it was sealed; `None` if its key is not here.
    pub fn is_sealed(&self, realm: &RealmId, keys: &Keys) -> Option<bool> {
        // Retention seals none before the first block, under whatever key.
        if self.number < 1 {
            return Some(false);
        }
        keys.find(&self.key).map(|key| same(&self.code(realm, key), &self.seal))
    }
}

/// Returns the SHA-256 over the lines, one after the other.
pub(super) fn digest(lines: &[Line]) -> [u8; 32] {
    let mut sum = Sha256::new();
    lines.iter().for_each(|line| sum.update(line.canonical()));
    sum.finalize().into()
}

/// The most bytes of an id that a block stores: their number is stored in one byte.
const STORED: usize = u8::MAX as usize;

/// Returns what a block stores of an id. Ours have 26 bytes, but somebody who writes into the database can give a line
/// a longer one, and the block that it comes into has to be proved like any other. Cut between bytes and not between
/// characters, so that what is stored has the order of the ids.
pub(super) fn stored(id: &str) -> &[u8] {
    &id.as_bytes()[..id.len().min(STORED)]
}

fn leaves(lines: &[Line]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(lines.len() * 43);
    for line in lines {
        let id = stored(&line.id);
        bytes.push(u8::try_from(id.len()).unwrap_or(u8::MAX));
        bytes.extend_from_slice(id);
        bytes.extend_from_slice(&line.hash()[..16]);
    }
    bytes
}
