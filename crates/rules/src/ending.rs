//! What an acknowledged change forbids or ends, in a form that can be kept beside the database and replayed into a
//! database that has lost it.
//!
//! Only a change that takes something away is an ending. If a database loses something that was given, somebody has to
//! sign in again. If it loses something that was taken away, it lets in somebody who was shut out.

use crate::decision::Change;
use crate::id::{ClientId, FamilyId, GroupId, Kid, LifeId, SessionId, UserId};
use crate::oauth::client::Client;
use crate::secret::{Handle, PasswordHash};
use crate::time::Time;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// What one change ended.
#[allow(missing_docs, reason = "the sentence above each variant names its fields")]
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ending {
    /// A session.
    Session { session: SessionId, at: Time },
    /// The sessions that a user had at that time, except `except`.
    SessionsOf { user: UserId, except: Option<SessionId>, at: Time },
    /// The secret that a session had before it was raised. `auth_time` grows each time that a session is raised.
    Secret { session: SessionId, handle: Handle, auth_time: Time, amr: Vec<String>, last_seen: Time },

    /// A refresh token, replaced by its successor: the family's `turn`th.
    Refresh {
        family: FamilyId,
        turn: i64,
        current: Handle,
        was: Handle,
        until: Time,
        bridge: [u8; 32],
        idle_until: Time,
    },
    /// A family of tokens.
    Family { family: FamilyId, at: Time },
    /// The families that a user had at that time: all, or those of one client; those of one session may be spared.
    FamiliesOf { user: UserId, client: Option<ClientId>, except: Option<SessionId>, at: Time },
    /// An opaque access token.
    Opaque { token: Handle },
    /// A signed access token, until it would have expired.
    Token { jti: String, expires: Time },
    /// A client assertion that was used.
    Assertion { client: ClientId, jti: Handle, expires: Time },

    /// A code that was used.
    Code { family: FamilyId, at: Time },
    /// The codes that a user was issued since `since`.
    CodesOf { user: UserId, since: Time, at: Time },
    /// A device's request that was answered, or whose approval was used.
    Device { device: Handle },
    /// A user's device approvals: all, or those for one client.
    ApprovalsOf { user: UserId, client: Option<ClientId> },
    /// A consent, as it was at that time.
    Consent { user: UserId, client: ClientId, at: Time },

    /// A password. `at` grows with each change of an account.
    Password { user: UserId, seen: Option<PasswordHash>, password: PasswordHash, at: Time },
    /// A user's earlier addresses and the login names made of them: everything but the address `email`, whose login
    /// name is spared if it was verified.
    Email { user: UserId, email: Option<String>, verified: bool },
    /// A user's permission to sign in.
    Enabled { user: UserId, at: Time },
    /// An account.
    User { user: UserId },
    /// A user's membership of a group.
    Member { group: GroupId, user: UserId },
    /// A group.
    Group { group: GroupId },

    /// The state of a client before `epoch`: its secret, and that it was enabled.
    Client {
        client: Box<Client>,
        secret: Option<Handle>,
        disabled_at: Option<Time>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        life: Option<LifeId>,
        epoch: i64,
    },
    /// A client that was removed at `epoch`.
    ClientItself { client: ClientId, epoch: i64 },
    /// A signing key.
    Key { kid: Kid, at: Time },
    /// A set-up link that was used.
    SetUp { link: Handle },
}

