//! The end of the chain as a node last saw it, kept by the node and not in the database: somebody who cuts the chain
//! there, or writes another one, cannot make the node believe that it was never longer.

use super::key::{Key, Keys};
use super::verify::Head;
use crate::secret::{from_hexadecimal, hexadecimal, same};
use serde::{Deserialize, Serialize};

/// Such an end, sealed under a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The end.
    pub head: Head,
    /// The key that this is sealed under: not always the block's.
    pub key: String,
    /// The code over all of this, in hexadecimal.
    code: String,
}

impl Mark {
    /// Seals an end under a key.
    pub fn seal(head: Head, key: &Key) -> Self {
        let code = hexadecimal(&code(&head, key));
        Mark { head, key: key.id().to_owned(), code }
    }

    /// Whether it is as it was sealed; `None` if its key is not here.
    pub fn is_sealed(&self, keys: &Keys) -> Option<bool> {
        let written = from_hexadecimal(&self.code).unwrap_or_default();
        keys.find(&self.key).map(|key| same(&code(&self.head, key), &written))
    }
}

fn code(head: &Head, key: &Key) -> [u8; 32] {
    let numbers = [head.block, head.lines, head.sealed_at.0].map(i64::to_be_bytes).concat();
    key.code(&[b"portiere audit mark 1", head.realm.as_bytes(), &numbers, head.mac.as_bytes(), head.key.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    #[test]
    fn every_edit_of_a_mark_is_seen() {
        let (ours, other) = (Key::new([7; 32].into()), Key::new([8; 32].into()));
        let keys = Keys { current: Some(ours.clone()), old: vec![] };
        let head = Head {
            realm: "main".into(),
            block: 3,
            lines: 9,
            mac: "0a".into(),
            key: ours.id().into(),
            sealed_at: Time(5),
        };
        let mark = Mark::seal(head.clone(), &ours);
        assert_eq!(mark.is_sealed(&keys), Some(true));
        for edited in [
            Head { realm: "mai".into(), ..head.clone() },
            Head { block: 2, ..head.clone() },
            Head { lines: 8, ..head.clone() },
            Head { mac: "0b".into(), ..head.clone() },
            Head { key: other.id().into(), ..head.clone() },
            Head { sealed_at: Time(4), ..head.clone() },
        ] {
            assert_eq!(Mark { head: edited, ..mark.clone() }.is_sealed(&keys), Some(false));
        }
        for code in ["", "zz", "00"] {
            assert_eq!(Mark { code: code.into(), ..mark.clone() }.is_sealed(&keys), Some(false));
        }
        assert_eq!(Mark::seal(head, &other).is_sealed(&keys), None);
    }
}
