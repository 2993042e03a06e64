//! Introspection (RFC 7662): what a token is, told only to those whom it concerns.

use super::client::{Client, Grant};
use super::code::Granted;
use super::family::Found;
use super::first_party::is_for_accounts;
use super::resource::is_same;
use super::scope::Scope;
use super::token::{AccessClaims, family_of, life_of};
use super::userinfo::scope_of;
use crate::people::User;
use crate::realm::{Realm, Settings, is_believable};
use crate::time::{Span, Time};
use serde_json::{Map, Value, json};

/// Everything that decides whether an access token may be used now.
pub struct Facts<'a> {
    /// The client that it was issued to, as it is now.
    pub client: Option<&'a Client>,
    /// The family that it descends from, if it has one.
    pub family: Option<&'a Found>,
    /// Whether this one token was revoked.
    pub revoked: bool,
}

/// Whether an access token may be used: it has not expired, was not made while a clock was ahead, is not revoked, and
/// everything that it relies on is live.
pub fn is_live(claims: &AccessClaims, facts: &Facts<'_>, settings: &Settings, now: Time) -> bool {
    let lasts = is_believable(Time::from_seconds(claims.iat), now) && !Time::from_seconds(claims.exp).has_come(now);
    lasts && stands(claims, facts, |found| found.is_live(settings, now))
}

/// Whether there is anything that an access token can end: what may not be used by this clock, because it has expired
/// or is dated ahead, may be by another, or later.
pub fn can_end(claims: &AccessClaims, facts: &Facts<'_>, settings: &Settings, now: Time) -> bool {
    let lasts = !Time::from_seconds(claims.exp).has_come(settings.by_the_slowest(now));
    lasts && stands(claims, facts, |found| found.can_end(settings, now))
}

/// Whether nobody has taken a token back, nor its client, nor a family that does not `last`.
fn stands(claims: &AccessClaims, facts: &Facts<'_>, lasts: impl Fn(&Found) -> bool) -> bool {
    let client_lives = facts.client.is_some_and(|client| {
        client.id.0 == claims.client_id && client.is_enabled() && is_of(client, claims, facts.family)
    });
    let family_lasts = match (family_of(&claims.jti), facts.family) {
        (None, _) => true,
        (Some(id), Some(found)) => found.family.id == id && lasts(found),
        (Some(_), None) => false,
    };
    !facts.revoked && client_lives && family_lasts
}

/// Whether a token belongs to the client as it is now. A token of a family belongs to it as the family does. For any
/// other token the `jti` tells; one that a previous release issued is as old as its `iat`, to the second.
fn is_of(client: &Client, claims: &AccessClaims, family: Option<&Found>) -> bool {
    match family {
        Some(found) => found.family.is_of(client),
        None => {
            let second = if client.revived_at.is_some() { Span::ZERO } else { Span(999) };
            client.owns(life_of(&claims.jti).as_ref(), Time::from_seconds(claims.iat) + second)
        }
    }
}

/// RFC 7662 §4: a client sees its own tokens, a resource server those of its audience, others nothing.
pub fn may_see(asker: &Client, claims: &AccessClaims) -> bool {
    let is_asker = |aud: &String| asker.resources.iter().any(|known| is_same(known, aud));
    asker.id.0 == claims.client_id || (asker.resource_server && claims.aud.resources().iter().any(is_asker))
}

/// The answer for a token that is not live or does not concern the asker: this and nothing else.
pub fn inactive() -> Map<String, Value> {
    Map::from_iter([("active".to_owned(), Value::Bool(false))])
}

/// The answer for a live access token. `username` is userinfo's `preferred_username`, and is told on the same terms:
/// the token's scope covers it, and `client`, which the token was issued to, still registers that scope (AU-04, DI-03).
pub fn access(claims: &AccessClaims, (user, client): (Option<&User>, &Client)) -> Map<String, Value> {
    let granted = Scope::from(claims.scope.clone());
    let tells = scope_of("preferred_username").is_some_and(|of| granted.has(of) && client.scope.has(of));
    let mut answer = match json!(claims) {
        Value::Object(claims) => claims,
        _ => Map::new(),
    };
    answer.insert("active".into(), json!(true));
    answer.insert("token_type".into(), json!("Bearer"));
    answer.extend(user.filter(|_| tells).map(|user| ("username".to_owned(), json!(user.username))));
    answer
}

