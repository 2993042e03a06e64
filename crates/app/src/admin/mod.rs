//! What operators do: manage people, applications, groups and keys.

pub mod changed;
pub mod clients;
pub mod groups;
pub mod hashes;
pub mod keys;
pub mod restore;
pub mod users;
pub mod workers;

/// Why a change was not made, in a sentence for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl Refused {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Refused(why.into())
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
