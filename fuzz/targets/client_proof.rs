//! Forms at the token endpoint: how a client says who it is. At most one method, and nothing of it is believed here.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rules::{
    oauth::{
        client_auth::{Basic, Means, proof},
        params::Params,
    },
    secret::Secret,
};

fuzz_target!(|input: (&[u8], Option<(String, String)>)| {
    let (form, basic) = input;
    let pairs = form_urlencoded::parse(form).map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let Ok(params) = Params::parse(pairs) else { return };
    let with_basic = basic.is_some();
    let basic = basic.map(|(id, secret)| Basic { id, plain: Some(Secret::new(&*secret)), secret: Secret::new(secret) });
    let Ok(proof) = proof(&params, basic) else { return };
    assert!(params.get("client_id").is_none_or(|named| named == proof.client.as_str()));
    assert_eq!(with_basic, matches!(proof.means, Means::Basic { .. }));
});
