//! Consent: what an application asks for, in plain words.

use super::messages::Messages;

/// The form of `POST /consent`: `flow`, `csrf`, and `decision`, which is `allow` or `deny`. Its "not you?" posts `flow`
/// and `choice=other` to `/login/choose`.
#[derive(Clone, Copy, Debug)]
pub struct ConsentPage<'a> {
    /// The login flow, opaque.
    pub flow: &'a str,
    /// The CSRF token.
    pub csrf: &'a str,
    /// The application's name.
    pub client: &'a str,
    /// The origin (or, for a private scheme, the scheme) of the verified redirect URI.
    pub destination: &'a str,
    /// The username of the account that is signed in.
    pub account: &'a str,
    /// The scopes asked for, as the request has them.
    pub scopes: &'a [&'a str],
}

super::page!(ConsentPage<'_>, "consent.html");

/// What a scope lets an application do: a title, and if there is more to say, a sentence. A scope without words of its
/// own is shown by its name.
pub(super) struct ScopeWords<'a> {
    pub title: &'a str,
    pub detail: Option<&'static str>,
    pub named: bool,
}

/// Scopes with words of their own. A client may register a scope named `openid.detail`, which is only a key of ours.
const NAMED: [&str; 7] = ["openid", "profile", "email", "address", "phone", "offline_access", "groups"];

pub(super) fn scope_words<'a>(scope: &'a str, t: &Messages) -> ScopeWords<'a> {
    let known = NAMED.contains(&scope).then(|| t.find(&format!("scope.{scope}")));
    match known.flatten() {
        Some(title) => ScopeWords { title, detail: t.find(&format!("scope.{scope}.detail")), named: true },
        None => ScopeWords { title: scope, detail: None, named: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::Language;

    #[test]
    fn standard_scopes_have_words_and_others_their_name() {
        let german = Messages::of(Language::German);
        for scope in NAMED {
            assert!(scope_words(scope, german).named, "{scope}");
        }
        for scope in ["invoices:read", "openid.detail"] {
            let other = scope_words(scope, german);
            assert!(!other.named && other.detail.is_none(), "{scope}");
            assert_eq!(other.title, scope);
        }
    }
}
