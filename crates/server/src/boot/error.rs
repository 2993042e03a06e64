//! Why the server does not run.

use crate::net::{ListenError, TlsError};
use app::Fault;
use store::moving::Trouble;

/// Why the server does not run.
#[derive(Debug)]
pub enum BootError {
    /// The data folder or its database is in use: a server runs on it.
    InUse,
    /// The configuration, or a file that it names, cannot be used: one sentence per problem. Only a correction helps.
    Wrong(Vec<String>),
    /// The database cannot be reached, does not answer, or is being moved: it may serve later.
    Away(String),
    /// Anything else, as a sentence for the operator.
    Other(String),
}

impl std::fmt::Display for BootError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BootError::InUse => f.write_str(
                "a server or a command works on this data folder: end it, or name another folder with --data",
            ),
            BootError::Wrong(problems) => f.write_str(&problems.join("\n")),
            BootError::Away(why) | BootError::Other(why) => f.write_str(why),
        }
    }
}

impl From<Fault> for BootError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unavailable(why) => BootError::Away(why),
            // Whatever a start sets up may be there already.
            Fault::InDoubt(_) => BootError::Away(fault.to_string()),
            Fault::Broken(why) | Fault::Foreign(why) => BootError::Other(why),
            other => BootError::Other(other.to_string()),
        }
    }
}
impl From<Trouble> for BootError {
    fn from(Trouble { why, is_away }: Trouble) -> Self {
        if is_away { BootError::Away(why) } else { BootError::Other(why) }
    }
}
impl From<ListenError> for BootError {
    fn from(error: ListenError) -> Self {
        BootError::Other(error.to_string())
    }
}
impl From<TlsError> for BootError {
    fn from(error: TlsError) -> Self {
        BootError::Other(error.to_string())
    }
}
