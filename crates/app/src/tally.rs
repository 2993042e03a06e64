//! What use cases count, by how they ended. Every label is one of a few that are known beforehand.

use crate::Fault;
use rules::events::Kind;
use rules::oauth::client::Grant;
use rules::oauth::error::Code;
use std::marker::PhantomData;
use store::engine::CommitError;
use store::tally::Count;

/// A label: one of a few.
pub trait Label: Copy + 'static {
    /// All that there are.
    const ALL: &'static [Self];
    /// Its name in metrics.
    fn name(self) -> &'static str;
    /// Its place in [`Label::ALL`].
    fn place(self) -> usize;
}

/// Makes an enum whose variants are labels.
#[macro_export]
macro_rules! labels {
    ($(#[$about:meta])* $Name:ident { $($(#[$doc:meta])* $Variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Name { $($(#[$doc])* $Variant,)+ }

        impl $crate::tally::Label for $Name {
            const ALL: &'static [Self] = &[$($Name::$Variant),+];
            fn name(self) -> &'static str {
                match self { $($Name::$Variant => $name),+ }
            }
            fn place(self) -> usize {
                self as usize
            }
        }
    };
}

labels! {
    /// How a user's attempt to sign in or sign up ended.
    Entry {
        /// The user is in.
        Success = "success",
        /// A wrong name or password; at sign-up, names or a password that are not acceptable.
        Refused = "refused",
        /// Too many failures before.
        Throttled = "throttled",
        /// Too many passwords wait.
        Busy = "busy",
        /// The database could not be used, or something is broken.
        Failed = "failed",
    }
}

impl Entry {
    /// Returns the label of an attempt that was not completed.
    pub(crate) fn of(fault: &Fault) -> Self {
        match fault {
            Fault::Busy(_) => Entry::Busy,
            Fault::Over(_) => Entry::Throttled,
            Fault::Unavailable(_) | Fault::InDoubt(_) | Fault::Contended(_) => Entry::Failed,
            Fault::Broken(_) | Fault::Foreign(_) => Entry::Failed,
        }
    }
}

labels! {
    /// How a batch ended.
    Batch {
        /// It stands.
        Committed = "committed",
        /// Facts had changed: it was decided again.
        Conflict = "conflict",
        /// The database could not be written.
        Unavailable = "unavailable",
        /// It is not known whether it stands.
        Unknown = "unknown",
    }
}

impl Batch {
    pub(crate) fn of(outcome: &Result<(), CommitError>) -> Self {
        match outcome {
            Ok(()) => Batch::Committed,
            Err(CommitError::Conflict { .. }) => Batch::Conflict,
            Err(CommitError::Unavailable(_)) => Batch::Unavailable,
            Err(CommitError::Unknown(_)) => Batch::Unknown,
        }
    }
}

labels! {
    /// How tokens were issued.
    Issued {
        /// For a code.
        Code = "authorization_code",
        /// For a refresh token.
        Refresh = "refresh_token",
        /// To a client itself.
        Client = "client_credentials",
        /// To a device.
        Device = "device_code",
        /// By a sign-in through the account API.
        FirstParty = "account_api",
    }
}

impl From<Grant> for Issued {
    fn from(grant: Grant) -> Self {
        match grant {
            Grant::AuthorizationCode => Issued::Code,
            Grant::RefreshToken => Issued::Refresh,
            Grant::ClientCredentials => Issued::Client,
            Grant::DeviceCode => Issued::Device,
        }
    }
}

labels! {
    /// What is kept in memory.
    Cached {
        /// Clients.
        Clients = "clients",
        /// Signing keys.
        Keys = "keys",
        /// Tokens whose signature was checked.
        Tokens = "tokens",
        /// Origins of applications.
        Origins = "origins",
    }
}

impl Label for Kind {
    const ALL: &'static [Self] = Kind::ALL;
    fn name(self) -> &'static str {
        Kind::name(self)
    }
    fn place(self) -> usize {
        self as usize
    }
}

impl Label for Code {
    const ALL: &'static [Self] = Code::ALL;
    fn name(self) -> &'static str {
        Code::name(self)
    }
    fn place(self) -> usize {
        self as usize
    }
}

/// One count for each label.
pub struct By<L>(Box<[Count]>, PhantomData<fn(L)>);

impl<L: Label> Default for By<L> {
    fn default() -> Self {
        By(L::ALL.iter().map(|_| Count::default()).collect(), PhantomData)
    }
}

impl<L: Label> By<L> {
    /// Counts one more.
    pub fn one(&self, label: L) {
        self.0[label.place()].one();
    }
    /// Returns every label with its count.
    pub fn sums(&self) -> impl Iterator<Item = (&'static str, u64)> {
        L::ALL.iter().zip(&self.0).map(|(label, count)| (label.name(), count.sum()))
    }
}

/// What the use cases of a realm have done since the start.
#[derive(Default)]
pub struct Tally {
    /// Attempts to sign in with a password.
    pub sign_ins: By<Entry>,
    /// Attempts to make an account.
    pub sign_ups: By<Entry>,
    /// Answers with tokens in them.
    pub tokens: By<Issued>,
    /// Batches of requests.
    pub batches: By<Batch>,
    /// Audit entries.
    pub events: By<Kind>,
    /// What was asked for and was in memory.
    pub hits: By<Cached>,
    /// What was asked for and had to be read.
    pub misses: By<Cached>,
}
