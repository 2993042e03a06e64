//! Accounts of people.

use super::absent;
use super::input::{self, Input, Wanted};
use super::limit::Limit;
use super::one_of::OneOf;
use super::outcome::{Failure, Outcome, Reply};
use super::removal::Removed;
use super::request::Place;
use super::text::{Table, differences, facts, harmless};
use crate::setup_link::LinkFile;
use app::App;
use app::admin::Refused;
use app::admin::hashes::{HashKind, UNREADABLE, Words};
use app::admin::users::PAGE;
use app::sign_up::NewPerson;
use clap::{Args, Subcommand};
use rules::Secret;
use rules::people::{Role, User};
use rules::utc::{iso, when};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The subcommands of `user`.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
pub enum Command {
    /// Create an account
    ///
    /// The e-mail address counts as verified, and the user may sign in with it. Without --password-stdin, the command
    /// asks for the password at the terminal.
    #[command(after_long_help = "\
Examples:
  portiere user add ada --email ada@example.com
  openssl rand -hex 10 | tee /dev/stderr | \\
    portiere user add ada --email ada@example.com --role owner \\
    --password-stdin
  printf %s '$2y$10$…' | \\
    portiere user add ada --email ada@example.com --password-hash-stdin
  portiere user add --if-absent ada --email ada@example.com \\
    --password-stdin < ada.password")]
    Add(Add),
    /// List accounts
    List(List),
    /// Count accounts by how their passwords are stored
    ///
    /// Shows the algorithms of the hashes, and which secrets of the configuration they need (peppers, binding keys,
    /// import keys). A secret that no hash needs may be removed. An older hash is replaced with one under the current
    /// policy when its owner signs in.
    #[command(after_long_help = "\
Examples:
  portiere user hashes
  portiere user hashes --of bcrypt
  portiere user hashes --of p1 --json")]
    Hashes(Hashes),
    /// Show an account, its claims and its groups
    Show(Named),
    /// Disable an account
    ///
    /// Its sessions and tokens are invalid at once. The account is kept with everything that belongs to it.
    Disable(Named),
    /// Enable an account again
    Enable(Named),
    /// Remove an account and everything that belongs to it alone
    Remove(Removed<Named>),
    /// Set a password
    ///
    /// Ends every session of the account and revokes its tokens. Without --password-stdin, the command asks for the
    /// password at the terminal.
    SetPassword(SetPassword),
    /// Set claims of an account
    ///
    /// Claims are those of OpenID Connect Core 5.1: name, given_name, family_name, middle_name, nickname, profile, picture,
    /// website, gender, birthdate, zoneinfo, locale, phone_number, address; and email, which then counts as verified. An
    /// empty value removes a claim.
    #[command(after_long_help = "\
Examples:
  portiere user set ada name='Ada Lovelace' locale=en-GB
  portiere user set ada phone_number=")]
    Set(Set),
}

/// A new account.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Add {
    /// The name to sign in with
    pub name: String,
    /// An e-mail address, with which the user may sign in too
    #[arg(long)]
    pub email: Option<String>,
    /// The account's role. There is one owner, who cannot be disabled or removed; an admin may do no more than a member
    /// yet
    #[arg(long, value_name = "owner|admin|member", default_value = "member", value_parser = roles(), hide_possible_values = true)]
    pub role: Role,
    /// Read the password from standard input
    #[arg(long)]
    pub password_stdin: bool,
    /// Instead of a password, read from standard input what another system stored for it: bcrypt, PBKDF2, scrypt, …;
    /// see the guide's page on passwords
    #[arg(long, conflicts_with = "password_stdin")]
    pub password_hash_stdin: bool,
    /// If an account with that username exists, change nothing, read no password and exit with 0, whatever its role and
    /// e-mail address; an e-mail address with which another user signs in is refused all the same
    #[arg(long)]
    #[serde(default)]
    pub if_absent: bool,
    /// The password or its hash, once it was read.
    #[arg(skip)]
    #[serde(with = "input")]
    pub password: Option<Secret>,
}

/// Which accounts to list.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct List {
    /// Start after the account with this id
    #[arg(long, value_name = "ID", allow_hyphen_values = true, value_parser = id)]
    pub after: Option<String>,
    /// How many.
    #[command(flatten)]
    #[serde(default)]
    pub limit: Limit,
    /// Whether an earlier page began the list.
    #[arg(skip)]
    pub goes_on: bool,
}

