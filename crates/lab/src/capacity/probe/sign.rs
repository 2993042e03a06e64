//! Signatures and verifications per second, on one core, as tokens are signed and verified.

use crate::capacity::figure::Figure;
use load::Refusal;
use rules::Time;
use rules::id::Kid;
use rules::jose::{self, Alg, Expect, SigningKey, Typ, VerifyingKey};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What one algorithm costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signature {
    /// Its name.
    pub alg: String,
    /// Tokens signed per second.
    pub sign: Figure,
    /// Tokens verified per second.
    pub verify: Figure,
}

const ALGS: [Alg; 3] = [Alg::RS256, Alg::ES256, Alg::EdDSA];
const SPAN: Duration = Duration::from_millis(80);

/// Measures signatures, sample by sample.
pub struct Probe {
    each: Vec<One>,
    claims: Value,
}

struct One {
    alg: Alg,
    key: SigningKey,
    verifying: VerifyingKey,
    token: String,
    sign: Vec<f64>,
    verify: Vec<f64>,
}

/// The time at which the tokens are made and verified.
const NOW: Time = Time(1_000_000);

impl Probe {
    /// Creates its own keys.
    ///
    /// # Errors
    /// [`Refusal::Failure`].
    pub fn new() -> Result<Probe, Refusal> {
        let claims = json!({
            "iss": "https://login.example.com", "sub": "q3Z1b0x5c2ZrYm1tcXhwYw", "aud": "https://login.example.com/api",
            "client_id": "shop", "exp": 1_300, "iat": 1_000, "jti": "0123456789abcdefghijklmnop.0123456789",
            "scope": "openid profile email", "auth_time": 1_000, "sid": "0123456789abcdefghijklmnop",
        });
        let each = ALGS.into_iter().map(|alg| One::new(alg, &claims)).collect::<Result<_, _>>()?;
        Ok(Probe { each, claims })
    }

    /// Takes one more sample of everything.
    ///
    /// # Errors
    /// [`Refusal::Failure`].
    pub fn round(&mut self) -> Result<(), Refusal> {
        let expect = Expect::new(&ALGS, &[Typ::AccessToken], NOW);
        for one in &mut self.each {
            one.sign.push(rate(|| one.key.sign(Typ::AccessToken, &self.claims).is_ok())?);
            one.verify.push(rate(|| jose::verify(&one.token, [&one.verifying], &expect).is_ok())?);
        }
        Ok(())
    }

    /// Returns the results.
    pub fn done(self) -> Vec<Signature> {
        let figures = |one: One| Signature {
            alg: one.alg.name().to_owned(),
            sign: Figure::of(&one.sign),
            verify: Figure::of(&one.verify),
        };
        self.each.into_iter().map(figures).collect()
    }
}

impl One {
    fn new(alg: Alg, claims: &Value) -> Result<One, Refusal> {
        let failed = |_| Refusal::Failure(format!("no key of {} could be made", alg.name()));
        let pkcs8 = jose::generate(alg).map_err(failed)?;
        let key = SigningKey::from_pkcs8(alg, Kid("capacity".to_owned()), &pkcs8).map_err(failed)?;
        let verifying = key.verifying_key().map_err(failed)?;
        let token = key.sign(Typ::AccessToken, claims).map_err(|error| Refusal::Failure(error.0.to_owned()))?;
        Ok(One { alg, key, verifying, token, sign: vec![], verify: vec![] })
    }
}

/// Returns how often per second `work` is done on this thread.
fn rate(mut work: impl FnMut() -> bool) -> Result<f64, Refusal> {
    /// Repetitions between two looks at the clock.
    const AT_ONCE: u32 = 8;
    let (begun, mut done) = (Instant::now(), 0);
    while begun.elapsed() < SPAN {
        for _ in 0..AT_ONCE {
            if !black_box(work()) {
                return Err(Refusal::Failure("a signature could not be made or checked".to_owned()));
            }
        }
        done += AT_ONCE;
    }
    Ok(f64::from(done) / begun.elapsed().as_secs_f64())
}
