//! Scopes (RFC 6749 §3.3).

use serde::{Deserialize, Serialize};

/// Scopes with a meaning of their own here (OpenID Connect Core §5.4, §11; `groups` is ours).
pub const STANDARD: [&str; 7] = ["openid", "profile", "email", "address", "phone", "offline_access", "groups"];

/// The most tokens in a set.
pub const MOST: usize = 100;

/// A set of scope tokens, in the order in which they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Scope(Vec<String>);

impl Scope {
    /// Parses `a b c`.
    ///
    /// # Errors
    /// A token holds a character that RFC 6749 §3.3 does not allow, or there are more than [`MOST`].
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        Scope::of(text, MOST)
    }

    /// Reads a scope that was stored, however many tokens it has.
    ///
    /// # Errors
    /// A token holds a character that RFC 6749 §3.3 does not allow.
    pub fn kept(text: &str) -> Result<Self, &'static str> {
        Scope::of(text, usize::MAX)
    }

    fn of(text: &str, most: usize) -> Result<Self, &'static str> {
        let legal = |token: &str| token.bytes().all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
        let mut tokens = Vec::new();
        for token in text.split(' ').filter(|token| !token.is_empty()) {
            if !legal(token) {
                return Err("scope holds an illegal character");
            }
            if tokens.iter().any(|known| known == token) {
                continue;
            }
            if tokens.len() == most {
                return Err("scope has more than 100 tokens");
            }
            tokens.push(token.to_owned());
        }
        Ok(Scope(tokens))
    }
    /// Whether `token` is in it.
    pub fn has(&self, token: &str) -> bool {
        self.0.iter().any(|known| known == token)
    }
    /// Whether everything of `self` is in `other`.
    pub fn is_within(&self, other: &Scope) -> bool {
        self.0.iter().all(|token| other.has(token))
    }
    /// Returns the tokens that are in both, in the order of `self`.
    pub fn both(&self, other: &Scope) -> Scope {
        Scope(self.0.iter().filter(|token| other.has(token)).cloned().collect())
    }
    /// Returns the tokens that are in either.
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
    /// Whether it has no tokens.
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
        Scope::kept(&text).unwrap_or_default()
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
            assert_eq!(Scope::parse(illegal), Err("scope holds an illegal character"), "{illegal}");
        }
        assert!(Scope::parse(&"x ".repeat(100_000)).is_ok_and(|scope| scope.tokens().len() == 1));
    }

    /// A request with too many tokens is told so, and not of a character that is not there.
    #[test]
    fn there_are_at_most_a_hundred_tokens() {
        let of = |count: usize| (0..count).map(|at| format!("s{at}")).collect::<Vec<_>>().join(" ");
        assert!(Scope::parse(&format!("{} s0", of(MOST))).is_ok_and(|scope| scope.tokens().len() == MOST));
        assert_eq!(Scope::parse(&of(MOST + 1)), Err("scope has more than 100 tokens"));
        // Red where a stored scope is read like a requested one: consents to two sets of sixty were lost.
        assert_eq!(Scope::kept(&of(MOST + 20)).unwrap().tokens().len(), MOST + 20);
        assert_eq!(Scope::from(of(MOST + 20)).tokens().len(), MOST + 20);
    }
}