/// The arguments of `user hashes`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Hashes {
    /// List the accounts whose hash has this algorithm, or needs the secret of this name
    #[arg(long, value_name = "ALGORITHM|SECRET")]
    pub of: Option<String>,
    /// The account after which the next page begins.
    #[arg(skip)]
    pub after: Option<String>,
    /// Whether an earlier page began the list.
    #[arg(skip)]
    pub goes_on: bool,
}

/// An account.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Named {
    /// Username, verified e-mail address or id
    #[arg(allow_hyphen_values = true)]
    pub name: String,
}

/// A new password.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct SetPassword {
    /// Username, verified e-mail address or id
    #[arg(allow_hyphen_values = true)]
    pub name: String,
    /// Read the password from standard input
    #[arg(long)]
    pub password_stdin: bool,
    /// The password, once it was read.
    #[arg(skip)]
    #[serde(with = "input")]
    pub password: Option<Secret>,
}

/// New values of claims.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Set {
    /// Username, verified e-mail address or id
    #[arg(allow_hyphen_values = true)]
    pub name: String,
    /// Claims and their values
    #[arg(required = true, value_name = "CLAIM=VALUE", value_parser = claim)]
    pub claims: Vec<(String, String)>,
}

impl Set {
    async fn execute(self, app: &App) -> Reply {
        self.names_each_claim_once()?;
        let claims: Vec<(&str, &str)> = self.claims.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let found = find(app, &self.name).await?;
        let groups = app.groups_of(&found).await?;
        let (user, changed) = app.set_claims(&found, &claims).await??;
        let text = match changed.is_empty() {
            true => format!("user {} is already as requested: nothing was changed", who(&user)),
            false => format!("user {} changed\n{}", who(&user), differences(&changed)),
        };
        let mut told = whole(&user, &groups);
        told["changed"] = Value::Object(changed);
        Ok(Outcome::new(text, told))
    }

    fn names_each_claim_once(&self) -> Result<(), Failure> {
        let names = || self.claims.iter().map(|(name, _)| name);
        match names().enumerate().find(|(at, name)| names().take(*at).any(|before| before == *name)) {
            Some((_, name)) => Err(Failure::Use(format!("{name}: is given twice"))),
            None => Ok(()),
        }
    }
}

fn roles() -> OneOf<Role> {
    OneOf::new(["owner", "admin", "member"], |name| {
        Role::parse(name).ok_or("must be owner, admin or member".to_owned())
    })
}

fn claim(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("must be CLAIM=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Command {
    /// Reads the password, if one is needed, or asks the user to confirm.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        if let Command::Remove(Removed { named, removal }) = self {
            return removal
                .complete(input, ("Everything that belongs to the account alone is removed, too.", &named.name));
        }
        let (what, flag, given, password) = match self {
            Command::Add(add) if add.password_hash_stdin => {
                ("password hash", "--password-hash-stdin", true, &mut add.password)
            }
            Command::Add(add) => ("password", "--password-stdin", add.password_stdin, &mut add.password),
            Command::SetPassword(set) => ("password", "--password-stdin", set.password_stdin, &mut set.password),
            _ => return Ok(()),
        };
        *password = Some(input.secret(Wanted { what, flag, given })?);
        Ok(())
    }

    /// Carries out the command.
    pub async fn execute(self, app: &App, place: Place<'_>) -> Reply {
        match self {
            Command::Add(add) => Box::pin(add.execute(app, place)).await,
            Command::List(list) => list.execute(app).await,
            Command::Hashes(hashes) => hashes.execute(app).await,
            Command::Show(named) => show(app, &find(app, &named.name).await?).await,
            Command::Disable(named) => enable(app, &named.name, false).await,
            Command::Enable(named) => enable(app, &named.name, true).await,
            Command::Remove(Removed { named: Named { name }, removal }) => {
                removal.ended(remove(app, &name).await, "user", ("name", &name))
            }
            Command::SetPassword(set) => {
                let user = find(app, &set.name).await?;
                let user = app.set_password(&user, reveal(&set.password).as_bytes()).await??;
                let text = format!("password of {} set; every session and token of the account was ended", who(&user));
                Ok(Outcome::new(text, account(&user)))
            }
            Command::Set(set) => set.execute(app).await,
        }
    }
}

impl Add {
    async fn execute(self, app: &App, place: Place<'_>) -> Reply {
        // A password is asked for only if the account does not exist.
        if self.if_absent && self.password.is_none() {
            return Ok(self.there(app, place).await?.unwrap_or_else(absent::nothing));
        }
        absent::or_make(self.if_absent, || self.there(app, place), self.made(app, place)).await
    }

