//! Sequences of acts and clock steps.

use crate::acts::authorize::{PROMPTS, SCOPES, Shape, arrive, go_on};
use crate::acts::devices::{device_answer, device_ask, device_poll};
use crate::acts::people::{self, Manage};
use crate::acts::recent;
use crate::acts::tokens::{Twist, own_token, redeem, refresh, revoke_access, revoke_refresh};
use crate::world::{CLIENTS, Plan, World};
use proptest::prelude::*;
use rules::id::{ClientId, UserId};
use rules::{Fresh, Span};

/// One thing that happens. Numbers name people, browsers and applications; what was handed out is named by how long
/// ago.
#[derive(Clone, Debug)]
pub enum Act {
    SignIn { browser: usize, user: u8, right: bool },
    SignOut { browser: usize },
    EndOthers { browser: usize },
    ChangePassword { browser: usize },
    Authorize { browser: usize, client: usize, shape: Shape },
    GoOn { flow: u8, yes: bool },
    Redeem { code: u8, twist: Twist },
    Refresh { token: u8, twist: Twist },
    Own { client: usize, scope: Option<&'static str> },
    RevokeAccess { token: u8, twist: Twist },
    RevokeRefresh { token: u8, twist: Twist },
    RevokeConsent { user: u8, client: usize },
    SetEnabled { user: u8, enabled: bool },
    RemoveUser { user: u8 },
    Manage { client: usize, what: Manage },
    DeviceAsk { client: usize, scope: usize },
    DeviceAnswer { device: u8, browser: usize, allow: bool },
    DevicePoll { device: u8, other: bool },
    Wait(Span),
}

/// What a sequence is made of.
#[derive(Clone, Debug)]
pub enum Turn {
    /// One act.
    One(Act),
    /// Two acts on the same facts.
    Race(Act, Act),
    /// Somebody signs in, allows, and the application redeems.
    Visit { browser: usize, user: u8, client: usize, scope: usize },
    /// An application goes, and another one of its name comes.
    Replace { client: usize },
    /// A device asks and waits; somebody signs in and answers; it polls on.
    Pair { browser: usize, user: u8, client: usize, scope: usize, allow: bool },
}

/// A sequence, and the grace of refresh tokens in it.
#[derive(Clone, Debug)]
pub struct Play {
    pub grace: Span,
    pub turns: Vec<Turn>,
}

impl Play {
    /// Plays it in a new world.
    pub fn run(&self) -> World {
        let mut world = World::new(self.grace);
        for turn in &self.turns {
            match turn {
                Turn::One(act) => one(&mut world, act),
                Turn::Race(first, second) => {
                    world.race(&|world, fresh| decide(world, fresh, first), &|world, fresh| {
                        decide(world, fresh, second)
                    });
                    world.tick();
                    world.observe();
                }
                Turn::Visit { browser, user, client, scope } => {
                    visit(&mut world, (*browser, *user, *client), Shape { scope: *scope, ..Shape::default() });
                }
                Turn::Replace { client } => {
                    one(&mut world, &Act::Manage { client: *client, what: Manage::Remove });
                    one(&mut world, &Act::Manage { client: *client, what: Manage::Add });
                }
                Turn::Pair { browser, user, client, scope, allow } => {
                    one(&mut world, &Act::DeviceAsk { client: *client, scope: *scope });
                    one(&mut world, &Act::DevicePoll { device: 0, other: false });
                    one(&mut world, &Act::SignIn { browser: *browser, user: *user, right: true });
                    one(&mut world, &Act::DeviceAnswer { device: 0, browser: *browser, allow: *allow });
                    one(&mut world, &Act::DevicePoll { device: 0, other: true });
                    one(&mut world, &Act::DevicePoll { device: 0, other: false });
                }
            }
        }
        world
    }
}

/// One act, and a look at what it did.
pub fn one(world: &mut World, act: &Act) {
    match act {
        Act::Wait(span) => world.now = world.now + *span,
        act => world.settle(&|world, fresh| decide(world, fresh, act)),
    }
    world.tick();
    world.observe();
}

/// From the sign-in page to tokens.
pub fn visit(world: &mut World, (browser, user, client): (usize, u8, usize), shape: Shape) {
    one(world, &Act::SignIn { browser, user, right: true });
    one(world, &Act::Authorize { browser, client, shape });
    one(world, &Act::GoOn { flow: 0, yes: true });
    one(world, &Act::Redeem { code: 0, twist: Twist::Plain });
}

fn user(number: u8) -> UserId {
    UserId(format!("u{number}"))
}

fn client(number: usize) -> ClientId {
    ClientId(CLIENTS[number].to_owned())
}

/// What an act comes to on the facts as they are.
fn decide(world: &World, fresh: &Fresh, act: &Act) -> Plan {
    let ledger = &world.ledger;
    let plan = match *act {
        Act::SignIn { browser, user: who, right } => Some(people::sign_in(world, fresh, (browser, &user(who)), right)),
        Act::SignOut { browser } => Some(people::sign_out(world, browser)),
        Act::EndOthers { browser } => Some(people::end_others(world, browser)),
        Act::ChangePassword { browser } => Some(people::change_password(world, fresh, browser)),
        Act::Authorize { browser, client: which, shape } => {
            Some(arrive(world, fresh, (browser, &client(which)), shape))
        }
        Act::GoOn { flow, yes } => recent(world.flows.len(), flow).map(|at| go_on(world, fresh, &world.flows[at], yes)),
        Act::Redeem { code, twist } => recent(ledger.codes.len(), code).map(|at| redeem(world, fresh, at, twist)),
        Act::Refresh { token, twist } => recent(ledger.rungs.len(), token).map(|at| refresh(world, fresh, at, twist)),
        Act::Own { client: which, scope } => Some(own_token(world, fresh, &client(which), scope)),
        Act::RevokeAccess { token, twist } => {
            recent(ledger.access.len(), token).map(|at| revoke_access(world, at, twist))
        }
        Act::RevokeRefresh { token, twist } => {
            recent(ledger.rungs.len(), token).map(|at| revoke_refresh(world, at, twist))
        }
        Act::RevokeConsent { user: who, client: which } => {
            Some(people::revoke_consent(world, &user(who), &client(which)))
        }
        Act::SetEnabled { user: who, enabled } => Some(people::set_user_enabled(world, &user(who), enabled)),
        Act::RemoveUser { user: who } => Some(people::remove_user(world, &user(who))),
        Act::Manage { client: which, what } => Some(people::manage_client(world, fresh, &client(which), what)),
        Act::DeviceAsk { client: which, scope } => Some(device_ask(world, fresh, &client(which), SCOPES[scope])),
        Act::DeviceAnswer { device, browser, allow } => {
            recent(ledger.devices.len(), device).map(|at| device_answer(world, fresh, (at, browser), allow))
        }
        Act::DevicePoll { device, other } => {
            recent(ledger.devices.len(), device).map(|at| device_poll(world, fresh, at, other))
        }
        Act::Wait(_) => None,
    };
    plan.unwrap_or_else(Plan::nothing)
}

fn back() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0u8), 2 => Just(1u8), 1 => 2u8..6]
}

