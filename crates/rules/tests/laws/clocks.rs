//! Nodes whose clocks differ as far as they may: what one was told holds at the others, whatever they dated.

use crate::acts::authorize::Shape;
use crate::acts::people::Manage;
use crate::acts::tokens::Twist;
use crate::play::{Act, one, visit};
use crate::world::World;
use rules::Span;
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
