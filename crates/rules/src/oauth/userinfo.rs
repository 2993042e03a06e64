//! Userinfo (OpenID Connect Core §5.3): the claims that were granted, and no others.

use super::error::{Code, Error};
use super::family::Found;
use super::scope::Scope;
use super::token::AccessClaims;
use crate::people::User;
use crate::realm::Realm;
use serde_json::{Map, Value, json};

/// Claims of the `profile` scope that people may set (OpenID Connect Core §5.4).
const PROFILE: [&str; 12] = [
    "name",
    "given_name",
    "family_name",
    "middle_name",
    "nickname",
    "profile",
    "picture",
    "website",
    "gender",
    "birthdate",
    "zoneinfo",
    "locale",
];

/// The scope that covers a claim about a person (OpenID Connect Core §5.4); `None`: there is no such claim.
pub fn scope_of(claim: &str) -> Option<&'static str> {
    match claim {
        "email" | "email_verified" => Some("email"),
        "address" => Some("address"),
        "phone_number" | "phone_number_verified" => Some("phone"),
        "groups" => Some("groups"),
        "preferred_username" | "updated_at" => Some("profile"),
        name if PROFILE.contains(&name) => Some("profile"),
        _ => None,
    }
}

/// Every claim that can be said of a person, for discovery.
pub const SUPPORTED: [&str; 27] = [
    "iss",
    "sub",
    "aud",
    "exp",
    "iat",
    "auth_time",
    "nonce",
    "acr",
    "amr",
    "azp",
    "sid",
    "at_hash",
    "name",
    "given_name",
    "family_name",
    "middle_name",
    "nickname",
    "preferred_username",
    "profile",
    "picture",
    "website",
    "email",
    "email_verified",
    "gender",
    "birthdate",
    "updated_at",
    "groups",
];

/// What a live access token of this realm may read.
pub fn read(claims: &AccessClaims, found: &Found, realm: &Realm) -> Result<Map<String, Value>, Error> {
    if !claims.aud.has(&realm.issuer) {
        return Err(Error::token("the token is for another audience"));
    }
    let scope = Scope::from(claims.scope.clone());
    if !scope.has("openid") {
        return Err(Error::new(Code::InsufficientScope, "the token lacks the openid scope"));
    }
    let user = found.user.as_ref().ok_or(Error::token("the account is gone"))?;
    let mut answer = claims_of(user, &found.groups, &scope, &found.family.granted.claims.userinfo);
    answer.insert("sub".into(), json!(user.id));
    Ok(answer)
}

/// The claims about `user` that `scope` covers or `single` names.
pub fn claims_of(user: &User, groups: &[String], scope: &Scope, single: &[String]) -> Map<String, Value> {
    let wants = |of: &str, claim: &str| scope.has(of) || single.iter().any(|name| name == claim);
    let mut answer = Map::new();
    if wants("profile", "preferred_username") {
        answer.insert("preferred_username".into(), json!(user.username));
    }
    if wants("profile", "updated_at") {
        answer.insert("updated_at".into(), json!(user.updated.seconds()));
    }
    if let Some(email) = &user.email {
        if wants("email", "email") {
            answer.insert("email".into(), json!(email));
        }
        if wants("email", "email_verified") {
            answer.insert("email_verified".into(), json!(user.email_verified));
        }
    }
    if wants("groups", "groups") {
        answer.insert("groups".into(), json!(groups));
    }
    for (claim, value) in user.profile.claims() {
        let of = match claim.as_str() {
            "address" => "address",
            "phone_number" => "phone",
            name if PROFILE.contains(&name) => "profile",
            _ => continue,
        };
        if wants(of, &claim) {
            answer.insert(claim, value);
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::{Role, user::Profile};
    use crate::time::Time;

    #[test]
    fn au_04_only_granted_claims_are_told() {
        let user = User {
            id: "u1".into(),
            username: "ada".into(),
            email: Some("ada@example.test".into()),
            email_verified: false,
            profile: Profile::empty()
                .with("name", "Ada")
                .expect("settable")
                .with("phone_number", "+39")
                .expect("settable"),
            password: None,
            role: Role::Member,
            disabled_at: None,
            created: Time(0),
            updated: Time(1_000),
        };
        let told = |scope: &str, single: &[String]| {
            let mut names: Vec<String> =
                claims_of(&user, &[], &Scope::parse(scope).expect("legal"), single).keys().cloned().collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!(told("openid", &[]), "");
        assert_eq!(told("openid email", &[]), "email email_verified");
        assert_eq!(told("profile", &[]), "name preferred_username updated_at");
        assert_eq!(told("openid", &["phone_number".into()]), "phone_number");
        assert_eq!(told("groups", &[]), "groups");
    }
}
