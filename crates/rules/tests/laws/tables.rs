//! Facts in maps: every change with the meaning and the guard that the store gives it, all or nothing.

use rules::Time;
use rules::decision::{Change, Single, Standing};
use rules::id::{ClientId, FamilyId, SessionId, UserId};
use rules::keys::Key;
use rules::login::cookie::Cookie;
use rules::login::session::Session;
use rules::login::throttle::{ASTRAY, Counter};
use rules::oauth::client::Client;
use rules::oauth::code::Code;
use rules::oauth::consent::Consent;
use rules::oauth::device::{Device, HEARD, Stage};
use rules::oauth::family::{Family, Refresh};
use rules::oauth::token::AccessClaims;
use rules::oauth::{code, device, family};
use rules::people::User;
use rules::secret::PasswordHash;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is known.
#[derive(Clone, Default)]
pub struct Tables {
    pub users: BTreeMap<UserId, User>,
    pub clients: BTreeMap<ClientId, Client>,
    pub sessions: BTreeMap<SessionId, Session>,
    pub codes: BTreeMap<FamilyId, Code>,
    pub families: BTreeMap<FamilyId, Family>,
    pub consents: BTreeMap<(UserId, ClientId), Consent>,
    pub devices: BTreeMap<[u8; 32], Device>,
    pub opaque: BTreeMap<[u8; 32], AccessClaims>,
    pub revoked: BTreeSet<String>,
    pub counters: BTreeMap<[u8; 32], Counter>,
    pub keys: Vec<Key>,
    pub epoch: i64,
}

/// A guard did not hold: nothing of the batch happened.
#[derive(Debug)]
pub struct Conflict;

type Made = Result<(), Conflict>;

fn must(holds: bool) -> Made {
    if holds { Ok(()) } else { Err(Conflict) }
}

impl Tables {
    /// Makes all of `changes` true, or none.
    pub fn apply(&mut self, changes: &[Change]) -> Made {
        let mut next = self.clone();
        for change in changes {
            let made = next.about_people(change).or_else(|| next.about_sessions(change));
            made.or_else(|| next.about_tokens(change)).unwrap_or_else(|| next.about_realm(change))?;
        }
        *self = next;
        Ok(())
    }

    fn about_people(&mut self, change: &Change) -> Option<Made> {
        Some(match change {
            Change::Stands(standing) => self.stands(standing),
            Change::AddUser(user) => must(self.users.insert(user.id.clone(), (**user).clone()).is_none()),
            Change::SetPassword { user, seen, password, at } => match self.users.get_mut(user) {
                Some(user) if user.password.as_deref().unwrap_or("") == seen.as_deref().unwrap_or("") => {
                    (user.password, user.updated) = (Some(password.to_string()), *at);
                    Ok(())
                }
                _ => Err(Conflict),
            },
            Change::SetDisabled { user, disabled_at, at } => match self.users.get_mut(user) {
                Some(user) => {
                    (user.disabled_at, user.updated) = (*disabled_at, *at);
                    Ok(())
                }
                None => Err(Conflict),
            },
            Change::RemoveUser(user) => {
                self.consents.retain(|(of, _), _| of != user);
                self.devices.retain(|_, device| approver(device) != Some(user));
                self.families.retain(|_, family| &family.user != user);
                self.sessions.retain(|_, session| &session.user != user);
                must(self.users.remove(user).is_some())
            }
            _ => return None,
        })
    }