impl Ending {
    /// Returns what a change ends, if it ends anything. `epoch` is the configuration epoch that its batch makes.
    #[allow(clippy::too_many_lines, reason = "one arm for each change, so that a new one has to say")]
    pub fn of(change: Change, epoch: i64) -> Option<Self> {
        Some(match change {
            Change::EndSession { session, at } => Ending::Session { session, at },
            Change::EndSessionsOf { user, except, at } => Ending::SessionsOf { user, except, at },
            Change::RaiseSession { session, was: _ } => Ending::Secret {
                session: session.id,
                handle: session.handle,
                auth_time: session.auth_time,
                amr: session.amr,
                last_seen: session.last_seen,
            },
            Change::RotateFamily { family, rotation } => Ending::Refresh {
                family,
                turn: rotation.turn,
                current: rotation.current,
                was: rotation.previous.handle,
                until: rotation.previous.until,
                bridge: rotation.previous.bridge,
                idle_until: rotation.idle_until,
            },
            Change::RevokeFamily { family, at } => Ending::Family { family, at },
            Change::RevokeFamiliesOf { user, client, except, at } => Ending::FamiliesOf { user, client, except, at },
            Change::DropOpaque(token) => Ending::Opaque { token },
            Change::RevokeToken { jti, expires } => Ending::Token { jti, expires },
            Change::UseAssertion { client, jti, issued: _, expires } => Ending::Assertion { client, jti, expires },
            Change::BurnCode { family, at } => Ending::Code { family, at },
            Change::BurnCodesOf { user, since, at } => Ending::CodesOf { user, since, at },
            Change::AnswerDevice { device, .. } | Change::RedeemDevice { device, .. } => Ending::Device { device },
            Change::DropApprovalsOf { user, client } => Ending::ApprovalsOf { user, client },
            Change::RevokeConsent { user, client, at } => Ending::Consent { user, client, at },
            Change::SetPassword { user, seen, password, at } => Ending::Password { user, seen, password, at },
            // The ending does not say which address was there. If there was none, replaying it takes nothing away.
            Change::SetEmail { user, seen: _, email, verified, at: _ } => Ending::Email { user, email, verified },
            Change::SetDisabled { user, disabled_at: Some(at), .. } => Ending::Enabled { user, at },
            Change::RemoveUser(user) => Ending::User { user },
            Change::SetMember { group, user, member: false } => Ending::Member { group, user },
            Change::RemoveGroup(group) => Ending::Group { group },
            Change::SaveClient(client) => {
                let (secret, disabled_at, life) = (client.secret, client.disabled_at, client.life.clone());
                Ending::Client { client, secret, disabled_at, life, epoch }
            }
            Change::RemoveClient(client) => Ending::ClientItself { client, epoch },
            Change::RevokeKey { kid, at } => Ending::Key { kid, at },
            Change::UseSetup { link, .. } => Ending::SetUp { link },

            // These give, count or note something: if one is lost, it is as if nobody had asked for it.
            Change::Stands(_)
            | Change::AddUser(_)
            | Change::ClaimOwner(_)
            | Change::SetProfile { .. }
            | Change::SetDisabled { disabled_at: None, .. }
            | Change::AddGroup { .. }
            | Change::SetMember { member: true, .. }
            | Change::StartSession(_)
            | Change::TouchSession { .. }
            | Change::IssueCode(_)
            | Change::StartFamily(_)
            | Change::IssueOpaque(_)
            | Change::GrantConsent { .. }
            // The client's removal is the ending, once it is done.
            | Change::DropConsents { .. }
            | Change::AskDevice(_)
            | Change::PollDevice { .. }
            | Change::SlowDevice { .. }
            | Change::CountAttempt(_)
            | Change::ForgetAttempts { .. }
            | Change::GiveBack(_)
            | Change::CountFailure { .. }
            | Change::CountStranger { .. }
            | Change::CountRejections { .. }
            | Change::AddClient(_)
            | Change::AddKey(_)
            | Change::RetireKey { .. }
            | Change::ActivateKey { .. }
            | Change::BumpEpoch
            | Change::OfferSetup { .. }
            // A worker is not believed anyway: a removed one that comes back is as harmless as before.
            | Change::OfferWorkerToken { .. }
            | Change::EnrollWorker { .. }
            | Change::RenameWorker { .. }
            | Change::RemoveWorker(_)
            | Change::QuarantineWorker { .. }
            | Change::TrustWorker(_)
            | Change::Record(_) => return None,
        })
    }

    /// Whether caches of clients and keys have to end when this is replayed.
    pub fn is_configuration(&self) -> bool {
        matches!(self, Ending::Client { .. } | Ending::ClientItself { .. } | Ending::Key { .. })
    }

    /// Whether this became an ending only later, so that the previous release knows nothing of it.
    fn came_later(&self) -> bool {
        matches!(self, Ending::Email { .. })
    }
}

/// Everything that one batch ended.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Written<Ending, Value>")]
pub struct Record {
    /// The time of the batch.
    pub at: Time,
    /// The audit entry that the batch wrote, if it wrote one: a database that has the entry has the batch.
    pub witness: Option<String>,
    /// What it ended.
    pub endings: Vec<Ending>,
}

/// A record as it stands in journals. A node that goes back to the previous release has to read its journal: endings
/// that that release does not know stand in `later`, from which it takes those it knows and skips the rest, which never
/// were endings to it. Everything else has to be understood whole, or acknowledged endings would be replayed by halves.
#[derive(Serialize, Deserialize)]
struct Written<E, L> {
    at: Time,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    witness: Option<String>,
    endings: Vec<E>,
    #[serde(skip_serializing_if = "Vec::is_empty", default = "Vec::new")]
    later: Vec<L>,
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (later, endings) = self.endings.iter().partition(|ending| ending.came_later());
        Written::<&Ending, &Ending> { at: self.at, witness: self.witness.clone(), endings, later }.serialize(serializer)
    }
}

