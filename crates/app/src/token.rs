//! The token endpoint: the phases that every grant shares, then those of each grant. Tokens of the account API are
//! signed here, too.

use crate::keyring::Keys;
use crate::settle::Ahead;
use crate::stopwatch::{Stage, lap};
use crate::tally::Issued;
use crate::{App, Fault, asked};
use rules::decision::{Change, Decision};
use rules::events::Rejection;
use rules::id::FamilyId;
use rules::jose::{Alg, SigningKey, Typ, at_hash};
use rules::login::session::Session;
use rules::oauth::client::{Client, Grant};
use rules::oauth::client_auth::{self, Means, NAME_ALONE, Proof, Unproved};
use rules::oauth::code::{self, Redemption};
use rules::oauth::error::{Code, Error};
use rules::oauth::family::{self, RefreshToken};
use rules::oauth::first_party::{self, Beginning};
use rules::oauth::params::Params;
use rules::oauth::refresh::{self, Renewal};
use rules::oauth::token::{Access, Context, IdToken, Tokens};
use rules::oauth::{device, resource, token};
use rules::people::User;
use rules::secret::{Handle, Secret};
use rules::{Fresh, Time};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;
use store::engine::CommitError;
use store::tables::fences::Holds;
use store::tables::realms::{AtEpoch, Epoch};
use store::tables::{codes, devices, families, groups};

/// Tokens on the wire (RFC 6749 §5.1).
#[derive(Debug)]
pub struct Handed {
    /// The access token.
    pub access_token: Secret,
    /// How long the access token is good, in seconds.
    pub expires_in: i64,
    /// What the access token is good for.
    pub scope: String,
    /// The ID token.
    pub id_token: Option<Secret>,
    /// The refresh token.
    pub refresh_token: Option<Secret>,
}

/// Tokens that were decided, and the keys that sign them: after the commit, nothing more is asked of the database. A
/// client that was told of a failure then would retry with something that is void by now.
pub(crate) struct Given {
    tokens: Tokens,
    keys: Arc<Keys>,
    /// When it was decided, which also says which keys sign, and at which epoch.
    at: (Time, i64),
}

/// Shows none of the tokens.
impl std::fmt::Debug for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Given").finish_non_exhaustive()
    }
}

/// A client is not told which part of its proof was wrong.
const FAILED: &str = "client authentication failed";

/// What a request for tokens rests on: the client, as registered at that epoch, and what it presented.
struct Case {
    epoch: i64,
    client: Arc<Client>,
    presented: Presented,
}

/// What was presented, with what is known of it.
enum Presented {
    Code(Option<code::Found>),
    Refresh(Option<family::Found>),
    Device(Option<device::Found>),
    Nothing,
}

/// A client whose proof was right, as far as can be told before the use of the proof is recorded.
struct Proved {
    client: Arc<Client>,
    used: Vec<Change>,
}

impl App {
    /// Proves a client, as it stands at `epoch`, and counts its request.
    async fn prove_client(&self, proof: &Proof, epoch: i64) -> Result<Result<Proved, Error>, Fault> {
        let proved = self.judge_proof(proof, epoch).await?;
        // Anybody can claim to be a public client, and whoever has a copy of a native one.
        let known = proved.as_ref().ok().filter(|proved| proved.client.proves_itself());
        if let Some((clients, proved)) = self.clients.as_ref().zip(known) {
            let counted = clients.count(&proved.client.id);
            asked::stands(&counted);
            if let Err(over) = counted {
                self.reject(Rejection::Throttled(Some(proved.client.id.clone()))).await;
                return Err(Fault::Over(over));
            }
        }
        Ok(proved)
    }

    async fn judge_proof(&self, proof: &Proof, epoch: i64) -> Result<Result<Proved, Error>, Fault> {
        let client = self.client(&proof.client, epoch).await?;
        let decision = client_auth::prove(proof, client.as_deref(), &self.realm, self.clock.now());
        Ok(match (decision.reply, client) {
            (Ok(()), Some(client)) => Ok(Proved { client, used: decision.changes }),
            (proved, claimed) => {
                let why = proved.err().map(|Unproved(why)| why);
                tracing::debug!(client = proof.client.as_str(), why, "a client was refused");
                // What was sent is no secret: the answer does not depend on the client.
                let told = if matches!(proof.means, Means::Name) { NAME_ALONE } else { FAILED };
                Err(self.not_proved(claimed.as_deref(), told).await)
            }
        })
    }

    /// Proves a client; that uses up an assertion.
    pub async fn authenticate(&self, proof: Proof) -> Result<Result<Arc<Client>, Error>, Fault> {
        let epoch = self.epoch().await?;
        self.authenticate_at(proof, epoch).await
    }

