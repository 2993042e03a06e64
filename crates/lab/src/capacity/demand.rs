//! What each kind of operation demands of the machine: one table, act by act, counted from the code.
//!
//! Reads, commits, hashes and signatures are counts. The rest of a request's cost is a weight in key-set requests, the
//! cheapest request there is, which each machine measures. The weights were measured once, on two idle cores of a Zen
//! 5: the server's processor time per request of a kind in a closed loop, less what the counted acts cost there,
//! divided by that of a key-set request; `docs/decisions/0023-capacity-model.md` has the figures. They change with the
//! code, and hardly with the machine.

use serde::{Deserialize, Serialize};

/// The cost of one of the server's batches to the writer, relative to the batch of three rows that is measured: it has
/// more statements, which touch more pages.
pub const BATCH: f64 = 3.0;

/// The algorithm that signs a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Alg {
    /// Signs ID tokens, unless the application asks for another algorithm.
    Rs256,
    /// Signs access tokens.
    Es256,
    /// Used if an application asks for it.
    EdDsa,
}

impl Alg {
    /// Returns its registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Alg::Rs256 => "RS256",
            Alg::Es256 => "ES256",
            Alg::EdDsa => "EdDSA",
        }
    }
}

/// One step of a request, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    /// The other work of the network thread, in key-set requests.
    Work(f64),
    /// This many point reads, in one fetch.
    Read(u32),
    /// A batch, handed to the writer and waited for.
    Commit,
    /// A password, handed to a hashing thread and waited for.
    Hash,
    /// The signature of a token.
    Sign(Alg),
}

use Act::{Commit, Hash, Read, Sign, Work};

/// One kind of request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Its name in reports of the load generator.
    pub name: &'static str,
    /// Its steps.
    pub acts: &'static [Act],
    /// What sending it costs the load generator, in key-set requests.
    pub asking: f64,
}

/// `app::authorize`: the epoch, the session, its consent; the page with its sealed form.
const AUTHORIZE: Request = Request { name: "authorize", acts: &[Work(2.0), Read(3), Work(1.4)], asking: 4.0 };

/// `app::sign_in`: the account; both counters and the epoch; the attempt is committed before the hash; the epoch,
/// account and session, the consent; session, code, event and the reset of the counter in one batch.
const LOGIN: Request = Request {
    name: "login",
    acts: &[Work(2.6), Read(1), Read(3), Commit, Hash, Read(1), Read(2), Read(1), Work(2.5), Commit, Work(2.5)],
    asking: 6.0,
};

/// `app::token`, a code: the epoch, the code and its user; the family; access token and ID token.
const TOKEN: Request = Request {
    name: "token",
    acts: &[Work(4.0), Read(3), Commit, Sign(Alg::Es256), Sign(Alg::Rs256), Work(4.0)],
    asking: 3.4,
};

/// `app::introspect`: the epoch, the family, its groups, whether the token was revoked. The token was signed here and
/// its signature is known.
const INTROSPECT: Request = Request { name: "introspect", acts: &[Work(1.35), Read(4)], asking: 1.3 };

/// `app::token`, a refresh: the epoch, the family, its groups; the rotation; access token and ID token.
const REFRESH: Request = Request {
    name: "refresh",
    acts: &[Work(4.0), Read(3), Commit, Sign(Alg::Es256), Sign(Alg::Rs256), Work(4.0)],
    asking: 3.0,
};

/// `app::userinfo`: as introspection.
const USERINFO: Request = Request { name: "userinfo", acts: &[Work(1.3), Read(4)], asking: 1.25 };

/// `app::account`: as userinfo, with the account API's token.
const ACCOUNT: Request = Request { name: "account", acts: &[Work(1.3), Read(4)], asking: 1.5 };

/// The key set: the request that is measured. Its one read is included.
const KEYS: Request = Request { name: "jwks", acts: &[Work(1.0)], asking: 1.0 };

/// The metadata.
const DISCOVERY: Request = Request { name: "discovery", acts: &[Work(1.0)], asking: 1.1 };

