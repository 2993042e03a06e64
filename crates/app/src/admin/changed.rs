//! The differences that a change of an application made, for the audit log and for the operator.

use rules::oauth::client::Client;
use serde_json::{Map, Value, json};

/// The longest list of additions and removals in the audit log, in bytes: an operator's entry must not fill it.
const LONGEST: usize = 4096;

/// The settings of a new application that matter to somebody who looks for what was let in.
const SENSITIVE: [&str; 11] = [
    "redirect_uris",
    "post_logout_redirect_uris",
    "grant_types",
    "scope",
    "token_endpoint_auth_methods",
    "application_type",
    "require_pkce",
    "resources",
    "resource_server",
    "trusted",
    "first_party",
];

/// The name of a stored setting of an application where people and programs read it, if that is another: that of client
/// metadata (RFC 7591 §2), where it has one.
pub fn told_as(stored: &str) -> &str {
    match stored {
        "name" => "client_name",
        "grants" => "grant_types",
        "auth_methods" => "token_endpoint_auth_methods",
        "id_token_alg" => "id_token_signed_response_alg",
        "access_format" => "access_token_format",
        "access_alg" => "access_token_signed_response_alg",
        "access_typ_jwt" => "access_token_typ",
        "native" => "application_type",
        "pkce_optional" => "require_pkce",
        "no_id_token_on_refresh" => "id_token_on_refresh",
        same => same,
    }
}

/// Returns the settings of an application as they are told, by name.
fn settings(client: &Client) -> Map<String, Value> {
    let Ok(Value::Object(stored)) = serde_json::to_value(client) else { return Map::new() };
    let told = |(name, value): (String, Value)| {
        let value = match name.as_str() {
            "access_typ_jwt" => json!(access_typ(client)),
            "native" => json!(application_type(client)),
            "pkce_optional" => json!(!client.pkce_optional),
            "no_id_token_on_refresh" => json!(!client.no_id_token_on_refresh),
            _ => value,
        };
        (told_as(&name).to_owned(), value)
    };
    stored.into_iter().map(told).collect()
}

/// Returns the `typ` of an application's access tokens (RFC 9068 §2.1).
pub fn access_typ(client: &Client) -> &'static str {
    if client.access_typ_jwt { "JWT" } else { "at+jwt" }
}

/// Returns the kind of an application (OpenID Connect Dynamic Client Registration §2).
pub fn application_type(client: &Client) -> &'static str {
    if client.native { "native" } else { "web" }
}

/// Returns every setting that differs: what a list gained and lost, what anything else was and is. A list in another
/// order is the same. Never a secret: of keys and secrets it says only that they are others.
pub(super) fn differences(before: &Client, after: &Client) -> Map<String, Value> {
    let (was, is) = (settings(before), settings(after));
    let mut found = Map::new();
    for (name, now) in &is {
        let before = was.get(name).unwrap_or(&Value::Null);
        let difference = Some(before).filter(|before| *before != now).and_then(|was| difference(name, was, now));
        found.extend(difference.map(|difference| (name.clone(), difference)));
    }
    if before.secret != after.secret {
        let what = if after.secret.is_some() { "another" } else { "none" };
        found.insert("client_secret".to_owned(), json!({ "is": what }));
    }
    found
}

/// Returns for the audit log what a new application may do, as a change from one that may do nothing.
pub(super) fn granted(client: &Client) -> Map<String, Value> {
    let mut granted = differences(&Client::new(client.id.clone(), Vec::new()), client);
    granted.retain(|name, _| SENSITIVE.contains(&name.as_str()));
    bounded(granted)
}

/// Returns differences as they are written down: of long lists only how much they gained and lost.
pub(super) fn bounded(mut differences: Map<String, Value>) -> Map<String, Value> {
    let many = |list: &Value| list.as_array().map(Vec::len);
    for difference in differences.values_mut().filter(|difference| difference.to_string().len() > LONGEST) {
        if let (Some(added), Some(removed)) = (many(&difference["added"]), many(&difference["removed"])) {
            *difference = json!({ "added_count": added, "removed_count": removed });
        }
    }
    differences
}

fn difference(name: &str, was: &Value, is: &Value) -> Option<Value> {
    if name == "jwks" {
        return Some(json!({ "is": if is.is_null() { "none" } else { "another" } }));
    }
    let (Some(before), Some(after)) = (items(name, was), items(name, is)) else {
        return Some(json!({ "was": was, "is": is }));
    };
    let without = |all: &[Value], others: &[Value]| -> Vec<Value> {
        all.iter().filter(|item| !others.contains(item)).cloned().collect()
    };
    let (added, removed) = (without(&after, &before), without(&before, &after));
    (!added.is_empty() || !removed.is_empty()).then(|| json!({ "added": added, "removed": removed }))
}

/// Returns the items of a list; a scope is one, too, written with spaces.
fn items(name: &str, value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items.clone()),
        Value::String(scope) if name == "scope" => Some(scope.split_whitespace().map(Value::from).collect()),
        _ => None,
    }
}
