//! Request bodies: JSON objects, checked against the members that a door accepts.

use super::problem::{FieldProblem, Kind, Problem};
use crate::http::extract;
use crate::http::site::Site;
use axum::body::Body;
use hyper::HeaderMap;
use serde_json::{Map, Value};

/// More members than any body has; unknown ones count too.
pub const MOST_MEMBERS: usize = 32;
/// More values than any body has, including those inside lists and objects, which are ignored.
pub const MOST_VALUES: usize = 64;
/// Longer than the name of any member, in characters.
pub const LONGEST_NAME: usize = 64;
/// Longer than any text, in characters.
pub const LONGEST_TEXT: usize = 16_384;

/// One member of a body.
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub takes: Takes,
    /// Whether the body must have it.
    pub required: bool,
    /// What it is.
    pub about: &'static str,
}

/// The types of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A string of at most so many characters. The rules for its content are checked elsewhere.
    Text(usize),
    /// `true` or `false`.
    Flag,
}

/// A body whose members have the right types.
#[derive(Default)]
pub struct Input(Map<String, Value>);

impl Input {
    /// Reads a body with `fields`. Other members are ignored; a member that is named twice is refused, because two
    /// readers must not see two values (RFC 8259 §4). The number of members and the length of each are limited.
    pub async fn read(site: &Site, headers: &HeaderMap, body: Body, fields: &[Field]) -> Result<Self, Problem> {
        if !extract::is_json(headers) {
            return Err(Problem::of(Kind::UnsupportedMediaType));
        }
        let bytes = site.bodies.read(body).await?;
        let malformed = |why| Problem::new(Kind::MalformedRequest, why);
        let members = rules::jose::object(&bytes).ok_or_else(|| malformed(not_an_object(&bytes)))?;
        measure(&members).map_err(malformed)?;
        for field in fields {
            match (members.get(field.name), field.takes) {
                (None, _) if field.required => {
                    return Err(malformed("a required member is missing").about(of(
                        field,
                        "missing",
                        "It is missing.",
                    )));
                }
                (Some(Value::String(text)), Takes::Text(most)) if longer(text, most) => {
                    return Err(too_long(field, most));
                }
                (None, _) | (Some(Value::String(_)), Takes::Text(_)) | (Some(Value::Bool(_)), Takes::Flag) => {}
                (_, Takes::Text(_)) => {
                    return Err(malformed("a member has the wrong type").about(of(field, "type", "It is no text.")));
                }
                (_, Takes::Flag) => {
                    let problem = of(field, "type", "It is neither true nor false.");
                    return Err(malformed("a member has the wrong type").about(problem));
                }
            }
        }
        Ok(Input(members))
    }

    /// Returns a text that was sent and is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }
    /// Returns a text; empty if none was sent.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }
    /// Returns a flag; false if none was sent.
    pub fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// Checks that a body is within the limits, unknown members included.
fn measure(members: &Map<String, Value>) -> Result<(), &'static str> {
    let limits = [
        (members.len() > MOST_MEMBERS, "the body has more than 32 members"),
        (is_long_named(members), "the name of a member has more than 64 characters"),
        (members.values().map(values).sum::<usize>() > MOST_VALUES, "the body has more than 64 values, all in all"),
        (members.values().any(holds_long), "a text in the body has more than 16,384 characters"),
    ];
    limits.into_iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, why)| Err(why))
}

/// Returns how many values are in one, itself included.
fn values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(values).sum::<usize>(),
        _ => 1,
    }
}

/// Returns whether a member, at any depth, has a name that is too long.
fn is_long_named(members: &Map<String, Value>) -> bool {
    members.iter().any(|(name, value)| longer(name, LONGEST_NAME) || holds_long_named(value))
}

fn holds_long_named(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(holds_long_named),
        Value::Object(members) => is_long_named(members),
        _ => false,
    }
}

/// Returns whether the value holds a text that is too long.
fn holds_long(value: &Value) -> bool {
    match value {
        Value::String(text) => longer(text, LONGEST_TEXT),
        Value::Array(items) => items.iter().any(holds_long),
        Value::Object(members) => members.values().any(holds_long),
        _ => false,
    }
}

fn longer(text: &str, most: usize) -> bool {
    // A character has at most four bytes.
    text.len() > most && (text.len() > 4 * most || text.chars().count() > most)
}

/// Says what is wrong with a body that [`rules::jose::object`] refuses.
fn not_an_object(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return "the body begins with a byte-order mark, which JSON does not allow";
    }
    if std::str::from_utf8(bytes).is_err() {
        return "the body is not UTF-8";
    }
    match serde_json::from_slice::<Value>(bytes).map_err(|error| error.to_string()) {
        Ok(Value::Object(_)) => "a member of the body is named twice",
        Ok(_) => "the body is not a JSON object",
        Err(why) if why.contains("surrogate") || why.contains("hex escape") => {
            "a text in the body is not valid Unicode: it has one half of a surrogate pair"
        }
        Err(why) if why.contains("out of range") => "a number in the body is out of range",
        Err(why) if why.contains("recursion") => "the body is nested too deeply",
        Err(_) => "the body is not JSON",
    }
}

fn of(field: &Field, code: &'static str, detail: &str) -> FieldProblem {
    FieldProblem { field: field.name, code, detail: detail.to_owned() }
}

fn too_long(field: &Field, most: usize) -> Problem {
    let detail = format!("It has more than {most} characters.");
    Problem::new(Kind::MalformedRequest, "a member is too long").about(FieldProblem {
        field: field.name,
        code: "too-long",
        detail,
    })
}
