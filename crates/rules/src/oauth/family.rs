//! A family: everything that descends from one approval, and the refresh token that carries it on.

use super::client::Client;
use super::code::Granted;
use crate::fresh::{base32hex, from_base32hex, time_of};
use crate::id::{ClientId, FamilyId, LifeId, SessionId, UserId};
use crate::login::session::Session;
use crate::people::User;
use crate::realm::{Settings, is_believable};
use crate::secret::{Handle, Secret, base64url, from_base64url, mac, same};
use crate::time::{Span, Time};
use zeroize::ZeroizeOnDrop;

/// A family as stored: one row, whatever happens to its tokens.
#[derive(Clone, Debug)]
pub struct Family {
    /// Its id; every token carries it.
    pub id: FamilyId,
    /// The client that it began for.
    pub client: ClientId,
    /// The life of the client in which it began.
    pub life: Option<LifeId>,
    /// The user that it began for.
    pub user: UserId,
    /// The session that it lives and dies with; `None` with `offline_access`.
    pub session: Option<SessionId>,
    /// What was approved.
    pub granted: Granted,
    /// Its refresh token, if it has one.
    pub refresh: Option<Refresh>,
    /// When it began.
    pub created: Time,
    /// It expires then unless it is used.
    pub idle_until: Time,
    /// It expires then, used or not.
    pub expires: Time,
    /// When it was revoked.
    pub revoked_at: Option<Time>,
}

impl Family {
    /// Whether it began for this client, in the client's current life.
    pub fn is_of(&self, client: &Client) -> bool {
        self.client == client.id && client.owns(self.life.as_ref(), self.created)
    }
    /// Whether it, its approval and the sign-in before that were all dated by clocks that were not ahead.
    fn is_believable(&self, now: Time) -> bool {
        let dated = [time_of(self.id.as_str()), self.created, self.granted.auth_time];
        dated.into_iter().all(|dated| is_believable(dated, now))
    }
}

/// The state of a family's refresh token.
#[derive(Clone, Debug)]
pub struct Refresh {
    /// The current token, which rotates.
    pub current: Handle,
    /// The token before it, with what leads from it to the current one.
    pub previous: Option<Previous>,
    /// How many tokens came before the current one.
    pub turn: i64,
}

impl Refresh {
    /// Whether a token is the current one, or the one before that, also after its grace.
    pub fn is_recent(&self, token: &Secret) -> bool {
        let presented = token.handle();
        presented == self.current || self.previous.is_some_and(|previous| previous.handle == presented)
    }
}

/// The immediate predecessor of the current refresh token.
#[derive(Clone, Copy, Debug)]
pub struct Previous {
    /// Its hash.
    pub handle: Handle,
    /// Until when it still yields its successor.
    pub until: Time,
    /// The successor's random part, masked with a MAC of the predecessor: worthless without the predecessor.
    pub bridge: [u8; 32],
}

/// What a rotation writes, guarded by the token that it replaces.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// The current token, which becomes the previous one.
    pub was: Handle,
    /// The successor.
    pub current: Handle,
    /// The predecessor, with its grace.
    pub previous: Previous,
    /// The family expires then unless it is used.
    pub idle_until: Time,
    /// How many tokens came before the successor.
    pub turn: i64,
}

/// How far ahead a date may be for the token's holder to be told to come back: wrong clocks are corrected within that
/// time, or not at all.
const EARLY: Span = Span::days(1);

/// A family with the facts around it.
#[derive(Clone, Debug)]
pub struct Found {
    /// The family.
    pub family: Family,
    /// Its session, if it has one and that still exists.
    pub session: Option<Session>,
    /// Its user, if they still exist.
    pub user: Option<User>,
    /// The user's groups.
    pub groups: Vec<String>,
}

impl Found {
    /// Whether its descendants may be used: family, session and user are all live. Checking the client's state is left
    /// to the caller, which looks the client up anyway.
    pub fn is_live(&self, settings: &Settings, now: Time) -> bool {
        let session = self.session.as_ref().filter(|_| self.family.session.is_some());
        self.lasts(settings, now)
            && self.family.is_believable(now)
            && session.is_none_or(|session| session.is_live(settings, now))
    }
    /// Whether only a date keeps it from being used, and that date will be past before long: either the clock that set
    /// the date or the clock that says `now` is wrong.
    pub fn is_early(&self, settings: &Settings, now: Time) -> bool {
        let (soon, session) = (now + EARLY, self.session.as_ref().filter(|_| self.family.session.is_some()));
        self.lasts(settings, now)
            && !self.is_live(settings, now)
            && self.family.is_believable(soon)
            && session.is_none_or(|session| session.is_believable(soon))
    }
    /// Whether there is anything to end: one dated by a clock that was ahead is unusable now, but may not be later, and
    /// one that has just expired may be live at another node.
    pub fn can_end(&self, settings: &Settings, now: Time) -> bool {
        self.lasts(settings, settings.by_the_slowest(now))
    }
    /// Whether nobody has ended it or what it depends on, and it is not over at `at`.
    fn lasts(&self, settings: &Settings, at: Time) -> bool {
        let family = &self.family;
        let session_lasts = match (&family.session, &self.session) {
            (None, _) => true,
            (Some(id), Some(session)) => session.id == *id && session.lasts(settings, at),
            (Some(_), None) => false,
        };
        family.revoked_at.is_none()
            && !family.expires.has_come(at)
            && session_lasts
            && self.user.as_ref().is_some_and(|user| user.id == family.user && user.is_enabled())
    }
}

