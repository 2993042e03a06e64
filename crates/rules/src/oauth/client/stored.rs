//! A client as stored, by this version or by a later one. While nodes are upgraded one after the other, a later version
//! may store a value that this one does not know. A client that has one is listed, refused where it is used, and
//! written back as it was; all other clients go on.

use super::{AccessFormat, AuthMethod, Client, Grant};
use crate::jose::{Alg, JwkSet};
use serde::de::{DeserializeOwned, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Whether this version knows a value.
type Knows = fn(&Value) -> bool;

fn knows<T: DeserializeOwned>(value: &Value) -> bool {
    T::deserialize(value).is_ok()
}

/// Whether all keys are known: a set skips other kinds of keys (RFC 7517 §5), and would be written back without them.
fn knows_all_keys(value: &Value) -> bool {
    match Option::<JwkSet>::deserialize(value) {
        Ok(Some(set)) => value["keys"].as_array().is_some_and(|keys| keys.len() == set.keys.len()),
        Ok(None) => true,
        Err(_) => false,
    }
}

/// Fields that are lists: the known items stay in the list.
static LISTS: [(&str, Knows); 2] = [("grants", knows::<Grant>), ("auth_methods", knows::<AuthMethod>)];

/// Fields of one value, and the stand-in for an unknown one, so that the rest can be read. Nothing acts on a stand-in.
static SINGLE: [(&str, Knows, Option<&str>); 4] = [
    ("id_token_alg", knows::<Alg>, Some("RS256")),
    ("access_alg", knows::<Alg>, Some("ES256")),
    ("access_format", knows::<AccessFormat>, Some("jwt")),
    ("jwks", knows_all_keys, None),
];

/// Takes out the fields that hold a value which this version does not know, whole.
fn take_unknown(stored: &mut Map<String, Value>) -> Map<String, Value> {
    let mut unknown = Map::new();
    for (name, knows) in &LISTS {
        let Some(value) = stored.get_mut(*name) else { continue };
        let items = value.as_array().map(Vec::as_slice);
        let known: Vec<Value> = items.unwrap_or_default().iter().filter(|item| knows(item)).cloned().collect();
        if items.is_none_or(|items| items.len() != known.len()) {
            unknown.insert((*name).to_owned(), std::mem::replace(value, Value::Array(known)));
        }
    }
    for (name, knows, instead) in &SINGLE {
        if let Some(value) = stored.get_mut(*name).filter(|value| !knows(value)) {
            unknown.insert((*name).to_owned(), std::mem::replace(value, Value::from(*instead)));
        }
    }
    unknown
}

impl<'de> Deserialize<'de> for Client {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut stored = Map::deserialize(deserializer)?;
        let unknown = take_unknown(&mut stored);
        let client = Client::deserialize(Value::Object(stored)).map_err(D::Error::custom)?;
        Ok(Client { unknown, ..client })
    }
}

impl Serialize for Client {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.unknown.is_empty() {
            return Client::serialize(self, serializer);
        }
        let mut stored = Client::serialize(self, serde_json::value::Serializer).map_err(S::Error::custom)?;
        for (name, value) in &self.unknown {
            stored[name] = value.clone();
        }
        stored.serialize(serializer)
    }
}

impl Client {
    /// Returns the values of a field that this version does not know, as stored; none if it knows them all.
    pub fn unknown_of(&self, field: &str) -> Vec<String> {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let list = LISTS.iter().find(|(name, _)| *name == field);
        match (self.unknown.get(field), list) {
            (None, _) => Vec::new(),
            (Some(Value::Array(items)), Some((_, knows))) => {
                items.iter().filter(|item| !knows(item)).map(text).collect()
            }
            (Some(value), _) => vec![text(value)],
        }
    }

