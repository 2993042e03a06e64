//! The token endpoint: the phases that every grant shares, then what is its own.

use crate::settle::Ahead;
use crate::stopwatch::{Stage, lap};
use crate::{App, Fault};
use rules::decision::Change;
use rules::id::FamilyId;
use rules::jose::{SigningKey, Typ, at_hash};
use rules::oauth::client::{Client, Grant};
use rules::oauth::client_auth::{self, Proof};
use rules::oauth::code::{self, Granted, Redemption};
use rules::oauth::error::{Code, Error};
use rules::oauth::family::{self, RefreshToken};
use rules::oauth::params::Params;
use rules::oauth::refresh::{self, Renewal};
use rules::oauth::token::{Access, Context, IdToken, Tokens};
use rules::oauth::{authorize, device, token};
use rules::people::User;
use rules::secret::{Handle, Secret};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;
use store::tables::fences::Holds;
use store::tables::realms::{AtEpoch, Epoch};
use store::tables::{codes, devices, families, groups};

/// Tokens on the wire (RFC 6749 §5.1).
#[derive(Debug)]
pub struct Handed {
    /// The access token.
    pub access_token: Secret,
    /// Seconds.
    pub expires_in: i64,
    /// What it is good for.
    pub scope: String,
    /// The ID token.
    pub id_token: Option<Secret>,
    /// The refresh token.
    pub refresh_token: Option<Secret>,
}

/// What a code or a refresh token belongs to that was presented, if one was.
struct Presented {
    code: Ahead<Option<code::Found>>,
    family: Ahead<Option<family::Found>>,
}

/// A client whose proof was right, as far as it can be told before it is written down that the proof was used.
struct Proved {
    client: Arc<Client>,
    used: Vec<Change>,
}

impl App {
    /// Proves a client, as it stands at `epoch`.
    async fn prove_client(&self, proof: Proof, epoch: i64) -> Result<Result<Proved, Error>, Fault> {
        let client = self.client(&proof.client, epoch).await?;
        let decision = client_auth::prove(&proof, client.as_deref(), &self.realm, self.clock.now());
        let (Ok(()), Some(client)) = (decision.reply, client) else {
            return Ok(Err(Error::client("client authentication failed")));
        };
        // Anybody can say that he is a public one.
        if let Some(clients) = self.clients.as_ref().filter(|_| !client.is_public()) {
            clients.count(&client.id).map_err(Fault::Over)?;
        }
        Ok(Ok(Proved { client, used: decision.changes }))
    }

    /// Proves a client; an assertion is used up by that.
    pub async fn authenticate(&self, proof: Proof) -> Result<Result<Arc<Client>, Error>, Fault> {
        let epoch = self.epoch().await?;
        self.authenticate_at(proof, epoch).await
    }

    /// Proves a client as it stands at `epoch`; an assertion is used up by that.
    pub(crate) async fn authenticate_at(&self, proof: Proof, epoch: i64) -> Result<Result<Arc<Client>, Error>, Fault> {
        match self.prove_client(proof, epoch).await? {
            Err(error) => Ok(Err(error)),
            Ok(proved) => Ok(self.use_up(&proved).await?.map(|()| proved.client)),
        }
    }

    /// Writes down that an assertion was used; refused when it was before (RFC 7523 §3, `jti`).
    async fn use_up(&self, proved: &Proved) -> Result<Result<(), Error>, Fault> {
        if proved.used.is_empty() {
            return Ok(Ok(()));
        }
        let (used, now) = (proved.used.clone(), self.clock.now());
        match self.commit(used, now, &crate::entropy::fresh()?).await {
            Ok(()) => Ok(Ok(())),
            Err(store::engine::CommitError::Conflict { .. }) => Ok(Err(Error::client("client authentication failed"))),
            Err(error) => Err(error.into()),
        }
    }