    fn stands(&self, standing: &Standing) -> Made {
        let user = |id: &UserId| self.users.get(id).is_some_and(|user| user.disabled_at.is_none());
        let client = |id: &ClientId| self.clients.get(id).is_some_and(|client| client.disabled_at.is_none());
        let registered = |epoch: i64| {
            let client = standing.client.as_ref().and_then(|id| self.clients.get(id));
            client.is_some_and(|client| client.epoch == epoch)
        };
        let session = |id: &SessionId| {
            let found = self.sessions.get(id).filter(|session| session.ended_at.is_none());
            found.is_some_and(|session| standing.handle.is_none_or(|handle| handle == session.handle))
        };
        let family = |id: &FamilyId| {
            let found = self.families.get(id).filter(|family| family.revoked_at.is_none());
            let current = |family: &Family| family.refresh.as_ref().map(|refresh| refresh.current);
            found.is_some_and(|family| standing.current.is_none() || current(family) == standing.current)
        };
        let token = |token: &Single| match token {
            Single::Signed(jti) => !self.revoked.contains(jti),
            Single::Opaque(handle) => self.opaque.contains_key(&handle.0),
        };
        let password = |(id, seen): &(UserId, PasswordHash)| {
            self.users.get(id).is_some_and(|user| user.password.as_deref() == Some(&**seen))
        };
        must(
            standing.user.as_ref().is_none_or(user)
                && standing.client.as_ref().is_none_or(client)
                && standing.registered.is_none_or(registered)
                && standing.session.as_ref().is_none_or(session)
                && standing.family.as_ref().is_none_or(family)
                && standing.token.as_ref().is_none_or(token)
                && standing
                    .consent
                    .as_ref()
                    .is_none_or(|(user, client, given)| self.given(user, client) == Some(*given))
                && standing.password.as_ref().is_none_or(password)
                && !self.keys.iter().any(|key| key.revoked_at.is_some() && standing.keys.contains(&key.kid)),
        )
    }

    fn about_sessions(&mut self, change: &Change) -> Option<Made> {
        Some(match change {
            Change::StartSession(session) => {
                must(self.sessions.insert(session.id.clone(), (**session).clone()).is_none())
            }
            Change::RaiseSession { session, was } => match self.sessions.get_mut(&session.id) {
                Some(row) if row.handle == *was && row.ended_at.is_none() => {
                    (row.handle, row.auth_time, row.last_seen) = (session.handle, session.auth_time, session.last_seen);
                    row.amr.clone_from(&session.amr);
                    Ok(())
                }
                _ => Err(Conflict),
            },
            Change::TouchSession { session, at } => {
                let row = self.sessions.get_mut(session);
                row.into_iter().for_each(|row| row.last_seen = row.last_seen.max(*at));
                Ok(())
            }
            Change::EndSession { session, at } => {
                self.sessions.get_mut(session).into_iter().for_each(|row| row.ended_at = row.ended_at.or(Some(*at)));
                Ok(())
            }
            Change::EndSessionsOf { user, except, at } => {
                let theirs =
                    self.sessions.values_mut().filter(|row| row.user == *user && Some(&row.id) != except.as_ref());
                theirs.for_each(|row| row.ended_at = row.ended_at.or(Some(*at)));
                Ok(())
            }
            Change::CountAttempt(counted) => {
                let seen = self.counters.insert(counted.key.0, counted.next);
                must(seen.unwrap_or_default() == counted.seen)
            }
            Change::ForgetAttempts { key } => {
                self.counters.remove(&key.0);
                Ok(())
            }
            Change::GiveBack(counted) => {
                if let Some(row) = self.counters.get_mut(&counted.key.0).filter(|row| row.count > 0) {
                    let until = if row.until == counted.next.until { counted.seen.until } else { row.until };
                    *row = Counter { count: row.count - 1, until, expires: row.expires };
                }
                Ok(())
            }
            Change::CountFailure { key, at, leak } => {
                let row = self.counters.entry(key.0).or_default();
                let before = if Time(row.until) <= *at + ASTRAY { row.expires.max(at.0) } else { at.0 };
                *row = Counter { count: row.count + 1, until: at.0, expires: before + leak.0 };
                Ok(())
            }
            Change::CountStranger { .. } | Change::CountRejections { .. } => Ok(()),
            _ => return None,
        })
    }

