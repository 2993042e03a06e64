//! The audit log as a chain of blocks, so that whoever changes the database alone cannot change the log unseen.
//!
//! A line is written by the batch that it records and sealed a moment later: it is given a block, and never another one.
//! A block has a hash over its lines and a code (HMAC-SHA-256) over itself and the code of the block before it, under a
//! key that is not in the database. What retention takes out is whole blocks, the oldest first, and a [`Checkpoint`] says
//! under the same key where the chain begins since then.

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

/// A line of the audit log as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its id; later lines have greater ones, to the millisecond.
    pub id: String,
    /// When.
    pub at: Time,
    /// What happened.
    pub kind: String,
    /// To whom.
    pub user: Option<String>,
    /// Through which application.
    pub client: Option<String>,
    /// In which session.
    pub session: Option<String>,
    /// From where.
    pub address: Option<String>,
    /// In which request.
    pub request: Option<String>,
    /// Anything else, as a JSON object.
    pub detail: String,
    /// The block that it was sealed in; 0 before that.
    pub block: i64,
}

impl Line {
    /// What is sealed of it: every column but the block, each with its length, so that no two lines give the same bytes.
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

    /// SHA-256 of that.
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
