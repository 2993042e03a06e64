//! What this provider can do, by name (OpenID Connect Discovery §3, RFC 8414 §2). Only what is true.

use super::client::{AuthMethod, Grant};
use super::redirect::Mode;
use super::{scope, userinfo};
use crate::jose::Alg;
use crate::login::session::ACR_SINGLE;
use crate::realm::Realm;
use serde_json::{Value, json};

/// The metadata document of a realm; the same for OpenID and OAuth.
pub fn document(realm: &Realm) -> Value {
    let at = |path: &str| format!("{}{path}", realm.issuer);
    let authenticated: Vec<&str> =
        AuthMethod::ALL.iter().filter(|method| **method != AuthMethod::None).map(|method| method.name()).collect();
    // `none` comes last: some libraries take the first method that they know, even with a secret in their hands.
    let any = [&authenticated[..], &[AuthMethod::None.name()]].concat();
    let signing: Vec<&str> = Alg::OURS.iter().map(|alg| alg.name()).collect();
    // RFC 9864 §2.2: the newer name of EdDSA with this curve.
    let asserting: Vec<&str> = Alg::ALL.iter().map(|alg| alg.name()).chain(["Ed25519"]).collect();
    let mut prompts = vec!["none", "login", "consent", "select_account"];
    prompts.extend(realm.settings.signup.then_some("create"));
    json!({
        "issuer": realm.issuer,
        "authorization_endpoint": at("/oauth2/authorize"),
        "token_endpoint": at("/oauth2/token"),
        "userinfo_endpoint": at("/oauth2/userinfo"),
        "jwks_uri": at("/oauth2/jwks"),
        "introspection_endpoint": at("/oauth2/introspect"),
        "revocation_endpoint": at("/oauth2/revoke"),
        "device_authorization_endpoint": at("/oauth2/device"),
        "end_session_endpoint": at("/oauth2/logout"),
        "scopes_supported": scope::STANDARD,
        "response_types_supported": ["code"],
        "response_modes_supported": Mode::NAMES,
        "grant_types_supported": Grant::ALL.iter().map(|grant| grant.name()).collect::<Vec<_>>(),
        "subject_types_supported": ["public"],
        "acr_values_supported": [ACR_SINGLE],
        "id_token_signing_alg_values_supported": signing,
        "token_endpoint_auth_methods_supported": any,
        "token_endpoint_auth_signing_alg_values_supported": asserting,
        "introspection_endpoint_auth_methods_supported": authenticated,
        "introspection_endpoint_auth_signing_alg_values_supported": asserting,
        "revocation_endpoint_auth_methods_supported": any,
        "revocation_endpoint_auth_signing_alg_values_supported": asserting,
        "claim_types_supported": ["normal"],
        "claims_supported": userinfo::supported().collect::<Vec<_>>(),
        "claims_parameter_supported": true,
        "request_parameter_supported": false,
        "request_uri_parameter_supported": false,
        "require_request_uri_registration": false,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "prompt_values_supported": prompts,
        "ui_locales_supported": ["en", "de", "it"],
    })
}