/// A kind of work that clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// W1: the page, the password, the code, an introspection, a refresh: five requests.
    SignIn,
    /// The refresh grant, rotating.
    Refresh,
    /// RFC 7662.
    Introspect,
    /// The userinfo claims.
    Userinfo,
    /// The key set.
    Keys,
    /// W5, a day's mix.
    Day,
}

/// Requests that follow one another, and their share of a mix.
pub type Course = (f64, &'static [Request]);

impl Operation {
    /// The operations that are predicted, in the order of the report.
    pub const ALL: [Operation; 5] =
        [Operation::SignIn, Operation::Refresh, Operation::Introspect, Operation::Userinfo, Operation::Day];

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::SignIn => "sign-in",
            Operation::Refresh => "refresh",
            Operation::Introspect => "introspection",
            Operation::Userinfo => "userinfo",
            Operation::Keys => "key set",
            Operation::Day => "a day's mix",
        }
    }

    /// Returns its courses, with shares that add up to one. In a day's mix a sign-in ends with the tokens.
    pub const fn courses(self) -> &'static [Course] {
        match self {
            Operation::SignIn => &[(1.0, &[AUTHORIZE, LOGIN, TOKEN, INTROSPECT, REFRESH])],
            Operation::Refresh => &[(1.0, &[REFRESH])],
            Operation::Introspect => &[(1.0, &[INTROSPECT])],
            Operation::Userinfo => &[(1.0, &[USERINFO])],
            Operation::Keys => &[(1.0, &[KEYS])],
            Operation::Day => &[
                (0.05, &[AUTHORIZE, LOGIN, TOKEN]),
                (0.30, &[REFRESH]),
                (0.40, &[INTROSPECT]),
                (0.15, &[USERINFO]),
                (0.01, &[ACCOUNT]),
                (0.045, &[KEYS]),
                (0.045, &[DISCOVERY]),
            ],
        }
    }

    /// Returns the total demand of one operation, on average.
    pub fn demand(self) -> Demand {
        let mut sum = Demand::default();
        for (share, requests) in self.courses() {
            for request in *requests {
                sum.requests += share;
                sum.asking += share * request.asking;
                request.acts.iter().for_each(|act| sum.add(*share, *act));
            }
        }
        sum
    }
}

/// The total demand of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Demand {
    /// Requests.
    pub requests: f64,
    /// Other work of network threads, in key-set requests.
    pub work: f64,
    /// Point reads.
    pub reads: f64,
    /// The fetches that contain these reads.
    pub fetches: f64,
    /// Batches for the writer.
    pub batches: f64,
    /// Passwords.
    pub hashes: f64,
    /// Signatures with RS256.
    pub rs256: f64,
    /// Signatures with ES256.
    pub es256: f64,
    /// Signatures with EdDSA.
    pub eddsa: f64,
    /// What sending the requests costs the load generator, in key-set requests.
    pub asking: f64,
}

impl Demand {
    fn add(&mut self, share: f64, act: Act) {
        match act {
            Work(weight) => self.work += share * weight,
            Read(many) => {
                self.reads += share * f64::from(many);
                self.fetches += share;
            }
            Commit => self.batches += share,
            Hash => self.hashes += share,
            Sign(Alg::Rs256) => self.rs256 += share,
            Sign(Alg::Es256) => self.es256 += share,
            Sign(Alg::EdDsa) => self.eddsa += share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_mix_add_up_to_one() {
        for operation in Operation::ALL.into_iter().chain([Operation::Keys]) {
            let whole: f64 = operation.courses().iter().map(|(share, _)| share).sum();
            assert!((whole - 1.0).abs() < 1e-9, "{operation:?}: {whole}");
        }
    }

    #[test]
    fn a_sign_in_is_five_requests_one_hash_and_four_batches() {
        let demand = Operation::SignIn.demand();
        assert_eq!((demand.requests, demand.hashes, demand.batches), (5.0, 1.0, 4.0));
        assert_eq!((demand.rs256, demand.es256), (2.0, 2.0));
    }
}
