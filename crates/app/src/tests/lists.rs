//! Lists that are longer than one step reads: what is beyond that is found, shown and removed like the rest.

use super::{NOW, ada, application, database, node};
use crate::App;
use crate::clock::Clock;
use crate::entropy;
use rules::login::session::Session;
use rules::oauth::consent::Consent;
use rules::oauth::scope::Scope;
use rules::people::User;
use rules::realm::Settings;
use rules::{Change, Fresh, Handle, Span, Time};
use std::collections::BTreeSet;
use store::tables::fences::{self, Fence};
use tempfile::TempDir;

/// More than any list reads at once.
const MANY: usize = 1_201;

async fn house(changes: Vec<Change>) -> (TempDir, App, User) {
    let folder = tempfile::tempdir().unwrap();
    let app = node(database(folder.path()).await, Clock::fixed(NOW)).await;
    let ada = ada();
    let changes = [vec![Change::AddUser(Box::new(ada.clone()))], changes].concat();
    app.commit(changes, NOW, &entropy::fresh().unwrap()).await.unwrap();
    (folder, app, ada)
}

fn names() -> impl Iterator<Item = String> {
    (0..MANY).map(|number| format!("group {number:04}"))
}

#[tokio::test]
async fn a_group_is_found_by_its_name_however_many_there_are() {
    // Red where admin/groups.rs, find_group, looks through a list that has an end.
    let groups = names().map(|name| Change::AddGroup { group: name.as_str().into(), name });
    let (_folder, app, ada) = house(groups.collect()).await;
    app.add_group("zz-admins").await.unwrap().unwrap();
    app.set_member("zz-admins", &ada, true).await.unwrap().unwrap();
    assert_eq!(app.groups_of(&ada).await.unwrap(), ["zz-admins"]);
    assert_eq!(app.group_members("zz-admins", "").await.unwrap().unwrap().len(), 1);
    assert!(app.add_group("zz-admins").await.unwrap().is_err(), "it is there");
    let listed: BTreeSet<String> = app.groups().await.unwrap().into_iter().map(|group| group.name).collect();
    assert!(listed.contains("zz-admins") && listed.len() == MANY + 1, "{}", listed.len());
    app.set_member("zz-admins", &ada, false).await.unwrap().unwrap();
    assert!(app.groups_of(&ada).await.unwrap().is_empty());
    app.remove_group("zz-admins").await.unwrap().unwrap();
    assert_eq!(app.groups().await.unwrap().len(), MANY);
}

#[tokio::test]
async fn an_operator_sees_every_group_of_somebody() {
    let joined = names().flat_map(|name| {
        let member = Change::SetMember { group: name.as_str().into(), user: "ada".into(), member: true };
        [Change::AddGroup { group: name.as_str().into(), name }, member]
    });
    let (_folder, app, ada) = house(joined.collect()).await;
    assert!(app.groups_of(&ada).await.unwrap().into_iter().eq(names()));
}

#[tokio::test]
async fn nobody_joins_what_is_gone_or_once_they_are() {
    // Red without either Find of tables/groups.rs, set_member: a row of a missing group or person would stay for ever.
    let (_folder, app, ada) = house(vec![Change::AddGroup { group: "staff".into(), name: "staff".into() }]).await;
    for (group, user, joins) in
        [("staff", ada.id.clone(), true), ("gone", ada.id.clone(), false), ("staff", "eve".into(), false)]
    {
        let member = Change::SetMember { group: group.into(), user, member: true };
        let outcome = app.commit(vec![member], NOW, &entropy::fresh().unwrap()).await;
        assert_eq!(outcome.is_ok(), joins, "{group}: {outcome:?}");
    }
    app.remove_user(&ada).await.unwrap().unwrap();
    let told = app.set_member("staff", &ada, true).await.unwrap();
    assert_eq!(told.unwrap_err().why, "ada was removed meanwhile");
}

#[tokio::test]
async fn every_application_is_on_the_account_page() {
    // Red where account.rs, home, reads one page of consents.
    let let_in = names().flat_map(|name| {
        let consent = Consent {
            user: "ada".into(),
            client: name.as_str().into(),
            scope: Scope::from("openid".to_owned()),
            granted: NOW,
        };
        [
            Change::AddClient(Box::new(application(&name))),
            Change::GrantConsent { consent: Box::new(consent), seen: None },
        ]
    });
    let (_folder, app, ada) = house(let_in.collect()).await;
    let shown = app.home(&ada).await.unwrap().applications;
    assert!(shown.iter().map(|(client, _)| client.id.0.clone()).eq(names()));
}

/// A session that its number identifies.
fn session(number: usize, created: Time, (last_seen, expires): (Time, Time)) -> Change {
    let id = Fresh::new([7; 32]).ordered(&format!("{number}"), created);
    Change::StartSession(Box::new(Session {
        handle: Handle::of(&id),
        id: id.as_str().into(),
        user: "ada".into(),
        auth_time: created,
        amr: vec![],
        created,
        last_seen,
        expires,
        agent: number.to_string(),
        address: String::new(),
        ended_at: None,
    }))
}

#[tokio::test]
async fn sessions_that_have_run_out_do_not_hide_one_that_lives() {
    // Red where store/tables/sessions.rs, Page, finds sessions that were idle too long or are too old: more than are
    // read.
    let (before, later) = (NOW - Span::days(3), NOW + Span::days(1));
    let over = [(NOW - Settings::default().session_idle, later), (NOW, NOW)];
    let over = (1..MANY).map(|number| session(number, before, over[number % 2]));
    let changes = std::iter::once(session(0, before - Span::days(1), (NOW, later))).chain(over).collect();
    let (_folder, app, ada) = house(changes).await;
    let home = app.home(&ada).await.unwrap();
    assert_eq!(home.sessions.iter().map(|session| session.agent.as_str()).collect::<Vec<_>>(), ["0"]);
    assert!(!home.more_sessions);
}

#[tokio::test]
async fn who_has_more_sessions_than_a_page_shows_is_told() {
    for (many, shown) in [(100, 100), (101, 100), (MANY, 100)] {
        let of = |number: usize| session(number, NOW + Span(number as i64), (NOW, NOW + Span::days(1)));
        let (_folder, app, ada) = house((0..many).map(of).collect()).await;
        let home = app.home(&ada).await.unwrap();
        let newest = (0..many).rev().take(shown).map(|number| number.to_string());
        assert!(home.sessions.iter().map(|session| session.agent.clone()).eq(newest), "{many}");
        assert_eq!(home.more_sessions, many > shown);
    }
}

#[tokio::test]
async fn a_node_that_is_waited_for_since_long_can_be_given_up() {
    // Red where ward/fence.rs looks for it among the nodes of the newest fences.
    let (_folder, app, _) = house(vec![]).await;
    let later: Vec<String> = (0..MANY).map(|number| format!("node {number}")).collect();
    for (number, nodes) in [(1, &["gone".to_owned()][..]), (2, &later)] {
        let fence = Fence { number, at: NOW, identity: "other".into(), epoch: app.epoch().await.unwrap() };
        app.engine.commit(fences::raise(&app.realm.id, &fence, NOW, nodes)).await.unwrap();
    }
    let waiting = app.fences().await.unwrap();
    assert_eq!((waiting.waiting().count(), waiting.waiting().filter(|node| *node == "gone").count()), (MANY + 1, 1));
    let after = app.accept_loss("gone").await.unwrap().unwrap();
    assert!(after.waiting().count() == MANY && after.waiting().all(|node| node != "gone"));
}
