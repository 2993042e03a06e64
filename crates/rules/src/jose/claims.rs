//! The claims of a token whose signature holds (RFC 7519 §4).

use super::verify::Refused;
use crate::time::Time;
use serde_json::{Map, Value};

/// The last second of the year 9999. A "time" beyond it counts something other than seconds.
const LAST_SECOND: i64 = 253_402_300_799;

/// A token's claims. The registered ones have the types that RFC 7519 §4.1 gives them, or are absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims(Map<String, Value>);

impl Claims {
    /// Checks the registered claims' types. A time of the wrong type is never "no time".
    pub(super) fn check(members: Map<String, Value>) -> Result<Self, Refused> {
        for name in ["iss", "sub", "jti"] {
            if !matches!(members.get(name), None | Some(Value::String(_))) {
                return Err(Refused("iss, sub and jti must be strings"));
            }
        }
        for name in ["exp", "nbf", "iat"] {
            if members.get(name).is_some_and(|value| seconds(value).is_none()) {
                return Err(Refused("exp, nbf and iat must be whole seconds"));
            }
        }
        let audience = match members.get("aud") {
            None | Some(Value::String(_)) => true,
            Some(Value::Array(list)) => !list.is_empty() && list.iter().all(Value::is_string),
            Some(_) => false,
        };
        if audience { Ok(Claims(members)) } else { Err(Refused("aud must be a string or a list of strings")) }
    }

    /// Every claim, by name.
    pub fn all(&self) -> &Map<String, Value> {
        &self.0
    }
    /// The claims themselves.
    pub fn into_map(self) -> Map<String, Value> {
        self.0
    }
    /// The claim `name` when it is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }
    /// The claim `name` when it is a time in whole seconds since 1970, not after the year 9999.
    pub fn time(&self, name: &str) -> Option<Time> {
        seconds(self.0.get(name)?).map(Time::from_seconds)
    }
    /// `iss`: who signed it.
    pub fn issuer(&self) -> Option<&str> {
        self.text("iss")
    }
    /// `sub`: whom it is about.
    pub fn subject(&self) -> Option<&str> {
        self.text("sub")
    }
    /// `jti`: its own name, for using it once.
    pub fn id(&self) -> Option<&str> {
        self.text("jti")
    }
    /// `exp`: it has expired at and after this moment.
    pub fn expires(&self) -> Option<Time> {
        self.time("exp")
    }
    /// `nbf`: it may not be used before this moment.
    pub fn not_before(&self) -> Option<Time> {
        self.time("nbf")
    }
    /// `iat`: when it was made.
    pub fn issued(&self) -> Option<Time> {
        self.time("iat")
    }
    /// `aud`: whom it was made for, whether one string or a list.
    pub fn audience(&self) -> impl Iterator<Item = &str> {
        let values = match self.0.get("aud") {
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        values.iter().filter_map(Value::as_str)
    }
    /// `aud` when it is one string and not a list, as a client assertion's must be.
    pub(crate) fn sole_audience(&self) -> Option<&str> {
        self.text("aud")
    }
    /// `aud` when it is one string, or a list of one.
    pub(crate) fn only_audience(&self) -> Option<&str> {
        let mut audience = self.audience();
        audience.next().filter(|_| audience.next().is_none())
    }
}

/// A NumericDate that is a JSON integer: no fraction, no exponent, not before 1970, not after 9999.
fn seconds(value: &Value) -> Option<i64> {
    value.as_i64().filter(|seconds| (0..=LAST_SECOND).contains(seconds))
}
