//! A session that is used only on our own pages.

use super::{NOW, database, newcomer, node, sign_in};
use crate::App;
use crate::account::{NotEnded, NotSaved, ProfileForm};
use crate::browser::{Browser, Unproved};
use crate::clock::Clock;
use crate::flow::{Flow, Place, To};
use rules::decision::Change;
use rules::id::SessionId;
use rules::login::cookie::Cookie;
use rules::login::session::{FRESH, Session};
use rules::people::Role;
use rules::{Decision, Fresh, Span, Time};
use store::tables::fences::{self, Fence};
use tempfile::TempDir;

/// Returns a node, and a browser in which a user has just signed in.
async fn house() -> (TempDir, App, Clock, Browser) {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
    let app = node(database(folder.path()).await, clock.clone()).await;
    app.add_user(&newcomer("ada", ""), Role::Member).await.unwrap().unwrap();
    let mut browser = Browser::default();
    sign_in(&app, Flow::new(To::Place(Place::Account), clock.now()), &mut browser).await;
    (folder, app, clock, browser)
}

async fn last_seen(app: &App, browser: &Browser) -> Time {
    app.session(browser).await.unwrap().expect("signed in").0.last_seen
}

#[tokio::test]
async fn asvs_7_5_1_a_verified_address_changes_after_a_fresh_sign_in_alone() {
    // Red without is_fresh or email_verified in account.rs, save_profile.
    let (folder, clock) = (tempfile::tempdir().unwrap(), Clock::fixed(NOW));
    let app = node(database(folder.path()).await, clock.clone()).await;
    app.add_user(&newcomer("ada", "ada@example.test"), Role::Member).await.unwrap().unwrap();
    let mut browser = Browser::default();
    let account = || Flow::new(To::Place(Place::Account), clock.now());
    let save = async |browser: &Browser, email: Option<&str>| {
        let (session, _) = app.session(browser).await.unwrap().expect("signed in");
        let claims = [("name", if email.is_some() { "Ada" } else { "Ada Lovelace" })];
        app.save_profile(&session, &ProfileForm { claims: &claims, email }).await.unwrap()
    };
    let email = async |browser: &Browser| app.session(browser).await.unwrap().expect("signed in").1.email;
    sign_in(&app, account(), &mut browser).await;
    clock.advance(FRESH);
    for changed in ["mallory@example.test", ""] {
        assert_eq!(save(&browser, Some(changed)).await, Err(NotSaved::SignInAgain));
    }
    assert_eq!(email(&browser).await.as_deref(), Some("ada@example.test"));
    assert_eq!(save(&browser, None).await, Ok(()), "what else there is may be changed");
    assert_eq!(save(&browser, Some("ada@example.test")).await, Ok(()), "and the address left as it is");
    sign_in(&app, account(), &mut browser).await;
    assert_eq!(save(&browser, Some("ada@new.test")).await, Ok(()));
    clock.advance(FRESH);
    assert_eq!(save(&browser, Some("ada@newer.test")).await, Ok(()), "nobody vouches for that one");
    assert_eq!(email(&browser).await.as_deref(), Some("ada@newer.test"));
}

#[tokio::test]
async fn asvs_7_5_2_other_sessions_end_after_a_fresh_sign_in_alone() {
    // Red without is_fresh in account.rs, leave_one and leave_everywhere_else: a copy of a cookie would shut its owner
    // out, and outlast the owner's next sign-in.
    let (_folder, app, clock, mut browser) = house().await;
    let account = || Flow::new(To::Place(Place::Account), clock.now());
    let mut other = Browser::default();
    sign_in(&app, account(), &mut other).await;
    let signed_in = async |browser: &Browser| app.session(browser).await.unwrap();
    let (elsewhere, _) = signed_in(&other).await.expect("signed in");
    clock.advance(FRESH);
    let (own, user) = signed_in(&browser).await.expect("signed in");
    let one = app.leave_one((&own, &user), &elsewhere.id, &browser).await.unwrap();
    assert_eq!(one, Err(NotEnded::SignInAgain));
    let all = app.leave_everywhere_else(&own).await.unwrap();
    assert_eq!(all.map(|_| ()), Err(NotEnded::SignInAgain));
    assert!(signed_in(&other).await.is_some() && signed_in(&browser).await.is_some());

    sign_in(&app, account(), &mut browser).await;
    let (own, user) = signed_in(&browser).await.expect("signed in");
    assert_eq!(app.leave_one((&own, &user), &elsewhere.id, &browser).await.unwrap(), Ok(()));
    assert!(signed_in(&other).await.is_none());
    clock.advance(FRESH);
    let (own, user) = signed_in(&browser).await.expect("signed in");
    assert_eq!(app.leave_one((&own, &user), &own.id, &browser).await.unwrap(), Ok(()), "signing out needs no password");
}

