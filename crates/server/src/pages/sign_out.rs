//! Signing out (OpenID Connect RP-Initiated Logout 1.0): the question, then the confirmation.

use super::chrome::Back;

/// The form of `POST /oauth2/logout/confirm`: `flow`, `csrf`, and `decision`, which is `sign_out` or `stay`.
#[derive(Clone, Copy, Debug)]
pub struct SignOutPage<'a> {
    /// The logout request, opaque.
    pub flow: &'a str,
    /// The CSRF token.
    pub csrf: &'a str,
    /// The name of the application that asks, if it is known.
    pub client: Option<&'a str>,
    /// The username of the account that is signed in.
    pub account: &'a str,
    /// Which part of the request was ignored, for the application's developers.
    pub detail: Option<&'static str>,
}

/// The page after signing out.
#[derive(Clone, Copy, Debug)]
pub struct SignedOutPage<'a> {
    /// The way back to the application, if its `post_logout_redirect_uri` is registered.
    pub back: Option<Back<'a>>,
    /// Which part of the request was ignored, for the application's developers.
    pub detail: Option<&'static str>,
}

super::page!(SignOutPage<'_>, "sign_out.html");
super::page!(SignedOutPage<'_>, "signed_out.html");
