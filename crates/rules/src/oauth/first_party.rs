//! First-party clients: our own applications, which sign users in on screens of their own, and the tokens that they get
//! for it. Not a grant: nothing of this can be registered, and the tokens are good for the account API alone.

use super::claims::ClaimsRequest;
use super::client::Client;
use super::code::Granted;
use super::error::{Code as ErrorCode, Error};
use super::family::Found;
use super::redirect::{as_sent, origin};
use super::refresh::{Renewal, carry_on};
use super::scope::Scope;
use super::token::{AccessClaims, Ask, Context, Line, Person, Tokens, Way, issue};
use crate::Fresh;
use crate::decision::Decision;
use crate::login::session::Session;
use crate::people::User;
use crate::realm::Realm;
use crate::time::Time;

/// The one scope of the account API.
pub const SCOPE: &str = "account";

/// The one audience of its tokens (RFC 9068 §3): not the issuer, so that userinfo refuses them.
pub fn audience(realm: &Realm) -> String {
    format!("{}/api/v1", realm.issuer)
}

/// Whether a page at the origin `asked` is one of this client's: the http(s) origin of a registered redirect URI.
pub fn lives_at(client: &Client, asked: &str) -> bool {
    let web = asked.starts_with("https://") || asked.starts_with("http://");
    web && client.redirect_uris.iter().any(|uri| as_sent(origin(uri)) == asked)
}

/// Whether a client may sign users in by itself.
pub fn is_admitted(client: &Client) -> bool {
    client.first_party && client.is_enabled()
}

/// What the issuance gate requires of this way: a first-party client, and nothing but the account API.
pub(super) fn admit(client: &Client, (scope, resources): (&Scope, &[String]), realm: &Realm) -> Result<(), Error> {
    if !client.first_party {
        return Err(Error::new(ErrorCode::UnauthorizedClient, "the client is not a first-party client"));
    }
    match scope.tokens() == [SCOPE] && resources == [audience(realm)] {
        true => Ok(()),
        false => Err(Error::new(ErrorCode::InvalidScope, "a first-party sign-in is for the account API alone")),
    }
}

/// A session that was just started or raised, for which tokens are to be issued.
pub struct Beginning<'a> {
    /// The client on whose screens the user signed in.
    pub client: &'a Client,
    /// The user who signed in.
    pub user: &'a User,
    /// The user's session; the tokens live and die with it.
    pub session: &'a Session,
}

/// Issues tokens for the account API, from a session that passed the session gate.
pub fn begin(ask: &Beginning<'_>, context: &Context<'_>, (now, fresh): (Time, &Fresh)) -> Decision<Tokens, Error> {
    let granted = Granted {
        scope: Scope::from(SCOPE.to_owned()),
        resources: vec![audience(context.realm)],
        auth_time: ask.session.auth_time,
        amr: ask.session.amr.clone(),
        acr: ask.session.acr().to_owned(),
        nonce: None,
        claims: ClaimsRequest::default(),
        session: None,
    };
    let family = fresh.family(now);
    let person = Person {
        user: ask.user,
        session: Some(ask.session),
        groups: &[],
        granted: &granted,
        family: &family,
        line: Line::Begins,
    };
    let (scope, resources) = (granted.scope.clone(), granted.resources.clone());
    let way = Way::FirstParty;
    issue(&Ask { client: ask.client, way, scope, resources, person: Some(person) }, context, (now, fresh))
}

/// Refreshes a line of account tokens; lines of other ways are refused and stay as they are.
pub fn renew(
    ask: &Renewal<'_>,
    found: Option<&Found>,
    context: &Context<'_>,
    at: (Time, &Fresh),
) -> Decision<Tokens, Error> {
    let ours = |found: &&Found| is_for_accounts(found, context.realm);
    carry_on(ask, Way::FirstParty, found.filter(ours), context, at)
}

/// Whether a line began with a sign-in on a first-party client's own screens.
pub fn is_for_accounts(found: &Found, realm: &Realm) -> bool {
    found.family.granted.resources == [audience(realm)]
}