/// The answer for a refresh token: whether it could be used now, for what, and until when if nothing else happens (RFC
/// 7662 §2.2). There is no `iat`: a rotated token is younger than its family, and when it was made is not stored. A
/// token that was replaced is not active, although it is accepted once more within the grace of a repeated request.
pub fn refresh(found: &Found, client: &Client, realm: &Realm) -> Map<String, Value> {
    let family = &found.family;
    let outlives = family.session.is_none() && !client.scope.has("offline_access");
    let for_accounts = is_for_accounts(found, realm);
    if !for_accounts && (!client.may(Grant::RefreshToken) || outlives || nothing_left(&family.granted, client)) {
        return inactive();
    }
    let granted = &family.granted.scope;
    let scope = if for_accounts { granted.clone() } else { granted.both(&client.scope) };
    let ends = [family.idle_until, family.expires]
        .into_iter()
        .chain(found.session.as_ref().map(|at| at.ends(&realm.settings)));
    let end = ends.min().unwrap_or(family.expires);
    let mut answer = Map::new();
    answer.insert("active".into(), json!(true));
    answer.insert("iss".into(), json!(realm.issuer));
    answer.insert("sub".into(), json!(family.user));
    answer.insert("client_id".into(), json!(family.client));
    answer.insert("scope".into(), json!(scope));
    answer.insert("exp".into(), json!(end.seconds()));
    answer
}

/// Whether the client now registers so little of what was granted that no refresh gets any of it: no scope, none of the
/// resources, or not the scope of a single claim, which no refresh can leave out.
fn nothing_left(granted: &Granted, client: &Client) -> bool {
    let no_resource =
        !granted.resources.is_empty() && !granted.resources.iter().any(|uri| client.resources.contains(uri));
    let lacks_claim = granted.claims.scopes().any(|scope| !client.scope.has(scope));
    granted.scope.both(&client.scope).is_empty() || no_resource || lacks_claim
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::client::tests::confidential;
    use crate::people::user::tests::person;

    fn claims(scope: &str) -> AccessClaims {
        serde_json::from_value(json!({
            "iss": "https://id.test", "sub": "ada", "aud": "https://id.test", "exp": 1_700_000_900, "iat": 1_700_000_000,
            "jti": "family.chance", "client_id": "shop", "scope": scope,
        }))
        .expect("claims")
    }

    #[test]
    fn au_04_di_03_a_username_is_told_where_userinfo_tells_it() {
        // red without `tells` in `access`, or without either half of it.
        let (user, shop) = (person("ada"), confidential("shop", "https://shop.test/cb"));
        let narrowed = Client { scope: Scope::parse("openid email").expect("legal"), ..shop.clone() };
        for (scope, client, tells) in [
            ("openid profile", &shop, true),
            ("profile", &shop, true),
            ("openid email", &shop, false),
            ("", &shop, false),
            ("openid profile", &narrowed, false),
        ] {
            let told = access(&claims(scope), (Some(&user), client));
            assert_eq!(told.get("username"), tells.then(|| json!("ada")).as_ref(), "{scope}, of {}", client.scope);
            assert_eq!((&told["active"], &told["sub"]), (&json!(true), &json!("ada")));
        }
        assert_eq!(access(&claims("profile"), (None, &shop)).get("username"), None, "a client's own");
    }

    #[test]
    fn pr_05_what_was_made_while_a_clock_was_ahead_is_not_live() {
        // red without `is_believable` in `is_live`.
        let (shop, settings) = (confidential("shop", "https://shop.test/cb"), Settings::default());
        let own = AccessClaims { jti: "chance".into(), ..claims("") };
        let facts = Facts { client: Some(&shop), family: None, revoked: false };
        let made = Time::from_seconds(own.iat);
        assert!(is_live(&own, &facts, &settings, made) && is_live(&own, &facts, &settings, made - Span::seconds(120)));
        assert!(!is_live(&own, &facts, &settings, made - Span::seconds(121)));
    }

    #[test]
    fn what_another_clock_may_believe_can_be_ended() {
        // red where `can_end` asks this clock alone.
        let (shop, settings) = (confidential("shop", "https://shop.test/cb"), Settings::default());
        let own = AccessClaims { jti: "chance".into(), ..claims("") };
        let (made, ends) = (Time::from_seconds(own.iat), Time::from_seconds(own.exp));
        let by_then = settings.remembered(ends);
        for (now, live, can) in [
            (made - Span::days(1), false, true),
            (made, true, true),
            (ends, false, true),
            (by_then - Span(1), false, true),
            (by_then, false, false),
        ] {
            let facts = |revoked| Facts { client: Some(&shop), family: None, revoked };
            assert_eq!(is_live(&own, &facts(false), &settings, now), live, "{now:?}");
            assert_eq!(can_end(&own, &facts(false), &settings, now), can, "{now:?}");
            assert!(!can_end(&own, &facts(true), &settings, now), "{now:?}");
        }
    }
}
