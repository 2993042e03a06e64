//! The device grant.

use super::tokens::begin;
use crate::ledger::{AskedDevice, Law, Line};
use crate::world::{Plan, World};
use rules::decision::Change;
use rules::id::ClientId;
use rules::login::session::FRESH;
use rules::oauth::client::{Client, Grant};
use rules::oauth::device::{Answerer, HURRY, INTERVAL_S, Stage, answer, as_it_may, ask, poll};
use rules::oauth::error::Code as ErrorCode;
use rules::oauth::token::Tokens;
use rules::{Fresh, Span};

/// A device asks.
pub fn device_ask(world: &World, fresh: &Fresh, client: &ClientId, scope: &str) -> Plan {
    let Some(client) = world.tables.client(client) else { return Plan::nothing() };
    let now = world.now;
    let asked = ask(client, (Some(scope), Vec::new(), "192.0.2.1"), &[3; 32], &world.realm, (now, fresh));
    let client = client.id.clone();
    Plan::of(asked.changes, move |world| {
        let Ok(reply) = asked.reply else { return };
        world.ledger.devices.push(AskedDevice {
            code: reply.device_code,
            client,
            expires: now + Span::seconds(reply.expires_in),
            interval_s: INTERVAL_S,
            ended: None,
            polled: None,
            line: None,
            answered: false,
            yielded: false,
        });
    })
}

/// Somebody who is signed in answers.
pub fn device_answer(world: &World, fresh: &Fresh, (which, browser): (usize, usize), allow: bool) -> Plan {
    let Some((session, _)) = world.proved(browser) else { return Plan::nothing() };
    let handle = world.ledger.devices[which].code.handle();
    let Some(device) = world.tables.devices.get(&handle.0) else { return Plan::nothing() };
    let Some(client) = world.tables.client(&device.client) else { return Plan::nothing() };
    let Some(device) = as_it_may(device.clone(), client) else { return Plan::nothing() };
    let consent = world.tables.consents.get(&(session.user.clone(), device.client.clone()));
    let who = Answerer { session: &session, consent, client };
    let decision = answer(&device, allow, &who, (world.now, fresh));
    if decision.reply.is_err() {
        return Plan::nothing();
    }
    let approval = decision.changes.iter().find_map(|change| match change {
        Change::AnswerDevice { approval, .. } => approval.as_deref().cloned(),
        _ => None,
    });
    Plan::of(decision.changes, move |world| {
        let ledger = &mut world.ledger;
        ledger.use_visit(&session.id, world.now);
        let recent = ledger.visits[&session.id].auth_time + FRESH > world.now;
        ledger.hold(Law::SignInIsAsAsked, recent, "a device is answered long after the sign-in");
        let asked = &mut ledger.devices[which];
        let (again, expired) = (asked.answered, asked.expires.has_come(world.now));
        asked.answered = true;
        asked.line = approval.as_ref().map(|approval| approval.family.clone());
        let client = asked.client.clone();
        ledger.hold(Law::DeviceYieldsOnce, !again && !expired, "a request is answered twice or too late");
        let Some(approval) = approval else { return };
        let agreed = ledger.agreed.entry((approval.user.clone(), client.clone())).or_default();
        *agreed = agreed.either(&approval.granted.scope);
        let line = Line {
            client,
            user: approval.user,
            session: approval.session,
            granted: approval.granted,
            by_consent: false,
            device: true,
            began: None,
            chain: Vec::new(),
            ended: None,
            dead: false,
        };
        ledger.meet("device approved");
        ledger.lines.insert(approval.family, line);
    })
}

/// A device polls, with its own code or with somebody else's.
pub fn device_poll(world: &World, fresh: &Fresh, which: usize, other: bool) -> Plan {
    let asked = &world.ledger.devices[which];
    let may = |client: &&Client| client.is_enabled() && client.may(Grant::DeviceCode);
    let presenter = world.tables.clients.values().filter(may).find(|client| (client.id != asked.client) == other);
    let Some(client) = presenter else { return Plan::nothing() };
    let (handle, interval_s, known) = (asked.code.handle(), asked.interval_s, asked.ended.is_none());
    let early = asked.polled.is_some_and(|polled| polled + Span::seconds(interval_s) > world.now + HURRY);
    let found = world.tables.device(&handle.0);
    let pending = found.as_ref().is_some_and(|found| matches!(found.device.stage, Stage::Pending));
    let decision = poll((client, &[]), found.as_ref(), &world.context(), (world.now, fresh));
    Plan::of(decision.changes, move |world| {
        let code = decision.reply.as_ref().err().map(|error| error.code);
        if pending && known && !other {
            waited(world, which, (early, interval_s), code);
        }
        let told = code.is_some_and(|code| code != ErrorCode::InvalidGrant);
        world.ledger.hold(Law::DeviceYieldsOnce, !(other && told), "another client learns how a request stands");
        let Ok(tokens) = decision.reply else { return };
        polled(world, which, other, tokens);
    })
}

/// RFC 8628 §3.5: who polls too early waits five seconds longer from then on.
fn waited(world: &mut World, which: usize, (early, interval_s): (bool, i64), code: Option<ErrorCode>) {
    let (now, asked) = (world.now, &mut world.ledger.devices[which]);
    if asked.expires.has_come(now) {
        return;
    }
    let interval_s = if early { interval_s + 5 } else { interval_s };
    (asked.polled, asked.interval_s) = (Some(now), interval_s);
    let handle = asked.code.handle();
    let wanted = if early { ErrorCode::SlowDown } else { ErrorCode::AuthorizationPending };
    let kept = world.tables.devices.get(&handle.0).map(|device| device.interval_s);
    world.ledger.meet(if early { "slow down" } else { "device waits" });
    world.ledger.hold(Law::DeviceYieldsOnce, code == Some(wanted), "a device is told to wait wrongly");
    world.ledger.hold(Law::DeviceYieldsOnce, kept == Some(interval_s), "the interval is not what the device was told");
}

fn polled(world: &mut World, which: usize, other: bool, tokens: Tokens) {
    let (now, ledger) = (world.now, &mut world.ledger);
    let asked = &mut ledger.devices[which];
    let (again, expired, line) = (asked.yielded, asked.expires.has_come(now), asked.line.clone());
    let ended = asked.ended;
    asked.yielded = true;
    ledger.meet("device redeemed");
    ledger.hold(Law::DeviceYieldsOnce, !again, "a device code yields tokens twice");
    ledger.hold(Law::DeviceYieldsOnce, !other, "a device code yields tokens to another client");
    ledger.hold(Law::DeviceYieldsOnce, !expired, "an expired device code yields tokens");
    ledger.hold(Law::EndedIsDead, ended.is_none(), "a device goes on although its application was disabled");
    match line {
        None => ledger.breach(Law::DeviceYieldsOnce, "a device code yields tokens before anybody approved"),
        Some(family) => begin(world, &family, tokens),
    }
}