/// Whether a live access token opens the account API: issued for it, to a client that may still use it.
pub fn opens(claims: &AccessClaims, client: &Client, realm: &Realm) -> bool {
    claims.aud.has(&audience(realm))
        && Scope::from(claims.scope.clone()).has(SCOPE)
        && claims.client_id == client.id.0
        && is_admitted(client)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Change;
    use crate::login::cookie::Seal;
    use crate::login::session::{Entry, Method, Origin, enter};
    use crate::oauth::client::Grant;
    use crate::oauth::client::tests::{confidential, native};
    use crate::oauth::family::{Family, Refresh, RefreshToken, Sealing};
    use crate::oauth::token::Access;
    use crate::oauth::{refresh, userinfo};
    use crate::people::user::tests::person;
    use crate::realm::Settings;

    const NOW: Time = Time(1_000_000);

    struct World {
        realm: Realm,
        sealing: Sealing,
        client: Client,
        user: User,
        session: Session,
    }

    impl World {
        fn new() -> Self {
            let user = person("u1");
            let origin = Origin::default();
            let entry = Entry { user: &user, method: Method::Password, before: None, origin: &origin };
            let entered = enter(&entry, &Settings::default(), &Seal::new([0; 32]), (NOW, &Fresh::new([1; 32])));
            World {
                realm: Realm { id: "main".into(), issuer: "https://id.test".into(), settings: Settings::default() },
                sealing: Sealing { tag: [1; 32], grace: [2; 32] },
                client: Client { first_party: true, ..native("shop", "https://shop.test/cb") },
                session: entered.reply.expect("starts").session,
                user,
            }
        }
        fn context(&self) -> Context<'_> {
            Context { realm: &self.realm, sealing: &self.sealing }
        }
        fn begin(&self) -> Decision<Tokens, Error> {
            let ask = Beginning { client: &self.client, user: &self.user, session: &self.session };
            begin(&ask, &self.context(), (NOW, &Fresh::new([2; 32])))
        }
        /// The family that a beginning writes, as the store would return it.
        fn found(&self, begun: &Decision<Tokens, Error>) -> Found {
            let family: &Family = begun
                .changes
                .iter()
                .find_map(|change| match change {
                    Change::StartFamily(family) => Some(&**family),
                    _ => None,
                })
                .expect("a family begins");
            let (session, user) = (Some(self.session.clone()), Some(self.user.clone()));
            Found { family: family.clone(), session, user, groups: vec![] }
        }
    }

    fn claims(tokens: &Tokens) -> &AccessClaims {
        match &tokens.access {
            Access::Jwt { claims, .. } => claims,
            Access::Opaque(_) => panic!("a JWT"),
        }
    }

    #[test]
    fn a_page_is_known_by_the_origin_that_browsers_send() {
        // RFC 6454 §6.2: the default port of a scheme is not told.
        for (registered, asked, lives) in [
            ("https://shop.test:443/cb", "https://shop.test", true),
            ("https://shop.test/cb", "https://shop.test", true),
            ("https://shop.test:8443/cb", "https://shop.test:8443", true),
            ("https://shop.test:8443/cb", "https://shop.test", false),
            ("https://shop.test:80/cb", "https://shop.test", false),
            ("shop.app:/cb", "shop.app:", false),
        ] {
            assert_eq!(lives_at(&native("shop", registered), asked), lives, "{registered} {asked}");
        }
    }

    #[test]
    fn account_tokens_open_the_account_api_and_nothing_else() {
        let world = World::new();
        let begun = world.begin();
        let found = world.found(&begun);
        let tokens = begun.reply.expect("issued");
        let claims = claims(&tokens);
        assert_eq!((claims.scope.as_str(), &tokens.id.is_none()), (SCOPE, &true));
        assert!(opens(claims, &world.client, &world.realm));
        assert!(
            userinfo::read(claims, (&found, &world.client), &world.realm).is_err(),
            "userinfo accepts the issuer alone"
        );
        assert!(!opens(claims, &Client { first_party: false, ..world.client.clone() }, &world.realm));
        assert!(!opens(claims, &native("other", "https://shop.test/cb"), &world.realm));
        assert!(found.family.session.is_some(), "they die with the session");
    }

    #[test]
    fn only_a_first_party_client_begins() {
        let mut world = World::new();
        world.client.first_party = false;
        let refused = world.begin();
        assert!(refused.reply.is_err() && refused.changes.is_empty());
        world.client.first_party = true;
        world.client.disabled_at = Some(NOW);
        assert!(world.begin().reply.is_err());
        world.client.disabled_at = None;
        world.session.ended_at = Some(NOW);
        assert!(world.begin().reply.is_err());
    }

    #[test]
    fn a_line_goes_on_where_it_began() {
        let world = World::new();
        let begun = world.begin();
        let found = world.found(&begun);
        let secret = begun.reply.expect("issued").refresh.expect("refreshable");
        let token = RefreshToken::read(secret.reveal(), &world.sealing).expect("ours");
        let ask = Renewal { client: &world.client, token: &token, scope: None, resources: vec![] };
        let at = (NOW, &Fresh::new([3; 32]));
        let renewed = renew(&ask, Some(&found), &world.context(), at);
        assert!(renewed.reply.is_ok());
        assert!(renewed.changes.iter().any(|change| matches!(change, Change::RotateFamily { .. })));
        // The token endpoint refuses the token, which stays as it is.
        let elsewhere = refresh::renew(&ask, Some(&found), &world.context(), at);
        assert_eq!(elsewhere.reply.map(drop), Err(Error::grant("the refresh token is not valid")));
        assert!(elsewhere.changes.is_empty());
        // Nor does the account API take a token that the token endpoint gave.
        let mut foreign = found.clone();
        foreign.family.granted.scope = Scope::from("openid".to_owned());
        foreign.family.granted.resources = vec![];
        let refused = renew(&ask, Some(&foreign), &world.context(), at);
        assert!(refused.reply.is_err() && refused.changes.is_empty());
    }

    #[test]
    fn a_rotation_finds_its_family_itself_and_whoever_does_not_rotate_looks_for_it() {
        // red where `standing` in token.rs asks for no family, or for one whether the line rotates or not.
        let looks = |decision: &Decision<Tokens, Error>| {
            let family = |change: &Change| matches!(change, Change::Stands(standing) if standing.family.is_some());
            decision.changes.iter().any(family)
        };
        let world = World::new();
        let begun = world.begin();
        let mut found = world.found(&begun);
        let secret = begun.reply.expect("issued").refresh.expect("refreshable");
        let token = RefreshToken::read(secret.reveal(), &world.sealing).expect("ours");
        let ask = Renewal { client: &world.client, token: &token, scope: None, resources: vec![] };
        let at = (NOW, &Fresh::new([3; 32]));
        let rotated = renew(&ask, Some(&found), &world.context(), at);
        let rotation = rotated.changes.iter().find_map(|change| match change {
            Change::RotateFamily { rotation, .. } => Some(rotation.clone()),
            _ => None,
        });
        let rotation = rotation.expect("it rotates");
        assert!(!looks(&rotated));
        let previous = Some(rotation.previous);
        found.family.refresh = Some(Refresh { current: rotation.current, previous, turn: rotation.turn });
        let again = renew(&ask, Some(&found), &world.context(), at);
        assert!(again.reply.is_ok() && looks(&again));
    }

    #[test]
    fn no_registration_reaches_the_account_api() {
        let world = World::new();
        let account = audience(&world.realm);
        let registered = Client {
            resources: vec![account.clone()],
            scope: Scope::from("account".to_owned()),
            grants: vec![Grant::ClientCredentials],
            first_party: true,
            ..confidential("backend", "https://shop.test/cb")
        };
        let own = crate::oauth::token::own(
            &registered,
            Some(SCOPE),
            Ok(vec![account]),
            &world.context(),
            (NOW, &Fresh::new([4; 32])),
        );
        assert_eq!(own.reply.map(|_| ()).map_err(|error| error.code), Err(ErrorCode::InvalidTarget));
    }

    #[test]
    fn an_origin_is_compared_whole() {
        let client = native("shop", "https://shop.test:8443/cb");
        assert!(lives_at(&client, "https://shop.test:8443"));
        for foreign in ["https://shop.test", "https://shop.test:8443/", "null", "", "https://SHOP.test:8443"] {
            assert!(!lives_at(&client, foreign), "{foreign}");
        }
        assert!(!lives_at(&native("app", "com.example.app:/cb"), "com.example.app"));
    }
}