    /// Describes what this version does not know of the client, for the operator; `None` if it knows everything.
    pub fn unknown_values(&self) -> Option<String> {
        let of = |field: &String| format!("{field}: {}", self.unknown_of(field).join(" "));
        (!self.unknown.is_empty()).then(|| self.unknown.keys().map(of).collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::oauth::client::tests::confidential;
    use crate::oauth::client::{DISABLED, LATER};
    use serde_json::json;

    /// A client as a later version stores it, with `value` in `field`.
    fn stored(field: &str, value: &Value) -> Value {
        let mut stored = serde_json::to_value(confidential("shop", "https://shop.test/cb")).expect("json");
        stored[field] = value.clone();
        stored
    }

    /// RFC 8037, appendix A.2.
    const KEY: &str = r#"{"crv":"Ed25519","kty":"OKP","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

    fn keys(of_a_later_version: bool) -> Value {
        let own: Value = serde_json::from_str(KEY).expect("json");
        if of_a_later_version { json!({ "keys": [own, { "kty": "AKP" }] }) } else { json!({ "keys": [own] }) }
    }

    fn later() -> [(&'static str, Value, Vec<&'static str>); 10] {
        [
            ("grants", json!(["authorization_code", "urn:later:grant"]), vec!["urn:later:grant"]),
            ("grants", json!(["urn:later:grant", { "type": "x" }]), vec!["urn:later:grant", "{\"type\":\"x\"}"]),
            ("auth_methods", json!(["tls_client_auth"]), vec!["tls_client_auth"]),
            // By its known part alone, it would be a public client.
            ("auth_methods", json!(["none", "attest_jwt_client_auth"]), vec!["attest_jwt_client_auth"]),
            ("auth_methods", json!("any"), vec!["any"]),
            ("id_token_alg", json!("ML-DSA-65"), vec!["ML-DSA-65"]),
            ("access_alg", json!("ML-DSA-44"), vec!["ML-DSA-44"]),
            ("access_format", json!("sd-jwt"), vec!["sd-jwt"]),
            ("jwks", json!({ "keys": [{ "kty": "AKP" }] }), vec!["{\"keys\":[{\"kty\":\"AKP\"}]}"]),
            ("jwks", keys(true), vec![]),
        ]
    }

    #[test]
    fn what_only_a_later_version_knows_is_told_refused_and_written_back_as_it_was() {
        // red without `take_unknown`: no list with such a client could be read; without `unknown` in `serialize`:
        // disabling the client would take the value out; without LATER in `refusal`.
        for (field, value, told) in later() {
            let stored = stored(field, &value);
            let read: Client = serde_json::from_value(stored.clone()).expect("known by its other fields");
            let told =
                if told.is_empty() { vec![value.to_string()] } else { told.iter().map(ToString::to_string).collect() };
            assert_eq!(read.unknown_of(field), told, "{field}");
            let all = read.unknown_values().expect("something");
            assert!(
                all.starts_with(&format!("{field}: ")) && told.iter().all(|value| all.contains(value.as_str())),
                "{all}"
            );
            assert!(!read.is_enabled() && !read.is_disabled() && read.refusal() == Some(LATER), "{field}");
            assert_eq!((read.name.as_str(), &*read.redirect_uris), ("shop", &["https://shop.test/cb".to_owned()][..]));
            let disabled = Client { disabled_at: Some(Time(1)), ..read };
            assert_eq!(disabled.refusal(), Some(DISABLED));
            assert_eq!(serde_json::to_value(&disabled).expect("json"), stored, "{field}");
        }
    }

    #[test]
    fn what_this_version_stores_is_read_whole() {
        let stored = stored("jwks", &keys(false));
        let read: Client = serde_json::from_value(stored.clone()).expect("ours");
        assert_eq!((read.unknown_values(), read.refusal()), (None, None));
        assert_eq!(serde_json::to_value(&read).expect("json"), stored);
        // What is a client of no version is still an error.
        for (field, value) in [("name", json!(1)), ("scope", json!([])), ("redirect_uris", json!("https://shop.test"))]
        {
            assert!(serde_json::from_value::<Client>(self::stored(field, &value)).is_err(), "{field}");
        }
        let mut without = stored;
        without.as_object_mut().expect("an object").remove("grants");
        assert!(serde_json::from_value::<Client>(without).is_err());
    }

    #[test]
    fn a_known_part_of_a_list_stays_known() {
        let (field, value, _) = &later()[0];
        let read: Client = serde_json::from_value(stored(field, value)).expect("known by its other fields");
        assert_eq!(read.grants, [Grant::AuthorizationCode]);
    }
}
