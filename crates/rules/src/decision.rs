//! What a rule answers: a reply, and what has to become true for the reply to be given.

use crate::events::{Event, Rejection};
use crate::id::{ClientId, FamilyId, GroupId, Kid, SessionId, UserId};
use crate::keys::Key;
use crate::login::session::Session;
use crate::login::throttle::Counted;
use crate::oauth::client::Client;
use crate::oauth::code::Code;
use crate::oauth::consent::Consent;
use crate::oauth::device::Device;
use crate::oauth::family::{Family, Rotation};
use crate::oauth::scope::Scope;
use crate::oauth::token::Opaque;
use crate::people::User;
use crate::people::user::Profile;
use crate::secret::Handle;
use crate::time::{Span, Time};
use crate::worker::Worker;

/// A reply and its changes. A refusal may carry changes too: the replay of a code is refused *and* revokes the family.
#[must_use]
#[derive(Debug)]
pub struct Decision<T, E> {
    /// What has to be committed, all or nothing, before the reply leaves.
    pub changes: Vec<Change>,
    /// What to answer then.
    pub reply: Result<T, E>,
}

impl<T, E> Decision<T, E> {
    /// Yes.
    pub fn accept(reply: T) -> Self {
        Decision { changes: Vec::new(), reply: Ok(reply) }
    }
    /// No.
    pub fn refuse(error: E) -> Self {
        Decision { changes: Vec::new(), reply: Err(error) }
    }
    /// And this has to happen.
    pub fn and(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }
    /// And these have to happen.
    pub fn with(mut self, changes: impl IntoIterator<Item = Change>) -> Self {
        self.changes.extend(changes);
        self
    }
    /// Only if the configuration is still the one that was seen; checked before anything else happens.
    pub fn at_epoch(mut self, seen: i64) -> Self {
        let standing = Standing { epoch: Some(seen), ..Standing::default() };
        self.changes.insert(0, Change::Stands(standing));
        self
    }
    /// The same changes with another reply.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Decision<U, E> {
        Decision { changes: self.changes, reply: self.reply.map(f) }
    }
}

/// Facts that must still hold when the batch commits: what was revoked first, stays revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// An enabled person.
    pub user: Option<UserId>,
    /// An enabled application.
    pub client: Option<ClientId>,
    /// And one that was not changed after this epoch: what it may no longer have is not issued to it.
    pub registered: Option<i64>,
    /// A session that was not ended.
    pub session: Option<SessionId>,
    /// And one with the secret that was proved: whoever holds a cookie of before a change of the password gets nothing more.
    pub handle: Option<Handle>,
    /// A family that was not revoked.
    pub family: Option<FamilyId>,
    /// A consent that was not taken back since it was given.
    pub consent: Option<(UserId, ClientId, Time)>,
    /// The stored password that was proved.
    pub password: Option<(UserId, String)>,
    /// The realm's configuration epoch: of two changes to clients or keys that saw the same, one has to look again.
    pub epoch: Option<i64>,
}

/// Something that becomes true, with the guard under which it may.
#[allow(missing_docs, reason = "the sentence above each variant names its fields")]
#[derive(Clone, Debug)]
pub enum Change {
    /// Nothing changes; these still stand, or the batch does not.
    Stands(Standing),

    /// A person comes in; fails when one of the login names is taken.
    AddUser(Box<User>),
    /// A person becomes the owner; fails when there is one.
    ClaimOwner(UserId),
    /// A new stored password; fails unless the old one is still the one that was seen.
    SetPassword { user: UserId, seen: Option<String>, password: String, at: Time },
    /// New standard claims; fails unless the old ones are still those that were seen.
    SetProfile { user: UserId, seen: Profile, profile: Profile, at: Time },
    /// Another address; its login name follows when it is verified. Fails where one was seen, and whether it was verified, and it
    /// is not that one any more.
    SetEmail { user: UserId, seen: Option<(Option<String>, bool)>, email: Option<String>, verified: bool, at: Time },
    /// May not sign in any more; or may again.
    SetDisabled { user: UserId, disabled_at: Option<Time>, at: Time },
    /// Gone, with all that is theirs.
    RemoveUser(UserId),
    /// A group comes in.
    AddGroup { group: GroupId, name: String },
    /// A group goes.
    RemoveGroup(GroupId),
    /// Somebody belongs to a group, or no longer.
    SetMember { group: GroupId, user: UserId, member: bool },

    /// A session begins.
    StartSession(Box<Session>),
    /// A session gets a new secret and sign-in time; fails when its secret is no longer the one that was seen.
    RaiseSession { session: Box<Session>, was: Handle },
    /// A session was used.
    TouchSession { session: SessionId, at: Time },
    /// A session ends.
    EndSession { session: SessionId, at: Time },
    /// All sessions of somebody end, but for one.
    EndSessionsOf { user: UserId, except: Option<SessionId>, at: Time },

