//! The answer of a rule: a reply, and the changes that must be committed before the reply may be given.

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
use crate::secret::{Handle, PasswordHash};
use crate::time::{Span, Time};
use crate::worker::Worker;

/// A reply and its changes. A refusal may carry changes too: a replayed code is refused *and* revokes the family.
#[must_use]
#[derive(Debug)]
pub struct Decision<T, E> {
    /// The changes to commit, all or nothing, before the reply leaves.
    pub changes: Vec<Change>,
    /// The reply to give after the commit.
    pub reply: Result<T, E>,
}

impl<T, E> Decision<T, E> {
    /// Accepts with `reply`, without changes so far.
    pub fn accept(reply: T) -> Self {
        Decision { changes: Vec::new(), reply: Ok(reply) }
    }
    /// Refuses with `error`, without changes so far.
    pub fn refuse(error: E) -> Self {
        Decision { changes: Vec::new(), reply: Err(error) }
    }
    /// Adds a change.
    pub fn and(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }
    /// Adds several changes.
    pub fn with(mut self, changes: impl IntoIterator<Item = Change>) -> Self {
        self.changes.extend(changes);
        self
    }
    /// Requires that the configuration epoch is still `seen`; this is checked before anything else happens.
    pub fn at_epoch(mut self, seen: i64) -> Self {
        let standing = Standing { epoch: Some(seen), ..Standing::default() };
        self.changes.insert(0, Change::Stands(standing));
        self
    }
    /// Requires that none of the keys that will sign what is handed out was revoked.
    pub fn signed_by(mut self, keys: Vec<Kid>) -> Self {
        let standing = self.changes.iter_mut().find_map(|change| match change {
            Change::Stands(standing) => Some(standing),
            _ => None,
        });
        match standing {
            // Beside the other facts that must stand, which some engines look up together.
            Some(standing) => standing.keys = keys,
            None => self.changes.insert(0, Change::Stands(Standing { keys, ..Standing::default() })),
        }
        self
    }
    /// Keeps the changes and maps an accepted reply with `f`.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Decision<U, E> {
        Decision { changes: self.changes, reply: self.reply.map(f) }
    }
}

impl<T> Decision<T, Never> {
    /// The same decision where others may be refused.
    pub fn or_refuse<E>(self) -> Decision<T, E> {
        Decision { changes: self.changes, reply: self.reply.map_err(|never| match never {}) }
    }
}

/// Facts that must still hold when the batch commits: a revocation that committed first wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The user is enabled.
    pub user: Option<UserId>,
    /// The client is enabled.
    pub client: Option<ClientId>,
    /// The client has not changed since this epoch: it is issued nothing that it may no longer have.
    pub registered: Option<i64>,
    /// The session has not ended.
    pub session: Option<SessionId>,
    /// The session's secret is still the proved one: a cookie from before a password change gets nothing more.
    pub handle: Option<Handle>,
    /// The family is not revoked.
    pub family: Option<FamilyId>,
    /// Its refresh token is still this one.
    pub current: Option<Handle>,
    /// The access token was not revoked by itself.
    pub token: Option<Single>,
    /// The consent has not been withdrawn since it was granted at this time.
    pub consent: Option<(UserId, ClientId, Time)>,
    /// The user's stored password is still the one that was proved.
    pub password: Option<(UserId, PasswordHash)>,
    /// These keys were not revoked: what they sign would be refused everywhere.
    pub keys: Vec<Kid>,
    /// The realm's configuration epoch: of two changes to clients or keys that saw the same, one has to look again.
    pub epoch: Option<i64>,
}

/// One access token, by what is kept of it: only then can it be revoked without its family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Single {
    /// A signed one, by its `jti`.
    Signed(String),
    /// An opaque one, by its hash.
    Opaque(Handle),
}

/// A change to make, with the guard under which it may happen.
#[allow(missing_docs, reason = "the sentence above each variant names its fields")]
#[derive(Clone, Debug)]
pub enum Change {
    /// Changes nothing; the batch commits only if these facts still hold.
    Stands(Standing),

    /// Adds a user; fails when one of the login names is taken.
    AddUser(Box<User>),
    /// Makes a user the owner; fails when there is an owner already.
    ClaimOwner(UserId),
    /// Sets a new stored password; fails unless the old one is still the one that was seen.
    SetPassword { user: UserId, seen: Option<PasswordHash>, password: PasswordHash, at: Time },
    /// Sets new standard claims; fails unless the old ones are still those that were seen.
    SetProfile { user: UserId, seen: Profile, profile: Profile, at: Time },
    /// Sets another email address; its login name follows when it is verified. With `seen`, fails unless the address,
    /// and whether it was verified, are still as seen.
    SetEmail { user: UserId, seen: Option<(Option<String>, bool)>, email: Option<String>, verified: bool, at: Time },
    /// Disables a user, or enables the user again (`None`).
    SetDisabled { user: UserId, disabled_at: Option<Time>, at: Time },
    /// Removes a user and everything that belongs to them.
    RemoveUser(UserId),
    /// Adds a group.
    AddGroup { group: GroupId, name: String },
    /// Removes a group.
    RemoveGroup(GroupId),
    /// Adds a user to a group, or removes the user from it.
    SetMember { group: GroupId, user: UserId, member: bool },

