//! Answers in JSON: what they must have, and what is said of those that lack it.

use super::page::Page;
use super::setback::Reason;
use super::{describe, jwt};
use crate::wire::Reply;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};

/// An answer that a step can use.
pub(super) trait Answer: DeserializeOwned {
    /// The member without which it cannot be read.
    const NEEDS: &'static str;

    /// Says what is wrong with one that can be read.
    fn check(&self) -> Result<(), &'static str> {
        Ok(())
    }
}

/// Any JSON will do.
impl Answer for IgnoredAny {
    const NEEDS: &'static str = "";
}

/// Reads an answer: JSON, or claims that are signed (OpenID Connect Core §5.3.2).
pub(super) fn read<T: Answer>(reply: Reply<'_>) -> Result<T, Reason> {
    let kind = reply.header("content-type").and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/jwt") {
        return serde_json::from_slice(reply.body()).map_err(|_| unreadable::<T>(reply));
    }
    match jwt::Claims::of(reply.body()) {
        jwt::Claims::Read(claims) => Ok(claims),
        jwt::Claims::Encrypted => {
            Err(Reason::of("200, but the claims are encrypted, and the client has no key to read them"))
        }
        jwt::Claims::Unreadable => Err(Reason::of("200, but the claims in the JWT are not what they should be")),
    }
}

/// Says why an answer cannot be read. Some servers send an error with the status of a success (RFC 6749 §5.2 wants
/// 400), and a proxy may send a page of its own.
fn unreadable<T: Answer>(reply: Reply<'_>) -> Reason {
    let status = reply.status();
    match serde_json::from_slice(reply.body()) {
        Ok(Value::Object(members)) if members.contains_key("error") => describe(reply),
        Ok(Value::Object(members)) => Reason::of(&format!("{status}, but {}", fault::<T>(&members))),
        Ok(_) => Reason::of(&format!("{status}, but the JSON is no object")),
        Err(_) => {
            let (title, text) = Page::of(&reply.text()).told_apart();
            let colon = if title.is_empty() && text.is_empty() { "" } else { ": " };
            let short: String = text.chars().take(160).collect();
            Reason::said(&format!("{status}, but no JSON{colon}{title}"), &short)
        }
    }
}

/// Names the member that is missing or is not what it should be.
fn fault<T: Answer>(members: &Map<String, Value>) -> String {
    if !members.contains_key(T::NEEDS) {
        return format!("the JSON has no \"{}\"", T::NEEDS);
    }
    let fails = |name: &&str| {
        let both = [T::NEEDS, *name].into_iter().filter_map(|name| Some((name.to_owned(), members.get(name)?.clone())));
        serde_json::from_value::<T>(Value::Object(both.collect())).is_err()
    };
    let wrong = std::iter::once(T::NEEDS).chain(members.keys().map(String::as_str)).find(fails);
    format!("\"{}\" in the JSON is not what it should be", wrong.unwrap_or(T::NEEDS))
}

#[cfg(test)]
mod tests {
    use super::super::grant::Granted;
    use super::*;
    use crate::wire::Inbox;

    fn said(status: &str, body: &str) -> Reason {
        let mut inbox = Inbox::default();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        inbox.space().extend_from_slice(head.as_bytes());
        assert!(inbox.advance().unwrap());
        read::<Granted>(inbox.reply()).err().unwrap()
    }

    /// Red without `unreadable`: all of these were "the JSON is not what it should be".
    #[test]
    fn an_answer_that_is_no_answer_is_told_by_what_it_says() {
        for (body, expected) in [
            (r#"{"error":"slow","error_description":"No: ID 7"}"#, "200 slow: No: ID 7"),
            ("<title>Proxy</title><p>Please log in", "200, but no JSON: Proxy: Please log in"),
            ("", "200, but no JSON"),
            ("[]", "200, but the JSON is no object"),
            (r#"{"id_token":"x"}"#, "200, but the JSON has no \"access_token\""),
            (r#"{"access_token":1,"id_token":"x"}"#, "200, but \"access_token\" in the JSON is not what it should be"),
            (
                r#"{"a":1,"access_token":"x","id_token":2}"#,
                "200, but \"id_token\" in the JSON is not what it should be",
            ),
        ] {
            assert_eq!(said("200 OK", body).whole, expected, "{body}");
        }
        assert_eq!(said("200 OK", r#"{"error":"slow","error_description":"No: ID 7"}"#).what, "200 slow: No: ID …");
        assert_eq!(said("201 Created", "{}").whole, "201, but the JSON has no \"access_token\"");
    }
}