    /// A code is issued.
    IssueCode(Box<Code>),
    /// A code is used up; fails when it was before.
    BurnCode { family: FamilyId, at: Time },
    /// Unused codes of somebody that were issued since then are used up.
    BurnCodesOf { user: UserId, since: Time, at: Time },
    /// Device approvals of somebody go, all or for one client.
    DropApprovalsOf { user: UserId, client: Option<ClientId> },
    /// A line of tokens begins.
    StartFamily(Box<Family>),
    /// A refresh token makes way for its successor; fails unless it is still the current one.
    RotateFamily { family: FamilyId, rotation: Rotation },
    /// A line of tokens ends.
    RevokeFamily { family: FamilyId, at: Time },
    /// Lines of tokens of somebody end: all, or of one client; those of one session may be spared.
    RevokeFamiliesOf { user: UserId, client: Option<ClientId>, except: Option<SessionId>, at: Time },
    /// An opaque access token is issued.
    IssueOpaque(Box<Opaque>),
    /// An opaque access token goes.
    DropOpaque(Handle),
    /// A single signed access token is refused from now until it expires.
    RevokeToken { jti: String, expires: Time },
    /// A client assertion was used; fails when it was before (RFC 7523 §3, `jti`), and where it may have been: a fence is up, and it
    /// is older.
    UseAssertion { client: ClientId, jti: Handle, issued: Time, expires: Time },
    /// Somebody lets an application in; fails when the consent that was seen before is another one by now.
    GrantConsent { consent: Box<Consent>, seen: Option<Scope> },
    /// Somebody no longer lets an application in.
    RevokeConsent { user: UserId, client: ClientId, at: Time },
    /// An application is being removed, and what people up to this one let it have goes first.
    DropConsents { client: ClientId, upto: UserId },

    /// A device asks.
    AskDevice(Box<Device>),
    /// A device polled in time; fails when it has polled since it was `seen` to.
    PollDevice { device: Handle, at: Time, seen: Option<Time> },
    /// A device polled too early, and has to wait longer.
    SlowDevice { device: Handle, at: Time, interval_s: i64 },
    /// A device's request is answered; fails when it was before. `None` denies.
    AnswerDevice { device: Handle, approval: Option<Box<crate::oauth::device::Approval>>, at: Time },
    /// A device's approval is used up; fails when it was before.
    RedeemDevice { device: Handle, at: Time },

    /// An attempt counts as failed until it is given back; fails when others were counted meanwhile.
    CountAttempt(Counted),
    /// An attempt turned out well.
    ForgetAttempts { key: Handle },
    /// An attempt was not made after all.
    GiveBack(Counted),
    /// A failure counts, whoever else counts at the same time.
    CountFailure { key: Handle, at: Time, leak: Span },
    /// A sign-in to an unknown name failed: one row per address and minute.
    CountStranger { address: String, at: Time },
    /// So many were refused from there: one row per minute, address and application.
    CountRejections { what: Rejection, address: String, at: Time, many: i64 },

    /// An application is registered; fails when the id is taken.
    AddClient(Box<Client>),
    /// An application is changed.
    SaveClient(Box<Client>),
    /// An application goes, with all that was issued to it.
    RemoveClient(ClientId),
    /// A key comes in.
    AddKey(Box<Key>),
    /// A key is published until then, or without an end.
    RetireKey { kid: Kid, until: Option<Time> },
    /// A key signs from then on.
    ActivateKey { kid: Kid, at: Time },
    /// A key is thrown out.
    RevokeKey { kid: Kid, at: Time },
    /// Caches of clients, keys and settings end here.
    BumpEpoch,

    /// A set-up link is good until then; older ones are not any more.
    OfferSetup { link: Handle, keep: Time, expires: Time },
    /// The set-up link is used up; fails when it is unknown or too old.
    UseSetup { link: Handle, now: Time },

    /// A token with which a worker is enrolled is good until then.
    OfferWorkerToken { token: Handle, now: Time, expires: Time },
    /// A worker is let in, and the token used up; fails when that is unknown or too old, or the name is taken.
    EnrollWorker { worker: Box<Worker>, token: Handle, now: Time },
    /// A worker gets another name; fails when it is taken.
    RenameWorker { worker: Handle, name: String },
    /// A worker is not let in any more.
    RemoveWorker(Handle),
    /// A worker is asked nothing any more; fails when that is so already.
    QuarantineWorker { worker: Handle, at: Time, why: String },
    /// A worker is asked again.
    TrustWorker(Handle),

    /// It is written down.
    Record(Event),
}

/// The error of a rule that never refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Never {}
