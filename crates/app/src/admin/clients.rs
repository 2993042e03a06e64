//! Managing applications.

use super::Refused;
use crate::{App, Fault, entropy};
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::id::{ClientId, UserId};
use rules::oauth::client::{AuthMethod, Client};
use rules::oauth::registration;
use rules::secret::Secret;
use rules::{Decision, Fresh, Time};
use store::tables::clients::{ById, Page};
use store::tables::users;

/// How many applications a page of a list has.
pub const PAGE: i64 = 200;
/// The shortest secret that may be given, in bytes: 32 random bytes in any usual encoding are longer.
const SHORTEST_SECRET: usize = 32;

/// Where the secret of a new client comes from.
pub enum ClientSecret {
    /// It has none.
    Nothing,
    /// The operator gives it.
    Given(Secret),
    /// It is made, and told once.
    Generated,
}

impl App {
    /// Registers an application; gives the secret that was made for it, if one was.
    pub async fn add_client(
        &self,
        mut client: Client,
        secret: ClientSecret,
    ) -> Result<Result<(Client, Option<Secret>), Refused>, Fault> {
        let made = match secret {
            ClientSecret::Nothing => None,
            ClientSecret::Given(secret) => {
                if let Err(why) = strong(&secret) {
                    return Ok(Err(why));
                }
                client.secret = Some(secret.handle());
                None
            }
            ClientSecret::Generated => {
                let secret = entropy::fresh()?.secret("client");
                client.secret = Some(secret.handle());
                Some(secret)
            }
        };
        let problems = registration::problems(&client, &self.realm);
        if !problems.is_empty() {
            return Ok(Err(Refused(problems.join("; "))));
        }
        let new = &client;
        let reply = self
            .settle(|now, fresh| async move {
                let person = UserId(new.id.0.clone());
                let (client, person) = self.ask((ById(&new.id), users::ById(&person))).await?;
                // RFC 9700 §4.15.1: who reads a token could take the one for the other.
                if person.is_some() {
                    return Ok(Decision::refuse(Refused(format!("{} is the id of a person", new.id))));
                }
                if client.is_some() {
                    return Ok(Decision::refuse(Refused(format!("a client with the id {} exists", new.id))));
                }
                let event = Event::new(Kind::ClientAdded, now).client(&new.id);
                let added = new.clone().registered(now, &fresh);
                Ok(Decision::accept(added.clone())
                    .and(Change::AddClient(Box::new(added)))
                    .and(Change::BumpEpoch)
                    .and(Change::Record(event)))
            })
            .await?;
        Ok(reply.map(|client| (client, made)))
    }

    /// An application by id.
    pub async fn find_client(&self, id: &ClientId) -> Result<Option<Client>, Fault> {
        self.ask(ById(id)).await
    }

    /// A page of applications, by id.
    pub async fn clients(&self, after: &str) -> Result<Vec<Client>, Fault> {
        self.ask(Page { after, limit: PAGE }).await
    }

    /// Removes an application: what was issued to it is dead at the next use.
    pub async fn remove_client(&self, id: &ClientId) -> Result<Result<(), Refused>, Fault> {
        self.settle(|now, _| async move {
            let (epoch, found) = self.after_epoch(ById(id)).await?;
            if found.is_none() {
                return Ok(Decision::refuse(Refused(format!("no client has the id {id}"))));
            }
            let event = Event::new(Kind::ClientRemoved, now).client(id);
            Ok(Decision::accept(())
                .and(Change::RemoveClient(id.clone()))
                .and(Change::BumpEpoch)
                .and(Change::Record(event))
                .at_epoch(epoch))
        })
        .await
    }

    /// Disables or enables an application.
    pub async fn set_client_enabled(&self, id: &ClientId, enabled: bool) -> Result<Result<(), Refused>, Fault> {
        self.change_client(id, if enabled { "enabled" } else { "disabled" }, |client, (now, fresh)| {
            Ok(match (enabled, client.disabled_at) {
                (true, Some(_)) => client.revived(now, fresh),
                (true, None) => client,
                (false, before) => Client { disabled_at: before.or(Some(now)), ..client },
            })
        })
        .await
    }

    /// A new secret, told once; the old one is dead at once.
    pub async fn rotate_secret(&self, id: &ClientId, given: Option<Secret>) -> Result<Result<Secret, Refused>, Fault> {
        let secret = match given {
            None => entropy::fresh()?.secret("client"),
            Some(secret) => match strong(&secret) {
                Ok(()) => secret,
                Err(why) => return Ok(Err(why)),
            },
        };
        let handle = secret.handle();
        let reply = self
            .change_client(id, "secret", |client, _| {
                let by_secret = |method: &AuthMethod| matches!(method, AuthMethod::Basic | AuthMethod::Post);
                if !client.auth_methods.iter().any(by_secret) {
                    return Err(Refused::new("the client does not authenticate with a secret"));
                }
                Ok(Client { secret: Some(handle), ..client })
            })
            .await?;
        Ok(reply.map(|()| secret))
    }

    async fn change_client<F>(&self, id: &ClientId, what: &'static str, change: F) -> Result<Result<(), Refused>, Fault>
    where
        F: Fn(Client, (Time, &Fresh)) -> Result<Client, Refused> + Sync,
    {
        let change = &change;
        self.settle(|now, fresh| async move {
            let (epoch, found) = self.after_epoch(ById(id)).await?;
            let Some(client) = found else {
                return Ok(Decision::refuse(Refused(format!("no client has the id {id}"))));
            };
            let client = match change(client, (now, &fresh)) {
                Ok(changed) => changed,
                Err(why) => return Ok(Decision::refuse(why)),
            };
            let event = Event::new(Kind::ClientChanged, now).client(id).detail("what", what);
            Ok(Decision::accept(())
                .and(Change::SaveClient(Box::new(client)))
                .and(Change::BumpEpoch)
                .and(Change::Record(event))
                .at_epoch(epoch))
        })
        .await
    }
}

/// Client secrets are kept as SHA-256, which is safe only for what cannot be guessed.
fn strong(secret: &Secret) -> Result<(), Refused> {
    let text = secret.reveal();
    let distinct = text.bytes().collect::<std::collections::HashSet<_>>().len();
    if text.len() < SHORTEST_SECRET || distinct < 8 {
        return Err(Refused::new(
            "the secret is too short: it is kept under a fast hash and must be 256 random bits (for example: openssl rand -hex 32)",
        ));
    }
    match text.len() <= 512 && text.bytes().all(|b| (0x20..=0x7e).contains(&b)) {
        true => Ok(()),
        false => Err(Refused::new("the secret must be at most 512 printable ASCII characters")),
    }
}
