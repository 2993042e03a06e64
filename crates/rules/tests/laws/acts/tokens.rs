//! The token endpoint and its siblings.

use crate::ledger::{IssuedAccess, Law};
use crate::world::{Plan, RESOURCES, World};
use rules::decision::Change;
use rules::id::{ClientId, FamilyId};
use rules::oauth::client::{Client, Grant};
use rules::oauth::code::{self, Redemption};
use rules::oauth::error::Code as ErrorCode;
use rules::oauth::refresh::{Renewal, renew};
use rules::oauth::revoke::{AccessToken, Presented, revoke};
use rules::oauth::scope::Scope;
use rules::oauth::token::{Access, AccessClaims, Audience, Tokens, family_of, own};
use rules::{Fresh, Secret};

/// How a presented credential differs from what its client would send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twist {
    /// Not at all.
    Plain,
    /// Another client sends it.
    OtherClient,
    /// Another verifier, or a narrower scope.
    Second,
    /// Another redirect URI, or a wider scope.
    Third,
    /// No verifier, or one audience.
    Fourth,
    /// Another text.
    Garbled,
}

/// Who presents: the client itself, or an enabled one that may use `grant` too.
fn presenter<'a>(world: &'a World, client: &ClientId, twist: Twist, grant: Grant) -> Option<&'a Client> {
    match twist {
        Twist::OtherClient => {
            world.tables.clients.values().find(|other| other.id != *client && other.is_enabled() && other.may(grant))
        }
        _ => world.tables.client(client),
    }
}

fn garble(text: &Secret) -> Secret {
    let mut garbled = text.reveal().to_owned();
    let last = if garbled.pop() == Some('A') { 'Q' } else { 'A' };
    garbled.push(last);
    Secret::new(garbled)
}

/// A code is presented.
pub fn redeem(world: &World, fresh: &Fresh, which: usize, twist: Twist) -> Plan {
    let issued = &world.ledger.codes[which];
    let owner = &world.ledger.lines[&issued.family].client;
    let Some(client) = presenter(world, owner, twist, Grant::AuthorizationCode) else { return Plan::nothing() };
    let text = if twist == Twist::Garbled { garble(&issued.text) } else { issued.text.clone() };
    let verifier = match twist {
        Twist::Second => Some("another-verifier-of-43-characters-or-more-000"),
        Twist::Fourth => None,
        _ => Some(issued.verifier.as_str()),
    };
    let redirect = if twist == Twist::Third { "https://web.test/other" } else { &issued.redirect };
    let found = code::family_of(text.reveal()).and_then(|family| world.tables.code(&family));
    let ask = Redemption { client, code: &text, redirect_uri: Some(redirect), verifier, resources: Vec::new() };
    // Whoever proved nothing and is not meant cannot even use the code up.
    let counts = twist != Twist::Garbled && (client.id == *owner || !client.is_public());
    let decision = code::redeem(&ask, found.as_ref(), &world.context(), (world.now, fresh));
    Plan::of(decision.changes, move |world| redeemed(world, which, (twist, counts), decision.reply.ok()))
}

fn redeemed(world: &mut World, which: usize, (twist, counts): (Twist, bool), tokens: Option<Tokens>) {
    let (now, ledger) = (world.now, &mut world.ledger);
    let issued = &mut ledger.codes[which];
    let (family, used, expired) = (issued.family.clone(), issued.used, issued.expires.has_come(now));
    if counts {
        if used {
            ledger.meet("code presented again");
            // Who lacks a part ends nothing of what its owner got.
            if twist == Twist::Plain {
                let line = ledger.lines.get_mut(&family).expect("every code has a line");
                line.ended.get_or_insert("its code was used twice");
            }
        } else if !expired {
            ledger.codes[which].used = true;
        }
    }
    let Some(tokens) = tokens else { return };
    ledger.meet("code redeemed");
    ledger.hold(Law::CodeYieldsOnce, twist == Twist::Plain, "a code yields tokens to whoever lacks a part");
    ledger.hold(Law::CodeYieldsOnce, !used && !expired, "a used or expired code yields tokens");
    ledger.codes[which].yielded = true;
    begin(world, &family, tokens);
}

/// A line hands out its first tokens.
pub fn begin(world: &mut World, family: &FamilyId, tokens: Tokens) {
    let now = world.now;
    let line = world.ledger.lines.get_mut(family).expect("every approval has a line");
    let (ended, session) = (line.ended, line.session.clone());
    line.began = Some(now);
    if let Some(secret) = tokens.refresh.clone() {
        line.chain.push((secret, now));
        world.ledger.rungs.push((family.clone(), 0));
    }
    world.ledger.hold(Law::EndedIsDead, ended.is_none(), "tokens begin in a line that has ended");
    world.ledger.use_visit(&session, now);
    hand_out(world, Some(family), tokens, true);
}