#[tokio::test]
async fn a_session_of_a_clock_that_was_ahead_is_shown_and_ended() {
    // Red with is_live in account.rs, live_sessions: its time comes, and its owner could not have seen it.
    let (_folder, app, clock, mut browser) = house().await;
    let flow = || Flow::new(To::Place(Place::Account), clock.now());
    clock.set(Span::minutes(30));
    let mut ahead = Browser::default();
    sign_in(&app, flow(), &mut ahead).await;
    clock.set(Span(-Span::minutes(30).0));
    sign_in(&app, flow(), &mut browser).await;
    let (own, user) = app.session(&browser).await.unwrap().expect("signed in");
    let shown = app.home(&user).await.unwrap().sessions;
    let [one] = shown.iter().filter(|one| one.id != own.id).collect::<Vec<_>>()[..] else { panic!("{shown:?}") };
    assert_eq!(app.leave_one((&own, &user), &one.id, &browser).await.unwrap(), Ok(()));
    clock.advance(Span::minutes(30));
    assert!(app.session(&ahead).await.unwrap().is_none());
}

#[tokio::test]
async fn asvs_7_3_1_a_session_in_use_never_counts_as_idle() {
    // Red without note_use in uses.rs, session_in_use; or where it waits for the next batch, which is too late here.
    let (_folder, app, clock, browser) = house().await;
    let idle = app.realm.settings.session_idle;
    for _ in 0..8 {
        clock.advance(Span(idle.0 - 1));
        assert!(app.session_in_use(&browser).await.unwrap().is_some());
    }
    clock.advance(idle);
    assert!(app.session_in_use(&browser).await.unwrap().is_none(), "and one that is not is over");
}

#[tokio::test]
async fn se_02_what_a_browser_held_behind_a_fence_ends_when_it_signs_in_anew() {
    // Red without `leave_replaced` in sign_in.rs and in sign_up.rs.
    let (_folder, app, clock, first) = house().await;
    let mut second = Browser::default();
    let flow = || Flow::new(To::Place(Place::Account), clock.now());
    sign_in(&app, flow(), &mut second).await;
    let epoch = app.epoch().await.unwrap();
    let fence = Fence { number: 1, at: clock.now() + Span(1), identity: "another".into(), epoch };
    app.engine.commit(fences::raise(&app.realm.id, &fence, clock.now(), &[])).await.unwrap();
    clock.advance(Span(10));

    let mut anew = first.clone();
    sign_in(&app, flow(), &mut anew).await;
    assert!(app.session(&anew).await.unwrap().is_some());
    app.sign_up(flow(), newcomer("grace", ""), &second).await.unwrap().unwrap();
    app.engine.commit(fences::lift(&app.realm.id)).await.unwrap();
    for held in [&first, &second] {
        assert!(app.session(held).await.unwrap().is_none());
    }
    assert!(app.session(&anew).await.unwrap().is_some());
}

#[tokio::test]
async fn the_use_of_a_session_is_noted_when_that_is_due_and_not_before() {
    // Red if uses.rs, note_use, did not ask when it was last noted, or committed something itself.
    let (_folder, app, clock, browser) = house().await;
    let every = app.realm.settings.touch_every;
    for _ in 0..3 {
        let noted = clock.now();
        for part in [Span(1), Span(every.0 - 2)] {
            clock.advance(part);
            app.session_in_use(&browser).await.unwrap().expect("signed in");
            app.write_uses().await.unwrap();
            assert_eq!(last_seen(&app, &browser).await, noted);
        }
        clock.advance(Span(1));
        assert_eq!(last_seen(&app, &browser).await, noted, "looking is not using");
        app.session_in_use(&browser).await.unwrap().expect("signed in");
        assert_eq!(last_seen(&app, &browser).await, noted, "no request waits for it");
        app.write_uses().await.unwrap();
        assert_eq!(last_seen(&app, &browser).await, clock.now());
    }
}

