//! Managing groups.

use super::Refused;
use super::users::PAGE;
use crate::settle::{AT_ONCE, whole};
use crate::{App, Fault};
use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::id::GroupId;
use rules::people::User;
use rules::people::labels::{group_name, spellings};
use rules::{Decision, Time};
use store::engine::SENT_AT_ONCE;
use store::tables::groups::{ByName, Group, Page, PageOf};
use store::tables::users::{ById, InGroup};

/// How many members one batch takes out of a group: each is two statements of it.
const OUT_AT_ONCE: i64 = SENT_AT_ONCE as i64 / 2;

impl App {
    /// Returns every group.
    pub async fn groups(&self) -> Result<Vec<Group>, Fault> {
        whole(|after| async move { self.ask(Page { after: &after, limit: AT_ONCE }).await }, |group| &group.name).await
    }

    /// Returns the names of all groups of a user.
    pub async fn groups_of(&self, user: &User) -> Result<Vec<String>, Fault> {
        let page =
            |after: String| async move { self.ask(PageOf { user: &user.id, after: &after, limit: AT_ONCE }).await };
        whole(page, |name| name).await
    }

    /// Returns a page of a group's members, by id.
    pub async fn group_members(&self, name: &str, after: &str) -> Result<Result<Vec<User>, Refused>, Fault> {
        let Some(group) = self.find_group(name).await? else { return Ok(Err(unknown(name))) };
        self.ask(InGroup { group: &group.id, after, limit: PAGE }).await.map(Ok)
    }

    /// Makes a group.
    pub async fn add_group(&self, typed: &str) -> Result<Result<Group, Refused>, Fault> {
        let name = match group_name(typed) {
            Ok(name) => name,
            Err(why) => return Ok(Err(Refused::new(why))),
        };
        let name = &*name;
        self.settle(|now, fresh| async move {
            if self.find_group(name).await?.is_some() {
                return Ok(Decision::refuse(Refused::taken(format!("a group called {name} exists"))));
            }
            let group = Group { id: GroupId(fresh.name("group")), name: name.to_owned() };
            let event = Event::new(Kind::GroupChanged, now).detail("group", name).detail("what", "added");
            let add = Change::AddGroup { group: group.id.clone(), name: name.to_owned() };
            Ok(Decision::accept(group).and(add).and(Change::Record(event)))
        })
        .await
    }

    /// Removes a group, and returns it.
    pub async fn remove_group(&self, name: &str) -> Result<Result<Group, Refused>, Fault> {
        self.take_all_out(name).await?;
        self.settle(|now, _| async move {
            let Some(group) = self.find_group(name).await? else {
                return Ok(Decision::refuse(unknown(name)));
            };
            let event = Event::new(Kind::GroupChanged, now).detail("group", &*group.name).detail("what", "removed");
            let remove = Change::RemoveGroup(group.id.clone());
            Ok(Decision::accept(group).and(remove).and(Change::Record(event)))
        })
        .await
    }

    /// Takes everybody out of a group that is to be removed, some at a time: what a user lost is told in their own entry.
    async fn take_all_out(&self, name: &str) -> Result<(), Fault> {
        let take_some_out = async |now: Time| {
            let Some(group) = self.find_group(name).await? else { return Ok(Decision::accept(0)) };
            let members = self.ask(InGroup { group: &group.id, after: "", limit: OUT_AT_ONCE }).await?;
            let out = members.iter().flat_map(|user| {
                let change = Change::SetMember { group: group.id.clone(), user: user.id.clone(), member: false };
                [change, Change::Record(moved(user, &group, "left", now))]
            });
            Ok(Decision::<usize, Refused>::accept(members.len()).with(out))
        };
        while self.settle(|now, _| take_some_out(now)).await?.is_ok_and(|many| many > 0) {}
        Ok(())
    }

    /// Puts a user into a group, or takes them out, and returns whether that changed anything. What is so already is
    /// not recorded again.
    pub async fn set_member(&self, name: &str, user: &User, member: bool) -> Result<Result<bool, Refused>, Fault> {
        self.settle(|now, _| async move {
            let Some(group) = self.find_group(name).await? else {
                return Ok(Decision::refuse(unknown(name)));
            };
            if self.ask(ById(&user.id)).await?.is_none() {
                return Ok(Decision::refuse(Refused::missing(format!("{} was removed meanwhile", user.username))));
            }
            if self.groups_of(user).await?.contains(&group.name) == member {
                return Ok(Decision::accept(false));
            }
            let event = moved(user, &group, if member { "joined" } else { "left" }, now);
            let change = Change::SetMember { group: group.id, user: user.id.clone(), member };
            Ok(Decision::accept(true).and(change).and(Change::Record(event)))
        })
        .await
    }

    /// Returns the group of that name; groups from earlier versions are called as they were typed then.
    pub async fn find_group(&self, name: &str) -> Result<Option<Group>, Fault> {
        if name.is_ascii() {
            return self.ask(ByName(name)).await;
        }
        let [typed, composed, apart] = &spellings(name);
        let (typed, composed, apart) = self.ask((ByName(typed), ByName(composed), ByName(apart))).await?;
        Ok(typed.or(composed).or(apart))
    }
}

/// Returns the audit entry of a user who joined a group, or left it.
fn moved(user: &User, group: &Group, what: &str, at: Time) -> Event {
    Event::new(Kind::GroupChanged, at).user(&user.id).detail("group", &*group.name).detail("what", what)
}

fn unknown(name: &str) -> Refused {
    Refused::missing(format!("no group is called {name}"))
}
