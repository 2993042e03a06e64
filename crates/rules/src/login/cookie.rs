//! The session cookie: which session, and the secret that proves it.

use crate::fresh::Fresh;
use crate::id::SessionId;
use crate::secret::{Secret, base64url, from_base64url, mac, same};
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// The server's secret for session cookies: what it made is known without asking the database.
#[derive(Clone)]
pub struct Seal(Zeroizing<[u8; 32]>);

/// What it holds wipes itself.
impl ZeroizeOnDrop for Seal {}

impl Seal {
    /// From 32 bytes.
    pub fn new(key: [u8; 32]) -> Self {
        Seal(Zeroizing::new(key))
    }
    fn tag(&self, id: &SessionId, chance: &[u8]) -> [u8; HALF] {
        let mut tag = [0; HALF];
        tag.copy_from_slice(&mac(&*self.0, &[id.as_str().as_bytes(), chance])[..HALF]);
        tag
    }
}

/// The length of the random part and of the tag, in bytes.
const HALF: usize = 16;

/// The value of a session cookie. Both halves change hands only here. The secret half is a random part and a tag, and
/// proves a session as a whole, by its hash: in version 0.1 all of it was random, and such a secret goes on doing so.
#[derive(Clone, Debug)]
pub struct Cookie {
    /// Which session.
    pub id: SessionId,
    /// The proof.
    pub secret: Secret,
}

impl Cookie {
    /// Makes the cookie of a session that begins, or gets a new secret.
    pub fn make(id: &SessionId, seal: &Seal, fresh: &Fresh) -> Self {
        let chance = &fresh.bytes("session")[..HALF];
        let secret = Secret::new(base64url(&[chance, &seal.tag(id, chance)].concat()));
        Cookie { id: id.clone(), secret }
    }
    /// Whether it was made here, which an ID token's `sid` with an invented secret was not.
    pub fn is_sealed(&self, seal: &Seal) -> bool {
        let bytes = from_base64url(self.secret.reveal()).unwrap_or_default();
        bytes.split_at_checked(HALF).is_some_and(|(chance, tag)| same(&seal.tag(&self.id, chance), tag))
    }
    /// `sid.secret`, both in the cookie alphabet.
    pub fn write(&self) -> String {
        format!("{}.{}", self.id, self.secret.reveal())
    }
    /// Reads what [`Cookie::write`] wrote; `None` for anything else.
    pub fn read(text: &str) -> Option<Self> {
        let (id, secret) = text.split_once('.')?;
        let plain = |part: &str, length| {
            part.len() == length && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        (plain(id, 26) && plain(secret, 43)).then(|| Cookie { id: id.into(), secret: Secret::new(secret) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    fn made() -> (Cookie, Seal) {
        let (fresh, seal) = (Fresh::new([1; 32]), Seal::new([2; 32]));
        (Cookie::make(&SessionId(fresh.ordered("sid", Time(1))), &seal, &fresh), seal)
    }

    #[test]
    fn a_cookie_reads_back_and_nothing_else_does() {
        let (cookie, seal) = made();
        let text = cookie.write();
        let read = Cookie::read(&text).expect("ours");
        assert!(read.secret.handle() == cookie.secret.handle() && read.is_sealed(&seal));
        for wrong in ["", ".", &text[1..], &format!("{text}A"), &text.replace('.', ":")] {
            assert!(Cookie::read(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn no_changed_cookie_is_one_that_was_made_here() {
        let (cookie, seal) = made();
        let text = cookie.write();
        for at in 0..text.len() {
            for other in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_".chars() {
                let mut changed: Vec<char> = text.chars().collect();
                if changed[at] == other {
                    continue;
                }
                changed[at] = other;
                let read = Cookie::read(&changed.into_iter().collect::<String>());
                assert!(read.is_none_or(|cookie| !cookie.is_sealed(&seal)), "{at} {other}");
            }
        }
        let invented = Cookie { secret: Fresh::new([3; 32]).secret("session"), ..cookie.clone() };
        assert!(!invented.is_sealed(&seal) && !cookie.is_sealed(&Seal::new([3; 32])));
    }
}