    /// Returns the account with that username, if it exists.
    async fn there(&self, app: &App, place: Place<'_>) -> Result<Option<Outcome>, Failure> {
        let Some(user) = app.user_called(&self.name, self.email()).await?? else { return Ok(None) };
        let groups = app.groups_of(&user).await?;
        self.drop_link(&user, place).await;
        Ok(Some(absent::there("user", &user.username, whole(&user, &groups))))
    }

    async fn made(&self, app: &App, place: Place<'_>) -> Result<Result<Outcome, Refused>, Failure> {
        let (email, secret) = (self.email(), reveal(&self.password));
        let added = if self.password_hash_stdin {
            app.import_user((&self.name, email), secret, self.role.clone()).await?
        } else {
            app.add_user(&NewPerson::new(&self.name, email, secret.as_bytes()), self.role.clone()).await?
        };
        let user = match added {
            Ok(user) => user,
            Err(refused) => return Ok(Err(refused)),
        };
        self.drop_link(&user, place).await;
        // A new account is in no group yet.
        let told = format!("user {} added with id {}", user.username, user.id);
        Ok(Ok(Outcome::new(told, whole(&user, &[]))))
    }

    /// Removes the link that makes the first account once there is the owner that was asked for. A user who was there
    /// already may not be the owner.
    async fn drop_link(&self, user: &User, place: Place<'_>) {
        if self.role == Role::Owner && user.role == Role::Owner {
            LinkFile::of(place.data).remove().await;
        }
    }

    fn email(&self) -> &str {
        self.email.as_deref().unwrap_or_default()
    }
}

/// Parses the id of an account. Other text sorts somewhere, too, and would be answered with accounts that nobody asked
/// for.
pub fn id(text: &str) -> Result<String, String> {
    let is_one = text.len() == 22 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    match is_one {
        true => Ok(text.to_owned()),
        false => Err("not the id of an account, as user list shows it".to_owned()),
    }
}

impl List {
    async fn execute(self, app: &App) -> Reply {
        let mut users = app.users(self.after.as_deref().unwrap_or("")).await?;
        let end = self.limit.cut(&mut users, PAGE, |user| &user.id.0);
        let nobody = match &self.after {
            Some(after) => format!("no users after id {after}"),
            None => "no users yet; add one with: portiere user add NAME --email ADDRESS".to_owned(),
        };
        Ok(page(&users, self.goes_on, &nobody).then(end.next).noting(end.notes))
    }

    /// Goes on with the next page.
    pub fn go_on(&mut self, next: String) {
        (self.after, self.goes_on) = (Some(self.limit.go_on(next)), true);
    }
}

impl Hashes {
    async fn execute(self, app: &App) -> Reply {
        let Some(of) = &self.of else {
            return Ok(kinds(&app.hash_kinds().await?, app.realm.settings.hash_upgrade));
        };
        let (users, next) = app.users_with_hash(of, self.after.as_deref().unwrap_or("")).await?;
        if users.is_empty() && !self.goes_on {
            // An operator removes a secret on this answer: a word that means nothing is not answered with it.
            let words = app.hash_words().await?;
            if !words.know(of) {
                return Err(Failure::Use(unknown(of, &words)));
            }
        }
        let nobody = format!("no account has such a password hash: {}", harmless(of));
        Ok(page(&users, self.goes_on, &nobody).then(next))
    }
}

/// Says that a word means no hashes, and which words do.
fn unknown(of: &str, words: &Words) -> String {
    let quoted: Vec<_> = Words::algorithms().map(|name| format!("\"{name}\"")).collect();
    let secrets = match words.secrets.is_empty() {
        true => "; there are no secrets".to_owned(),
        false => format!("; or a secret: {}", words.secrets.iter().cloned().collect::<Vec<_>>().join(", ")),
    };
    format!("--of {of}: no such algorithm or secret; say one of {}{secrets}", quoted.join(", "))
}