    /// Starts a session.
    StartSession(Box<Session>),
    /// Gives a session a new secret and sign-in time; fails when its secret is no longer the one that was seen (`was`).
    RaiseSession { session: Box<Session>, was: Handle },
    /// Notes that a session was used.
    TouchSession { session: SessionId, at: Time },
    /// Ends a session.
    EndSession { session: SessionId, at: Time },
    /// Ends all sessions of a user but `except`.
    EndSessionsOf { user: UserId, except: Option<SessionId>, at: Time },

    /// Issues a code.
    IssueCode(Box<Code>),
    /// Uses up a code; fails when it was used up before.
    BurnCode { family: FamilyId, at: Time },
    /// Uses up a user's unused codes that were issued since `since`.
    BurnCodesOf { user: UserId, since: Time, at: Time },
    /// Removes a user's device approvals: all of them, or those for one client.
    DropApprovalsOf { user: UserId, client: Option<ClientId> },
    /// Starts a family of tokens.
    StartFamily(Box<Family>),
    /// Replaces a refresh token with its successor; fails unless it is still the current one.
    RotateFamily { family: FamilyId, rotation: Rotation },
    /// Revokes a family of tokens.
    RevokeFamily { family: FamilyId, at: Time },
    /// Revokes a user's families: all, or those of one client. Those of the session `except` are spared.
    RevokeFamiliesOf { user: UserId, client: Option<ClientId>, except: Option<SessionId>, at: Time },
    /// Issues an opaque access token.
    IssueOpaque(Box<Opaque>),
    /// Removes an opaque access token.
    DropOpaque(Handle),
    /// Revokes a single signed access token: it is refused from now until it expires.
    RevokeToken { jti: String, expires: Time },
    /// Uses up a client assertion. Fails when it was used before (RFC 7523 §3, `jti`), or when it may have been: a
    /// fence is up, and the assertion is older than the fence.
    UseAssertion { client: ClientId, jti: Handle, issued: Time, expires: Time },
    /// Grants a client a user's consent; fails when an earlier consent is no longer the one that was seen.
    GrantConsent { consent: Box<Consent>, seen: Option<Scope> },
    /// Withdraws the consent that a user gave to a client.
    RevokeConsent { user: UserId, client: ClientId, at: Time },
    /// Drops the consents of users up to `upto` for a client that is about to be removed.
    DropConsents { client: ClientId, upto: UserId },

    /// Stores a device's request.
    AskDevice(Box<Device>),
    /// Notes a poll that came in time; fails when the device has polled since `seen`.
    PollDevice { device: Handle, at: Time, seen: Option<Time> },
    /// Notes a poll that came too early; the device has to wait longer.
    SlowDevice { device: Handle, at: Time, interval_s: i64 },
    /// Answers a device's request; fails when it was answered before. `None` denies.
    AnswerDevice { device: Handle, approval: Option<Box<crate::oauth::device::Approval>>, at: Time },
    /// Uses up a device's approval; fails when it was used up before.
    RedeemDevice { device: Handle, at: Time },

    /// Counts an attempt as failed until it is given back; fails when other attempts were counted meanwhile.
    CountAttempt(Counted),
    /// Clears a counter after an attempt that succeeded.
    ForgetAttempts { key: Handle },
    /// Gives back an attempt that was not made after all.
    GiveBack(Counted),
    /// Counts a failure, whatever else is counted at the same time.
    CountFailure { key: Handle, at: Time, leak: Span },
    /// Counts a failed sign-in to an unknown name: one row per address and minute.
    CountStranger { address: String, at: Time },
    /// Counts `many` rejections from an address: one row per minute, address and application.
    CountRejections { what: Rejection, address: String, at: Time, many: i64 },

    /// Registers a client; fails when the id is taken.
    AddClient(Box<Client>),
    /// Saves a changed client.
    SaveClient(Box<Client>),
    /// Removes a client and everything that was issued to it.
    RemoveClient(ClientId),
    /// Adds a signing key.
    AddKey(Box<Key>),
    /// Publishes a key until `until`, or without an end.
    RetireKey { kid: Kid, until: Option<Time> },
    /// Makes a key sign from `at` on.
    ActivateKey { kid: Kid, at: Time },
    /// Revokes a key.
    RevokeKey { kid: Kid, at: Time },
    /// Ends the caches of clients, keys and settings.
    BumpEpoch,

    /// Offers a set-up link, valid until `expires`; links that expire by `keep` become void.
    OfferSetup { link: Handle, keep: Time, expires: Time },
    /// Uses up the set-up link; fails when it is unknown or expired.
    UseSetup { link: Handle, now: Time },

    /// Offers a token for enrolling a worker, valid until `expires`.
    OfferWorkerToken { token: Handle, now: Time, expires: Time },
    /// Enrolls a worker and uses up the token; fails when the token is unknown or expired, or the name is taken.
    EnrollWorker { worker: Box<Worker>, token: Handle, now: Time },
    /// Renames a worker; fails when the name is taken.
    RenameWorker { worker: Handle, name: String },
    /// Removes a worker: it is not let in any more.
    RemoveWorker(Handle),
    /// Stops asking a worker for anything; fails when it is in quarantine already.
    QuarantineWorker { worker: Handle, at: Time, why: String },
    /// Asks a worker again.
    TrustWorker(Handle),

    /// Writes an event to the audit log.
    Record(Event),
}

/// The error of a rule that never refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Never {}
