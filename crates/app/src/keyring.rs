//! Secrets of the server: the master key, the keys derived from it, and the signing keys that it seals.

use crate::cache::At;
use crate::{App, Fault};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rules::id::Kid;
use rules::jose::{self, Alg, Jwk, JwkSet, SigningKey, VerifyingKey};
use rules::keys::{self, Key};
use rules::login::cookie::Seal;
use rules::oauth::family::Sealing;
use rules::secret::mac;
use rules::{Fresh, Span, Time};
use zeroize::Zeroizing;

/// The algorithms that a realm has keys for from the start.
pub const ALGS: [Alg; 3] = Alg::OURS;

/// The keys that are derived from the master key.
pub struct Keyring {
    seal: LessSafeKey,
    /// For refresh tokens.
    pub sealing: Sealing,
    /// For session cookies.
    pub session: Seal,
    /// For login flows and CSRF tokens.
    pub flow: Zeroizing<[u8; 32]>,
    /// For counters of failures and for user codes.
    pub lookup: Zeroizing<[u8; 32]>,
    /// For the salts of accounts that do not exist.
    pub decoy: Zeroizing<[u8; 32]>,
    /// For the names of known devices.
    pub device: Zeroizing<[u8; 32]>,
    /// By which hash workers know the server, whichever node they reach.
    pub workers: Zeroizing<[u8; 32]>,
}

impl Keyring {
    /// Derives every key from the 32 bytes of the master key.
    pub fn new(master: &[u8; 32]) -> Result<Self, Fault> {
        let derive = |label: &str| mac(master, &[b"portiere", label.as_bytes()]);
        let broken = |_| Fault::Broken("the master key cannot be used".into());
        Ok(Keyring {
            seal: LessSafeKey::new(
                UnboundKey::new(&AES_256_GCM, &*Zeroizing::new(derive("signing keys"))).map_err(broken)?,
            ),
            sealing: Sealing { tag: derive("refresh tag"), grace: derive("refresh grace") },
            session: Seal::new(derive("session cookie")),
            flow: Zeroizing::new(derive("flow")),
            lookup: Zeroizing::new(derive("lookup")),
            decoy: Zeroizing::new(derive("decoy")),
            device: Zeroizing::new(derive("device")),
            workers: Zeroizing::new(derive("workers")),
        })
    }

    /// Encrypts a private key, bound to its `kid`.
    fn seal(&self, kid: &Kid, private: &[u8], nonce: [u8; NONCE_LEN]) -> Result<Vec<u8>, Fault> {
        let mut text = private.to_vec();
        self.seal
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(kid.as_str()), &mut text)
            .map_err(|_| Fault::Broken("a signing key could not be sealed".into()))?;
        Ok([nonce.as_slice(), &text].concat())
    }

    fn unseal(&self, key: &Key) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let wrong =
            || Fault::Foreign(format!("signing key {} cannot be decrypted: it belongs to another master key", key.kid));
        let (nonce, text) = key.sealed.split_first_chunk::<NONCE_LEN>().ok_or_else(wrong)?;
        let mut text = Zeroizing::new(text.to_vec());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = self.seal.open_in_place(nonce, Aad::from(key.kid.as_str()), &mut text).map_err(|_| wrong())?.len();
        text.truncate(plain);
        Ok(text)
    }

    /// Makes a new key, sealed.
    pub fn make(&self, alg: Alg, now: Time, fresh: &Fresh) -> Result<Key, Fault> {
        let broken = |why: &'static str| Fault::Broken(format!("no {} key could be made: {why}", alg.name()));
        let private = jose::generate(alg).map_err(|error| broken(error.why()))?;
        let kid = Kid(fresh.name(&format!("kid {}", alg.name())));
        let signer = SigningKey::from_pkcs8(alg, kid.clone(), &private).map_err(|error| broken(error.why()))?;
        let public = serde_json::to_string(&signer.public_jwk()).map_err(|_| broken("its JWK cannot be written"))?;
        let nonce_source = fresh.bytes(&format!("nonce {}", alg.name()));
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&nonce_source[..NONCE_LEN]);
        let sealed = self.seal(&kid, &private, nonce)?;
        Ok(Key { kid, alg, public, sealed, created: now, active_from: now, publish_until: None, revoked_at: None })
    }

    /// Opens the keys of a realm: of those whose private half was destroyed, the public one.
    pub fn open(&self, mut rows: Vec<Key>) -> Result<Keys, Fault> {
        let (mut ready, mut past) = (Vec::with_capacity(rows.len()), Vec::new());
        for key in &rows {
            if key.revoked_at.is_some() {
                continue;
            }
            let broken = |error: jose::KeyError| Fault::Broken(format!("signing key {}: {}", key.kid, error.why()));
            if key.sealed.is_empty() {
                let public = Jwk::parse(key.public.as_bytes()).map_err(broken)?;
                past.push(public.verifying_key(key.alg).map_err(broken)?);
                continue;
            }
            let signer = SigningKey::from_pkcs8(key.alg, key.kid.clone(), &self.unseal(key)?).map_err(broken)?;
            let verifier = signer.verifying_key().map_err(broken)?;
            ready.push(Ready { kid: key.kid.clone(), signer, verifier });
        }
        rows.retain(|key| !key.sealed.is_empty());
        Ok(Keys { rows, ready, past })
    }
}

