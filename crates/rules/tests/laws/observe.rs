//! Holds what lives against the books, after every act.

use crate::ledger::Law;
use crate::world::World;
use rules::Fresh;
use rules::id::{FamilyId, SessionId};
use rules::login::session::proved;
use rules::oauth::code::{self, Redemption};
use rules::oauth::introspect::{Facts, is_live};
use rules::oauth::refresh::{Renewal, renew};
use rules::oauth::token::AccessClaims;

impl World {
    /// Looks at everything that was ever handed out.
    pub fn observe(&mut self) {
        self.grow_old();
        self.observe_sessions();
        self.observe_lines();
        self.observe_codes();
        self.observe_access();
    }

    /// Sessions end of idleness and of age, lines of age.
    fn grow_old(&mut self) {
        let (settings, now) = (self.realm.settings.clone(), self.now);
        let old = |(id, visit): (&SessionId, &crate::ledger::Visit)| {
            let idle = (visit.used + settings.session_idle).has_come(now);
            let aged = (visit.started + settings.session_absolute).has_come(now);
            (visit.ended.is_none() && (idle || aged)).then(|| id.clone())
        };
        let gone: Vec<SessionId> = self.ledger.visits.iter().filter_map(old).collect();
        for id in &gone {
            self.ledger.meet("session grew old");
            self.ledger.end_visit(id, "its session grew old");
        }
        self.ledger.end_lines("it grew old", |line| {
            line.began.is_some_and(|began| (began + settings.refresh_absolute).has_come(now))
        });
    }

    fn observe_sessions(&mut self) {
        let (settings, ledger) = (&self.realm.settings, &mut self.ledger);
        for (cookie, superseded) in &ledger.cookies {
            let found = self.tables.session(cookie);
            let live = proved(cookie, found.as_ref(), settings, self.now);
            let visit = ledger.visits.get_mut(&cookie.id).expect("every cookie has a session");
            let broken = match live {
                None => {
                    visit.dead |= !superseded;
                    None
                }
                Some((_, user)) if user.id != visit.user => {
                    Some((Law::CookieProves, "it is somebody else's".to_owned()))
                }
                Some(_) if *superseded => Some((Law::CookieProves, "an old cookie still proves".to_owned())),
                Some(_) if visit.ended.is_some() => {
                    Some((Law::EndedIsDead, format!("a session lives: {:?}", visit.ended)))
                }
                Some(_) if visit.dead => Some((Law::NothingRevives, "a session".to_owned())),
                Some(_) => None,
            };
            ledger.breaches.extend(broken);
        }
    }

    fn observe_lines(&mut self) {
        let families: Vec<FamilyId> = self.ledger.lines.keys().cloned().collect();
        for family in families {
            let found = self.tables.family(&family);
            let client = self.tables.client(&self.ledger.lines[&family].client);
            let live = found.as_ref().zip(client).is_some_and(|(found, client)| {
                found.is_live(&self.realm.settings, self.now) && found.family.is_of(client)
            });
            let rungs = self.ledger.lines[&family].chain.len();
            let renewable = rungs > 0 && self.goes_on(&family, rungs - 1);
            let current = found.and_then(|found| found.family.refresh).map(|refresh| refresh.current);
            let line = self.ledger.lines.get_mut(&family).expect("listed");
            let newest = line.chain.last().map(|(secret, _)| secret.handle());
            let (ended, dead) = (line.ended, line.dead);
            line.dead |= line.began.is_some() && !live;
            let ledger = &mut self.ledger;
            ledger.hold(
                Law::OneSuccessor,
                current.is_none() || current == newest,
                "the newest refresh token is not the one",
            );
            if let Some(why) = ended.filter(|_| live || renewable) {
                ledger.breach(Law::EndedIsDead, format!("a line lives although {why}"));
            }
            ledger.hold(Law::NothingRevives, !(dead && live), "a line");
        }
    }

