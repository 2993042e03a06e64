//! Bodies: JSON objects, judged by the table of what a door takes.

use super::problem::{Kind, Problem};
use crate::http::site::Site;
use crate::net::read_body;
use axum::body::Body;
use hyper::HeaderMap;
use hyper::header::CONTENT_TYPE;
use serde_json::{Map, Value};

/// One member of a body.
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Of which type.
    pub takes: Takes,
    /// Whether the body must have it.
    pub required: bool,
    /// What it is.
    pub about: &'static str,
}

/// The types of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A string.
    Text,
    /// `true` or `false`.
    Flag,
}

/// A body whose members are of the right types.
pub struct Input(Map<String, Value>);

impl Input {
    /// Reads a body that has `fields`. Members that are not among them are ignored; one that is named twice is refused,
    /// because two readers must not see two values (RFC 8259 §4).
    pub async fn read(site: &Site, headers: &HeaderMap, body: Body, fields: &[Field]) -> Result<Self, Problem> {
        if !is_json(headers) {
            return Err(Problem::of(Kind::UnsupportedMediaType));
        }
        let bytes = read_body(body, site.body_size, site.body_timeout).await?;
        let malformed = |why| Problem::new(Kind::MalformedRequest, why);
        let members = rules::jose::object(&bytes)
            .ok_or_else(|| malformed("the body is not one JSON object without duplicate members"))?;
        for field in fields {
            match (members.get(field.name), field.takes) {
                (None, _) if field.required => return Err(malformed("a required member is missing")),
                (None, _) | (Some(Value::String(_)), Takes::Text) | (Some(Value::Bool(_)), Takes::Flag) => {}
                _ => return Err(malformed("a member has the wrong type")),
            }
        }
        Ok(Input(members))
    }

    /// A text that was sent and is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }
    /// A text; empty where none was sent.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }
    /// A flag; false where none was sent.
    pub fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}

/// CS-01: a kind of body that no form can send, so that a browser asks before another origin's page sends it.
fn is_json(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let (Some(kind), None) = (lines.next(), lines.next()) else { return false };
    let Ok(kind) = kind.to_str() else { return false };
    let mut parts = kind.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    json && parts.all(|parameter| match parameter.split_once('=') {
        Some((name, value)) if name.eq_ignore_ascii_case("charset") => {
            value.trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    })
}