struct Ready {
    kid: Kid,
    signer: SigningKey,
    verifier: VerifyingKey,
}

/// The signing keys of a realm, opened.
pub struct Keys {
    /// The keys as they are stored, but for those that cannot sign any more.
    pub rows: Vec<Key>,
    ready: Vec<Ready>,
    past: Vec<VerifyingKey>,
}

impl Keys {
    /// Returns the key that signs with `alg` now.
    pub fn signer(&self, alg: Alg, now: Time) -> Result<&SigningKey, Fault> {
        self.signing(alg, now).map(|ready| &ready.signer)
    }
    /// Returns the id of the key that signs with `alg` now.
    pub fn kid(&self, alg: Alg, now: Time) -> Result<&Kid, Fault> {
        self.signing(alg, now).map(|ready| &ready.kid)
    }
    fn signing(&self, alg: Alg, now: Time) -> Result<&Ready, Fault> {
        keys::signer(&self.rows, alg, now)
            .and_then(|key| self.ready.iter().find(|ready| ready.kid == key.kid))
            .ok_or_else(|| Fault::Unavailable(format!("there is no {} key to sign with", alg.name())))
    }
    /// Returns the keys whose signatures are accepted now.
    pub fn verifiers(&self, now: Time) -> impl Iterator<Item = &VerifyingKey> {
        let published = move |ready: &&Ready| self.rows.iter().any(|key| key.kid == ready.kid && key.is_published(now));
        self.ready.iter().filter(published).map(|ready| &ready.verifier)
    }
    /// Returns the keys that ever signed for us and were not revoked, for what outlives a key's publication: it tells
    /// who was once signed in, and lets nobody in.
    pub fn ever(&self) -> impl Iterator<Item = &VerifyingKey> {
        self.ready.iter().map(|ready| &ready.verifier).chain(&self.past)
    }
    /// Returns the public key set (RFC 7517 §5).
    pub fn public(&self, now: Time) -> JwkSet {
        let published =
            self.ready.iter().filter(|ready| self.rows.iter().any(|key| key.kid == ready.kid && key.is_published(now)));
        JwkSet { keys: published.map(|ready| ready.signer.public_jwk()).collect() }
    }
}

impl App {
    /// Returns the realm's public key set as JSON, with what it counts for: see [`App::counts`].
    pub async fn jwks(&self) -> Result<(At, String), Fault> {
        let epoch = self.epoch().await?;
        let set = self.keys(epoch).await?.public(self.clock.now());
        let json = serde_json::to_string(&set).map_err(|error| Fault::Broken(error.to_string()))?;
        Ok((self.at(epoch), json))
    }

    /// Returns how old the signing key of each algorithm is, as far as it is known without asking the database.
    pub fn key_ages(&self) -> Vec<(&'static str, Span)> {
        let (Some(held), now) = (self.held_keys(), self.clock.now()) else { return Vec::new() };
        let age = |alg| keys::signer(&held.rows, alg, now).map(|key| (Alg::name(alg), now.since(key.active_from)));
        ALGS.into_iter().filter_map(age).collect()
    }

    /// Makes the realm and the keys that it lacks, and opens those that it has, so that a wrong master key shows at
    /// the start.
    pub async fn prepare(&self) -> Result<(), Fault> {
        let begin = store::tables::realms::begin(&self.realm.id, &self.realm.issuer, self.clock.now());
        self.engine.commit(vec![begin]).await?;
        self.keys(self.epoch().await?).await?;
        self.bring_in(|rows, alg, now| keys::signer(rows, alg, now).is_none()).await?;
        // Of two nodes that find no keys at the same moment, one is first: the keys are those of its master key.
        self.keys(self.epoch().await?).await?;
        self.confirm_secrets().await
    }

    /// Returns the longest lifetime of a token that a key signs.
    pub(crate) fn longest_token(&self) -> Span {
        self.realm.settings.access_ttl.max(self.realm.settings.id_ttl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_ring_is_wiped() {
        // The library that seals wipes its own; whatever is added has to be named here.
        fn wiped<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        let Keyring { seal: _, sealing, session, flow, lookup, decoy, device, workers } =
            Keyring::new(&[7; 32]).unwrap();
        wiped(&sealing);
        wiped(&session);
        [flow, lookup, decoy, device, workers].iter().for_each(wiped);
    }

    #[test]
    fn oidc_7_what_outlives_a_key_is_believed_until_that_key_is_thrown_out() {
        let (keyring, now) = (Keyring::new(&[7; 32]).unwrap(), Time(1_800_000_000_000));
        let made = |round: u8| keyring.make(Alg::ES256, now, &Fresh::new([round; 32])).unwrap();
        let active = made(1);
        let retired = Key { publish_until: Some(now), ..made(2) };
        let thrown_out = Key { revoked_at: Some(now), ..made(3) };
        let kids = [&active, &retired].map(|key| key.kid.clone());
        let keys = keyring.open(vec![active, retired, thrown_out]).unwrap();
        assert_eq!(keys.verifiers(now).filter_map(VerifyingKey::kid).collect::<Vec<_>>(), [&kids[0]]);
        assert_eq!(keys.ever().filter_map(VerifyingKey::kid).collect::<Vec<_>>(), [&kids[0], &kids[1]]);
    }
}