fn twist() -> impl Strategy<Value = Twist> {
    use Twist::*;
    let odd = proptest::sample::select(vec![OtherClient, Second, Third, Fourth, Garbled]);
    prop_oneof![5 => Just(Plain), 1 => odd]
}

fn shape() -> impl Strategy<Value = Shape> {
    let prompt = prop_oneof![2 => Just(0), 1 => 0..PROMPTS.len()];
    let max_age = proptest::option::weighted(0.3, proptest::sample::select(vec![0, 1, 60, 4_000]));
    let expects = proptest::option::weighted(0.3, (0u8..3, any::<bool>()));
    (prompt, max_age, 0..SCOPES.len(), expects, proptest::bool::weighted(0.2))
        .prop_map(|(prompt, max_age, scope, expects, resource)| Shape { prompt, max_age, scope, expects, resource })
}

/// Mostly moments; now and then months.
fn wait() -> impl Strategy<Value = Span> {
    let short = vec![Span(1), Span(500), Span::seconds(5), Span(9_999), Span::seconds(10), Span::seconds(59)];
    let middle = vec![Span::seconds(60), Span::minutes(5), Span::minutes(10), Span::minutes(15), Span::hours(1)];
    let long = vec![Span::hours(23), Span::hours(24), Span::days(8), Span::days(29), Span::days(61)];
    let of = proptest::sample::select::<Span>;
    prop_oneof![6 => of(short), 3 => of(middle), 1 => of(long)]
}

