//! What is written down: every sign-in, failure, token, consent and change, in the batch that makes it true.

use crate::id::{ClientId, SessionId, UserId};
use crate::time::Time;
use serde_json::{Map, Value};

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal),+ $(,)?) => {
        /// What happened.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind { $($(#[doc = $doc])* $variant),+ }
        impl Kind {
            /// Every kind there is.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),+];
            /// What happened, in a sentence.
            pub fn about(self) -> &'static str {
                match self { $(Kind::$variant => concat!($($doc),*).trim_ascii()),+ }
            }
            /// The event's name, as the audit log shows it.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name),+ }
            }
        }
    };
}

kinds! {
    /// A user signed in.
    SignedIn = "session.started",
    /// A user authenticated again in a session.
    Reauthenticated = "session.raised",
    /// A session was ended.
    SignedOut = "session.ended",
    /// A sign-in to a known account failed.
    SignInFailed = "signin.failed",
    /// An authorization code was issued.
    CodeIssued = "code.issued",
    /// An authorization code was presented again, or by someone it was not issued to.
    CodeMisused = "code.misused",
    /// Tokens were issued.
    TokensIssued = "tokens.issued",
    /// An outdated refresh token was presented.
    RefreshReused = "refresh.reused",
    /// Tokens were revoked.
    TokensRevoked = "tokens.revoked",
    /// An application was granted access.
    ConsentGranted = "consent.granted",
    /// An application asked for access, and the user denied it.
    ConsentDenied = "consent.denied",
    /// The access of an application was revoked.
    ConsentRevoked = "consent.revoked",
    /// A device's request was answered.
    DeviceAnswered = "device.answered",
    /// An account was created.
    UserAdded = "user.added",
    /// An account was changed.
    UserChanged = "user.changed",
    /// A password was changed.
    PasswordChanged = "user.password",
    /// An account was disabled.
    UserDisabled = "user.disabled",
    /// An account was enabled again.
    UserEnabled = "user.enabled",
    /// An account was removed.
    UserRemoved = "user.removed",
    /// An application was registered.
    ClientAdded = "client.added",
    /// An application was changed.
    ClientChanged = "client.changed",
    /// An application was removed.
    ClientRemoved = "client.removed",
    /// A group was added, changed or removed.
    GroupChanged = "group.changed",
    /// A signing key was added.
    KeyRotated = "key.rotated",
    /// A signing key was revoked.
    KeyRevoked = "key.revoked",
    /// A link that creates the first account was created.
    SetupOffered = "realm.setup_offered",
    /// The first account was created.
    SetUp = "realm.setup",
    /// A copy of the database was restored, and everything that had been issued in it was ended.
    Restored = "realm.restored",
    /// The database failed over in a way that may have lost acknowledged writes.
    FenceRaised = "fence.raised",
    /// A node replayed what it had acknowledged.
    FenceReplayed = "fence.replayed",
    /// An operator decided that the fence no longer waits for a node.
    FenceWaived = "fence.waived",
    /// The fence was lifted: it waits for no node any more.
    FenceLifted = "fence.lifted",
    /// A token was created that lets a hash worker enroll.
    WorkerOffered = "worker.offered",
    /// A hash worker was enrolled.
    WorkerEnrolled = "worker.enrolled",
    /// A hash worker was renamed.
    WorkerRenamed = "worker.renamed",
    /// A hash worker was revoked: it is not let in any more.
    WorkerRevoked = "worker.revoked",
    /// A hash worker gave a wrong answer and gets no more work.
    WorkerQuarantined = "worker.quarantined",
    /// An operator lets a quarantined hash worker work again.
    WorkerTrusted = "worker.trusted",
    /// A node started to serve; `starts` says how many starts an entry is about, if it is more than one.
    NodeStarted = "node.started",
    /// A node stopped, as it was told to.
    NodeStopped = "node.stopped",
    /// An operator took a node off the list of nodes.
    NodeForgotten = "node.forgotten",
    /// The database was copied into a file.
    DatabaseCopied = "database.copied",
    /// A command read audit log entries.
    AuditRead = "audit.read",
    /// The audit log is sealed under another key than before, and the previous key did not hand it over.
    AuditRekeyed = "audit.rekeyed",
    /// Audit log entries were removed that were not sealed, not delivered, or not what was sealed; `detail` says why.
    AuditDropped = "audit.dropped",
    /// An operator let the audit log continue although a node had seen a longer or a different log.
    AuditAccepted = "audit.accepted",
    /// An audit log entry was not delivered to a stream, because its receiver refused it for good.
    AuditSkipped = "audit.skipped",
    /// A stream of the audit log was set to another place; `after_block` is the block after which it continues.
    AuditMoved = "audit.moved",
    /// A stream of the audit log was given up.
    AuditForgotten = "audit.forgotten",
}

