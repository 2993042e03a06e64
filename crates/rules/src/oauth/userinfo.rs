//! Userinfo (OpenID Connect Core §5.3): the claims that were granted, and no others.

use super::client::Client;
use super::error::{Code, Error};
use super::family::Found;
use super::resource::is_same;
use super::scope::Scope;
use super::token::AccessClaims;
use crate::people::User;
use crate::realm::Realm;
use serde_json::{Map, Value, json};
use std::cell::LazyCell;

/// Every claim about a user that can be told here, with the scope that covers it (OpenID Connect Core §5.4; `groups` is
/// ours).
const CLAIMS: [(&str, &str); 20] = [
    ("name", "profile"),
    ("given_name", "profile"),
    ("family_name", "profile"),
    ("middle_name", "profile"),
    ("nickname", "profile"),
    ("preferred_username", "profile"),
    ("profile", "profile"),
    ("picture", "profile"),
    ("website", "profile"),
    ("gender", "profile"),
    ("birthdate", "profile"),
    ("zoneinfo", "profile"),
    ("locale", "profile"),
    ("updated_at", "profile"),
    ("email", "email"),
    ("email_verified", "email"),
    ("address", "address"),
    ("phone_number", "phone"),
    ("phone_number_verified", "phone"),
    ("groups", "groups"),
];

/// Claims about a sign-in and its token (OpenID Connect Core §2, §3.1.3.6).
const OF_THE_TOKEN: [&str; 12] =
    ["iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "azp", "sid", "at_hash"];

/// The scope that covers a claim about a person (OpenID Connect Core §5.4); `None`: there is no such claim.
pub fn scope_of(claim: &str) -> Option<&'static str> {
    CLAIMS.iter().find(|(known, _)| *known == claim).map(|(_, scope)| *scope)
}

/// Every claim that can be told, for discovery.
pub fn supported() -> impl Iterator<Item = &'static str> {
    OF_THE_TOKEN.into_iter().chain(CLAIMS.into_iter().map(|(claim, _)| claim))
}

/// Returns what a live access token of this realm may read. Claims that `client`, which the token was issued to, no
/// longer registers are not told, whether they were granted by scope or by name (DI-03).
pub fn read(
    claims: &AccessClaims,
    (found, client): (&Found, &Client),
    realm: &Realm,
) -> Result<Map<String, Value>, Error> {
    if !claims.aud.resources().iter().any(|aud| is_same(aud, &realm.issuer)) {
        return Err(Error::token("the token is for another audience"));
    }
    let scope = Scope::from(claims.scope.clone());
    if !scope.has("openid") || !client.scope.has("openid") {
        return Err(Error::new(Code::InsufficientScope, "the token lacks the openid scope"));
    }
    let user = found.user.as_ref().ok_or(Error::token("the account is gone"))?;
    let mut answer = claims_of(user, &found.groups, &scope, &found.family.granted.claims.userinfo);
    answer.retain(|claim, _| scope_of(claim).is_some_and(|of| client.scope.has(of)));
    answer.insert("sub".into(), json!(user.id));
    Ok(answer)
}