#[tokio::test]
async fn a_note_brings_no_session_back() {
    // Red if uses.rs, note_use, wrote more than the moment.
    let (_folder, app, clock, browser) = house().await;
    let (session, _) = app.session(&browser).await.unwrap().expect("signed in");
    clock.advance(app.realm.settings.touch_every);
    app.leave(&session, &browser).await.unwrap();
    app.note_use(&session).await;
    app.write_uses().await.unwrap();
    assert!(app.session(&browser).await.unwrap().is_none());
}

#[tokio::test]
async fn se_05_a_session_is_over_when_it_ended_ran_out_or_is_gone_and_not_while_it_only_may_not_be_used() {
    // Red if browser.rs, is_over, asked `WithUser` (what a fence holds would be over), or compared the secret.
    let (_folder, app, clock, browser) = house().await;
    assert!(!app.is_over(&browser).await.unwrap());
    let with = |cookie: Cookie| Browser { session: Some(cookie), ..browser.clone() };
    let live = browser.session.clone().expect("a cookie");
    let made = |id: &SessionId, seed| Cookie::make(id, &app.keyring.session, &Fresh::new([seed; 32]));
    let replaced = Browser { unproved: Unproved::default(), ..with(made(&live.id, 1)) };
    assert!(app.session(&replaced).await.unwrap().is_none() && replaced.unproved.is_set());
    assert!(!app.is_over(&replaced).await.unwrap(), "its secret was replaced");
    let unknown = SessionId::from("z".repeat(26).as_str());
    assert!(app.is_over(&with(made(&unknown, 1))).await.unwrap());
    assert!(!app.is_over(&Browser::default()).await.unwrap(), "there is no cookie");

    let epoch = app.epoch().await.unwrap();
    let fence = Fence { number: 1, at: clock.now(), identity: "another".into(), epoch };
    app.engine.commit(fences::raise(&app.realm.id, &fence, clock.now(), &[])).await.unwrap();
    assert!(app.session(&browser).await.unwrap().is_none() && browser.unproved.is_set());
    assert!(!app.is_over(&browser).await.unwrap(), "it may be believed again in a moment");
    // Red without is_sealed in is_over: who knows a `sid` would be told whether the session lives.
    let invented = |id: &SessionId| with(Cookie { id: id.clone(), secret: Fresh::new([9; 32]).secret("session") });
    assert!(!app.is_over(&invented(&live.id)).await.unwrap(), "fenced");

    clock.advance(app.realm.settings.session_absolute);
    assert!(app.is_over(&browser).await.unwrap());
    for id in [&live.id, &unknown] {
        assert!(!app.is_over(&invented(id)).await.unwrap(), "{id:?}");
    }
}

#[tokio::test]
async fn a_cookie_of_version_0_1_signs_in_as_long_as_its_session_lives() {
    // red if `proved` in rules/login/session.rs asked for the tag.
    let (_folder, app, clock, mut browser) = house().await;
    let (session, _) = app.session(&browser).await.unwrap().expect("signed in");
    let secret = Fresh::new([9; 32]).secret("session");
    let (was, old) = (session.handle, Cookie { id: session.id.clone(), secret });
    let session = Box::new(Session { handle: old.secret.handle(), auth_time: session.auth_time + Span(1), ..session });
    let stored = app
        .settle(|_, _| async {
            Ok(Decision::<(), ()>::accept(()).and(Change::RaiseSession { session: session.clone(), was }))
        })
        .await;
    stored.unwrap().unwrap();
    browser.session = Some(old);
    assert!(app.session(&browser).await.unwrap().is_some() && !browser.unproved.is_set());
    clock.advance(app.realm.settings.session_absolute);
    assert!(app.session(&browser).await.unwrap().is_none());
}