/// What applications and their people do all day.
fn daily() -> impl Strategy<Value = Act> {
    let browser = || 0usize..3;
    prop_oneof![
        2 => (browser(), 0u8..3, proptest::bool::weighted(0.8))
            .prop_map(|(browser, user, right)| Act::SignIn { browser, user, right }),
        3 => (browser(), 0usize..4, shape())
            .prop_map(|(browser, client, shape)| Act::Authorize { browser, client, shape }),
        3 => (back(), proptest::bool::weighted(0.9)).prop_map(|(flow, yes)| Act::GoOn { flow, yes }),
        5 => (back(), twist()).prop_map(|(code, twist)| Act::Redeem { code, twist }),
        6 => (back(), twist()).prop_map(|(token, twist)| Act::Refresh { token, twist }),
        1 => (0usize..5, proptest::sample::select(vec![None, Some("jobs:run"), Some("openid"), Some("admin")]))
            .prop_map(|(client, scope)| Act::Own { client, scope }),
        1 => (proptest::sample::select(vec![0usize, 2]), 0usize..3)
            .prop_map(|(client, scope)| Act::DeviceAsk { client, scope }),
        1 => (back(), browser(), proptest::bool::weighted(0.8))
            .prop_map(|(device, browser, allow)| Act::DeviceAnswer { device, browser, allow }),
        2 => (back(), proptest::bool::weighted(0.1)).prop_map(|(device, other)| Act::DevicePoll { device, other }),
    ]
}

/// What ends things.
fn ending() -> impl Strategy<Value = Act> {
    use Manage::*;
    let browser = || 0usize..3;
    let what = proptest::sample::select(vec![Disable, Enable, Enable, Narrow, Restore, Restore]);
    prop_oneof![
        3 => browser().prop_map(|browser| Act::SignOut { browser }),
        1 => browser().prop_map(|browser| Act::EndOthers { browser }),
        1 => browser().prop_map(|browser| Act::ChangePassword { browser }),
        1 => (back(), twist()).prop_map(|(token, twist)| Act::RevokeAccess { token, twist }),
        1 => (back(), twist()).prop_map(|(token, twist)| Act::RevokeRefresh { token, twist }),
        2 => (0u8..3, 0usize..4).prop_map(|(user, client)| Act::RevokeConsent { user, client }),
        3 => (0u8..3, proptest::bool::weighted(0.6)).prop_map(|(user, enabled)| Act::SetEnabled { user, enabled }),
        1 => (0u8..3).prop_map(|user| Act::RemoveUser { user }),
        3 => (0usize..5, what).prop_map(|(client, what)| Act::Manage { client, what }),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![8 => daily(), 3 => ending(), 4 => wait().prop_map(Act::Wait)]
}

fn turn() -> impl Strategy<Value = Turn> {
    let rivals = prop_oneof![
        2 => daily().prop_map(|act| (act.clone(), act)),
        1 => (daily(), daily()),
        1 => (daily(), ending()),
        1 => (ending(), daily()),
    ];
    let visit = (0usize..3, 0u8..3, 0usize..4, 0usize..SCOPES.len());
    let pair = (0usize..3, 0u8..3, proptest::sample::select(vec![0usize, 2]), 0usize..3, proptest::bool::weighted(0.8));
    prop_oneof![
        16 => act().prop_map(Turn::One),
        4 => rivals.prop_map(|(first, second)| Turn::Race(first, second)),
        2 => visit.prop_map(|(browser, user, client, scope)| Turn::Visit { browser, user, client, scope }),
        1 => (0usize..5).prop_map(|client| Turn::Replace { client }),
        1 => pair.prop_map(|(browser, user, client, scope, allow)| Turn::Pair { browser, user, client, scope, allow }),
    ]
}

/// Sequences of about forty turns, with and without a grace, from a first visit on.
pub fn plays() -> impl Strategy<Value = Play> {
    let first = (0usize..4, 0usize..SCOPES.len()).prop_map(|(client, scope)| Turn::Visit {
        browser: 0,
        user: 0,
        client,
        scope,
    });
    let grace = proptest::sample::select(vec![Span::ZERO, Span::seconds(10)]);
    (grace, first, proptest::collection::vec(turn(), 20..45)).prop_map(|(grace, first, mut turns)| {
        turns.insert(0, first);
        Play { grace, turns }
    })
}
