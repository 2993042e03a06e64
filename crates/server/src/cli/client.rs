//! Applications. Programs see them with the field names of RFC 7591 and OpenID Connect Registration 1.0.

use super::absent;
use super::change::Set;
use super::input::{self, Input, Wanted};
use super::limit::Limit;
use super::outcome::{Failure, Outcome, Reply};
use super::registration::{Add, by_secret};
use super::removal::Removed;
use super::text::{Table, differences, facts, yes};
use crate::http::try_it;
use app::App;
use app::admin::Refused;
use app::admin::changed::{access_typ, application_type, told_as};
use app::admin::clients::{ClientSecret, PAGE};
use clap::{Args, Subcommand};
use rules::Secret;
use rules::id::ClientId;
use rules::oauth::client::{AccessFormat, AuthMethod, Client, Grant};
use rules::oauth::registration::NO_REDIRECT_URI;
use rules::utc::{iso, when};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The subcommands of `client`.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
pub enum Command {
    /// Register an application
    ///
    /// A client is confidential unless --public is given: its secret is generated and printed once, or read with
    /// --secret-stdin. Client secrets are stored under a fast hash, so a secret that you supply must be 256 random
    /// bits.
    #[command(after_long_help = "\
Examples:
  A web application:
    portiere client add --id shop --name Shop \\
      --redirect-uri https://shop.example.com/callback

  A single-page or native application:
    portiere client add --id app --name App --public \\
      --redirect-uri http://127.0.0.1/callback

  A service with scopes of its own:
    portiere client add --id worker --name Worker \\
      --grant client_credentials --scope jobs:run

  An API that introspects tokens issued for it:
    portiere client add --id api --name API --resource-server \\
      --resource https://api.example.com

  A television:
    portiere client add --id tv --name TV --public \\
      --grant device_code --grant refresh_token

  From a script that may run again:
    portiere client add --if-absent --id shop \\
      --redirect-uri https://shop.example.com/callback \\
      --secret-stdin < shop.secret")]
    Add(Box<Add>),
    /// List applications
    List(List),
    /// Show an application
    Show(Named),
    /// Change the registration of an application
    ///
    /// Settings that you do not name stay as they are. The change holds at once, on every node. Issued tokens keep what
    /// they say until they expire. A code or a refresh token that would give more than the client may have by then is
    /// refused. To end all of them, disable the client and enable it again.
    #[command(after_long_help = "\
Examples:
  portiere client set shop \\
    --add-redirect-uri https://shop.example.com/callback2
  portiere client set shop --name 'The shop' --trusted
  portiere client set shop --trusted=no --remove-scope groups")]
    Set(Box<Set>),
    /// Disable an application
    ///
    /// Nobody can sign in to it, and its tokens are invalid at once.
    Disable(Named),
    /// Enable an application again
    Enable(Named),
    /// Remove an application; everything issued to it is invalid at once
    Remove(Removed<Named>),
    /// Give an application a new secret
    ///
    /// The secret is generated and printed once, or read with --secret-stdin. The old secret is invalid at once.
    RotateSecret(RotateSecret),
}

/// Which applications to list.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct List {
    /// Start after the client with this id
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub after: Option<String>,
    /// How many.
    #[command(flatten)]
    #[serde(default)]
    pub limit: Limit,
    /// Whether an earlier page began the list.
    #[arg(skip)]
    pub goes_on: bool,
}

/// An application.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Named {
    /// The client's id
    #[arg(allow_hyphen_values = true)]
    pub id: String,
}

/// A new secret.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct RotateSecret {
    /// The client's id
    #[arg(allow_hyphen_values = true)]
    pub id: String,
    /// Read the new secret from standard input instead of generating it
    #[arg(long)]
    pub secret_stdin: bool,
    /// The secret, once it was read.
    #[arg(skip)]
    #[serde(with = "input")]
    pub secret: Option<Secret>,
}

