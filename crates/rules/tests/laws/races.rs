//! Races in slow motion: what was decided on facts that have changed before it commits.

use crate::acts::authorize::{Shape, arrive};
use crate::acts::devices::device_answer;
use crate::acts::people::{Manage, sign_in};
use crate::acts::tokens::{Twist, redeem, refresh};
use crate::play::{Act, one, visit};
use crate::world::{Plan, World};
use rules::oauth::code::{self, Redemption};
use rules::{Fresh, Span};

const RACERS: usize = 100;
const EMAIL: Shape = Shape { prompt: 0, max_age: None, scope: 1, expects: None, resource: false };
const BARE: Shape = Shape { scope: 0, ..EMAIL };

/// Somebody has signed in and let the first application have `shape`'s scope; its code is not redeemed.
fn allowed(world: &mut World, shape: Shape) {
    one(world, &Act::SignIn { browser: 0, user: 0, right: true });
    one(world, &Act::Authorize { browser: 0, client: 0, shape });
    one(world, &Act::GoOn { flow: 0, yes: true });
    assert!(!world.ledger.codes.is_empty());
}

/// As many decisions on the same facts as there are racers, each settled in turn.
fn all_at_once(world: &mut World, decide: &dyn Fn(&World, &Fresh) -> Plan) {
    let rivals: Vec<Fresh> = (0..RACERS).map(|_| world.fresh()).collect();
    let plans: Vec<Plan> = rivals.iter().map(|fresh| decide(world, fresh)).collect();
    for (plan, fresh) in plans.into_iter().zip(&rivals) {
        if !world.commit(plan) {
            let again = decide(world, fresh);
            assert!(world.commit(again), "the second decision stands");
        }
    }
    world.tick();
    world.observe();
}

fn unbroken(world: &World) {
    assert!(world.ledger.breaches.is_empty(), "{:?}", world.ledger.breaches);
}

#[test]
fn of_a_hundred_redemptions_one_wins_and_the_others_end_its_line() {
    let mut world = World::new(Span::seconds(10));
    allowed(&mut world, EMAIL);
    all_at_once(&mut world, &|world, fresh| redeem(world, fresh, 0, Twist::Plain));
    assert_eq!(world.ledger.met["code redeemed"], 1);
    assert!(world.ledger.lines.values().all(|line| line.ended.is_some()));
    unbroken(&world);
}

#[test]
fn of_a_hundred_refreshes_one_rotates_and_the_grace_gives_all_the_same() {
    let mut world = World::new(Span::seconds(10));
    visit(&mut world, (0, 0, 0), EMAIL);
    all_at_once(&mut world, &|world, fresh| refresh(world, fresh, 0, Twist::Plain));
    let met = &world.ledger.met;
    assert_eq!((met["refresh"], met["refresh within the grace"]), (1, RACERS - 1));
    assert!(world.ledger.lines.values().all(|line| line.ended.is_none() && line.chain.len() == 2));
    unbroken(&world);
}

#[test]
fn of_a_hundred_refreshes_without_grace_one_rotates_and_the_family_ends() {
    let mut world = World::new(Span::ZERO);
    visit(&mut world, (0, 0, 0), EMAIL);
    all_at_once(&mut world, &|world, fresh| refresh(world, fresh, 0, Twist::Plain));
    assert_eq!(world.ledger.met["refresh"], 1);
    assert!(world.ledger.lines.values().all(|line| line.ended.is_some()));
    unbroken(&world);
}

#[test]
fn a_consent_that_is_given_again_revives_no_code() {
    let mut world = World::new(Span::seconds(10));
    allowed(&mut world, EMAIL);
    one(&mut world, &Act::RevokeConsent { user: 0, client: 0 });
    allowed(&mut world, BARE);
    assert_eq!(world.ledger.codes.len(), 2);
    one(&mut world, &Act::Redeem { code: 1, twist: Twist::Plain });
    assert!(!world.ledger.codes[0].yielded, "its e-mail scope was taken back");
    unbroken(&world);
}

#[test]
fn a_code_decided_on_a_consent_that_was_replaced_is_not_issued() {
    let mut world = World::new(Span::seconds(10));
    allowed(&mut world, EMAIL);
    let fresh = world.fresh();
    let late = arrive(&world, &fresh, (0, &"web".into()), EMAIL);
    assert!(!late.changes.is_empty(), "a code without asking");
    one(&mut world, &Act::RevokeConsent { user: 0, client: 0 });
    allowed(&mut world, BARE);
    assert!(!world.commit(late), "what it leaned on is another consent by now");
}

