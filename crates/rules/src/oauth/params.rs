//! Request parameters: each may be sent once, except for those that may repeat.

use super::error::Error;
use super::redirect::escaped_length;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Parameters that may be sent more than once (RFC 8707 §2, RFC 8693 §2.1).
const REPEATABLE: [&str; 2] = ["resource", "audience"];
/// More parameters than any honest request has.
const MOST: usize = 256;

/// The longest request that is carried through pages or repeated in an address: bytes of names and values, encoded.
pub const LONGEST: usize = 12 * 1024;

/// The password fields of our forms. No protocol parameter that is read here has such a name.
const PASSWORDS: [&str; 3] = ["password", "current", "new"];

/// Parameters that the protocol's endpoints read, and credentials that some server reads. In the query of a POST they
/// would end up in logs, and a request that is half in the query and half in the body can be read in two ways.
const OF_THE_BODY: [&str; 45] = [
    "access_token",
    "acr_values",
    "actor_token",
    "assertion",
    "audience",
    "claims",
    "client_assertion",
    "client_assertion_type",
    "client_id",
    "client_secret",
    "code",
    "code_challenge",
    "code_challenge_method",
    "code_verifier",
    "device_code",
    "display",
    "grant_type",
    "id_token",
    "id_token_hint",
    "login_hint",
    "logout_hint",
    "max_age",
    "nonce",
    "password",
    "post_logout_redirect_uri",
    "prompt",
    "redirect_uri",
    "refresh_token",
    "registration",
    "request",
    "request_uri",
    "requested_token_type",
    "resource",
    "response_mode",
    "response_type",
    "scope",
    "state",
    "subject_token",
    "subject_token_type",
    "token",
    "token_type_hint",
    "ui_locales",
    "user_code",
    "username",
    "web_message_uri",
];

/// Checks the query of a POST. Parameters that nobody here reads are ignored, and so are those without a value (RFC
/// 6749 §3.1, §3.2): libraries send marks of their own there.
///
/// # Errors
/// The query holds a parameter that belongs into the body (SR-07, CO-08, RU-08).
pub fn nothing_of_ours(query: &[(String, String)]) -> Result<(), Error> {
    let ours = |(name, value): &(String, String)| !value.is_empty() && OF_THE_BODY.contains(&name.as_str());
    if query.iter().any(ours) { Err(Error::request("parameters belong into the body")) } else { Ok(()) }
}

/// The parameters of one request, decoded, in the order in which they came. Some are passwords and secrets of clients:
/// `Debug` shows the names alone, and the memory is cleared after use.
#[derive(Clone, Default, PartialEq, Eq, ZeroizeOnDrop)]
pub struct Params(Vec<(String, String)>);

impl std::fmt::Debug for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Params")?;
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Params {
    /// Takes the decoded pairs. RFC 6749 §3.1: "parameters MUST NOT be included more than once"; those without a value
    /// count as omitted. NUL is refused, except in our forms' password fields, which are hashed and never stored.
    pub fn parse(pairs: Vec<(String, String)>) -> Result<Self, Error> {
        if pairs.len() > MOST {
            return Err(Error::request("too many parameters"));
        }
        let mut seen = std::collections::HashSet::with_capacity(pairs.len());
        for (name, value) in &pairs {
            if !REPEATABLE.contains(&name.as_str()) && !seen.insert(name.as_str()) {
                return Err(Error::request("a parameter was sent more than once"));
            }
            if name.contains('\0') || (value.contains('\0') && !PASSWORDS.contains(&name.as_str())) {
                return Err(Error::request("a parameter holds a NUL character"));
            }
        }
        Ok(Params(pairs))
    }
    /// Returns the value of `name`, if it was sent and is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }
    /// Returns the value of a form's field, even if it is empty; `None` when it was not sent.
    pub fn sent(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
    /// Returns the value of `name`, or an error if it is missing.
    pub fn need(&self, name: &str, why: &'static str) -> Result<&str, Error> {
        self.get(name).ok_or(Error::request(why))
    }
    /// Returns the values of a parameter that may repeat, each once: naming one twice is no more than naming it once.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for (_, value) in self.0.iter().filter(|(known, value)| known == name && !value.is_empty()) {
            if !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
        values
    }
    /// Checks that the parameters can be carried along, in an address and in a login flow.
    ///
    /// # Errors
    /// They are too long.
    pub fn portable(&self) -> Result<(), Error> {
        let length: usize = self.0.iter().map(|(name, value)| length(name) + length(value)).sum();
        if length > LONGEST { Err(Error::request("the request is longer than 12 KiB")) } else { Ok(()) }
    }
    /// Returns the same parameters with `value` in place of the value of `name`, if that has one.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let replace = |(known, old): &(String, String)| match known == name && !old.is_empty() {
            true => (known.clone(), value.to_owned()),
            false => (known.clone(), old.clone()),
        };
        Params(self.0.iter().map(replace).collect())
    }
    /// Returns what may be kept of a form while its request is answered: everything but the passwords, which are cleared.
    pub fn without_passwords(mut self) -> Self {
        self.0.retain_mut(|(name, value)| {
            let stays = !PASSWORDS.contains(&name.as_str());
            if !stays {
                value.zeroize();
            }
            stays
        });
        self
    }
    /// The pairs.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }
}