    /// Whether a refresh token would be accepted of its client.
    fn goes_on(&self, family: &FamilyId, rung: usize) -> bool {
        let line = &self.ledger.lines[family];
        let Some(client) = self.tables.client(&line.client) else { return false };
        let Some(token) = self.refresh_token(line.chain[rung].0.reveal()) else { return false };
        let ask = Renewal { client, token: &token, scope: Some("openid"), resources: Vec::new() };
        let fresh = Fresh::new([0xFF; 32]);
        let decision = renew(&ask, self.tables.family(family).as_ref(), &self.context(), (self.now, &fresh));
        decision.reply.is_ok() && self.tables.clone().apply(&decision.changes).is_ok()
    }

    fn observe_codes(&mut self) {
        for at in 0..self.ledger.codes.len() {
            let issued = &self.ledger.codes[at];
            let line = &self.ledger.lines[&issued.family];
            let Some(client) = self.tables.client(&line.client) else { continue };
            if !line.granted.scope.is_within(&client.scope) {
                continue;
            }
            let (ended, used, dead) = (line.ended, issued.used, issued.dead);
            let yields = self.would_yield(at);
            self.ledger.codes[at].dead |= !yields;
            if yields {
                self.ledger.hold(Law::CodeYieldsOnce, !used, "a used code would yield again");
                self.ledger.hold(Law::NothingRevives, !dead, "a code");
                if let Some(why) = ended {
                    self.ledger.breach(Law::EndedIsDead, format!("a code would yield although {why}"));
                }
            }
        }
    }

    fn would_yield(&self, at: usize) -> bool {
        let issued = &self.ledger.codes[at];
        let Some(client) = self.tables.client(&self.ledger.lines[&issued.family].client) else { return false };
        let (redirect_uri, verifier) = (Some(issued.redirect.as_str()), Some(issued.verifier.as_str()));
        let ask = Redemption { client, code: &issued.text, redirect_uri, verifier, resources: Vec::new() };
        let fresh = Fresh::new([0xFE; 32]);
        let found = self.tables.code(&issued.family);
        let decision = code::redeem(&ask, found.as_ref(), &self.context(), (self.now, &fresh));
        decision.reply.is_ok() && self.tables.clone().apply(&decision.changes).is_ok()
    }

    fn observe_access(&mut self) {
        for at in 0..self.ledger.access.len() {
            let issued = &self.ledger.access[at];
            let enabled = self.tables.client(&issued.claims.client_id.as_str().into()).is_some();
            let claims = match &issued.opaque {
                Some(secret) => self.tables.opaque.get(&secret.handle().0),
                None => Some(&issued.claims),
            };
            let live = claims.is_some_and(|claims| self.is_live(claims));
            let expired = issued.claims.exp * 1000 <= self.now.0;
            let ended = issued.family.as_ref().and_then(|family| self.ledger.lines[family].ended);
            let (ended, dead) = (ended.or(issued.ended), issued.dead);
            self.ledger.access[at].dead |= !live;
            if !live {
                continue;
            }
            let ledger = &mut self.ledger;
            ledger.hold(Law::DisabledIsDead, enabled, "a disabled client's token lives");
            ledger.hold(Law::EndedIsDead, !expired, "an expired token lives");
            ledger.hold(Law::NothingRevives, !dead, "an access token");
            if let Some(why) = ended {
                ledger.breach(Law::EndedIsDead, format!("an access token lives although {why}"));
            }
        }
    }

    /// Whether an access token may be used, as every endpoint asks.
    pub fn is_live(&self, claims: &AccessClaims) -> bool {
        let family = rules::oauth::token::family_of(&claims.jti).and_then(|family| self.tables.family(&family));
        let client = self.tables.clients.get(&claims.client_id.as_str().into());
        let facts = Facts { client, family: family.as_ref(), revoked: self.tables.revoked.contains(&claims.jti) };
        is_live(claims, &facts, &self.realm.settings, self.now)
    }
}
