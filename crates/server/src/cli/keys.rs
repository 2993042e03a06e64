//! Signing keys.

use super::input::Input;
use super::outcome::{Failure, Outcome, Reply};
use super::removal::confirm;
use super::text::Table;
use app::App;
use clap::{Args, Subcommand};
use rules::id::Kid;
use rules::keys::{Key, LEAD, Stage};
use rules::utc::{iso, when};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The subcommands of `keys`.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
pub enum Command {
    /// List signing keys and their states
    ///
    /// A key is next (published, does not sign yet), active (signs), retiring (published until what it signed has
    /// expired), retired, or revoked (nothing that it signed is trusted).
    List,
    /// Rotate the signing keys
    ///
    /// Each algorithm gets a new key, which is published at once and signs after an hour, when no cache holds a key set
    /// without it. The old key stays published until what it signed has expired. An algorithm whose new key waits
    /// already gets no other one, unless --force asks for it. The server does this by itself when keys grow old
    /// (keys.rotate_after). Use --revoke for a key that somebody else may have: nothing that it signed is
    /// trusted any more, and a new key of its algorithm is added in the same step unless one waits already.
    #[command(after_long_help = "\
Examples:
  portiere keys rotate
  portiere keys rotate --revoke 5WqGyVBQFkmVtXz1D2GYDw")]
    Rotate(Rotate),
}

/// The arguments of `keys rotate`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Rotate {
    /// Revoke this key
    #[arg(long, value_name = "KID", allow_hyphen_values = true)]
    pub revoke: Option<String>,
    /// Add a new key of each algorithm, also where one waits already
    #[arg(long, conflicts_with = "revoke")]
    #[serde(default)]
    pub force: bool,
    /// With --revoke, do not ask for confirmation at a terminal
    #[arg(long)]
    #[serde(default)]
    pub yes: bool,
}

impl Command {
    /// Asks the user to confirm.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        match self {
            Command::Rotate(Rotate { revoke: Some(kid), yes, .. }) => {
                confirm(input, *yes, ("Whatever it signed is refused: users sign in again.", kid))
            }
            _ => Ok(()),
        }
    }

    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        match self {
            Command::List => list(app).await,
            Command::Rotate(Rotate { revoke: None, force, .. }) => {
                let made = app.rotate_keys(force).await?;
                let text = match made.len() {
                    0 => "a new key of each algorithm waits already: nothing was changed".to_owned(),
                    1 => format!("1 new key is published now and starts to sign in {} minutes", LEAD.0 / 60_000),
                    new => format!("{new} new keys are published now and start to sign in {} minutes", LEAD.0 / 60_000),
                };
                told(app, text, (made.as_slice(), !made.is_empty()), None).await
            }
            Command::Rotate(Rotate { revoke: Some(kid), .. }) => revoke(app, &Kid(kid)).await,
        }
    }
}

async fn revoke(app: &App, kid: &Kid) -> Reply {
    match app.throw_out(kid).await? {
        Ok(heir) => {
            let text = format!("key {kid} revoked: nothing that it signed is believed");
            told(app, text, (heir.as_slice(), true), Some(kid)).await
        }
        Err(refused) => match is_revoked(app, kid).await? {
            // Also where somebody else was first, a moment ago.
            true => {
                let text = format!("key {kid} is revoked already; nothing was changed");
                told(app, text, (&[], false), Some(kid)).await
            }
            false => Err(refused.into()),
        },
    }
}

async fn is_revoked(app: &App, kid: &Kid) -> Result<bool, Failure> {
    let keys = app.signing_keys().await?;
    Ok(keys.iter().any(|(key, _)| key.kid == *kid && key.revoked_at.is_some()))
}

async fn list(app: &App) -> Reply {
    let keys = app.signing_keys().await?;
    Ok(Outcome::new(table(&keys), keys.iter().map(shown).collect()))
}

async fn told(app: &App, text: String, (made, changed): (&[Kid], bool), revoked: Option<&Kid>) -> Reply {
    let keys = app.signing_keys().await.map_err(|fault| Failure::unread(&fault))?;
    let shown: Vec<Value> = keys.iter().map(shown).collect();
    let json = json!({ "made": made, "revoked": revoked, "changed": changed, "keys": shown });
    Ok(Outcome::new(format!("{text}\n{}", table(&keys)), json))
}

fn table(keys: &[(Key, Stage)]) -> String {
    let mut table = Table::new(["KID", "ALG", "STAGE", "CREATED (UTC)", "SIGNS FROM", "PUBLISHED UNTIL"], true);
    for (key, stage) in keys {
        let until = key.revoked_at.or(key.publish_until).map(when).unwrap_or_default();
        let (kid, alg) = (key.kid.0.clone(), key.alg.name().to_owned());
        table.row([kid, alg, name(key, *stage).into(), when(key.created), when(key.active_from), until]);
    }
    table.render()
}

fn name(key: &Key, stage: Stage) -> &'static str {
    if key.revoked_at.is_some() { "revoked" } else { stage.name() }
}

fn shown((key, stage): &(Key, Stage)) -> Value {
    json!({
        "kid": key.kid,
        "alg": key.alg,
        "stage": name(key, *stage),
        "created_at": iso(key.created),
        "active_from": iso(key.active_from),
        "publish_until": key.publish_until.map(iso),
        "revoked_at": key.revoked_at.map(iso),
    })
}
