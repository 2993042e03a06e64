//! The first account.

use super::{NOW, database, newcomer, node};
use crate::App;
use crate::admin::users::sentence;
use crate::browser::Browser;
use crate::clock::Clock;
use crate::setup::{LINK_LIVES, Refused, SetUp};
use crate::sign_up::{NewPerson, Problem};
use rules::id::UserId;
use rules::people::Role;
use rules::secret::Secret;
use rules::{Change, Span};
use store::tables::users::Owner;
use tempfile::TempDir;

async fn house() -> (TempDir, App, Clock) {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
    let app = node(database(folder.path()).await, clock.clone()).await;
    (folder, app, clock)
}

async fn set_up(app: &App, link: &Secret, owner: &NewPerson) -> Result<SetUp, Refused> {
    app.set_up(link.reveal(), owner, &Browser::default()).await.unwrap()
}

#[tokio::test]
async fn pe_05_a_set_up_link_is_good_for_half_an_hour() {
    // Red without the time in setup.rs, is_open, or with another one in LINK_LIVES.
    assert_eq!(LINK_LIVES, Span::minutes(30));
    for (age, good) in [(Span(LINK_LIVES.0 - 1), true), (LINK_LIVES, false)] {
        let (_folder, app, clock) = house().await;
        let link = app.offer_setup(true).await.unwrap().expect("nobody owns it");
        clock.advance(age);
        assert_eq!(app.setup_is_open().await.unwrap(), good);
        let made = set_up(&app, &link, &newcomer("ada", "ada@example.test")).await;
        assert_eq!(made.err(), if good { None } else { Some(Refused::Link) });
        assert_eq!(app.has_owner().await.unwrap(), good);
    }
}

#[tokio::test]
async fn pe_05_a_set_up_link_of_a_clock_that_was_ahead_is_none() {
    // Red without is_believable in realm.rs, lasts, and where the only link leaves one that ends later.
    let (_folder, app, clock) = house().await;
    clock.set(Span::days(365));
    let link = app.offer_setup(false).await.unwrap().expect("nobody owns it");
    clock.set(Span::days(-365));
    assert!(!app.setup_is_open().await.unwrap());
    assert_eq!(set_up(&app, &link, &newcomer("eve", "")).await.err(), Some(Refused::Link));
    let only = app.offer_setup(true).await.unwrap().expect("nobody owns it");
    clock.set(Span::days(365));
    assert_eq!(set_up(&app, &link, &newcomer("eve", "")).await.err(), Some(Refused::Link), "it is gone");
    clock.set(Span::days(-365));
    set_up(&app, &only, &newcomer("ada", "ada@example.test")).await.expect("made");
}

#[tokio::test]
async fn pe_05_a_set_up_link_is_used_once_and_none_where_there_is_an_owner() {
    // Red without UseSetup in setup.rs, set_up, or without the questions for the owner there.
    let (_folder, app, _) = house().await;
    let link = app.offer_setup(true).await.unwrap().expect("nobody owns it");
    let another = app.offer_setup(false).await.unwrap().expect("nobody owns it");
    let stranger = Secret::new("nobody was given this");
    assert_eq!(set_up(&app, &stranger, &newcomer("eve", "")).await.err(), Some(Refused::Link));
    set_up(&app, &link, &newcomer("ada", "ada@example.test")).await.expect("made");
    for link in [&link, &another] {
        assert_eq!(set_up(&app, link, &newcomer("eve", "")).await.err(), Some(Refused::Done));
    }
    assert!(app.offer_setup(true).await.unwrap().is_none() && !app.setup_is_open().await.unwrap());

    // Even if the owner could be removed, the used link would make no second one.
    let owner: UserId = app.ask(Owner).await.unwrap().expect("there is one");
    app.commit(vec![Change::RemoveUser(owner)], NOW, &crate::entropy::fresh().unwrap()).await.unwrap();
    assert_eq!(set_up(&app, &link, &newcomer("eve", "")).await.err(), Some(Refused::Link));
}

#[tokio::test]
async fn an_address_signs_one_person_in_whoever_else_is_made() {
    // Red without by_email in setup.rs, set_up, and in admin/users.rs, add: it would be retried until it is a fault.
    let (_folder, app, _) = house().await;
    let [ada, bob] = [newcomer("ada", "one@example.test"), newcomer("bob", "One@Example.test")];
    let (first, second) = tokio::join!(app.add_user(&ada, Role::Member), app.add_user(&bob, Role::Member));
    let (made, refused) = match (first.unwrap(), second.unwrap()) {
        (Ok(made), Err(refused)) | (Err(refused), Ok(made)) => (made, refused),
        both => panic!("one of them, whoever came first: {both:?}"),
    };
    assert_eq!(refused.why, sentence(Problem::EmailTaken));
    let link = app.offer_setup(true).await.unwrap().expect("nobody owns it");
    let refused = set_up(&app, &link, &newcomer("eve", "ONE@example.test")).await.err();
    assert_eq!(refused, Some(Refused::Problems(vec![Problem::EmailTaken])));
    let refused = set_up(&app, &link, &newcomer(&made.username.to_uppercase(), "one@example.test")).await.err();
    assert_eq!(refused, Some(Refused::Problems(vec![Problem::NameTaken])));
    set_up(&app, &link, &newcomer("eve", "eve@example.test")).await.expect("made");
}
