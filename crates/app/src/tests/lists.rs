//! Lists that are longer than one step reads: whatever is beyond that is found, shown and taken away like the rest.

use super::{NOW, ada, application, database, node};
use crate::App;
use crate::clock::Clock;
use crate::entropy;
use rules::login::session::Session;
use rules::oauth::consent::Consent;
use rules::oauth::scope::Scope;
use rules::people::User;
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
    // red where admin/groups.rs, group, looks through a list that has an end.
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
async fn every_application_is_on_the_account_page() {
    // red where account.rs, home, reads one page of consents.
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

#[tokio::test]
async fn sessions_that_have_run_out_do_not_hide_one_that_lives() {
    // red where account.rs, live_sessions, reads one page.
    let session = |number: usize, at: Time, last_seen: Time| {
        let id = Fresh::new([7; 32]).ordered(&format!("{number}"), at);
        Change::StartSession(Box::new(Session {
            handle: Handle::of(&id),
            id: id.as_str().into(),
            user: "ada".into(),
            auth_time: at,
            amr: vec![],
            created: at,
            last_seen,
            expires: NOW + Span::days(1),
            agent: number.to_string(),
            address: String::new(),
            ended_at: None,
        }))
    };
    let idle = (1..MANY).map(|number| session(number, NOW - Span::days(3), NOW - Span::days(2)));
    let changes = std::iter::once(session(0, NOW - Span::days(4), NOW)).chain(idle).collect();
    let (_folder, app, ada) = house(changes).await;
    let shown = app.home(&ada).await.unwrap().sessions;
    assert_eq!(shown.iter().map(|session| session.agent.as_str()).collect::<Vec<_>>(), ["0"]);
}

#[tokio::test]
async fn a_node_that_is_waited_for_since_long_can_be_given_up() {
    // red where ward/fence.rs looks for it among the nodes of the newest fences.
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