    /// Proves a client as it stands at `epoch`; that uses up an assertion.
    pub(crate) async fn authenticate_at(&self, proof: Proof, epoch: i64) -> Result<Result<Arc<Client>, Error>, Fault> {
        match self.prove_client(&proof, epoch).await? {
            Err(error) => Ok(Err(error)),
            Ok(proved) => Ok(self.use_up(&proved).await?.map(|()| proved.client)),
        }
    }

    /// Records that an assertion was used; refuses one that was used before (RFC 7523 §3, `jti`).
    async fn use_up(&self, proved: &Proved) -> Result<Result<(), Error>, Fault> {
        if proved.used.is_empty() {
            return Ok(Ok(()));
        }
        let (used, now) = (proved.used.clone(), self.clock.now());
        match self.commit(used, now, &crate::entropy::fresh()?).await {
            Ok(()) => Ok(Ok(())),
            // A client that comes back with a new assertion is let in.
            Err(CommitError::Conflict { at: 0, .. }) => {
                let why = "an assertion from before a failover may have been used: not every node has replayed what it \
                           acknowledged";
                Err(Fault::Unavailable(why.to_owned()))
            }
            Err(CommitError::Conflict { .. }) => {
                let why = "the assertion was used before";
                tracing::debug!(client = proved.client.id.as_str(), why, "a client was refused");
                Ok(Err(self.not_proved(Some(&proved.client), FAILED).await))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Handles a request to the token endpoint. Its client is a fact like what it presents: a retry asks for both
    /// again, and a client that was changed meanwhile is judged by what it may have by then.
    pub async fn token(&self, params: &Params, proof: Proof) -> Result<Result<Handed, Error>, Fault> {
        let (epoch, mut presented) = self.look_ahead(params).await?;
        let (proved, ()) = tokio::join!(self.prove_client(&proof, epoch), self.have_keys(epoch));
        let proved = match proved? {
            Ok(proved) => proved,
            Err(error) => return Ok(Err(error)),
        };
        let (used, known) = tokio::join!(self.use_up(&proved), self.know_groups(&proved.client, &mut presented));
        // An assertion is used up whatever comes of the request.
        if let Err(error) = used? {
            return Ok(Err(error));
        }
        known?;
        let grant = match params.get("grant_type") {
            None => return Ok(Err(Error::request("grant_type is missing"))),
            Some(name) => match Grant::parse(name) {
                None => return Ok(Err(Error::new(Code::UnsupportedGrantType, "this grant_type is not supported"))),
                Some(grant) => grant,
            },
        };
        let ahead = &Ahead::of(Ok(Case { epoch, client: proved.client, presented }));
        let proof = &proof;
        let reply = self
            .settle(|now, fresh| async move {
                let mut case = match ahead.or(|| self.look_again(params, proof)).await? {
                    Ok(case) => case,
                    Err(error) => return Ok(Decision::refuse(error)),
                };
                let decision = self.decide(&mut case, params, (now, &fresh)).await?;
                self.given(decision, (now, case.epoch)).await
            })
            .await?;
        match reply {
            Ok(tokens) => self.handed(tokens, grant.into()).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn decide(
        &self,
        case: &mut Case,
        params: &Params,
        at: (Time, &Fresh),
    ) -> Result<Decision<Tokens, Error>, Fault> {
        let client = &*case.client;
        self.know_end(&mut case.presented).await?;
        Ok(match &case.presented {
            Presented::Code(found) => self.redeem(client, params, found.as_ref(), at),
            Presented::Refresh(found) => self.renew(client, params, found.as_ref(), at).await?,
            Presented::Device(found) => self.poll(client, params, found.as_ref(), at),
            Presented::Nothing => self.own(client, params, at),
        })
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context { realm: &self.realm, sealing: &self.keyring.sealing }
    }

    /// Returns the epoch and, in the same round trip, what a code, a refresh token or a device code belongs to. It is
    /// not known yet who presents it: nothing about it is told before that.
    async fn look_ahead(&self, params: &Params) -> Result<(i64, Presented), Fault> {
        let (epoch, presented) = match params.get("grant_type").and_then(Grant::parse) {
            Some(Grant::AuthorizationCode) => {
                let family = params.get("code").and_then(code::family_of);
                let (epoch, found) = self.epoch_of(self.ask(AtEpoch(codes::InContext(family.as_ref()))).await?)?;
                (epoch, Presented::Code(found))
            }
            Some(Grant::RefreshToken) => {
                let token =
                    params.get("refresh_token").and_then(|text| RefreshToken::read(text, &self.keyring.sealing));
                let family = token.as_ref().map(|token| &token.family);
                let (epoch, found) = self.epoch_of(self.ask(AtEpoch(families::InContext(family))).await?)?;
                (epoch, Presented::Refresh(found))
            }
            Some(Grant::DeviceCode) => {
                // An empty code is nobody's.
                let handle = Handle::of(params.get("device_code").unwrap_or(""));
                let (epoch, found) = self.ask((Epoch, devices::InContext(handle))).await?;
                (self.epoch_of(epoch)?, Presented::Device(found))
            }
            Some(Grant::ClientCredentials) | None => (self.epoch_of(self.ask(Epoch).await?)?, Presented::Nothing),
        };
        Ok((epoch, presented))
    }

    /// The same once more, for a client that was proved: its request is counted, and its assertion used up, already.
    async fn look_again(&self, params: &Params, proof: &Proof) -> Result<Result<Case, Error>, Fault> {
        let (epoch, mut presented) = self.look_ahead(params).await?;
        let client = match self.judge_proof(proof, epoch).await? {
            Ok(proved) => proved.client,
            Err(error) => return Ok(Err(error)),
        };
        self.know_groups(&client, &mut presented).await?;
        Ok(Ok(Case { epoch, client, presented }))
    }

    fn redeem(
        &self,
        client: &Client,
        params: &Params,
        found: Option<&code::Found>,
        at: (Time, &Fresh),
    ) -> Decision<Tokens, Error> {
        let code = match params.need("code", "code is missing") {
            Ok(code) => Secret::new(code),
            Err(error) => return Decision::refuse(error),
        };
        let ask = Redemption {
            client,
            code: &code,
            redirect_uri: params.get("redirect_uri"),
            verifier: params.get("code_verifier"),
            resources: named(params),
        };
        code::redeem(&ask, found, &self.context(), at)
    }

    async fn renew(
        &self,
        client: &Client,
        params: &Params,
        found: Option<&family::Found>,
        at: (Time, &Fresh),
    ) -> Result<Decision<Tokens, Error>, Fault> {
        let text = match params.need("refresh_token", "refresh_token is missing") {
            Ok(text) => text,
            Err(error) => return Ok(Decision::refuse(error)),
        };
        if let Err(error) = client.registered_for(Grant::RefreshToken) {
            return Ok(Decision::refuse(error));
        }
        let Some(token) = RefreshToken::read(text, &self.keyring.sealing) else {
            return Ok(Decision::refuse(Error::grant("the refresh token is not valid")));
        };
        self.unless_held(found, &token.family, (client, at.0)).await?;
        let ask = Renewal { client, token: &token, scope: params.get("scope"), resources: named(params) };
        Ok(refresh::renew(&ask, found, &self.context(), at))
    }

    /// Reads the names of the user's groups, if an ID token is to tell them. That is known once it is known what was
    /// granted: a round trip of its own, which most tokens do without.
    async fn know_groups(&self, client: &Client, presented: &mut Presented) -> Result<(), Fault> {
        let (granted, user, known) = match presented {
            Presented::Code(Some(found)) => (&found.code.granted, &found.user, &mut found.groups),
            Presented::Refresh(Some(found)) => (&found.family.granted, &found.user, &mut found.groups),
            Presented::Device(Some(device::Found { device, user, groups, .. })) => match &device.stage {
                device::Stage::Approved(approval) => (&approval.granted, &*user, groups),
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        if let Some(user) = user.as_ref().filter(|_| granted.tells_groups(client)) {
            *known = self.ask(groups::Of(&user.id)).await?;
        }
        Ok(())
    }

    /// Finds out whether what came of a used code is over. Its family is read after the code: what one batch used up
    /// and began is there by then. Fenced families count, since they have not ended.
    async fn know_end(&self, presented: &mut Presented) -> Result<(), Fault> {
        if let Presented::Code(Some(found)) = presented
            && found.code.redeemed_at.is_some()
        {
            let family = self.ask(families::ForEnding(&found.code.family)).await?;
            found.over = family.is_none_or(|found| found.family.revoked_at.is_some());
        }
        Ok(())
    }

    /// Refuses for the moment a token that only has to wait, because a client that is refused throws its token away. It
    /// waits for nodes that have to replay what a failover may have lost (only if nothing was found does that ask once
    /// more), or for a clock that is set right.
    pub(crate) async fn unless_held(
        &self,
        found: Option<&family::Found>,
        id: &FamilyId,
        (client, now): (&Client, Time),
    ) -> Result<(), Fault> {
        if found.is_some_and(|found| found.family.is_of(client) && found.is_early(&self.realm.settings, now)) {
            return Err(Fault::Unavailable(
                "the token is dated later than now: a clock is wrong, here or at another node".into(),
            ));
        }
        match found.is_none() && self.ask(Holds(id, &client.id)).await? {
            true => {
                Err(Fault::Unavailable("a fence holds back what was issued before a failover of the database".into()))
            }
            false => Ok(()),
        }
    }

    fn own(&self, client: &Client, params: &Params, at: (Time, &Fresh)) -> Decision<Tokens, Error> {
        let resources = resource::asked(params, client, &self.realm.issuer);
        token::own(client, params.get("scope"), resources, &self.context(), at)
    }

    fn poll(
        &self,
        client: &Client,
        params: &Params,
        found: Option<&device::Found>,
        at: (Time, &Fresh),
    ) -> Decision<Tokens, Error> {
        match params.need("device_code", "device_code is missing") {
            Ok(_) => device::poll((client, &named(params)), found, &self.context(), at),
            Err(error) => Decision::refuse(error),
        }
    }

    /// Decides the tokens of a session for a first-party client, as the client is by now.
    pub(crate) async fn begun(
        &self,
        client: Option<&Client>,
        (user, session): (&User, &Session),
        at: (Time, &Fresh),
        epoch: i64,
    ) -> Result<Decision<Given, Error>, Fault> {
        let begun = match client {
            Some(client) => first_party::begin(&Beginning { client, user, session }, &self.context(), at),
            None => Decision::refuse(Error::client("the client may not be used")),
        };
        self.given(begun, (at.0, epoch)).await
    }

    /// Adds the keys that will sign the tokens: they are asked for before anything is committed, and the commit requires
    /// that none of them was revoked. A refusal needs none.
    pub(crate) async fn given(
        &self,
        decided: Decision<Tokens, Error>,
        at: (Time, i64),
    ) -> Result<Decision<Given, Error>, Fault> {
        let Decision { changes, reply } = decided;
        let tokens = match reply {
            Ok(tokens) => tokens,
            Err(error) => return Ok(Decision { changes, reply: Err(error) }),
        };
        let keys = self.keys(at.1).await?;
        let mut kids = Vec::with_capacity(2);
        for alg in algs(&tokens) {
            let kid = keys.kid(alg, at.0)?;
            if !kids.contains(kid) {
                kids.push(kid.clone());
            }
        }
        let given = Decision { changes, reply: Ok(Given { tokens, keys, at }) };
        Ok(given.signed_by(kids))
    }

    /// Signs as it was decided, once that is committed.
    pub(crate) fn handed(&self, given: Given, by: Issued) -> Result<Handed, Fault> {
        let Given { tokens, keys, at: (then, epoch) } = given;
        let access_token = match tokens.access {
            Access::Opaque(secret) => secret,
            Access::Jwt { alg, plain_typ, claims } => {
                let typ = if plain_typ { Typ::Jwt } else { Typ::AccessToken };
                let text = signed(keys.signer(alg, then)?, typ, &*claims)?;
                // Our own signature needs no checking when the token comes back.
                self.remember(Handle::of(&text), epoch, &Arc::from(claims));
                Secret::new(text)
            }
        };
        let id_token = match tokens.id {
            None => None,
            Some(IdToken { alg, mut claims }) => {
                claims.insert("at_hash".into(), json!(at_hash(alg, access_token.reveal())));
                Some(Secret::new(signed(keys.signer(alg, then)?, Typ::Jwt, &claims)?))
            }
        };
        self.tally.tokens.one(by);
        Ok(Handed {
            access_token,
            expires_in: tokens.expires_in.whole_seconds(),
            scope: tokens.scope.to_string(),
            id_token,
            refresh_token: tokens.refresh,
        })
    }
}

/// Returns the algorithms that sign what is handed out.
fn algs(tokens: &Tokens) -> impl Iterator<Item = Alg> {
    let access = match &tokens.access {
        Access::Jwt { alg, .. } => Some(*alg),
        Access::Opaque(_) => None,
    };
    access.into_iter().chain(tokens.id.as_ref().map(|id| id.alg))
}

/// Returns the resources that a request names (RFC 8707 §2.2).
fn named(params: &Params) -> Vec<String> {
    params.all("resource").into_iter().map(str::to_owned).collect()
}

fn signed<C: serde::Serialize + ?Sized>(key: &SigningKey, typ: Typ, claims: &C) -> Result<String, Fault> {
    let began = Instant::now();
    let text = key.sign(typ, claims);
    lap(Stage::Sign, began, Instant::now());
    text.map_err(|error| Fault::Broken(format!("signing: {}", error.0)))
}
