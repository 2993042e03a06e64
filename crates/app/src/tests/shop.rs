//! The requests of an application, and its answers.

use rules::oauth::params::Params;
use rules::oauth::redirect::Response;

/// Where its answers go.
pub const REDIRECT: &str = "https://shop.test/cb";

/// Parameters as they were sent.
pub fn params(pairs: &[(&str, &str)]) -> Params {
    Params::parse(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()).unwrap()
}

/// Its authorization request.
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

/// Returns the code in an answer.
#[track_caller]
pub fn code(response: &Response) -> String {
    let code = response.fields.iter().find(|(name, _)| *name == "code");
    code.unwrap_or_else(|| panic!("no code: {response:?}")).1.clone()
}
