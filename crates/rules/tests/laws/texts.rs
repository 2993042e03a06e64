//! What reads texts from outside answers for every text, and reads back what was written here.

use crate::cases;
use proptest::prelude::*;
use rules::fresh::{base32hex, from_base32hex, time_of};
use rules::id::SessionId;
use rules::login::cookie::{Cookie, Seal};
use rules::oauth::code;
use rules::oauth::family::{RefreshToken, Sealing};
use rules::oauth::params::Params;
use rules::oauth::scope::Scope;
use rules::secret::{base64url, from_base64url};
use rules::{Fresh, Secret, Time};
use std::collections::BTreeSet;

const SEALING: Sealing = Sealing { tag: [1; 32], grace: [2; 32] };

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[A-Za-z0-9_.-]{0,100}", "[a-z ]{0,40}", any::<String>()]
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn parameters_are_read_once_each(
        pairs in proptest::collection::vec(("(resource|audience|scope|state|a|)", text()), 0..6),
    ) {
        let once = |name: &str| pairs.iter().filter(|(known, _)| known == name).count() <= 1;
        let fine = pairs.iter().all(|(name, _)| name == "resource" || name == "audience" || once(name));
        let nul = pairs.iter().any(|(name, value)| name.contains('\0') || value.contains('\0'));
        let parsed = Params::parse(pairs.clone());
        prop_assert_eq!(parsed.is_ok(), fine && !nul);
        if let Ok(params) = parsed {
            prop_assert_eq!(params.pairs(), pairs.as_slice());
            for (name, value) in &pairs {
                let told = params.get(name);
                prop_assert!(told.is_some() || value.is_empty());
                let sent = pairs.iter().filter(|(n, v)| n == name && !v.is_empty()).map(|(_, value)| value.as_str());
                let all = params.all(name);
                prop_assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), sent.collect::<BTreeSet<_>>());
                prop_assert!((1..all.len()).all(|at| !all[..at].contains(&all[at])), "each once");
            }
        }
    }

    #[test]
    fn a_scope_is_a_set_that_reads_back(one in text(), other in text()) {
        let (Ok(one), Ok(other)) = (Scope::parse(&one), Scope::parse(&other)) else { return Ok(()) };
        prop_assert_eq!(Scope::parse(&one.to_string()), Ok(one.clone()));
        let (both, either) = (one.both(&other), one.either(&other));
        prop_assert!(both.is_within(&one) && both.is_within(&other) && one.is_within(&either) && other.is_within(&either));
        for token in either.tokens() {
            prop_assert_eq!(both.has(token), one.has(token) && other.has(token));
            prop_assert!(one.has(token) || other.has(token));
            prop_assert!(!either.without(token).has(token));
        }
        prop_assert!(one.tokens().iter().enumerate().all(|(at, token)| !one.tokens()[..at].contains(token)));
    }

    #[test]
    fn identifiers_read_back_and_sort_by_time(
        bytes in any::<[u8; 16]>(), foreign in text(), seed in any::<[u8; 32]>(), at in 0i64..1 << 47, later in 1i64..1 << 40,
    ) {
        prop_assert_eq!(from_base32hex(&base32hex(&bytes)), Some(bytes));
        prop_assert!(from_base32hex(&foreign).is_none_or(|bytes| base32hex(&bytes) == foreign));
        let fresh = Fresh::new(seed);
        let (first, second) = (fresh.ordered("x", Time(at)), fresh.ordered("y", Time(at + later)));
        prop_assert!(first < second);
        prop_assert_eq!(time_of(&second), Time(at + later));
        let _ = time_of(&foreign);
    }

    #[test]
    fn only_canonical_base64url_is_read(foreign in text(), bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        prop_assert_eq!(from_base64url(&base64url(&bytes)), Some(bytes));
        prop_assert!(from_base64url(&foreign).is_none_or(|bytes| base64url(&bytes) == foreign));
    }

    /// RFC 9700 §4.14.2; CO-10: one text a token, and no token of anybody else's making.
    #[test]
    fn refresh_tokens_are_ours_or_none(foreign in text(), seed in any::<[u8; 32]>(), bytes in any::<[[u8; 32]; 2]>()) {
        prop_assert!(RefreshToken::read(&foreign, &SEALING).is_none());
        prop_assert!(RefreshToken::read(&base64url(&bytes.concat()), &SEALING).is_none());
        let fresh = Fresh::new(seed);
        let family = fresh.family(Time(1_000));
        let token = RefreshToken::make(&family, fresh.bytes("refresh"), &SEALING).expect("ours");
        let read = RefreshToken::read(token.secret.reveal(), &SEALING).expect("ours");
        prop_assert!(read.family == family && read.secret.reveal() == token.secret.reveal());
        let stranger = Sealing { tag: [3; 32], grace: [2; 32] };
        prop_assert!(RefreshToken::read(token.secret.reveal(), &stranger).is_none());
        let next = RefreshToken::make(&family, fresh.bytes("next"), &SEALING).expect("ours");
        let again = token.successor(token.bridge_to(&next, &SEALING), &SEALING).expect("ours");
        prop_assert_eq!(again.secret.reveal(), next.secret.reveal());
    }

    #[test]
    fn codes_name_their_family(foreign in text(), seed in any::<[u8; 32]>()) {
        let _ = code::family_of(&foreign);
        let _ = code::verifies(Some(&foreign), Some(&foreign));
        let fresh = Fresh::new(seed);
        let family = fresh.family(Time(1_000));
        let text = code::text(&family, fresh.bytes("code")).expect("ours");
        prop_assert_eq!(code::family_of(text.reveal()), Some(family));
    }

    #[test]
    fn cookies_read_back(foreign in text(), seed in any::<[u8; 32]>()) {
        prop_assert!(Cookie::read(&foreign).is_none_or(|cookie| cookie.write() == foreign));
        let fresh = Fresh::new(seed);
        let cookie = Cookie::make(&SessionId(fresh.ordered("sid", Time(1_000))), &Seal::new(seed), &fresh);
        let read = Cookie::read(&cookie.write()).expect("ours");
        prop_assert!(read.id == cookie.id && read.secret.handle() == Secret::new(cookie.secret.reveal()).handle());
    }
}