/// Returns the claims about `user` that `scope` covers or `single` names.
pub fn claims_of(user: &User, groups: &[String], scope: &Scope, single: &[String]) -> Map<String, Value> {
    let theirs = LazyCell::new(|| user.profile.claims());
    let known = |claim: &str| match claim {
        "preferred_username" => Some(json!(user.username)),
        "updated_at" => Some(json!(user.updated.seconds())),
        "email" => user.email.as_ref().map(|email| json!(email)),
        "email_verified" => user.email.as_ref().map(|_| json!(user.email_verified)),
        // Nobody is called here to prove a number, and an application that reads one should know that.
        "phone_number_verified" => theirs.get("phone_number").map(|_| json!(false)),
        "groups" => Some(json!(groups)),
        settable => theirs.get(settable).cloned(),
    };
    let wanted = CLAIMS.iter().filter(|(claim, of)| scope.has(of) || single.iter().any(|name| name == claim));
    wanted.filter_map(|(claim, _)| Some(((*claim).to_owned(), known(claim)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::scope::STANDARD;
    use crate::people::forms::example;
    use crate::people::user::tests::person;
    use crate::people::user::{Profile, SETTABLE};
    use crate::time::Time;

    /// A user of whom everything is known that can be.
    fn whole() -> User {
        let profile = SETTABLE
            .iter()
            .fold(Profile::empty(), |profile, claim| profile.with(claim, example(claim)).expect("settable"));
        User { email: Some("ada@example.test".into()), profile, updated: Time(1_000), ..person("ada") }
    }

    fn told(user: &User, scope: &str, single: &[&str]) -> Vec<String> {
        let single: Vec<String> = single.iter().map(|claim| (*claim).to_owned()).collect();
        let mut names: Vec<String> =
            claims_of(user, &[], &Scope::parse(scope).expect("legal"), &single).keys().cloned().collect();
        names.sort();
        names
    }

    fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// A claim is told for its scope, for its own name, and for nothing else.
    #[test]
    fn au_04_every_claim_is_told_where_it_was_granted_and_nowhere_else() {
        let user = whole();
        assert_eq!(told(&user, "openid offline_access", &["sub", "role", "password"]), [""; 0]);
        let profile = "birthdate family_name gender given_name locale middle_name name nickname picture \
                       preferred_username profile updated_at website zoneinfo";
        let covered = [
            ("openid", ""),
            ("profile", profile),
            ("email", "email email_verified"),
            ("address", "address"),
            ("phone", "phone_number phone_number_verified"),
            ("offline_access", ""),
            ("groups", "groups"),
        ];
        assert_eq!(covered.map(|(of, _)| of), STANDARD);
        for (of, claims) in covered {
            assert_eq!(told(&user, of, &[]).join(" "), claims, "{of}");
        }
        for (claim, _) in CLAIMS {
            assert_eq!(told(&user, "openid", &[claim]), [claim]);
        }
        assert!(SETTABLE.iter().all(|claim| scope_of(claim).is_some()), "what can be set can be told");
    }

    /// A claim that users may not set is not theirs to state, however it came into the database.
    #[test]
    fn a_profile_says_nothing_about_what_the_server_knows_itself() {
        let forged = |claim: &str| format!("\"{claim}\":\"forged\"");
        let claims =
            ["email", "email_verified", "groups", "preferred_username", "updated_at", "sub", "acr"].map(forged);
        let told = r#""phone_number":"+39","phone_number_verified":true"#;
        let user = User { profile: Profile::stored(format!("{{{},{told}}}", claims.join(","))), ..person("ada") };
        let all = claims_of(&user, &[], &Scope::parse(&STANDARD.join(" ")).expect("legal"), &[]);
        let names = ["groups", "phone_number", "phone_number_verified", "preferred_username", "updated_at"];
        assert_eq!(sorted(all.keys().map(String::as_str)), names);
        assert_eq!(all["phone_number_verified"], json!(false));
        assert!(all.values().all(|value| value != "forged"), "{all:?}");
    }

    #[test]
    fn au_04_only_granted_claims_are_told() {
        let profile = Profile::empty().with("name", "Ada").and_then(|profile| profile.with("phone_number", "+39"));
        let user = User { profile: profile.expect("settable"), ..whole() };
        let told = |scope: &str, single: &[&str]| told(&user, scope, single).join(" ");
        assert_eq!(told("openid", &[]), "");
        assert_eq!(told("openid email", &[]), "email email_verified");
        assert_eq!(told("profile", &[]), "name preferred_username updated_at");
        assert_eq!(told("openid", &["phone_number"]), "phone_number");
        assert_eq!(told("openid", &["phone_number_verified"]), "phone_number_verified");
        assert_eq!(told("groups", &[]), "groups");
    }
}
