//! An application as it asks and is answered.

use rules::oauth::params::Params;
use rules::oauth::redirect::Response;

/// Where it is answered.
pub const REDIRECT: &str = "https://shop.test/cb";

/// What was sent.
pub fn params(pairs: &[(&str, &str)]) -> Params {
    Params::parse(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()).unwrap()
}

/// What it asks for.
pub fn request() -> Params {
    params(&[
        ("client_id", "shop"),
        ("redirect_uri", REDIRECT),
        ("response_type", "code"),
        ("scope", "openid"),
        ("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"),
        ("code_challenge_method", "S256"),
    ])
}

/// The code of an answer.
#[track_caller]
pub fn code(response: &Response) -> String {
    let code = response.fields.iter().find(|(name, _)| *name == "code");
    code.unwrap_or_else(|| panic!("no code: {response:?}")).1.clone()
}