    fn about_tokens(&mut self, change: &Change) -> Option<Made> {
        Some(match change {
            Change::IssueCode(code) => must(self.codes.insert(code.family.clone(), (**code).clone()).is_none()),
            Change::BurnCode { family, at } => match self.codes.get_mut(family) {
                Some(code) if code.redeemed_at.is_none() => {
                    code.redeemed_at = Some(*at);
                    Ok(())
                }
                _ => Err(Conflict),
            },
            Change::StartFamily(family) => must(self.families.insert(family.id.clone(), (**family).clone()).is_none()),
            Change::RotateFamily { family, rotation } => match self.families.get_mut(family) {
                Some(row)
                    if row.revoked_at.is_none() && row.refresh.as_ref().is_some_and(|r| r.current == rotation.was) =>
                {
                    row.refresh = Some(Refresh {
                        current: rotation.current,
                        previous: Some(rotation.previous),
                        turn: rotation.turn,
                    });
                    row.idle_until = rotation.idle_until;
                    Ok(())
                }
                _ => Err(Conflict),
            },
            Change::RevokeFamily { family, at } => {
                self.families.get_mut(family).into_iter().for_each(|row| row.revoked_at = row.revoked_at.or(Some(*at)));
                Ok(())
            }
            Change::RevokeFamiliesOf { user, client, except, at } => {
                let theirs = self.families.values_mut().filter(|row| {
                    row.user == *user
                        && client.as_ref().is_none_or(|client| *client == row.client)
                        && except.as_ref().is_none_or(|session| row.session.as_ref() != Some(session))
                });
                theirs.for_each(|row| row.revoked_at = row.revoked_at.or(Some(*at)));
                Ok(())
            }
            Change::IssueOpaque(token) => must(self.opaque.insert(token.handle.0, token.claims.clone()).is_none()),
            Change::DropOpaque(handle) => {
                self.opaque.remove(&handle.0);
                Ok(())
            }
            Change::RevokeToken { jti, .. } => {
                self.revoked.insert(jti.clone());
                Ok(())
            }
            _ => return None,
        })
    }

    fn about_realm(&mut self, change: &Change) -> Made {
        match change {
            Change::GrantConsent { consent, seen } => {
                let row = (consent.user.clone(), consent.client.clone());
                let before = self.consents.insert(row, (**consent).clone());
                let same = before.as_ref().is_none_or(|before| before.granted == consent.granted);
                must(same && before.map(|before| before.scope) == *seen)
            }
            Change::RevokeConsent { user, client, .. } => {
                self.consents.remove(&(user.clone(), client.clone()));
                Ok(())
            }
            Change::DropConsents { client, upto } => {
                self.consents.retain(|(user, to), _| to != client || user > upto);
                Ok(())
            }
            Change::AddClient(client) => must(self.put(client).is_none()),
            Change::SaveClient(client) => must(self.put(client).is_some()),
            Change::RemoveClient(client) => {
                self.consents.retain(|(_, to), _| to != client);
                self.devices.retain(|_, device| &device.client != client);
                must(self.clients.remove(client).is_some())
            }
            Change::AddKey(key) => {
                let known = self.keys.iter().any(|row| row.kid == key.kid);
                self.keys.push((**key).clone());
                must(!known)
            }
            Change::RetireKey { kid, until } => self.key(kid, |key| key.publish_until = *until),
            Change::ActivateKey { kid, at } => self.key(kid, |key| key.active_from = *at),
            Change::RevokeKey { kid, at } => {
                must(self.keys.iter().any(|key| key.kid == *kid && key.revoked_at.is_none()))?;
                self.key(kid, |key| key.revoked_at = Some(*at))
            }
            Change::BumpEpoch => {
                self.epoch += 1;
                Ok(())
            }
            Change::Record(_) => Ok(()),
            other => self.about_devices(other),
        }
    }

    /// An application as it was changed at this epoch; what it was before.
    fn put(&mut self, client: &Client) -> Option<Client> {
        self.clients.insert(client.id.clone(), Client { epoch: self.epoch, ..client.clone() })
    }

