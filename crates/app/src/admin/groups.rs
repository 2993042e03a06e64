//! Managing groups.

use super::Refused;
use super::users::PAGE;
use crate::settle::{AT_ONCE, whole};
use crate::{App, Fault};
use rules::Decision;
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::id::GroupId;
use rules::people::User;
use rules::people::names::is_plain;
use store::tables::groups::{ByName, Group, Page, PageOf};
use store::tables::users::InGroup;

impl App {
    /// Every group.
    pub async fn groups(&self) -> Result<Vec<Group>, Fault> {
        whole(|after| async move { self.ask(Page { after: &after, limit: AT_ONCE }).await }, |group| &group.name).await
    }

    /// The names of all groups of somebody.
    pub async fn groups_of(&self, user: &User) -> Result<Vec<String>, Fault> {
        let page =
            |after: String| async move { self.ask(PageOf { user: &user.id, after: &after, limit: AT_ONCE }).await };
        whole(page, |name| name).await
    }

    /// A page of who is in a group, by id.
    pub async fn group_members(&self, name: &str, after: &str) -> Result<Result<Vec<User>, Refused>, Fault> {
        let Some(group) = self.group(name).await? else { return Ok(Err(unknown(name))) };
        self.ask(InGroup { group: &group.id, after, limit: PAGE }).await.map(Ok)
    }

    /// Makes a group.
    pub async fn add_group(&self, name: &str) -> Result<Result<(), Refused>, Fault> {
        // What begins with a hyphen is an option that was mistyped.
        if name.len() > 200 || !is_plain(name) || name.starts_with('-') {
            let rule = "a group's name is 1 to 200 bytes of printable text, and does not begin with a hyphen";
            return Ok(Err(Refused::new(rule)));
        }
        self.settle(|now, fresh| async move {
            if self.group(name).await?.is_some() {
                return Ok(Decision::refuse(Refused(format!("a group called {name} exists"))));
            }
            let group = GroupId(fresh.name("group"));
            let event = Event::new(Kind::GroupChanged, now).detail("group", name).detail("what", "added");
            let add = Change::AddGroup { group, name: name.to_owned() };
            Ok(Decision::accept(()).and(add).and(Change::Record(event)))
        })
        .await
    }

    /// Removes a group.
    pub async fn remove_group(&self, name: &str) -> Result<Result<(), Refused>, Fault> {
        self.settle(|now, _| async move {
            let Some(group) = self.group(name).await? else {
                return Ok(Decision::refuse(unknown(name)));
            };
            let event = Event::new(Kind::GroupChanged, now).detail("group", name).detail("what", "removed");
            Ok(Decision::accept(()).and(Change::RemoveGroup(group.id)).and(Change::Record(event)))
        })
        .await
    }

    /// Puts somebody into a group, or takes them out, and says whether that changed anything. What is so already is not
    /// written down again.
    pub async fn set_member(&self, name: &str, user: &User, member: bool) -> Result<Result<bool, Refused>, Fault> {
        self.settle(|now, _| async move {
            let Some(group) = self.group(name).await? else {
                return Ok(Decision::refuse(unknown(name)));
            };
            if self.groups_of(user).await?.iter().any(|known| known == name) == member {
                return Ok(Decision::accept(false));
            }
            let what = if member { "joined" } else { "left" };
            let event = Event::new(Kind::GroupChanged, now).user(&user.id).detail("group", name).detail("what", what);
            let change = Change::SetMember { group: group.id, user: user.id.clone(), member };
            Ok(Decision::accept(true).and(change).and(Change::Record(event)))
        })
        .await
    }

    async fn group(&self, name: &str) -> Result<Option<Group>, Fault> {
        self.ask(ByName(name)).await
    }
}

fn unknown(name: &str) -> Refused {
    Refused(format!("no group is called {name}"))
}
