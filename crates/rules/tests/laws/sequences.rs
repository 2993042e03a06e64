//! Each law, over any sequence of acts, races and clock steps.

use crate::cases;
use crate::ledger::Law;
use crate::play::{Act, Play, Turn, plays};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestRng, TestRunner};
use rules::Span;
use std::collections::BTreeMap;

fn upholds(play: &Play, law: Law) -> Result<(), TestCaseError> {
    let world = play.run();
    let broken: Vec<&str> =
        world.ledger.breaches.iter().filter(|(which, _)| *which == law).map(|(_, how)| how.as_str()).collect();
    prop_assert!(broken.is_empty(), "{law:?}: {broken:?}");
    Ok(())
}

macro_rules! laws {
    ($($(#[$doc:meta])* $name:ident => $law:ident;)+) => {
        proptest! {
            #![proptest_config(cases(100))]
            $($(#[$doc])* #[test] fn $name(play in plays()) { upholds(&play, Law::$law)?; })+
        }
    };
}

laws! {
    /// RFC 6749 §4.1.2: and only to its client, with its redirect URI and its verifier.
    a_code_yields_tokens_at_most_once => CodeYieldsOnce;
    /// A second use of the code, reuse of an old refresh token, revocation, sign-out, age, idleness, a disabled or
    /// removed account, a removed application, a consent taken back: nothing that descends from it lives.
    no_live_token_descends_from_what_has_ended => EndedIsDead;
    /// While an application is disabled, nothing that it holds may be used.
    nothing_of_a_disabled_client_lives => DisabledIsDead;
    /// Sessions, lines, codes and access tokens die once, whatever is enabled again afterwards.
    what_was_dead_once_stays_dead => NothingRevives;
    /// Scope, audience, subject, client and auth_time are the approval's, however often it is refreshed.
    nothing_widens_or_changes_along_a_line => NothingWidens;
    /// RFC 9700 §4.14.2: rotation; the grace yields the same successor, byte for byte.
    a_refresh_token_has_one_successor => OneSuccessor;
    /// No session without proof; a new cookie at every proof; nobody becomes somebody else.
    only_the_newest_cookie_proves_and_only_its_person => CookieProves;
    /// Trusted clients apart, every code is covered by what the person agreed to and did not take back.
    no_code_without_consent => ConsentIsNeeded;
    /// OpenID Connect Core §3.1.2.1, `prompt=login` and `max_age`; §2, `auth_time`.
    a_code_tells_of_a_sign_in_as_it_was_asked_for => SignInIsAsAsked;
    /// OpenID Connect Core §3.1.2.1, `id_token_hint`, and §5.5.1, `claims.id_token.sub`.
    no_code_for_somebody_else_than_expected => ExpectedPerson;
    /// OpenID Connect Core §3.1.2.1, `prompt`.
    prompt_none_shows_no_page => PromptNoneIsSilent;
    /// RFC 8628: once, to its client, after approval, before it expires; the interval grows as the device was told.
    a_device_code_yields_tokens_at_most_once => DeviceYieldsOnce;
    /// Every guard holds on facts that nobody disturbs: no decision is stillborn.
    a_decision_settles_when_nobody_disturbs => AttemptsSettle;
}

/// With `offline_access` alone: whoever allowed it may have signed out before the device asks again.
#[test]
fn what_a_device_may_keep_it_may_begin_after_the_session() {
    for (scope, begins) in [(2, true), (1, false)] {
        let turns = [
            Act::DeviceAsk { client: 0, scope },
            Act::SignIn { browser: 0, user: 0, right: true },
            Act::DeviceAnswer { device: 0, browser: 0, allow: true },
            Act::SignOut { browser: 0 },
            Act::DevicePoll { device: 0, other: false },
        ];
        let world = Play { grace: Span(0), turns: turns.map(Turn::One).into() }.run();
        assert_eq!(world.ledger.breaches, []);
        assert_eq!(world.ledger.met.contains_key("device redeemed"), begins, "{scope}");
    }
}

/// The sequences reach what the laws speak of.
#[test]
fn sequences_go_where_laws_can_be_broken() {
    let mut runner = TestRunner::new_with_rng(cases(200), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let mut met = BTreeMap::<&str, usize>::new();
    for _ in 0..200 {
        let play = plays().new_tree(&mut runner).expect("a sequence").current();
        for (what, times) in play.run().ledger.met {
            *met.entry(what).or_default() += times;
        }
    }
    for what in [
        "sign-in",
        "consent",
        "code",
        "code redeemed",
        "code presented again",
        "refresh",
        "refresh within the grace",
        "refresh token reused",
        "a client's own token",
        "user disabled",
        "session grew old",
        "device approved",
        "device redeemed",
        "device waits",
        "slow down",
        "client added again",
        "a race was decided again",
    ] {
        assert!(met.get(what).is_some_and(|times| *times >= 5), "{what}: {met:?}");
    }
}