/// Keeps an access token, and holds what it says against its line.
fn hand_out(world: &mut World, family: Option<&FamilyId>, tokens: Tokens, first: bool) {
    let (claims, opaque) = match &tokens.access {
        Access::Jwt { claims, .. } => ((**claims).clone(), None),
        Access::Opaque(secret) => (world.tables.opaque[&secret.handle().0].clone(), Some(secret.clone())),
    };
    let ledger = &mut world.ledger;
    if let Some(line) = family.map(|family| &ledger.lines[family]) {
        let scope = Scope::from(claims.scope.clone());
        let auth_time = line.granted.auth_time.seconds();
        let audiences: Vec<&str> = match &claims.aud {
            Audience::One(one) => vec![one],
            Audience::Many(many) => many.iter().map(String::as_str).collect(),
        };
        let (issuer, resources) = (&world.realm.issuer, &line.granted.resources);
        let granted = |aud: &&str| resources.iter().any(|uri| uri == aud) || (resources.is_empty() && aud == issuer);
        let id = tokens.id.as_ref().map(|id| &id.claims);
        let says = |claim: &str, value: &str| id.is_none_or(|id| id[claim] == value);
        let checks = [
            (scope.is_within(&line.granted.scope) && tokens.scope == scope, "a scope wider than was granted"),
            (audiences.iter().all(granted), "an audience that was not granted"),
            (claims.sub == line.user.0 && says("sub", line.user.as_str()), "another subject"),
            (claims.client_id == line.client.0 && says("aud", line.client.as_str()), "another client"),
            (claims.auth_time == Some(auth_time), "another auth_time in an access token"),
            (id.is_none_or(|id| id["auth_time"] == auth_time), "another auth_time in an ID token"),
            (first || id.is_none_or(|id| !id.contains_key("nonce")), "a nonce that was not sent"),
        ];
        let broken: Vec<&str> = checks.iter().filter(|(holds, _)| !holds).map(|(_, how)| *how).collect();
        broken.into_iter().for_each(|how| ledger.breach(Law::NothingWidens, how));
    }
    ledger.access.push(IssuedAccess { claims, opaque, family: family.cloned(), ended: None, dead: false });
}

/// A refresh token is presented.
pub fn refresh(world: &World, fresh: &Fresh, which: usize, twist: Twist) -> Plan {
    let (family, rung) = world.ledger.rungs[which].clone();
    let line = &world.ledger.lines[&family];
    let length = line.chain.len();
    let Some(client) = presenter(world, &line.client, twist, Grant::RefreshToken) else { return Plan::nothing() };
    let text = &line.chain[rung].0;
    if twist == Twist::Garbled {
        let read = world.refresh_token(garble(text).reveal()).is_some();
        return Plan::of(Vec::new(), move |world| {
            world.ledger.hold(Law::OneSuccessor, !read, "a refresh token of nobody's making is read");
        });
    }
    let token = world.refresh_token(text.reveal()).expect("ours");
    let scope = match twist {
        Twist::Second => Some("openid"),
        Twist::Third => Some("openid profile email offline_access admin"),
        _ => None,
    };
    let resources = if twist == Twist::Fourth { vec![RESOURCES[1].to_owned()] } else { Vec::new() };
    let ask = Renewal { client, token: &token, scope, resources };
    let found = world.tables.family(&token.family);
    let decision = renew(&ask, found.as_ref(), &world.context(), (world.now, fresh));
    let refused = decision.reply.as_ref().err().map(|error| error.code);
    Plan::of(decision.changes, move |world| {
        let Ok(tokens) = decision.reply else {
            reused(world, (&family, rung, length), twist, refused);
            return;
        };
        refreshed(world, (&family, rung, length), twist, &tokens);
        hand_out(world, Some(&family), tokens, false);
    })
}

/// A refusal: where the token was outdated and its own client sent it, the line has ended.
fn reused(world: &mut World, at: (&FamilyId, usize, usize), twist: Twist, refused: Option<ErrorCode>) {
    let ((family, rung, length), now) = (at, world.now);
    let grace = world.realm.settings.refresh_grace;
    let line = world.ledger.lines.get_mut(family).expect("every rung has a line");
    let outdated = line.is_outdated(rung, length, line.chain[length - 1].1 + grace, now);
    if outdated && twist != Twist::OtherClient && refused == Some(ErrorCode::InvalidGrant) {
        line.ended.get_or_insert("an outdated refresh token came back");
        world.ledger.meet("refresh token reused");
    }
}