    /// A request to the token endpoint.
    pub async fn token(&self, params: &Params, proof: Proof) -> Result<Result<Handed, Error>, Fault> {
        let (epoch, presented) = self.look_ahead(params).await?;
        let proved = match self.prove_client(proof, epoch).await? {
            Ok(proved) => proved,
            Err(error) => return Ok(Err(error)),
        };
        let grant = match params.get("grant_type") {
            None => return Ok(Err(Error::request("grant_type is missing"))),
            Some(name) => match Grant::parse(name) {
                None => return Ok(Err(Error::new(Code::UnsupportedGrantType, "this grant_type is not supported"))),
                Some(grant) => grant,
            },
        };
        if let Err(error) = self.use_up(&proved).await? {
            return Ok(Err(error));
        }
        let client = &proved.client;
        let reply = match grant {
            Grant::AuthorizationCode => self.redeem(client, params, presented.code).await?,
            Grant::RefreshToken => self.renew(client, params, presented.family).await?,
            Grant::ClientCredentials => self.own(client, params).await?,
            Grant::DeviceCode => self.poll(client, params).await?,
        };
        match reply {
            Ok(tokens) => {
                let handed = self.sign(tokens, epoch).await?;
                self.tally.tokens.one(grant.into());
                Ok(Ok(handed))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context { realm: &self.realm, sealing: &self.keyring.sealing }
    }

    /// The epoch, and in the same round trip what a code or a refresh token belongs to. Who presents it is not known yet:
    /// nothing of it is told before that.
    async fn look_ahead(&self, params: &Params) -> Result<(i64, Presented), Fault> {
        let mut presented = Presented { code: Ahead::nothing(), family: Ahead::nothing() };
        match params.get("grant_type").and_then(Grant::parse) {
            Some(Grant::AuthorizationCode) => {
                let family = params.get("code").and_then(code::family_of);
                let (epoch, found) = self.epoch_of(self.ask(AtEpoch(codes::InContext(family.as_ref()))).await?)?;
                presented.code = Ahead::of(found);
                Ok((epoch, presented))
            }
            Some(Grant::RefreshToken) => {
                let token =
                    params.get("refresh_token").and_then(|text| RefreshToken::read(text, &self.keyring.sealing));
                let family = token.as_ref().map(|token| &token.family);
                let (epoch, found) = self.epoch_of(self.ask(AtEpoch(families::InContext(family))).await?)?;
                presented.family = Ahead::of(found);
                Ok((epoch, presented))
            }
            _ => Ok((self.epoch_of(self.ask(Epoch).await?)?, presented)),
        }
    }

    async fn redeem(
        &self,
        client: &Client,
        params: &Params,
        ahead: Ahead<Option<code::Found>>,
    ) -> Result<Result<Tokens, Error>, Fault> {
        let code = match params.need("code", "code is missing") {
            Ok(code) => Secret::new(code),
            Err(error) => return Ok(Err(error)),
        };
        let family = code::family_of(code.reveal());
        let ask = Redemption {
            client,
            code: &code,
            redirect_uri: params.get("redirect_uri"),
            verifier: params.get("code_verifier"),
            resources: named(params),
        };
        let (ask, family, ahead) = (&ask, family.as_ref(), &ahead);
        self.settle(|now, fresh| async move {
            let mut found = ahead.or(|| self.ask(codes::InContext(family))).await?;
            if let Some(found) = &mut found {
                found.groups = self.groups_told(client, &found.code.granted, found.user.as_ref()).await?;
            }
            Ok(code::redeem(ask, found.as_ref(), &self.context(), (now, &fresh)))
        })
        .await
    }

    async fn renew(
        &self,
        client: &Client,
        params: &Params,
        ahead: Ahead<Option<family::Found>>,
    ) -> Result<Result<Tokens, Error>, Fault> {
        let text = match params.need("refresh_token", "refresh_token is missing") {
            Ok(text) => text,
            Err(error) => return Ok(Err(error)),
        };
        if !client.may(Grant::RefreshToken) {
            return Ok(Err(Error::new(Code::UnauthorizedClient, "the client may not use refresh_token")));
        }
        let Some(token) = RefreshToken::read(text, &self.keyring.sealing) else {
            return Ok(Err(Error::grant("the refresh token is not valid")));
        };
        let ask = Renewal { client, token: &token, scope: params.get("scope"), resources: named(params) };
        let (ask, family, ahead) = (&ask, Some(&token.family), &ahead);
        self.settle(|now, fresh| async move {
            let mut found = ahead.or(|| self.ask(families::InContext(family))).await?;
            self.unless_held(found.as_ref(), family).await?;
            if let Some(found) = &mut found {
                found.groups = self.groups_told(client, &found.family.granted, found.user.as_ref()).await?;
            }
            Ok(refresh::renew(ask, found.as_ref(), &self.context(), (now, &fresh)))
        })
        .await
    }

    /// Names of somebody's groups, where an ID token is to tell them. That is known once it is known what was granted: a
    /// round trip of its own, which most tokens do without.
    async fn groups_told(&self, client: &Client, granted: &Granted, user: Option<&User>) -> Result<Vec<String>, Fault> {
        match user.filter(|_| granted.tells_groups(client)) {
            Some(user) => self.ask(groups::Of(&user.id)).await,
            None => Ok(Vec::new()),
        }
    }

    /// A client that is refused throws its token away. One that only has to wait, for nodes that have to say again what
    /// a failover may have lost, is told to come back; only where nothing was found does that ask once more.
    pub(crate) async fn unless_held(&self, found: Option<&family::Found>, id: Option<&FamilyId>) -> Result<(), Fault> {
        let Some(id) = id.filter(|_| found.is_none()) else { return Ok(()) };
        match self.ask(Holds(id)).await? {
            true => Err(Fault::Unavailable("a fence holds what was issued before a failover of the database".into())),
            false => Ok(()),
        }
    }

    async fn own(&self, client: &Client, params: &Params) -> Result<Result<Tokens, Error>, Fault> {
        let resources = match authorize::resources(params, client) {
            Ok(resources) => resources,
            Err(error) => return Ok(Err(error)),
        };
        let (scope, resources) = (params.get("scope"), &resources);
        self.settle(|now, fresh| async move {
            Ok(token::own(client, scope, resources.clone(), &self.context(), (now, &fresh)))
        })
        .await
    }

    async fn poll(&self, client: &Client, params: &Params) -> Result<Result<Tokens, Error>, Fault> {
        let handle = match params.need("device_code", "device_code is missing") {
            Ok(code) => Secret::new(code).handle(),
            Err(error) => return Ok(Err(error)),
        };
        let resources = &named(params);
        self.settle(|now, fresh| async move {
            let mut found = self.ask(devices::InContext(handle)).await?;
            if let Some(device::Found { device, user, groups, .. }) = &mut found
                && let device::Stage::Approved(approval) = &device.stage
            {
                *groups = self.groups_told(client, &approval.granted, user.as_ref()).await?;
            }
            Ok(device::poll((client, resources), found.as_ref(), &self.context(), (now, &fresh)))
        })
        .await
    }

    /// Signs what was decided and committed, with the keys of `epoch`.
    pub(crate) async fn sign(&self, tokens: Tokens, epoch: i64) -> Result<Handed, Fault> {
        let now = self.clock.now();
        let keys = self.keys(epoch).await?;
        let access_token = match tokens.access {
            Access::Opaque(secret) => secret,
            Access::Jwt { alg, plain_typ, claims } => {
                let typ = if plain_typ { Typ::Jwt } else { Typ::AccessToken };
                let text = signed(keys.signer(alg, now)?, typ, &*claims)?;
                // Our own signature needs no checking when the token comes back.
                self.remember(Handle::of(&text), epoch, &Arc::from(claims));
                Secret::new(text)
            }
        };
        let id_token = match tokens.id {
            None => None,
            Some(IdToken { alg, mut claims }) => {
                claims.insert("at_hash".into(), json!(at_hash(alg, access_token.reveal())));
                Some(Secret::new(signed(keys.signer(alg, now)?, Typ::Jwt, &claims)?))
            }
        };
        Ok(Handed {
            access_token,
            expires_in: tokens.expires_in.whole_seconds(),
            scope: tokens.scope.to_string(),
            id_token,
            refresh_token: tokens.refresh,
        })
    }
}

/// RFC 8707 §2.2: the resources that a request names.
fn named(params: &Params) -> Vec<String> {
    params.all("resource").map(str::to_owned).collect()
}

fn signed<C: serde::Serialize + ?Sized>(key: &SigningKey, typ: Typ, claims: &C) -> Result<String, Fault> {
    let began = Instant::now();
    let text = key.sign(typ, claims);
    lap(Stage::Sign, began, Instant::now());
    text.map_err(|error| Fault::Broken(format!("signing: {}", error.0)))
}
