//! What operators do: manage people, applications, groups and keys.

pub mod changed;
pub mod clients;
pub mod groups;
pub mod hashes;
pub mod keys;
pub mod restore;
pub mod users;
pub mod workers;

/// Why a change was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// A sentence for the operator.
    pub why: String,
    /// What kind of reason it is, for programs.
    pub ground: Ground,
}

/// The kinds of reasons for which a change is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// It is not allowed.
    Rule,
    /// What was named does not exist.
    Missing,
    /// Something of that name exists already.
    Taken,
}

impl Refused {
    /// Refuses what is not allowed.
    pub fn new(why: impl Into<String>) -> Self {
        Refused { why: why.into(), ground: Ground::Rule }
    }
    /// Refuses a change of what does not exist.
    pub fn missing(why: impl Into<String>) -> Self {
        Refused { why: why.into(), ground: Ground::Missing }
    }
    /// Refuses to make what exists already.
    pub fn taken(why: impl Into<String>) -> Self {
        Refused { why: why.into(), ground: Ground::Taken }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.why)
    }
}
