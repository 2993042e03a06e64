//! Authorization requests as they come off the wire: whatever they hold, the answer goes to a registered address or to
//! our own page, and the client gets no more than it may have.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rules::{
    oauth::{
        authorize::{Fault, read},
        client::Client,
        params::Params,
    },
    realm::{Realm, Settings},
};

static CLIENT: LazyLock<Client> = LazyLock::new(|| {
    let registered = serde_json::json!({
        "id": "app",
        "name": "App",
        "redirect_uris": ["https://app.test/cb", "https://app.test/cb?x=1"],
        "grants": ["authorization_code", "refresh_token"],
        "scope": "openid profile email offline_access",
        "auth_methods": ["client_secret_basic"],
        "id_token_alg": "RS256",
        "access_format": "jwt",
        "access_alg": "ES256",
        "resources": ["https://api.test/"],
    });
    serde_json::from_value(registered).expect("a client")
});

static REALM: LazyLock<Realm> = LazyLock::new(|| Realm {
    id: "main".into(),
    issuer: "https://id.test".into(),
    settings: Settings { pkce_optional: true, ..Settings::default() },
});

fuzz_target!(|query: &[u8]| {
    let pairs = form_urlencoded::parse(query).map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let Ok(params) = Params::parse(pairs) else { return };
    let back = match read(&params, Some(&CLIENT), &REALM) {
        Ok(request) => {
            assert!(request.scope.is_within(&CLIENT.scope));
            assert!(request.resources.iter().all(|resource| CLIENT.resources.contains(resource)));
            request.back
        }
        Err(Fault::Client { back, error, .. }) => {
            back.error(&REALM.issuer, error);
            back
        }
        Err(Fault::Local(_)) => return,
    };
    assert!(CLIENT.redirect_uris.iter().any(|registered| registered == back.to.as_str()));
    let answer = back.response(&REALM.issuer, vec![("code", "x".to_owned())]);
    assert!(answer.to.with(answer.mode, &answer.fields).starts_with(back.to.as_str()));
});
