//! Groups of people: their names are the `groups` claim.

use super::absent;
use super::input::Input;
use super::limit::Limit;
use super::outcome::{Failure, Outcome, Reply};
use super::removal::Removal;
use super::text::Table;
use super::user;
use app::App;
use app::admin::Refused;
use app::admin::users::PAGE;
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::tables::groups::Group;

/// The subcommands of `group`.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
pub enum Command {
    /// Create a group
    #[command(after_long_help = "\
Examples:
  portiere group add staff
  portiere group member staff ada")]
    Add(NewGroup),
    /// List groups
    List,
    /// List the members of a group
    Show(Show),
    /// Remove a group; its members' accounts stay
    Remove(Remove),
    /// Add a user to a group, or remove the user from it
    ///
    /// To see the groups of a user: portiere user show USER.
    #[command(after_long_help = "\
Examples:
  portiere group member staff ada
  portiere group member staff ada --remove")]
    Member(Member),
}

/// A new group.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct NewGroup {
    /// The group's name
    pub name: String,
    /// If a group of that name exists, change nothing and exit with 0
    #[arg(long)]
    #[serde(default)]
    pub if_absent: bool,
}

/// A group to remove.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Remove {
    /// The group's name
    #[arg(allow_hyphen_values = true)]
    pub name: String,
    /// How.
    #[command(flatten)]
    #[serde(flatten)]
    pub removal: Removal,
}

/// The arguments of `group show`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Show {
    /// The group's name
    #[arg(allow_hyphen_values = true)]
    pub name: String,
    /// Start after the account with this id
    #[arg(long, value_name = "ID", allow_hyphen_values = true, value_parser = user::id)]
    pub after: Option<String>,
    /// How many.
    #[command(flatten)]
    #[serde(default)]
    pub limit: Limit,
    /// Whether an earlier page began the list.
    #[arg(skip)]
    pub goes_on: bool,
}

/// A user and a group.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Member {
    /// The group's name
    #[arg(allow_hyphen_values = true)]
    pub name: String,
    /// Username, verified e-mail address or id
    #[arg(allow_hyphen_values = true)]
    pub user: String,
    /// Remove the user from the group
    #[arg(long)]
    pub remove: bool,
}

impl Command {
    /// Asks the user to confirm.
    pub fn complete(&mut self, input: &mut Input) -> Result<(), Failure> {
        match self {
            Command::Remove(Remove { name, removal }) => {
                removal.complete(input, ("Its members lose what applications give to it.", name))
            }
            _ => Ok(()),
        }
    }

    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        match self {
            Command::Add(new) => absent::or_make(new.if_absent, || new.there(app), new.made(app)).await,
            Command::List => list(app).await,
            Command::Show(show) => show.execute(app).await,
            Command::Remove(Remove { name, removal }) => {
                removal.ended(remove(app, &name).await, "group", ("name", &name))
            }
            Command::Member(member) => member.execute(app).await,
        }
    }
}

impl NewGroup {
    /// Returns the group with that name, if it exists.
    async fn there(&self, app: &App) -> Result<Option<Outcome>, Failure> {
        let found = app.find_group(&self.name).await?;
        Ok(found.map(|group| absent::there("group", &group.name, told(&group))))
    }

    async fn made(&self, app: &App) -> Result<Result<Outcome, Refused>, Failure> {
        let added = app.add_group(&self.name).await?;
        Ok(added.map(|group| Outcome::new(format!("group {} added", group.name), told(&group))))
    }
}

/// Finds a group by its name.
async fn find(app: &App, name: &str) -> Result<Group, Failure> {
    let found = app.find_group(name).await?;
    found.ok_or_else(|| Failure::NotFound(format!("no group is called {name}; see: portiere group list")))
}

async fn remove(app: &App, name: &str) -> Reply {
    find(app, name).await?;
    let Group { id, name } = app.remove_group(name).await??;
    Ok(Outcome::new(format!("group {name} removed"), json!({ "id": id, "name": name, "removed": true })))
}

async fn list(app: &App) -> Reply {
    let groups = app.groups().await?;
    if groups.is_empty() {
        return Ok(Outcome::new("no groups yet; add one with: portiere group add NAME", json!([])));
    }
    let mut table = Table::new(["NAME", "ID"], true);
    groups.iter().for_each(|group| table.row([group.name.clone(), group.id.0.clone()]));
    Ok(Outcome::new(table.render(), groups.iter().map(told).collect()))
}

/// Describes a group for programs.
fn told(group: &Group) -> Value {
    json!({ "id": group.id, "name": group.name })
}

impl Show {
    async fn execute(self, app: &App) -> Reply {
        find(app, &self.name).await?;
        let mut members = app.group_members(&self.name, self.after.as_deref().unwrap_or("")).await??;
        let end = self.limit.cut(&mut members, PAGE, |user| &user.id.0);
        let nobody = match &self.after {
            Some(after) => format!("no members after id {after} in group {}", self.name),
            None => {
                format!("no members in group {}; add one with: portiere group member NAME USER", self.name)
            }
        };
        Ok(user::page(&members, self.goes_on, &nobody).then(end.next).noting(end.notes))
    }

    /// Goes on with the next page.
    pub fn go_on(&mut self, next: String) {
        (self.after, self.goes_on) = (Some(self.limit.go_on(next)), true);
    }
}

impl Member {
    async fn execute(self, app: &App) -> Reply {
        let user = user::find(app, &self.user).await?;
        find(app, &self.name).await?;
        let changed = app.set_member(&self.name, &user, !self.remove).await??;
        let groups = app.groups_of(&user).await.map_err(|fault| Failure::unread(&fault))?;
        let (what, as_before) = match (self.remove, changed) {
            (false, true) => ("was added to", ""),
            (true, true) => ("was removed from", ""),
            (false, false) => ("is in", " (as before)"),
            (true, false) => ("is not in", " (as before)"),
        };
        let text = format!("user {} {what} group {}{as_before}", user::who(&user), self.name);
        let json = json!({ "id": user.id, "username": user.username, "groups": groups, "changed": changed });
        Ok(Outcome::new(text, json))
    }
}