impl From<Written<Ending, Value>> for Record {
    fn from(written: Written<Ending, Value>) -> Self {
        let Written { at, witness, mut endings, later } = written;
        endings.extend(later.into_iter().filter_map(|ending| serde_json::from_value::<Ending>(ending).ok()));
        Record { at, witness, endings }
    }
}

impl Record {
    /// Returns what a batch ended; `None` if it ended nothing.
    pub fn of(changes: Vec<Change>, at: Time, witness: Option<String>) -> Option<Self> {
        let seen = changes.iter().find_map(|change| match change {
            Change::Stands(standing) => standing.epoch,
            _ => None,
        });
        let epoch = seen.map_or(0, |seen| seen + 1);
        let endings: Vec<Ending> = changes.into_iter().filter_map(|change| Ending::of(change, epoch)).collect();
        (!endings.is_empty()).then_some(Record { at, witness, endings })
    }

    /// Whether something that the batch ended could open more while nobody knew of the ending: it changed a password or
    /// disabled a user, and ended all that had been opened; or it withdrew a user's consent to a client.
    pub fn closed_a_door(&self) -> bool {
        let all = |ending: &Ending| matches!(ending, Ending::SessionsOf { .. });
        let way_in = |ending: &Ending| matches!(ending, Ending::Password { .. } | Ending::Enabled { .. });
        let consent = |ending: &Ending| matches!(ending, Ending::Consent { .. });
        let has = |kind: fn(&Ending) -> bool| self.endings.iter().any(kind);
        has(all) && has(way_in) || has(consent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fresh;
    use crate::decision::Standing;
    use crate::events::{Event, Kind};
    use crate::oauth::client::tests::confidential;
    use crate::oauth::family::{Previous, Rotation};

    const AT: Time = Time(1_000);

    fn endings() -> Vec<Change> {
        let (user, client, family) = (UserId::from("ada"), ClientId::from("shop"), FamilyId::from("f"));
        let (handle, group) = (Handle([7; 32]), GroupId::from("g"));
        let previous = Previous { handle, until: AT, bridge: [255; 32] };
        let rotation = Rotation { was: handle, current: Handle([8; 32]), previous, idle_until: AT, turn: 3 };
        vec![
            Change::EndSession { session: "s".into(), at: AT },
            Change::EndSessionsOf { user: user.clone(), except: Some("s".into()), at: AT },
            Change::RotateFamily { family: family.clone(), rotation },
            Change::RevokeFamily { family: family.clone(), at: AT },
            Change::RevokeFamiliesOf { user: user.clone(), client: None, except: None, at: AT },
            Change::DropOpaque(handle),
            Change::RevokeToken { jti: "j".into(), expires: AT },
            Change::UseAssertion { client: client.clone(), jti: handle, issued: AT, expires: AT },
            Change::BurnCode { family, at: AT },
            Change::BurnCodesOf { user: user.clone(), since: AT, at: AT },
            Change::AnswerDevice { device: handle, approval: None, at: AT },
            Change::RedeemDevice { device: handle, at: AT },
            Change::DropApprovalsOf { user: user.clone(), client: None },
            Change::RevokeConsent { user: user.clone(), client: client.clone(), at: AT },
            Change::SetPassword { user: user.clone(), seen: None, password: "$argon2".into(), at: AT },
            Change::SetEmail { user: user.clone(), seen: None, email: None, verified: false, at: AT },
            Change::SetDisabled { user: user.clone(), disabled_at: Some(AT), at: AT },
            Change::RemoveUser(user.clone()),
            Change::SetMember { group: group.clone(), user, member: false },
            Change::RemoveGroup(group),
            Change::SaveClient(Box::new(confidential("shop", "https://shop.test/cb"))),
            Change::RemoveClient(client),
            Change::RevokeKey { kid: "k".into(), at: AT },
            Change::UseSetup { link: handle, now: AT },
        ]
    }

    #[test]
    fn every_ending_is_read_as_it_was_written() {
        let (changes, count) = (endings(), endings().len());
        let record = Record::of(changes, AT, Some("e".into())).expect("endings");
        assert_eq!(record.endings.len(), count);
        let text = serde_json::to_string(&record).unwrap();
        assert!(!text.contains('\n'), "an entry is one line");
        let read: Record = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn the_program_of_before_reads_all_that_it_knows() {
        /// A record as the previous release reads it.
        #[derive(Deserialize)]
        struct Before {
            endings: Vec<serde_json::Map<String, serde_json::Value>>,
        }
        // red without `came_later`: the previous release would not be ready for as long as the line is in its journal.
        let text = serde_json::to_string(&Record::of(endings(), AT, None)).unwrap();
        let read: Before = serde_json::from_str(&text).unwrap();
        assert_eq!(read.endings.len(), endings().len() - 1);
        assert!(read.endings.iter().all(|ending| !ending.contains_key("email")), "{text}");
        // And a record that the previous release wrote is read.
        let written = r#"{"at":1,"endings":[{"user":{"user":"ada"}}]}"#;
        let read: Record = serde_json::from_str(written).unwrap();
        assert!(matches!(&read.endings[..], [Ending::User { .. }]));
        assert_eq!(serde_json::to_string(&read).unwrap(), written);
    }

    #[test]
    fn what_only_a_later_program_knows_is_passed_over_in_its_own_place_alone() {
        let written = r#"{"at":1,"endings":[{"user":{"user":"ada"}}],
            "later":[{"passkey":{"user":"ada"}},{"email":{"user":"ada","more":1}},"a word"]}"#;
        let read: Record = serde_json::from_str(written).unwrap();
        assert!(matches!(&read.endings[..], [Ending::User { .. }]));
        // red without `deny_unknown_fields`: half of the ending would be replayed, and the rest be forgotten.
        for ending in [r#"{"passkey":{"user":"ada"}}"#, r#"{"user":{"user":"ada","only":"a part"}}"#] {
            let written = format!(r#"{{"at":1,"endings":[{ending}]}}"#);
            assert!(serde_json::from_str::<Record>(&written).is_err(), "{written}");
        }
    }

    #[test]
    fn a_clients_secret_and_its_life_are_kept_with_it() {
        // A client's own JSON leaves both out: they have columns of their own.
        let client = confidential("shop", "https://shop.test/cb").registered(AT, &Fresh::new([1; 32]));
        let changes = vec![Change::SaveClient(Box::new(client))];
        let text = serde_json::to_string(&Record::of(changes, AT, None)).unwrap();
        let read: Record = serde_json::from_str(&text).unwrap();
        assert!(
            matches!(&read.endings[0], Ending::Client { secret: Some(secret), life: Some(_), .. } if *secret == Handle::of("secret"))
        );
    }

    #[test]
    fn what_gives_is_not_an_ending() {
        let event = Change::Record(Event::new(Kind::SignedIn, AT));
        let enabled = Change::SetDisabled { user: "ada".into(), disabled_at: None, at: AT };
        let joined = Change::SetMember { group: "g".into(), user: "ada".into(), member: true };
        assert!(Record::of(vec![event, enabled, joined, Change::BumpEpoch], AT, None).is_none());
    }

    #[test]
    fn what_opens_more_until_it_is_replayed_is_a_door() {
        // Red without `Enabled` in closed_a_door: who was disabled, and signed in before the node that knew of it was
        // back, stayed signed in, and was so once more when enabled again.
        let user = || UserId::from("ada");
        let all = || Change::EndSessionsOf { user: user(), except: None, at: AT };
        let password = || Change::SetPassword { user: user(), seen: None, password: "$argon2".into(), at: AT };
        let disabled = |disabled_at| Change::SetDisabled { user: user(), disabled_at, at: AT };
        let consent = || Change::RevokeConsent { user: user(), client: "shop".into(), at: AT };
        for (changes, door) in [
            (vec![password(), all()], true),
            (vec![disabled(Some(AT)), all()], true),
            (vec![consent()], true),
            (vec![all()], false),
            // Hashed again.
            (vec![password()], false),
            (vec![disabled(None), all()], false),
        ] {
            let record = Record::of(changes.clone(), AT, None).expect("an ending");
            assert_eq!(record.closed_a_door(), door, "{changes:?}");
        }
    }

    #[test]
    fn configuration_says_at_which_epoch_it_was_made() {
        let stands = Change::Stands(Standing { epoch: Some(41), ..Standing::default() });
        let record = Record::of(vec![stands, Change::RemoveClient("shop".into())], AT, None).expect("an ending");
        assert!(matches!(record.endings[0], Ending::ClientItself { epoch: 42, .. }));
        assert!(record.endings[0].is_configuration());
    }
}
