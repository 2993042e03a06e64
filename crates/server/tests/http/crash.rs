//! R1: SIGKILL under load, against a ledger of everything that was acknowledged.

use crate::scale::{KILLS, scaled};
use crate::support::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// What all clients of a round know.
#[derive(Default)]
struct Round {
    /// How often something was acknowledged.
    acknowledged: AtomicUsize,
    over: AtomicBool,
}

/// What clients were told, and may rely on from then on.
#[derive(Default)]
struct Ledger {
    /// Codes that were redeemed.
    redeemed: Vec<String>,
    /// The newest refresh token of each family that is in use.
    current: Vec<String>,
    /// Tokens that were revoked.
    revoked: Vec<String>,
    /// Browsers of people who signed up.
    signed_up: Vec<Browser>,
}

/// One client: codes, tokens, refreshes and revocations, one after another until the server is gone.
fn client(app: &App, browser: &Browser, round: &Round) -> Ledger {
    let mut ledger = Ledger::default();
    let ask = app.ask().with("prompt", "none").target();
    let send = |call: Call| call.try_send(app.server.port).filter(|answer| [200, 303].contains(&answer.status));
    let mut turn = 0;
    while !round.over.load(Ordering::Acquire) {
        turn += 1;
        let Some(code) = send(Call::get(&ask).cookies(&browser.jar)).map(|answer| answer.landed()["code"].clone())
        else {
            break;
        };
        let Some(answer) = send(app.redemption(&code)) else { break };
        ledger.redeemed.push(code);
        round.acknowledged.fetch_add(1, Ordering::Relaxed);
        let mut token = Tokens::of(&answer).refresh;
        let mut lost = false;
        for _ in 0..3 {
            let refresh = [("grant_type", "refresh_token"), ("refresh_token", token.as_str())];
            match send(app.call("/oauth2/token", &refresh)) {
                Some(answer) => token = Tokens::of(&answer).refresh,
                None => lost = true,
            }
        }
        if turn % 2 == 0 && !lost {
            match send(app.call("/oauth2/revoke", &[("token", &token)])) {
                Some(_) => ledger.revoked.push(token),
                // Perhaps revoked, perhaps not: nothing was promised.
                None => break,
            }
        } else {
            ledger.current.push(token);
        }
    }
    ledger
}

/// People who sign up, one after another.
fn newcomers(server: &'static Server, round: &Round) -> Ledger {
    let mut ledger = Ledger::default();
    while !round.over.load(Ordering::Acquire) {
        let mut browser = Browser::new(server);
        let Some(page) = Call::get("/signup").try_send(server.port).filter(|answer| answer.status == 200) else {
            break;
        };
        page.all("set-cookie").into_iter().for_each(|line| browser.jar.keep(line));
        let form = Form::find(&page.text(), "/signup").unwrap();
        let form = form.fill("username", &unique("crash")).fill("password", "gorse violet anvil 41");
        let Some(answer) = form.call().cookies(&browser.jar).try_send(server.port) else { break };
        if answer.status == 303 {
            answer.all("set-cookie").into_iter().for_each(|line| browser.jar.keep(line));
            ledger.signed_up.push(browser);
            round.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }
    ledger
}

/// Nothing that was acknowledged is lost, and nothing happened twice.
fn check(app: &App, ledger: Ledger) {
    for token in ledger.revoked {
        assert!(!app.is_active(&token), "a revocation was lost");
    }
    for token in ledger.current {
        let next = Tokens::of(&app.refresh(&token)).refresh;
        assert!(app.is_active(&next), "a rotation was lost");
    }
    for mut browser in ledger.signed_up {
        assert!(browser.is_signed_in(), "a sign-up was lost");
    }
    for code in ledger.redeemed {
        app.redeem(&code).must_fail(400, "invalid_grant");
    }
}

#[test]
fn r1_kill_9_under_load_loses_nothing_that_was_acknowledged() {
    // red if the writer answered before COMMIT: store/sqlite/writer.rs. (The sync itself: durability.rs.)
    let server = Server::leaked(&[("PORTIERE_SIGNUP_ENABLED", "true")]);
    let (app, person) = (App::trusted(server), Person::add(server));
    let browser = Browser::of(server, &person);
    let mut acknowledged = 0;
    for kill in 0..scaled(KILLS) {
        let (round, mut busy) = (Round::default(), false);
        let ledgers: Vec<Ledger> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..3).map(|_| scope.spawn(|| client(&app, &browser, &round))).collect();
            let newcomers = scope.spawn(|| newcomers(server, &round));
            busy = comes(|| round.acknowledged.load(Ordering::Relaxed) > 2);
            // Somewhere else in the work each time.
            std::thread::sleep(Duration::from_millis(150 + (kill as u64 * 37) % 250));
            server.kill();
            round.over.store(true, Ordering::Release);
            clients.into_iter().chain([newcomers]).map(|worker| worker.join().unwrap()).collect()
        });
        assert!(busy, "nothing is acknowledged");
        server.restart();
        for ledger in ledgers {
            acknowledged +=
                ledger.redeemed.len() + ledger.current.len() + ledger.revoked.len() + ledger.signed_up.len();
            check(&app, ledger);
        }
    }
    assert!(acknowledged > 2 * scaled(KILLS), "too little load to say anything: {acknowledged}");
    assert!(browser.clone().is_signed_in());
    server.kill();
}
