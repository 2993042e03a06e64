//! Keys of clients (RFC 7517): what is read is written without private members, and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rules::jose::{Alg, Jwk, JwkSet};

fuzz_target!(|json: &[u8]| {
    if let Ok(key) = Jwk::parse(json) {
        let written = serde_json::to_vec(&key).expect("is written");
        assert_eq!(Jwk::parse(&written).expect("what was written is read"), key);
    }
    if let Ok(set) = JwkSet::parse(json) {
        let written = serde_json::to_vec(&set).expect("is written");
        assert_eq!(JwkSet::parse(&written).expect("what was written is read"), set);
        set.verifying_keys(Alg::RS256).expect("keys that were read can be used");
    }
});
