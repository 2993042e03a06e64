//! Scopes (RFC 6749 §3.3).

use serde::{Deserialize, Serialize};

/// Scopes with a meaning of their own here (OpenID Connect Core §5.4, §11; `groups` is ours).
pub const STANDARD: [&str; 7] = ["openid", "profile", "email", "address", "phone", "offline_access", "groups"];

/// A set of scope tokens, in the order in which they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Scope(Vec<String>);

impl Scope {
    /// Parses `a b c`. `None` when a token holds a character that RFC 6749 §3.3 does not allow, or there are more
    /// than 100 tokens.
    pub fn parse(text: &str) -> Option<Self> {
        let legal = |token: &str| token.bytes().all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
        let mut tokens = Vec::new();
        for token in text.split(' ').filter(|token| !token.is_empty()) {
            if tokens.len() == 100 || !legal(token) {
                return None;
            }
            if !tokens.iter().any(|known| known == token) {
                tokens.push(token.to_owned());
            }
        }
        Some(Scope(tokens))
    }
    /// Whether `token` is in it.
    pub fn has(&self, token: &str) -> bool {
        self.0.iter().any(|known| known == token)
    }
    /// Whether everything of `self` is in `other`.
    pub fn is_within(&self, other: &Scope) -> bool {
        self.0.iter().all(|token| other.has(token))
    }
    /// What is in both, in this order.
    pub fn both(&self, other: &Scope) -> Scope {
        Scope(self.0.iter().filter(|token| other.has(token)).cloned().collect())
    }
    /// What is in either.
    pub fn either(&self, other: &Scope) -> Scope {
        Scope(self.0.iter().chain(other.0.iter().filter(|token| !self.has(token))).cloned().collect())
    }
    /// With `token`.
    pub fn with(&self, token: &str) -> Scope {
        self.either(&Scope(vec![token.to_owned()]))
    }
    /// Without `token`.
    pub fn without(&self, token: &str) -> Scope {
        Scope(self.0.iter().filter(|known| *known != token).cloned().collect())
    }
    /// Nothing at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The tokens.
    pub fn tokens(&self) -> &[String] {
        &self.0
    }
}

impl From<String> for Scope {
    fn from(text: String) -> Self {
        Scope::parse(&text).unwrap_or_default()
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.to_string()
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_a_set_and_illegal_ones_are_refused() {
        assert_eq!(Scope::parse("a b a").expect("legal").to_string(), "a b");
        for illegal in ["a\"", "a\\", "a\tb", "ä"] {
            assert!(Scope::parse(illegal).is_none(), "{illegal}");
        }
        assert!(Scope::parse(&"x ".repeat(100_000)).is_some_and(|scope| scope.tokens().len() == 1));
    }
}