/// How many bytes a text takes: in an address, or, for a control character, in the JSON of a login flow.
fn length(text: &str) -> usize {
    let in_json = "\\u0000".len() - "%00".len();
    escaped_length(text) + in_json * text.bytes().filter(|byte| byte.is_ascii_control()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_counts_as_it_stands_in_an_address() {
        let of = |value: String| params(&[("state", &value)]).unwrap().portable();
        assert!(of("x~".repeat(6000)).is_ok());
        for three in [" ", "*", "+", "\""] {
            assert!(of(three.repeat(4000)).is_ok() && of(three.repeat(4100)).is_err(), "{three:?}: three bytes each");
        }
        assert!(of("\u{1}".repeat(2000)).is_ok() && of("\u{1}".repeat(2100)).is_err(), "\\u0001");
        assert!(of("x".repeat(LONGEST)).is_err(), "with its name");
        assert!(of("é".repeat(2000)).is_ok());
        assert!(of("é".repeat(2100)).is_err(), "six bytes each");
    }

    fn params(pairs: &[(&str, &str)]) -> Result<Params, Error> {
        Params::parse(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn a_parameter_sent_twice_is_refused_even_with_the_same_or_no_value() {
        assert!(params(&[("scope", "a"), ("scope", "a")]).is_err());
        assert!(params(&[("x", ""), ("x", "1")]).is_err());
        assert!(params(&[("resource", "a"), ("resource", "b")]).is_ok());
    }

    #[test]
    fn rfc8707_2_a_resource_named_twice_is_one() {
        // Red without `contains` in `all`: the caller would decide how long its tokens are.
        let named = ["a", "b", "a", "", "a"].map(|uri| ("resource", uri));
        assert_eq!(params(&named).expect("parses").all("resource"), ["a", "b"]);
    }

    #[test]
    fn nul_is_refused_but_in_passwords() {
        for (name, good) in [("password", true), ("current", true), ("new", true), ("login", false), ("state", false)] {
            assert_eq!(params(&[(name, "a\0b")]).is_ok(), good, "{name}");
        }
        assert!(params(&[("pass\0word", "a")]).is_err());
    }

    #[test]
    fn the_query_of_a_post_holds_nothing_that_belongs_into_its_body() {
        let query = |pairs: &[(&str, &str)]| nothing_of_ours(&params(pairs).expect("parses").0);
        for (name, value) in [("client-request-id", "1"), ("ngsw-bypass", ""), ("code", ""), ("Code", "1"), ("", "1")] {
            assert_eq!(query(&[(name, value)]), Ok(()), "{name}");
        }
        for name in OF_THE_BODY {
            assert!(query(&[("client-request-id", "1"), (name, "1")]).is_err(), "{name}");
        }
    }

    #[test]
    fn an_empty_value_counts_as_omitted() {
        assert_eq!(params(&[("state", "")]).expect("parses").get("state"), None);
    }
}
