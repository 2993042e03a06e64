//! Single claims, asked for one by one (OpenID Connect Core §5.5).

use super::authorize::ECHO_LIMIT;
use super::error::Error;
use super::params::Params;
use super::scope::Scope;
use super::userinfo::scope_of;
use crate::jose;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most claims that may be asked for one by one, from userinfo or in the ID token.
const MOST_CLAIMS: usize = 64;

/// The `claims` parameter (OpenID Connect Core §5.5), reduced to what it asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimsRequest {
    /// Claims wanted from userinfo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub userinfo: Vec<String>,
    /// Claims wanted in the ID token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub id_token: Vec<String>,
    /// The only acceptable subjects. Judged before a code is issued, and so not stored with it.
    #[serde(skip)]
    pub subjects: Vec<String>,
    /// The only acceptable authentication context classes. Not stored either.
    #[serde(skip)]
    pub essential_acr: Vec<String>,
}

impl ClaimsRequest {
    /// The scopes that cover the single claims.
    pub fn scopes(&self) -> impl Iterator<Item = &'static str> {
        self.userinfo.iter().chain(&self.id_token).filter_map(|claim| scope_of(claim))
    }
    /// Removes what a client of `scope` may not have: it does not get one by one what it may not have together.
    pub(super) fn within(mut self, scope: &Scope) -> Self {
        let fits = |claim: &String| scope_of(claim).is_some_and(|covering| scope.has(covering));
        self.userinfo.retain(fits);
        self.id_token.retain(fits);
        self
    }

    /// OpenID Connect Core §5.5: reads what is asked for. Values that cannot be honored are refused only if essential.
    ///
    /// # Errors
    /// It cannot be read, or asks for a value that nobody can have.
    pub(super) fn read(params: &Params) -> Result<Self, Error> {
        let mut wanted = ClaimsRequest::default();
        let acr_values = params.get("acr_values").unwrap_or("");
        if acr_values.len() > ECHO_LIMIT {
            return Err(Error::request("acr_values is too long"));
        }
        let Some(text) = params.get("claims") else { return Ok(wanted) };
        let bad = Error::request("claims must be a JSON object of objects");
        if text.len() > 8 * 1024 {
            return Err(Error::request("claims is too long"));
        }
        let object = jose::object(text.as_bytes()).ok_or(bad)?;
        let part = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(part)) if part.len() <= MOST_CLAIMS => Ok(part.clone()),
            Some(Value::Object(_)) => Err(Error::request("claims asks for more than 64 of userinfo or id_token")),
            Some(_) => Err(bad),
        };
        let id_token = part("id_token")?;
        wanted.userinfo = part("userinfo")?.keys().cloned().collect();
        wanted.id_token = id_token.keys().cloned().collect();
        wanted.subjects = values(id_token.get("sub"))?;
        // OpenID Connect Core §5.5.1.1: the classes of which one is essential.
        let acr = id_token.get("acr").filter(|acr| acr.get("essential") == Some(&Value::Bool(true)));
        wanted.essential_acr = values(acr)?;
        Ok(wanted)
    }
}

/// OpenID Connect Core §5.5.1: the values of a claim, any of which will do. A value of the wrong type does not count as
/// omitted, and an empty list does not mean any value: that would let everybody pass.
fn values(claim: Option<&Value>) -> Result<Vec<String>, Error> {
    let bad = Error::request("the value of a claim that must match is not text");
    let (one, many) = match claim {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(claim)) => {
            let said = |name| claim.get(name).filter(|said| !said.is_null());
            (said("value"), said("values"))
        }
        Some(_) => return Err(bad),
    };
    let many = match many {
        None => &[][..],
        Some(Value::Array(many)) if many.is_empty() && one.is_none() => {
            return Err(Error::request("a claim that must match has an empty list of values"));
        }
        Some(Value::Array(many)) => many,
        Some(_) => return Err(bad),
    };
    one.into_iter().chain(many).map(|value| value.as_str().map(str::to_owned).ok_or(bad)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::error::Code;

    fn asked(claims: &str) -> Result<ClaimsRequest, Error> {
        ClaimsRequest::read(&Params::parse(vec![("claims".to_owned(), claims.to_owned())]).expect("reads"))
    }

    #[test]
    fn what_was_judged_by_then_is_not_stored() {
        // Red without either `serde(skip)`: as much text as an application likes would stay for months.
        let claims = r#"{"id_token":{"sub":{"value":"ada"},"acr":{"essential":true,"values":["a"]},"email":null}}"#;
        let wanted = asked(claims).expect("reads");
        assert!(!wanted.subjects.is_empty() && !wanted.essential_acr.is_empty());
        let stored = serde_json::to_value(&wanted).expect("is JSON");
        assert_eq!(stored, serde_json::json!({ "id_token": ["acr", "email", "sub"] }));
    }

    #[test]
    fn core_5_5_1_one_of_several_subjects_will_do() {
        // red without `values` of `sub` in `claims`.
        let expected = |sub: &str| {
            let claims = format!(r#"{{"id_token":{{"sub":{sub}}}}}"#);
            asked(&claims).expect("reads").subjects
        };
        assert_eq!(expected(r#"{"value":"ada"}"#), ["ada"]);
        assert_eq!(expected(r#"{"values":["ada","bob"]}"#), ["ada", "bob"]);
        assert_eq!(expected(r#"{"value":"ada","values":["bob"]}"#), ["ada", "bob"]);
        assert_eq!(expected(r#"{"value":null,"values":["bob"]}"#), ["bob"]);
        assert_eq!(expected(r#"{"value":"ada","values":null}"#), ["ada"]);
        assert!(expected("null").is_empty() && expected(r#"{"essential":true}"#).is_empty());
        assert_eq!(expected(r#"{"value":"ada","values":[]}"#), ["ada"]);
        // Red without the refusal of an empty list: a client that accepts nobody would have accepted everybody.
        let acr = r#""acr":{"essential":true,"values":[]}"#;
        for none in [r#""sub":{"values":[]}"#, r#""sub":{"value":null,"values":[]}"#, acr] {
            let claims = format!(r#"{{"id_token":{{{none}}}}}"#);
            assert_eq!(asked(&claims).expect_err(none).code, Code::InvalidRequest);
        }
    }

    #[test]
    fn core_5_5_a_request_for_too_many_claims_is_told_apart_from_one_that_is_no_object_of_objects() {
        // red without the sentence of their number in `claims`.
        for part in ["userinfo", "id_token"] {
            let why = |number: usize| {
                let members: Vec<String> = (0..number).map(|n| format!(r#""c{n}":null"#)).collect();
                let claims = format!(r#"{{"{part}":{{{}}}}}"#, members.join(","));
                asked(&claims).map_or_else(|error| error.why, |_| "ok")
            };
            assert_eq!(why(MOST_CLAIMS), "ok");
            assert_eq!(why(MOST_CLAIMS + 1), "claims asks for more than 64 of userinfo or id_token");
        }
    }
}