impl Kind {
    /// The kind of that name.
    pub fn named(name: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Whether somebody was refused: a failure, or the use of what is not theirs.
    pub fn is_refusal(self) -> bool {
        matches!(self, Kind::SignInFailed | Kind::CodeMisused | Kind::RefreshReused)
    }
}

/// What is refused to somebody who has not shown who they are. It has no line of its own, or anybody could fill the disk: it is
/// counted by minute, address and application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// A client did not prove who it is: this one, or one that is not there.
    Client(Option<ClientId>),
    /// Too much failed before, or this client asks too often: they have to wait.
    Throttled(Option<ClientId>),
    /// What only a later version counts, in its word, as there may be while nodes are upgraded.
    Later(Box<str>, Option<ClientId>),
}

impl Rejection {
    /// What it is about, in one word.
    pub fn name(&self) -> &str {
        match self {
            Rejection::Client(_) => "client",
            Rejection::Throttled(_) => "throttled",
            Rejection::Later(name, _) => name,
        }
    }
    /// Which application it is about.
    pub fn client(&self) -> Option<&ClientId> {
        match self {
            Rejection::Client(client) | Rejection::Throttled(client) | Rejection::Later(_, client) => client.as_ref(),
        }
    }
    /// The same about no application.
    pub fn of_anybody(&self) -> Self {
        match self {
            Rejection::Client(_) => Rejection::Client(None),
            Rejection::Throttled(_) => Rejection::Throttled(None),
            Rejection::Later(name, _) => Rejection::Later(name.clone(), None),
        }
    }
    /// As it is kept.
    pub fn text(&self) -> String {
        format!("{}:{}", self.name(), self.client().map_or("", ClientId::as_str))
    }
    /// Reads what [`Rejection::text`] wrote, of this version or a later one.
    pub fn read(text: &str) -> Self {
        let (name, client) = text.split_once(':').unwrap_or((text, ""));
        let client = Some(client).filter(|client| !client.is_empty()).map(ClientId::from);
        match name {
            "client" => Rejection::Client(client),
            "throttled" => Rejection::Throttled(client),
            later => Rejection::Later(later.into(), client),
        }
    }
}

/// One line of the audit log. It never holds a secret.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: Kind,
    /// When.
    pub at: Time,
    /// To whom.
    pub user: Option<UserId>,
    /// Through which application.
    pub client: Option<ClientId>,
    /// In which session.
    pub session: Option<SessionId>,
    /// From which address.
    pub address: Option<String>,
    /// In which request, as the log and the response call it.
    pub request: Option<String>,
    /// Anything else, as a JSON object.
    pub detail: Map<String, Value>,
}

impl Event {
    /// An event of that kind.
    pub fn new(kind: Kind, at: Time) -> Self {
        Event { kind, at, user: None, client: None, session: None, address: None, request: None, detail: Map::new() }
    }
    /// To whom.
    pub fn user(mut self, user: &UserId) -> Self {
        self.user = Some(user.clone());
        self
    }
    /// Through which application.
    pub fn client(mut self, client: &ClientId) -> Self {
        self.client = Some(client.clone());
        self
    }
    /// In which session.
    pub fn session(mut self, session: &SessionId) -> Self {
        self.session = Some(session.clone());
        self
    }
    /// From which address.
    pub fn address(mut self, address: &str) -> Self {
        self.address = Some(address.to_owned());
        self
    }
    /// One more detail.
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(name.to_owned(), value.into());
        self
    }
}