/// The server's secrets for refresh tokens. Their memory is cleared after use.
#[derive(ZeroizeOnDrop)]
pub struct Sealing {
    /// Proves that a token is one of ours without asking the database.
    pub tag: [u8; 32],
    /// Masks the bridge from a predecessor to its successor.
    pub grace: [u8; 32],
}

/// A refresh token in its parts: family (16 bytes), random part (32 bytes), tag (16 bytes), as base64url.
pub struct RefreshToken {
    /// The family that it carries on.
    pub family: FamilyId,
    /// The token as sent.
    pub secret: Secret,
    chance: [u8; 32],
}

impl RefreshToken {
    /// Makes a token of `family` from 256 random bits. `None` when the family's id is not one of ours.
    pub fn make(family: &FamilyId, chance: [u8; 32], sealing: &Sealing) -> Option<Self> {
        let mut bytes = Vec::with_capacity(64);
        bytes.extend(from_base32hex(family.as_str())?);
        bytes.extend(chance);
        let tag = mac(&sealing.tag, &[&bytes]);
        bytes.extend(&tag[..16]);
        Some(RefreshToken { family: family.clone(), secret: Secret::new(base64url(&bytes)), chance })
    }
    /// Reads a token that we made; anything else, down to the last bit, is refused (RFC 9700 §4.14.2).
    pub fn read(text: &str, sealing: &Sealing) -> Option<Self> {
        if text.len() != 86 {
            return None;
        }
        let bytes = from_base64url(text).filter(|bytes| bytes.len() == 64)?;
        if !same(&mac(&sealing.tag, &[&bytes[..48]])[..16], &bytes[48..]) {
            return None;
        }
        let family = FamilyId(base32hex(bytes[..16].try_into().ok()?));
        Some(RefreshToken { family, secret: Secret::new(text), chance: bytes[16..48].try_into().ok()? })
    }
    /// Returns the mask between this token and its successor.
    fn mask(&self, sealing: &Sealing) -> [u8; 32] {
        mac(&sealing.grace, &[self.secret.reveal().as_bytes()])
    }
    /// Returns what to store so that this token can yield `successor` again.
    pub fn bridge_to(&self, successor: &RefreshToken, sealing: &Sealing) -> [u8; 32] {
        xor(self.mask(sealing), successor.chance)
    }
    /// Returns the successor that `bridge` leads to.
    pub fn successor(&self, bridge: [u8; 32], sealing: &Sealing) -> Option<RefreshToken> {
        RefreshToken::make(&self.family, xor(self.mask(sealing), bridge), sealing)
    }
}