/// An answer: either the line goes on by one, or its newest token is handed out again.
fn refreshed(world: &mut World, at: (&FamilyId, usize, usize), twist: Twist, tokens: &Tokens) {
    let ((family, rung, length), now) = (at, world.now);
    let grace = world.realm.settings.refresh_grace;
    let ledger = &mut world.ledger;
    let line = ledger.lines.get_mut(family).expect("every rung has a line");
    let (ended, session) = (line.ended, (!line.is_offline()).then(|| line.session.clone()));
    let next = tokens.refresh.as_ref().map_or("", Secret::reveal).to_owned();
    let outdated = line.is_outdated(rung, length, line.chain[length - 1].1 + grace, now);
    let is_new = line.chain.iter().all(|(known, _)| known.reveal() != next);
    let rotated_once = line.chain.len() == length;
    let same = line.chain[length - 1].0.reveal() == next;
    let current = rung + 1 == length;
    if current && is_new {
        line.chain.push((Secret::new(next), now));
        let newest = line.chain.len() - 1;
        ledger.rungs.push((family.clone(), newest));
    }
    ledger.meet(if current { "refresh" } else { "refresh within the grace" });
    ledger.hold(Law::OneSuccessor, !outdated, "an outdated refresh token is accepted");
    ledger.hold(Law::OneSuccessor, twist != Twist::OtherClient, "another client's refresh token is accepted");
    ledger.hold(Law::OneSuccessor, !current || (is_new && rotated_once), "one token has two successors");
    ledger.hold(Law::OneSuccessor, current || same, "the grace yields another successor");
    ledger.hold(Law::NothingWidens, twist != Twist::Third, "a wider scope is accepted");
    ledger.hold(Law::EndedIsDead, ended.is_none(), "a line that has ended goes on");
    session.iter().for_each(|session| ledger.use_visit(session, now));
}

/// A client asks for a token of its own.
pub fn own_token(world: &World, fresh: &Fresh, client: &ClientId, scope: Option<&str>) -> Plan {
    let Some(client) = world.tables.client(client) else { return Plan::nothing() };
    let decision = own(client, scope, Ok(Vec::new()), &world.context(), (world.now, fresh));
    let may = client.scope.clone();
    Plan::of(decision.changes, move |world| {
        let Ok(tokens) = decision.reply else { return };
        world.ledger.meet("a client's own token");
        world.ledger.hold(Law::NothingWidens, tokens.scope.is_within(&may), "a client's own scope is wider");
        world.ledger.hold(Law::NothingWidens, tokens.refresh.is_none() && tokens.id.is_none(), "more than a token");
        hand_out(world, None, tokens, true);
    })
}

/// A client takes an access token back: one of its own, or somebody else's, which changes nothing.
pub fn revoke_access(world: &World, which: usize, twist: Twist) -> Plan {
    let issued = &world.ledger.access[which];
    let owner = ClientId(issued.claims.client_id.clone());
    let Some(client) = presenter(world, &owner, twist, Grant::AuthorizationCode) else { return Plan::nothing() };
    let stored: Option<&AccessClaims> = match &issued.opaque {
        Some(secret) => world.tables.opaque.get(&secret.handle().0),
        None => Some(&issued.claims),
    };
    let family = family_of(&issued.claims.jti).and_then(|family| world.tables.families.get(&family));
    let by_itself = world.tables.revoked.contains(&issued.claims.jti);
    let token = stored.map(|claims| AccessToken { claims, family, revoked: by_itself });
    let presented = match (token, &issued.opaque) {
        (None, _) => Presented::Unknown,
        (Some(token), Some(secret)) => Presented::Opaque(secret.handle(), token),
        (Some(token), None) => Presented::Jwt(token),
    };
    revoked(revoke(client, &presented, (&world.realm.settings, world.now)).changes, twist, move |world| {
        world.ledger.access[which].ended.get_or_insert("its client revoked it");
    })
}

/// A client takes a refresh token back, and its line with it.
pub fn revoke_refresh(world: &World, which: usize, twist: Twist) -> Plan {
    let (family, _) = world.ledger.rungs[which].clone();
    let owner = &world.ledger.lines[&family].client;
    let Some(client) = presenter(world, owner, twist, Grant::AuthorizationCode) else { return Plan::nothing() };
    let found = world.tables.family(&family);
    let presented = found.as_ref().map_or(Presented::Unknown, Presented::Refresh);
    revoked(revoke(client, &presented, (&world.realm.settings, world.now)).changes, twist, move |world| {
        let line = world.ledger.lines.get_mut(&family).expect("every rung has a line");
        line.ended.get_or_insert("its client revoked it");
    })
}

fn revoked(changes: Vec<Change>, twist: Twist, then: impl FnOnce(&mut World) + 'static) -> Plan {
    let touched = !changes.is_empty();
    Plan::of(changes, move |world| match twist {
        Twist::OtherClient => {
            world.ledger.hold(Law::NothingWidens, !touched, "a client revokes what is not its own");
        }
        _ => then(world),
    })
}