    fn about_devices(&mut self, change: &Change) -> Made {
        match change {
            Change::AskDevice(device) => {
                let taken = self.devices.values().any(|row| row.user_code == device.user_code);
                must(!taken && self.devices.insert(device.handle.0, (**device).clone()).is_none())
            }
            Change::PollDevice { device, at, seen } => match self.devices.get_mut(&device.0) {
                Some(row) if row.polled == *seen => {
                    row.polled = Some(*at);
                    Ok(())
                }
                _ => Err(Conflict),
            },
            Change::SlowDevice { device, at, interval_s } => {
                let row = self.devices.get_mut(&device.0);
                row.into_iter().for_each(|row| (row.polled, row.interval_s) = (Some(*at), *interval_s));
                Ok(())
            }
            Change::AnswerDevice { device, approval, at } => match self.devices.get_mut(&device.0) {
                Some(row) if matches!(row.stage, Stage::Pending) && !row.expires.has_come(*at) => {
                    if approval.is_some() {
                        row.expires = row.expires.max(*at + HEARD);
                    }
                    row.stage = approval.as_deref().map_or(Stage::Denied, |yes| Stage::Approved(Box::new(yes.clone())));
                    Ok(())
                }
                _ => Err(Conflict),
            },
            Change::RedeemDevice { device, at } => match self.devices.get_mut(&device.0) {
                Some(row) if matches!(row.stage, Stage::Approved(_)) && !row.expires.has_come(*at) => {
                    row.stage = Stage::Redeemed;
                    Ok(())
                }
                _ => Err(Conflict),
            },
            Change::DropApprovalsOf { user, client } => {
                let theirs = |device: &Device| {
                    approver(device) == Some(user) && client.as_ref().is_none_or(|client| *client == device.client)
                };
                self.devices.retain(|_, device| !theirs(device));
                Ok(())
            }
            other => unreachable!("no law makes this change: {other:?}"),
        }
    }

    fn key(&mut self, kid: &rules::id::Kid, change: impl Fn(&mut Key)) -> Made {
        let found = self.keys.iter_mut().find(|key| key.kid == *kid);
        found.map(change).ok_or(Conflict)
    }
}

fn approver(device: &Device) -> Option<&UserId> {
    match &device.stage {
        Stage::Approved(approval) => Some(&approval.user),
        _ => None,
    }
}

/// Facts as the store joins them.
impl Tables {
    /// A family in context.
    pub fn family(&self, id: &FamilyId) -> Option<family::Found> {
        let family = self.families.get(id)?.clone();
        let session = family.session.as_ref().and_then(|id| self.sessions.get(id)).cloned();
        let user = self.users.get(&family.user).cloned();
        Some(family::Found { family, session, user, groups: Vec::new() })
    }
    /// A code in context.
    pub fn code(&self, family: &FamilyId) -> Option<code::Found> {
        let code = self.codes.get(family)?.clone();
        let session = self.sessions.get(&code.session).cloned();
        let user = self.users.get(&code.user).cloned();
        let consent = self.given(&code.user, &code.client);
        let ended = |family: &Family| family.revoked_at.is_some();
        let over = code.redeemed_at.is_some() && self.families.get(family).is_none_or(ended);
        Some(code::Found { code, session, user, consent, groups: Vec::new(), over })
    }
    fn given(&self, user: &UserId, client: &ClientId) -> Option<Time> {
        self.consents.get(&(user.clone(), client.clone())).map(|consent| consent.granted)
    }
    /// A device's request in context.
    pub fn device(&self, handle: &[u8; 32]) -> Option<device::Found> {
        let device = self.devices.get(handle)?.clone();
        let (session, user) = match &device.stage {
            Stage::Approved(yes) => (self.sessions.get(&yes.session).cloned(), self.users.get(&yes.user).cloned()),
            _ => (None, None),
        };
        Some(device::Found { device, session, user, groups: Vec::new() })
    }
    /// The session that a cookie names, and whose it is.
    pub fn session(&self, cookie: &Cookie) -> Option<(Session, User)> {
        let session = self.sessions.get(&cookie.id)?.clone();
        let user = self.users.get(&session.user)?.clone();
        Some((session, user))
    }
    /// A client that may be used.
    pub fn client(&self, id: &ClientId) -> Option<&Client> {
        self.clients.get(id).filter(|client| client.is_enabled())
    }
}