impl Command {
    /// Reads the secret and the keys, if they were given, or asks the user to confirm.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        match self {
            Command::Add(add) => add.complete(input),
            Command::Set(set) => set.complete(input),
            Command::Remove(Removed { named, removal }) => {
                removal.complete(input, ("Nobody can sign in to it any more, and its tokens are refused.", &named.id))
            }
            Command::RotateSecret(rotate) if rotate.secret_stdin => {
                let wanted = Wanted { what: "client secret", flag: "--secret-stdin", given: true };
                rotate.secret = Some(input.secret(wanted)?);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the id of the client of which the command may make a secret, which it shows only once.
    pub fn makes_secret_of(&self) -> Option<&str> {
        match self {
            Command::Add(add) => add.generates_secret().then_some(&add.id),
            Command::Set(set) => by_secret(&set.edit.auth_method).then_some(&set.id),
            Command::RotateSecret(rotate) => (!rotate.secret_stdin).then_some(&rotate.id),
            _ => None,
        }
        .map(String::as_str)
    }

    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        match self {
            Command::Add(add) => add_client(app, *add).await,
            Command::List(list) => list.execute(app).await,
            Command::Show(named) => Ok(shown(&find(app, &named.id).await?)),
            Command::Set(set) if set.id == try_it::CLIENT_ID && set.edit.drops_redirect_uris() => {
                Err(Failure::Refused(format!(
                    "{} is the server's own, and is registered again with its own redirect URI at the next start",
                    set.id
                )))
            }
            Command::Set(set) => set_client(app, *set).await,
            Command::Disable(named) => enable(app, &named.id, false).await,
            Command::Enable(named) => enable(app, &named.id, true).await,
            Command::Remove(Removed { named: Named { id }, removal }) => {
                removal.ended(remove(app, &id).await, "client", ("client_id", &id))
            }
            Command::RotateSecret(rotate) => {
                // Read before: a secret that is made must be shown, whatever the database does afterwards.
                let client = find(app, &rotate.id).await?;
                let id = ClientId(rotate.id);
                let made = rotate.secret.is_none();
                let secret = app.rotate_secret(&id, rotate.secret).await??;
                let told = made.then_some(&secret);
                let text = format!(
                    "client {id} has a new secret; the old one no longer works\n{}",
                    credentials(app, &client, told)
                );
                Ok(Outcome::new(text, handed_over(app, &client, told)))
            }
        }
    }
}

async fn add_client(app: &App, add: Add) -> Reply {
    let (if_absent, only_looks) = (add.if_absent, add.only_looks());
    let (client, secret) = add.client();
    if client.id.as_str() == try_it::CLIENT_ID {
        return Err(Failure::Refused(format!(
            "the client id {} is reserved for Try it: choose another one",
            client.id
        )));
    }
    let id = client.id.clone();
    if only_looks {
        return Ok(there(app, &id).await?.unwrap_or_else(absent::nothing));
    }
    absent::or_make(if_absent, || there(app, &id), made(app, client, secret)).await
}

/// Returns the client with that ID, if it exists.
async fn there(app: &App, id: &ClientId) -> Result<Option<Outcome>, Failure> {
    let found = app.find_client(id).await?;
    Ok(found.map(|client| absent::there("client", client.id.as_str(), metadata(&client, None))))
}

async fn made(app: &App, client: Client, secret: ClientSecret) -> Result<Result<Outcome, Refused>, Failure> {
    let added = app.add_client(client, secret).await?;
    let made = added.map(|(client, made)| {
        let text = format!("client {} added\n{}", client.id, credentials(app, &client, made.as_ref()));
        Outcome::new(text, handed_over(app, &client, made.as_ref()))
    });
    Ok(made.map_err(with_options))
}

/// Names the options that help, where a refusal is about what was not given.
fn with_options(refused: Refused) -> Refused {
    match refused.why.contains(NO_REDIRECT_URI) {
        true => Refused::new(format!(
            "{refused}; name it with --redirect-uri, or, for a service without users, say --grant client_credentials"
        )),
        false => refused,
    }
}

async fn set_client(app: &App, set: Set) -> Reply {
    find(app, &set.id).await?;
    let (edited, made) = app.edit_client(&set.id.as_str().into(), |client| set.edit.apply(client)).await??;
    let client = &edited.client;
    let mut told = match &made {
        Some(_) => handed_over(app, client, made.as_ref()),
        None => metadata(client, None),
    };
    let mut changed = edited.changed.unwrap_or_default();
    changed.remove("what");
    let mut text = match changed.is_empty() {
        true => format!("client {} is already as requested: nothing was changed\n", client.id),
        false => format!("client {} changed\n{}", client.id, differences(&changed)),
    };
    if made.is_some() {
        text.push_str(&credentials(app, client, made.as_ref()));
    }
    told["changed"] = Value::Object(changed);
    Ok(Outcome::new(text, told))
}