fn kinds(found: &BTreeMap<HashKind, u64>, upgrades: bool) -> Outcome {
    if found.is_empty() {
        return Outcome::new("no account has a password yet", json!({ "kinds": [] }));
    }
    let mut table = Table::new(["ALGORITHM", "SECRETS", "ACCOUNTS", ""], true);
    for (kind, accounts) in found {
        let note = match (kind.is_verifiable, kind.is_outdated) {
            (false, _) => "cannot be verified with these settings",
            (true, true) if upgrades => "rehashed at the next sign-in, unless a part of the password does not count",
            (true, true) => "outdated, and kept: hash.upgrade is false",
            (true, false) => "up to date with the policy",
        };
        let algorithm = kind.algorithm.unwrap_or(UNREADABLE).to_owned();
        table.row([algorithm, kind.secrets.join(", "), accounts.to_string(), note.to_owned()]);
    }
    let json = found.iter().map(|(kind, accounts)| {
        json!({
            "algorithm": kind.algorithm,
            "secrets": kind.secrets,
            "accounts": accounts,
            "is_outdated": kind.is_outdated,
            "is_verifiable": kind.is_verifiable,
        })
    });
    Outcome::new(table.render(), json!({ "kinds": json.collect::<Vec<_>>() }))
}

/// Renders a page of a list of people, the first one or a later one; `nobody` is what an empty list says.
pub fn page(users: &[User], goes_on: bool, nobody: &str) -> Outcome {
    if users.is_empty() && !goes_on {
        return Outcome::new(nobody, json!([]));
    }
    let mut table = Table::new(["USERNAME", "EMAIL", "ROLE", "STATE", "CREATED (UTC)", "ID"], !goes_on);
    for user in users {
        let (email, role) = (address(user), user.role.name().to_owned());
        table.row([user.username.clone(), email, role, state(user).into(), when(user.created), user.id.0.clone()]);
    }
    Outcome::new(table.render(), users.iter().map(account).collect())
}

/// Finds a user by what an operator calls them.
pub async fn find(app: &App, name: &str) -> Result<User, Failure> {
    let found = app.find_user(name).await??;
    found.ok_or_else(|| Failure::NotFound(format!("no user is called {name}; see: portiere user list")))
}

/// Names the user that something was done to, beyond doubt.
pub fn who(user: &User) -> String {
    format!("{} (id {})", harmless(&user.username), user.id)
}

async fn remove(app: &App, name: &str) -> Reply {
    let user = find(app, name).await?;
    app.remove_user(&user).await??;
    Ok(Outcome::new(format!("user {} removed", who(&user)), json!({ "id": user.id, "removed": true })))
}

async fn enable(app: &App, name: &str, enabled: bool) -> Reply {
    let before = find(app, name).await?;
    let user = app.set_user_enabled(&before, enabled).await??;
    let changed = before.is_enabled() != user.is_enabled();
    let text = match enabled {
        _ if !changed => {
            format!("user {} is {} already", who(&user), if enabled { "enabled" } else { "disabled" })
        }
        true => format!("user {} enabled", who(&user)),
        false => format!("user {} disabled; every session and token of the account was ended", who(&user)),
    };
    let mut told = account(&user);
    told["changed"] = json!(changed);
    Ok(Outcome::new(text, told))
}

async fn show(app: &App, user: &User) -> Reply {
    let groups = app.groups_of(user).await?;
    let claims = user.profile.claims();
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut lines = vec![
        ("username", user.username.clone()),
        ("id", user.id.0.clone()),
        ("email", address(user)),
        ("role", user.role.name().into()),
        ("state", state(user).into()),
        ("groups", groups.join(", ")),
        ("created", format!("{} UTC", when(user.created))),
        ("updated", format!("{} UTC", when(user.updated))),
        ("disabled", user.disabled_at.map(when).unwrap_or_default()),
    ];
    lines.extend(claims.iter().map(|(name, value)| (name.as_str(), word(value))));
    Ok(Outcome::new(facts(&lines), whole(user, &groups)))
}

/// Returns a user's e-mail address, and whether it is not verified.
fn address(user: &User) -> String {
    let verified = if user.email_verified { "" } else { " (not verified)" };
    user.email.as_ref().map(|email| format!("{email}{verified}")).unwrap_or_default()
}

fn state(user: &User) -> &'static str {
    if user.is_enabled() { "enabled" } else { "disabled" }
}

/// Describes an account for programs.
pub fn account(user: &User) -> Value {
    json!({
        "id": user.id,
        "username": user.username,
        "email": user.email,
        "email_verified": user.email_verified,
        "role": user.role.name(),
        "disabled": !user.is_enabled(),
        "disabled_at": user.disabled_at.map(iso),
        "created_at": iso(user.created),
        "updated_at": iso(user.updated),
    })
}

/// Describes an account with its groups and claims, for programs.
fn whole(user: &User, groups: &[String]) -> Value {
    let mut told = account(user);
    told["groups"] = json!(groups);
    told["claims"] = json!(user.profile.claims());
    told
}

fn reveal(password: &Option<Secret>) -> &str {
    password.as_ref().map_or("", Secret::reveal)
}