#[test]
fn a_consent_taken_back_does_not_come_back_with_the_next_one() {
    let mut world = World::new(Span::seconds(10));
    allowed(&mut world, EMAIL);
    let profile = Shape { scope: 2, ..EMAIL };
    one(&mut world, &Act::Authorize { browser: 0, client: 0, shape: profile });
    let (fresh, flow) = (world.fresh(), world.flows.last().expect("a consent page").clone());
    let late = crate::acts::authorize::go_on(&world, &fresh, &flow, true);
    one(&mut world, &Act::RevokeConsent { user: 0, client: 0 });
    assert!(!world.commit(late), "it would bring back what was seen before");
}

#[test]
fn a_password_that_was_changed_meanwhile_proves_nothing() {
    let mut world = World::new(Span::seconds(10));
    one(&mut world, &Act::SignIn { browser: 0, user: 0, right: true });
    let fresh = world.fresh();
    let late = sign_in(&world, &fresh, (1, &"u0".into()), true);
    one(&mut world, &Act::ChangePassword { browser: 0 });
    assert!(!world.commit(late), "the proof was of the old password");
}

#[test]
fn what_was_decided_by_a_cookie_that_was_replaced_meanwhile_is_not_given() {
    // red without `handle` of Change::Stands in rules/oauth/step.rs, issue, and device.rs, answer.
    for raise in [Act::ChangePassword { browser: 0 }, Act::SignIn { browser: 0, user: 0, right: true }] {
        let mut world = World::new(Span::seconds(10));
        allowed(&mut world, EMAIL);
        one(&mut world, &Act::DeviceAsk { client: 0, scope: 0 });
        world.browsers[1] = world.browsers[0].clone();
        let fresh = [world.fresh(), world.fresh(), world.fresh()];
        let decide = |world: &World| {
            let code = arrive(world, &fresh[0], (1, &"web".into()), EMAIL);
            [code, device_answer(world, &fresh[1], (0, 1), true), device_answer(world, &fresh[2], (0, 1), false)]
        };
        let late = decide(&world);
        assert!(late.iter().all(|plan| !plan.changes.is_empty()), "decided by the cookie of then");
        one(&mut world, &raise);
        for plan in late {
            assert!(!world.commit(plan), "its cookie proves nothing any more: {raise:?}");
        }
        assert!(decide(&world).iter().all(|plan| plan.changes.is_empty()), "and is not believed again: {raise:?}");
        unbroken(&world);
    }
}

#[test]
fn an_application_of_the_same_name_inherits_nothing() {
    let mut world = World::new(Span::seconds(10));
    visit(&mut world, (0, 0, 0), Shape { scope: 2, ..EMAIL });
    allowed(&mut world, EMAIL);
    one(&mut world, &Act::Manage { client: 0, what: Manage::Remove });
    one(&mut world, &Act::Manage { client: 0, what: Manage::Add });
    let (redeemed, refreshed) = (world.ledger.met["code redeemed"], world.ledger.met.get("refresh").copied());
    one(&mut world, &Act::Redeem { code: 0, twist: Twist::Plain });
    one(&mut world, &Act::Refresh { token: 0, twist: Twist::Plain });
    assert_eq!(world.ledger.met["code redeemed"], redeemed);
    assert_eq!(world.ledger.met.get("refresh").copied(), refreshed);
    unbroken(&world);
}

#[test]
fn a_code_burns_in_any_clients_hands() {
    let mut world = World::new(Span::seconds(10));
    allowed(&mut world, EMAIL);
    let (issued, job) = (&world.ledger.codes[0], &world.tables.clients[&"job".into()]);
    let ask = Redemption {
        client: job,
        code: &issued.text,
        redirect_uri: Some(&issued.redirect),
        verifier: Some(&issued.verifier),
        resources: Vec::new(),
    };
    let found = world.tables.code(&issued.family);
    let refused = code::redeem(&ask, found.as_ref(), &world.context(), (world.now, &Fresh::new([9; 32])));
    assert!(refused.reply.is_err());
    world.tables.apply(&refused.changes).expect("nobody disturbs");
    one(&mut world, &Act::Redeem { code: 0, twist: Twist::Plain });
    assert!(!world.ledger.codes[0].yielded, "it was in foreign hands");
}