/// Returns what the application has to be configured with.
fn credentials(app: &App, client: &Client, made: Option<&Secret>) -> String {
    let lines = [
        ("issuer", app.realm.issuer.clone()),
        ("client_id", client.id.0.clone()),
        ("client_secret", made.map(|secret| secret.reveal().to_owned()).unwrap_or_default()),
    ];
    let once = if made.is_some() { "the secret is shown only this once: save it now\n" } else { "" };
    format!("{}{once}", facts(&lines))
}

impl List {
    async fn execute(self, app: &App) -> Reply {
        let mut clients = app.clients(self.after.as_deref().unwrap_or("")).await?;
        let end = self.limit.cut(&mut clients, PAGE, |client| &client.id.0);
        if clients.is_empty() && !self.goes_on {
            let hint = match &self.after {
                Some(after) => format!("no clients after id {after}"),
                None => {
                    "no clients yet; add one with: portiere client add --id ID --name NAME --redirect-uri URI".into()
                }
            };
            return Ok(Outcome::new(hint, json!([])));
        }
        let mut table = Table::new(["ID", "NAME", "KIND", "GRANTS", "STATE", "CREATED (UTC)"], !self.goes_on);
        for client in &clients {
            let (id, name, kind) = (client.id.0.clone(), client.name.clone(), kind(client).to_owned());
            table.row([id, name, kind, grants(client), state(client).into(), when(client.created)]);
        }
        let json = clients.iter().map(|client| metadata(client, None)).collect();
        Ok(Outcome::new(table.render(), json).then(end.next).noting(end.notes))
    }

    /// Goes on with the next page.
    pub fn go_on(&mut self, next: String) {
        (self.after, self.goes_on) = (Some(self.limit.go_on(next)), true);
    }
}

async fn find(app: &App, id: &str) -> Result<Client, Failure> {
    let found = app.find_client(&id.into()).await?;
    found.ok_or_else(|| Failure::NotFound(format!("no client has the id {id}; see: portiere client list")))
}

async fn remove(app: &App, id: &str) -> Reply {
    if id == try_it::CLIENT_ID {
        return Err(Failure::Refused(format!(
            "{id} is the server's own, and is made again at each start: try_it = \"off\" removes it"
        )));
    }
    find(app, id).await?;
    app.remove_client(&id.into()).await??;
    let json = json!({ "client_id": id, "removed": true });
    Ok(Outcome::new(format!("client {id} removed; nothing issued to it works any more"), json))
}

async fn enable(app: &App, id: &str, enabled: bool) -> Reply {
    find(app, id).await?;
    let edited = app.set_client_enabled(&id.into(), enabled).await??;
    let before = if edited.changed.is_none() { " already" } else { "" };
    let ends = if enabled { "" } else { "; nobody can sign in to it, and its tokens no longer work" };
    let state = if enabled { "enabled" } else { "disabled" };
    let refused = edited.client.unknown_values().filter(|_| enabled);
    let here =
        refused.map(|values| format!("; this version still refuses it, because of {values}")).unwrap_or_default();
    let text = format!("client {id} is {state}{before}{ends}{here}");
    let mut told = metadata(&edited.client, None);
    told["changed"] = json!(edited.changed.is_some());
    Ok(Outcome::new(text, told))
}

fn shown(client: &Client) -> Outcome {
    let methods = client.auth_methods.iter().map(|method| method.name().to_owned());
    let methods: Vec<_> = methods.chain(client.unknown_of("auth_methods")).collect();
    let keys = client.jwks.as_ref().map(|set| set.keys.len().to_string());
    let typ = if client.access_typ_jwt { "JWT" } else { "at+jwt" };
    let of = |field, known: &str| client.unknown_of(field).pop().unwrap_or_else(|| known.to_owned());
    let access_alg = of("access_alg", client.access_alg.name());
    let access = match client.access_format {
        _ if client.unknown.contains_key("access_format") => format!("{}, {access_alg}", of("access_format", "")),
        AccessFormat::Jwt => format!("jwt, {access_alg}, typ {typ}"),
        AccessFormat::Opaque => "opaque".into(),
    };
    let lines = [
        ("client_id", client.id.0.clone()),
        ("name", client.name.clone()),
        ("kind", kind(client).into()),
        ("state", state(client).into()),
        ("created", format!("{} UTC", when(client.created))),
        ("disabled", client.disabled_at.map(when).unwrap_or_default()),
        ("redirect URIs", client.redirect_uris.join("\n")),
        ("post-logout URIs", client.post_logout_redirect_uris.join("\n")),
        ("not understood", client.unknown_values().unwrap_or_default()),
        ("grants", grants(client)),
        ("scope", client.scope.to_string()),
        ("authentication", methods.join(" ")),
        ("keys", keys.unwrap_or_default()),
        ("PKCE", if client.pkce_optional { "optional".into() } else { String::new() }),
        ("ID token", of("id_token_alg", client.id_token_alg.name())),
        ("access token", access),
        ("resources", client.resources.join("\n")),
        ("resource server", yes(client.resource_server)),
        ("trusted", yes(client.trusted)),
        ("first party", yes(client.first_party)),
        ("claims in ID token", yes(client.claims_in_id_token)),
        ("no ID token on refresh", yes(client.no_id_token_on_refresh)),
        ("token endpoint as aud", yes(client.assertion_aud_endpoint)),
    ];
    Outcome::new(facts(&lines), metadata(client, None))
}

