//! What is wrong with the configured keys, in words that name them and say nothing of their bytes.

use std::fmt;

use super::{KeyId, Role};

/// Why these keys cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysError {
    /// A key of this role repeats another one.
    Repeated(Role, Twice),
    /// The key has no bytes.
    Empty(Role, KeyId),
    /// A bound verifier needs a pepper: without one, a worker that computes tags could guess passwords.
    BindingWithoutPepper,
    /// The key is not the one that was used under this name before.
    Wrong(Role, KeyId),
    /// A key that was used before is missing.
    Missing(Role, KeyId),
}

/// How a key repeats another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Twice {
    /// Another key of its role has this id, too.
    Name(KeyId),
    /// Another key has the same bytes, under another name.
    Bytes {
        /// Its id.
        id: KeyId,
        /// Role and id of the other key.
        of: (Role, KeyId),
    },
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (problem, role, id) = match self {
            KeysError::BindingWithoutPepper => return f.write_str("a binding key needs a pepper beside it"),
            KeysError::Repeated(role, Twice::Name(id)) => ("is configured twice", role, id),
            KeysError::Repeated(role, Twice::Bytes { id, of: (other, of) }) => {
                let (one, another) = (shown(*role, *id), shown(*other, *of));
                return write!(f, "{one} is the same secret as {another}: each needs one of its own");
            }
            KeysError::Empty(role, id) => ("is empty", role, id),
            KeysError::Wrong(role, id) => ("is not the one that stored hashes were made with", role, id),
            KeysError::Missing(role, id) => ("was used for stored hashes and is missing", role, id),
        };
        write!(f, "{} {problem}", shown(*role, *id))
    }
}

/// Role and name, the name as it was chosen where that is text.
fn shown(role: Role, id: KeyId) -> String {
    let name = std::str::from_utf8(id.as_bytes()).ok().filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic()));
    let name = name.map_or_else(|| id.to_string(), str::to_owned);
    format!("the {} key {name}", role.name())
}

impl std::error::Error for KeysError {}
