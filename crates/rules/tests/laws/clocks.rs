//! Nodes whose clocks differ as far as they may: what one was told holds at the others, whatever they dated.

use crate::acts::authorize::Shape;
use crate::acts::people::Manage;
use crate::acts::tokens::Twist;
use crate::play::{Act, one, visit};
use crate::world::World;
use rules::Span;
use rules::login::session::proved_to_end;
use rules::realm::SKEW;

const SHAPE: Shape = Shape { prompt: 0, max_age: None, scope: 0, expects: None, resource: false };
const CLIENTS: [usize; 3] = [0, 1, 4];

fn manage(world: &mut World, acts: &[Manage]) {
    for what in acts {
        for client in CLIENTS {
            one(world, &Act::Manage { client, what: *what });
        }
    }
}

/// Tokens of a line that can be refreshed, an opaque one, a client's own, a code and an approved device that wait.
fn issue(world: &mut World) {
    visit(world, (0, 0, 0), SHAPE);
    one(world, &Act::Authorize { browser: 0, client: 1, shape: SHAPE });
    one(world, &Act::Redeem { code: 0, twist: Twist::Plain });
    one(world, &Act::Own { client: 4, scope: None });
    one(world, &Act::DeviceAsk { client: 0, scope: 0 });
    one(world, &Act::DeviceAnswer { device: 0, browser: 0, allow: true });
    one(world, &Act::Authorize { browser: 0, client: 0, shape: SHAPE });
    let met = &world.ledger.met;
    let all = ["code redeemed", "a client's own token", "device approved"].map(|what| met.get(what).copied());
    assert_eq!((all, world.ledger.codes.len()), ([Some(2), Some(1), Some(1)], 3));
}

/// Tries what waits, and looks at all of it.
fn try_all(world: &mut World) {
    let met = world.ledger.met.clone();
    one(world, &Act::Redeem { code: 0, twist: Twist::Plain });
    one(world, &Act::DevicePoll { device: 0, other: false });
    for token in 0..2 {
        one(world, &Act::Refresh { token, twist: Twist::Plain });
    }
    for what in ["code redeemed", "refresh", "device redeemed"] {
        assert_eq!(world.ledger.met.get(what), met.get(what), "{what}");
    }
    assert!(world.ledger.breaches.is_empty(), "{:?}", world.ledger.breaches);
}

#[test]
fn what_was_issued_by_a_clock_that_is_ahead_ends_with_its_application() {
    // red where `Client::owns` looks at times where both sides have a life; without a life in the family, the code, the
    // device or the jti; without what clocks differ by for what has none.
    for ahead in [Span::ZERO, Span(999), SKEW, SKEW + SKEW] {
        for change in [[Manage::Disable, Manage::Enable], [Manage::Remove, Manage::Add]] {
            for before in [&[][..], &[Manage::Disable, Manage::Enable]] {
                let mut world = World::new(Span::seconds(10));
                manage(&mut world, before);
                let here = world.now;
                world.now = here + ahead;
                issue(&mut world);
                world.now = here + Span::seconds(1);
                manage(&mut world, &change);
                try_all(&mut world);
                world.now = here + ahead + ahead + Span::seconds(2);
                try_all(&mut world);
            }
        }
    }
}

/// What was done by a clock that was `ahead`, where clocks are right.
fn seen_right(ahead: Span) -> World {
    let mut world = World::new(Span::seconds(10));
    let here = world.now;
    world.now = here + ahead;
    issue(&mut world);
    one(&mut world, &Act::DeviceAsk { client: 2, scope: 0 });
    world.now = here + Span::seconds(1);
    world
}

/// How often each of these has happened.
fn met<const N: usize>(world: &World, what: [&str; N]) -> [usize; N] {
    what.map(|what| world.ledger.met.get(what).copied().unwrap_or_default())
}

#[test]
fn what_a_clock_dated_that_was_ahead_is_good_for_nothing() {
    // red without `is_believable` in rules/login/session.rs, is_live; in oauth/family.rs, is_live, and token.rs, admit; in
    // oauth/device.rs, is_over.
    let most = SKEW + SKEW;
    for (ahead, good) in [(most, true), (most + Span::seconds(2), false), (Span::days(365), false)] {
        let mut world = seen_right(ahead);
        assert_eq!(world.proved(0).is_some(), good, "a session, {ahead:?}");
        for at in 0..world.ledger.access.len() {
            let claims = world.ledger.access[at].claims.clone();
            let of_a_line = world.ledger.access[at].family.is_some();
            assert!(!of_a_line || world.is_live(&claims) == good, "an access token, {ahead:?}");
        }
        let what = ["code redeemed", "device redeemed", "refresh"];
        let before = met(&world, what);
        for token in [1, 0] {
            one(&mut world, &Act::Refresh { token, twist: Twist::Plain });
        }
        one(&mut world, &Act::Redeem { code: 0, twist: Twist::Plain });
        one(&mut world, &Act::DevicePoll { device: 1, other: false });
        let more = if good { [1, 1, 2] } else { [0; 3] };
        let after = met(&world, what);
        assert_eq!([0, 1, 2].map(|at| after[at] - before[at]), more, "{ahead:?}");
        let codes = world.ledger.codes.len();
        one(&mut world, &Act::Authorize { browser: 0, client: 1, shape: Shape { prompt: 1, ..SHAPE } });
        assert_eq!(world.ledger.codes.len() > codes, good, "a code without a page, {ahead:?}");
        assert!(world.ledger.breaches.is_empty(), "{:?}", world.ledger.breaches);
    }
}

#[test]
fn who_signed_in_by_a_clock_that_was_ahead_signs_out_or_in_again() {
    // red with `is_live` in rules/login/session.rs, proved_to_end: it would live once its time has come.
    for ahead in [SKEW + SKEW + Span::seconds(2), Span::hours(1), Span::days(365)] {
        let mut world = seen_right(ahead);
        let cookie = world.browsers[0].clone().expect("a cookie");
        let (found, settings) = (world.tables.session(&cookie), world.realm.settings.clone());
        assert!(proved_to_end(&cookie, found.as_ref(), &settings, world.now).is_some());
        one(&mut world, &Act::SignIn { browser: 0, user: 0, right: true });
        assert!(world.proved(0).is_some(), "{ahead:?}");
        let approved = met(&world, ["device approved"]);
        one(&mut world, &Act::DeviceAnswer { device: 0, browser: 0, allow: true });
        assert_eq!(met(&world, ["device approved"]), approved, "a request of a device, {ahead:?}");
        let codes = world.ledger.codes.len();
        one(&mut world, &Act::Authorize { browser: 0, client: 1, shape: SHAPE });
        one(&mut world, &Act::Redeem { code: 0, twist: Twist::Plain });
        assert!(world.ledger.codes.len() > codes && world.ledger.codes[codes].yielded, "{ahead:?}");
        assert!(world.ledger.breaches.is_empty(), "{:?}", world.ledger.breaches);
    }
}