fn xor(mut a: [u8; 32], b: [u8; 32]) -> [u8; 32] {
    a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
    a
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Fresh;
    use crate::login::cookie::Seal;
    use crate::login::session::{Entry, Method, Origin, enter};
    use crate::oauth::claims::ClaimsRequest;
    use crate::oauth::scope::Scope;
    use crate::people::user::tests::person;
    use crate::realm::SKEW;

    fn sealing() -> Sealing {
        Sealing { tag: [1; 32], grace: [2; 32] }
    }

    fn token() -> RefreshToken {
        let fresh = Fresh::new([9; 32]);
        RefreshToken::make(&fresh.family(Time(1_000)), fresh.bytes("refresh"), &sealing()).expect("ours")
    }

    #[test]
    fn co_10_no_changed_token_is_read() {
        let text = token().secret.reveal().to_owned();
        assert!(RefreshToken::read(&text, &sealing()).is_some());
        for end in 0..text.len() {
            assert!(RefreshToken::read(&text[..end], &sealing()).is_none());
        }
        for at in 0..text.len() {
            for other in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ ".chars() {
                let mut changed: Vec<char> = text.chars().collect();
                if changed[at] != other {
                    changed[at] = other;
                    let changed: String = changed.into_iter().collect();
                    assert!(RefreshToken::read(&changed, &sealing()).is_none(), "{at} {other}");
                }
            }
        }
        for changed in [format!("{text}A"), format!(" {text}"), format!("{text} "), text.to_lowercase()] {
            assert!(RefreshToken::read(&changed, &sealing()).is_none());
        }
    }

    const NOW: Time = Time(1_000_000);

    /// A family of Ada's that began at `at` and lasts two days, or one if nobody uses it.
    pub fn begun(client: &str, at: Time) -> Family {
        let granted = Granted {
            scope: Scope::from("openid".to_owned()),
            resources: vec![],
            auth_time: at,
            amr: vec![],
            acr: String::new(),
            nonce: None,
            claims: ClaimsRequest::default(),
            session: None,
        };
        Family {
            id: "family".into(),
            client: client.into(),
            life: None,
            user: "ada".into(),
            session: None,
            granted,
            refresh: None,
            created: at,
            idle_until: at + Span::days(1),
            expires: at + Span::days(2),
            revoked_at: None,
        }
    }

    /// A family that began now, with the session that it lives in.
    fn found() -> Found {
        let (user, fresh) = (person("ada"), Fresh::new([4; 32]));
        let entry = Entry { user: &user, method: Method::Password, before: None, origin: &Origin::default() };
        let session =
            enter(&entry, &Settings::default(), &Seal::new([0; 32]), (NOW, &fresh)).reply.expect("starts").session;
        let family = Family {
            id: fresh.family(NOW),
            user: user.id.clone(),
            session: Some(session.id.clone()),
            granted: Granted { acr: "1".into(), ..begun("shop", NOW).granted },
            ..begun("shop", NOW)
        };
        Found { family, session: Some(session), user: Some(user), groups: vec![] }
    }

    #[test]
    fn what_a_clock_dated_that_was_ahead_is_not_used_and_can_end() {
        // red without each of the three times in `is_believable`, or without `is_live` of the session.
        let settings = Settings::default();
        let dates: [fn(&mut Found, Time); 4] = [
            |found, at| found.family.id = Fresh::new([4; 32]).family(at),
            |found, at| found.family.created = at,
            |found, at| found.family.granted.auth_time = at,
            |found, at| found.session.as_mut().into_iter().for_each(|session| session.created = at),
        ];
        let believed = NOW + SKEW + SKEW;
        for (dated, live) in [(believed, true), (believed + Span(1), false), (NOW + Span::days(365), false)] {
            for (which, date) in dates.iter().enumerate() {
                let mut found = found();
                date(&mut found, dated);
                assert_eq!(found.is_live(&settings, NOW), live, "{which} {dated:?}");
                assert!(found.can_end(&settings, NOW), "{which} {dated:?}");
                // Red where it is early for ever, or never.
                let early = dated > believed && dated < NOW + EARLY;
                assert_eq!(found.is_early(&settings, NOW), early, "{which} {dated:?}");
            }
        }
    }

    #[test]
    fn what_has_expired_here_can_end_while_another_clock_may_believe_it() {
        // red where `can_end` asks this node's clock alone; where what has expired is early.
        let settings = Settings::default();
        let ends: [fn(&mut Found, Time); 2] = [
            |found, at| found.family.expires = at,
            |found, at| found.session.as_mut().into_iter().for_each(|session| session.expires = at),
        ];
        for end in ends {
            for (expires, can) in [(NOW, true), (NOW - SKEW - SKEW + Span(1), true), (NOW - SKEW - SKEW, false)] {
                let mut found = found();
                end(&mut found, expires);
                assert!(!found.is_live(&settings, NOW) && !found.is_early(&settings, NOW), "{expires:?}");
                assert_eq!(found.can_end(&settings, NOW), can, "{expires:?}");
            }
        }
    }

    #[test]
    fn what_has_ended_is_neither_used_nor_ended_again() {
        let settings = Settings::default();
        let ends: [fn(&mut Found); 6] = [
            |found| found.family.revoked_at = Some(NOW),
            |found| found.family.expires = NOW - SKEW - SKEW,
            |found| found.session = None,
            |found| found.session.as_mut().into_iter().for_each(|session| session.ended_at = Some(NOW)),
            |found| found.user = None,
            |found| found.user.as_mut().into_iter().for_each(|user| user.disabled_at = Some(NOW)),
        ];
        for (which, end) in ends.iter().enumerate() {
            let mut found = found();
            assert!(found.is_live(&settings, NOW) && found.can_end(&settings, NOW));
            end(&mut found);
            assert!(!found.is_live(&settings, NOW) && !found.can_end(&settings, NOW), "{which}");
            assert!(!found.is_early(&settings, NOW), "{which}");
        }
        // A family that outlives its session needs none.
        let mut offline = found();
        (offline.family.session, offline.session) = (None, None);
        assert!(offline.is_live(&settings, NOW));
    }

    #[test]
    fn a_predecessor_leads_to_the_same_successor() {
        let (first, fresh) = (token(), Fresh::new([3; 32]));
        let second = RefreshToken::make(&first.family, fresh.bytes("refresh"), &sealing()).expect("ours");
        let bridge = first.bridge_to(&second, &sealing());
        let again = first.successor(bridge, &sealing()).expect("ours");
        assert_eq!(again.secret.reveal(), second.secret.reveal());
        assert_ne!(bridge, second.chance);
    }
}