fn kind(client: &Client) -> &'static str {
    match (client.is_public(), client.native) {
        (true, true) => "public, native",
        (true, false) => "public",
        (false, true) => "confidential, native",
        (false, false) => "confidential",
    }
}

fn state(client: &Client) -> &'static str {
    match (client.is_disabled(), client.is_enabled()) {
        (true, _) => "disabled",
        (false, true) => "enabled",
        (false, false) => "refused here",
    }
}

fn grants(client: &Client) -> String {
    let known = client.grants.iter().map(|grant| short(*grant).to_owned());
    known.chain(client.unknown_of("grants")).collect::<Vec<_>>().join(" ")
}

/// Returns a grant's name without the prefix of its URN.
pub fn short(grant: Grant) -> &'static str {
    grant.name().rsplit(':').next().unwrap_or_default()
}

/// Describes a client in the fields of RFC 7591 §2 and §3.2.1 and OpenID Connect Registration §2, and in our own for
/// the rest. Of several authentication methods, the standard field has the first, our own field has all.
pub fn metadata(client: &Client, secret: Option<&Secret>) -> Value {
    let methods: Vec<_> = client.auth_methods.iter().map(|method| method.name()).collect();
    let by_code = client.may(Grant::AuthorizationCode);
    let mut fields = json!({
        "client_id": client.id,
        "client_id_issued_at": client.created.seconds(),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "post_logout_redirect_uris": client.post_logout_redirect_uris,
        "grant_types": client.grants,
        "response_types": if by_code { vec!["code"] } else { vec![] },
        "scope": client.scope,
        "token_endpoint_auth_method": methods.first().copied().unwrap_or(AuthMethod::None.name()),
        "token_endpoint_auth_methods": methods,
        "application_type": application_type(client),
        "id_token_signed_response_alg": client.id_token_alg,
        "access_token_format": client.access_format,
        "access_token_signed_response_alg": client.access_alg,
        "access_token_typ": access_typ(client),
        "require_pkce": !client.pkce_optional,
        "resources": client.resources,
        "resource_server": client.resource_server,
        "trusted": client.trusted,
        "first_party": client.first_party,
        "claims_in_id_token": client.claims_in_id_token,
        "id_token_on_refresh": !client.no_id_token_on_refresh,
        "assertion_aud_endpoint": client.assertion_aud_endpoint,
        "disabled": client.is_disabled(),
    });
    if let Some(keys) = &client.jwks {
        fields["jwks"] = json!(keys);
    }
    if let Some(at) = client.disabled_at {
        fields["disabled_at"] = json!(iso(at));
    }
    if let Some(secret) = secret {
        fields["client_secret"] = json!(secret.reveal());
        fields["client_secret_expires_at"] = json!(0);
    }
    tell_unknown(client, &mut fields);
    fields
}

/// Describes a client to whoever configures the application, for programs: as [`credentials`] does for people.
fn handed_over(app: &App, client: &Client, made: Option<&Secret>) -> Value {
    let mut told = metadata(client, made);
    told["issuer"] = json!(app.realm.issuer);
    told
}

/// Adds the values that this version does not know, as they are stored, and says that they are not understood.
fn tell_unknown(client: &Client, fields: &mut Value) {
    let unknown: Vec<_> = client.unknown.iter().map(|(field, value)| (told_as(field), value)).collect();
    for (name, value) in &unknown {
        fields[*name] = (*value).clone();
    }
    if !unknown.is_empty() {
        fields["token_endpoint_auth_method"] = match &fields["token_endpoint_auth_methods"] {
            Value::Array(methods) => methods.first().cloned().unwrap_or_default(),
            other => other.clone(),
        };
        fields["not_understood"] = unknown.into_iter().map(|(name, _)| name).collect();
    }
}
