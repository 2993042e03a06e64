//! The audit log as a chain of blocks, so that somebody who can change only the database cannot change the log unseen.
//!
//! A batch writes the line that records it. The line is sealed a moment later: it is assigned to a block, for good. A
//! block has a hash over its lines and a code (HMAC-SHA-256) over itself and the previous block's code, under a key
//! that is not in the database. Retention removes whole blocks, the oldest first; a [`Checkpoint`] under the same key
//! then says where the chain begins.

mod block;
mod key;
mod mark;
#[cfg(test)]
mod tests;
mod verify;

pub use block::{Block, Checkpoint, Leaf, Link, Sealing};
pub use key::{Key, Keys};
pub use mark::Mark;
pub use verify::{Finding, Head, Told, Verifier};

use crate::time::Time;
use sha2::{Digest, Sha256};

/// A line of the audit log, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its id; later lines have greater ids, to the millisecond.
    pub id: String,
    /// When it happened.
    pub at: Time,
    /// What happened.
    pub kind: String,
    /// The user concerned.
    pub user: Option<String>,
    /// The client through which it happened.
    pub client: Option<String>,
    /// The session in which it happened.
    pub session: Option<String>,
    /// The address that it came from.
    pub address: Option<String>,
    /// The request in which it happened.
    pub request: Option<String>,
    /// Anything else, as a JSON object.
    pub detail: String,
    /// The block that it is sealed in; 0 before it is sealed.
    pub block: i64,
}

impl Line {
    /// The bytes to seal: every column but the block, each with its length, so that no two lines give the same bytes.
    pub fn canonical(&self) -> Vec<u8> {
        let mut bytes = b"portiere audit line 1\0".to_vec();
        put(&mut bytes, Some(self.id.as_bytes()));
        put(&mut bytes, Some(&self.at.0.to_be_bytes()));
        put(&mut bytes, Some(self.kind.as_bytes()));
        for column in [&self.user, &self.client, &self.session, &self.address, &self.request] {
            put(&mut bytes, column.as_deref().map(str::as_bytes));
        }
        put(&mut bytes, Some(self.detail.as_bytes()));
        bytes
    }

    /// Returns the SHA-256 of [`Line::canonical`].
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.canonical()).into()
    }
}

fn put(bytes: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => bytes.push(0),
        Some(value) => {
            bytes.push(1);
            bytes.extend_from_slice(&(value.len() as u64).to_be_bytes());
            bytes.extend_from_slice(value);
        }
    }
}
