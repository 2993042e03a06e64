//! Managing applications.

use super::Refused;
use super::changed::{bounded, differences, granted};
use crate::{App, Fault, entropy};
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::id::{ClientId, UserId};
use rules::oauth::client::{AuthMethod, Client};
use rules::oauth::registration::{self, has_id_tokens_for};
use rules::people::labels::client_name_problem;
use rules::secret::Secret;
use rules::{Decision, Fresh, Time};
use serde_json::{Map, Value};
use store::tables::clients::{ById, Page};
use store::tables::consents::Givers;
use store::tables::users;

/// Applications on one page of a list.
pub const PAGE: i64 = 200;
/// Consents that a removal deletes at once.
const CONSENTS: i64 = 1_000;
/// The shortest secret that may be given, in bytes: 32 random bytes in any usual encoding are longer.
const SHORTEST_SECRET: usize = 32;
/// The fewest different characters of a secret: 32 random bytes in hexadecimal almost never have fewer.
const FEWEST_CHARACTERS: usize = 8;

/// Where the secret of a new client comes from.
pub enum ClientSecret {
    /// It has none.
    Nothing,
    /// The operator gives it.
    Given(Secret),
    /// It is generated, and shown once.
    Generated,
}

impl App {
    /// Registers an application; returns the secret that was generated for it, if one was.
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
        if let Err(why) = self.registers(&client, None) {
            return Ok(Err(why));
        }
        let new = &client;
        let _turn = self.registering.lock().await;
        let reply = self
            .settle(|now, fresh| async move {
                let person = UserId(new.id.0.clone());
                let (epoch, (client, person)) = self.after_epoch((ById(&new.id), users::ById(&person))).await?;
                // RFC 9700 §4.15.1: a reader of a token could take the client for the person.
                if person.is_some() {
                    return Ok(Decision::refuse(Refused::new(format!("{} is the id of a person", new.id))));
                }
                if client.is_some() {
                    return Ok(Decision::refuse(Refused::taken(format!("a client with the id {} exists", new.id))));
                }
                if let Some(why) = self.mistaken(new).await? {
                    return Ok(Decision::refuse(why));
                }
                let event = Event { detail: granted(new), ..Event::new(Kind::ClientAdded, now).client(&new.id) };
                let added = new.clone().registered(now, &fresh);
                Ok(Decision::accept(added.clone())
                    .and(Change::AddClient(Box::new(added)))
                    .and(Change::BumpEpoch)
                    .and(Change::Record(event))
                    .at_epoch(epoch))
            })
            .await?;
        Ok(reply.map(|client| (client, made)))
    }

    /// Refuses a client that may not be registered; `before` is what is registered already.
    fn registers(&self, client: &Client, before: Option<&Client>) -> Result<(), Refused> {
        let mut problems = registration::problems(client, before, &self.realm);
        if before.is_none_or(|before| before.name != client.name) {
            problems.extend(client_name_problem(&client.name));
        }
        if problems.is_empty() { Ok(()) } else { Err(Refused::new(problems.join("; "))) }
    }

    /// Refuses a client whose ID tokens are for a resource of another client, or that has such a resource.
    async fn mistaken(&self, client: &Client) -> Result<Option<Refused>, Fault> {
        for uri in &client.resources {
            // As `is_same` has it: with a slash at the end, or without.
            let other = uri.strip_suffix('/').map_or_else(|| format!("{uri}/"), str::to_owned);
            for id in [uri.clone(), other].into_iter().filter(|id| registration::is_client_id(id)).map(ClientId) {
                if self.ask(ById(&id)).await?.is_some_and(|named| id != client.id && has_id_tokens_for(&named, uri)) {
                    let why = "is the id of a client whose ID tokens would pass for it";
                    return Ok(Some(Refused::new(format!("resource {uri}: {why}"))));
                }
            }
        }
        // A resource is a URI, and most ids are none.
        let mut after = String::new();
        while client.id.as_str().contains(':') && has_id_tokens_for(client, client.id.as_str()) {
            let page = self.clients(&after).await?;
            let mut uris = page.iter().flat_map(|other| &other.resources);
            if uris.any(|uri| has_id_tokens_for(client, uri)) {
                return Ok(Some(Refused::new(format!(
                    "{} is a resource of another client, for which its ID tokens would pass; if both are one, register \
                     the resource for this client, too",
                    client.id
                ))));
            }
            match page.last() {
                Some(last) if page.len() as i64 == PAGE => after.clone_from(&last.id.0),
                _ => break,
            }
        }
        Ok(None)
    }

    /// Returns an application by id.
    pub async fn find_client(&self, id: &ClientId) -> Result<Option<Client>, Fault> {
        self.ask(ById(id)).await
    }

    /// Returns a page of applications, by id.
    pub async fn clients(&self, after: &str) -> Result<Vec<Client>, Fault> {
        self.ask(Page { after, limit: PAGE }).await
    }

    /// Removes an application: what was issued to it is refused at the next use.
    pub async fn remove_client(&self, id: &ClientId) -> Result<Result<(), Refused>, Fault> {
        self.drop_consents(id).await?;
        let _turn = self.registering.lock().await;
        self.settle(|now, _| async move {
            let (epoch, found) = self.after_epoch(ById(id)).await?;
            if found.is_none() {
                return Ok(Decision::refuse(Refused::missing(format!("no client has the id {id}"))));
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

    /// Disables an application that has many consents and deletes them in steps, so that nobody waits for a batch that
    /// deletes them all. A removal that was interrupted begins again.
    async fn drop_consents(&self, id: &ClientId) -> Result<(), Fault> {
        loop {
            let (client, givers) = self.ask((ById(id), Givers { client: id, limit: CONSENTS })).await?;
            let Some(last) = givers.last().filter(|_| client.is_some() && givers.len() as i64 == CONSENTS) else {
                return Ok(());
            };
            if client.is_some_and(|client| !client.is_disabled()) {
                drop(self.set_client_enabled(id, false).await?);
            }
            let change = Change::DropConsents { client: id.clone(), upto: last.clone() };
            self.settle(|_, _| async { Ok(Decision::<(), Refused>::accept(()).and(change.clone())) }).await?.ok();
        }
    }

    /// Disables or enables an application, unless it is so already.
    pub async fn set_client_enabled(&self, id: &ClientId, enabled: bool) -> Result<Result<Edited, Refused>, Fault> {
        self.change_client(id, |client, (now, fresh)| {
            if client.is_disabled() != enabled {
                return Ok(None);
            }
            if enabled {
                *client = client.clone().revived(now, fresh);
            } else {
                client.disabled_at = Some(now);
            }
            Ok(Some(what(if enabled { "enabled" } else { "disabled" })))
        })
        .await
    }

    /// Replaces the secret by a new one, shown once; the old one is refused at once.
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
            .change_client(id, |client, _| {
                known_whole(client)?;
                if !by_secret(client) {
                    return Err(Refused::new("the client does not authenticate with a secret"));
                }
                client.secret = Some(handle);
                Ok(Some(what("secret")))
            })
            .await?;
        Ok(reply.map(|_| secret))
    }

    /// Changes what an application registered: `edit` is given it as it is, again whenever another change came between.
    ///
    /// What was issued to it before stays as it was: a refresh gives no more than the client may have then. All of that
    /// ends only if the client is no longer trusted, because nobody was asked for it, or no longer first-party, because
    /// what it was given on its own screens would be good again once it is. Secret and keys follow the ways in which it
    /// authenticates: those that no way needs are removed, and a secret that one needs is generated.
    pub async fn edit_client<F>(
        &self,
        id: &ClientId,
        edit: F,
    ) -> Result<Result<(Edited, Option<Secret>), Refused>, Fault>
    where
        F: Fn(&mut Client) -> Result<(), Refused> + Sync,
    {
        let fresh = entropy::fresh()?.secret("client");
        let handle = fresh.handle();
        let edited = self.change_client(id, |client, (now, fresh)| {
            known_whole(client)?;
            let before = client.clone();
            edit(client)?;
            client.secret = by_secret(client).then(|| client.secret.unwrap_or(handle));
            if !client.auth_methods.contains(&AuthMethod::PrivateKeyJwt) {
                client.jwks = None;
            }
            self.registers(client, Some(&before))?;
            let changed = differences(&before, client);
            if (before.trusted && !client.trusted) || (before.first_party && !client.first_party) {
                *client = client.clone().distrusted(now, fresh);
            }
            Ok((!changed.is_empty()).then_some(changed).map(|changed| with("settings", changed)))
        });
        Ok(edited.await?.map(|edited| {
            let made = (edited.client.secret == Some(handle)).then_some(fresh);
            (edited, made)
        }))
    }

    /// Makes a change to an application as it is now, and records what `change` says about it; `None` changes nothing.
    async fn change_client<F>(&self, id: &ClientId, change: F) -> Result<Result<Edited, Refused>, Fault>
    where
        F: Fn(&mut Client, (Time, &Fresh)) -> Result<Option<Details>, Refused> + Sync,
    {
        let change = &change;
        let _turn = self.registering.lock().await;
        self.settle(|now, fresh| async move {
            let (epoch, found) = self.after_epoch(ById(id)).await?;
            let Some(before) = found else {
                return Ok(Decision::refuse(Refused::missing(format!("no client has the id {id}"))));
            };
            let mut client = before.clone();
            let detail = match change(&mut client, (now, &fresh)) {
                Ok(detail) => detail,
                Err(why) => return Ok(Decision::refuse(why)),
            };
            let Some(detail) = detail else {
                return Ok(Decision::accept(Edited { client, changed: None }));
            };
            if (&client.resources, &client.grants) != (&before.resources, &before.grants)
                && let Some(why) = self.mistaken(&client).await?
            {
                return Ok(Decision::refuse(why));
            }
            let event = Event { detail: bounded(detail.clone()), ..Event::new(Kind::ClientChanged, now).client(id) };
            Ok(Decision::accept(Edited { client: client.clone(), changed: Some(detail) })
                .and(Change::SaveClient(Box::new(client)))
                .and(Change::BumpEpoch)
                .and(Change::Record(event))
                .at_epoch(epoch))
        })
        .await
    }
}

/// What the audit log is told about a change.
type Details = Map<String, Value>;

/// An application after a change.
pub struct Edited {
    /// The application as it is now.
    pub client: Client,
    /// What changed, by name; `None` if it was so already.
    pub changed: Option<Details>,
}

fn what(what: &str) -> Details {
    with(what, Details::new())
}

fn with(what: &str, mut details: Details) -> Details {
    details.insert("what".to_owned(), what.into());
    details
}

/// Refuses a client that this version knows only in part: it cannot tell what a change would come to.
fn known_whole(client: &Client) -> Result<(), Refused> {
    let Some(values) = client.unknown_values() else { return Ok(()) };
    let id = &client.id;
    Err(Refused::new(format!(
        "client {id} has settings that only a newer version knows ({values}): change it on a node of that version; \
         this one can disable, enable and remove it"
    )))
}

fn by_secret(client: &Client) -> bool {
    client.auth_methods.iter().any(|method| matches!(method, AuthMethod::Basic | AuthMethod::Post))
}

/// Checks a client secret: it is stored as SHA-256, which is safe only for what cannot be guessed.
fn strong(secret: &Secret) -> Result<(), Refused> {
    let text = secret.reveal();
    let distinct = text.bytes().collect::<std::collections::HashSet<_>>().len();
    let why = if text.len() < SHORTEST_SECRET {
        "too short"
    } else if distinct < FEWEST_CHARACTERS {
        "not random (too few different characters)"
    } else if text.len() > 512 || !text.bytes().all(|b| (0x20..=0x7e).contains(&b)) {
        return Err(Refused::new("the secret must be at most 512 printable ASCII characters"));
    } else {
        return Ok(());
    };
    Err(Refused::new(format!(
        "the secret is {why}: it is kept under a fast hash and must be 256 random bits (for example: openssl rand -hex 32)"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_told_what_is_wrong_with_it() {
        // Red with one text for a short secret and one with few characters.
        for (secret, why) in [
            ("short", "too short"),
            (&*"a".repeat(64), "too few different characters"),
            (&*"0123456789\n".repeat(4), "printable ASCII"),
            (&*"0123456789".repeat(52), "at most 512"),
        ] {
            let said = strong(&Secret::new(secret)).unwrap_err().to_string();
            assert!(said.contains(why), "{secret}: {said}");
        }
        assert!(strong(&Secret::new("0123456789".repeat(4))).is_ok());
    }
}
