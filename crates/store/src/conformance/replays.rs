//! Replaying acknowledged changes that were lost: on the real schema, by two nodes, in either order, on a database that
//! was restored to an earlier state.

use super::copy::Copy;
use super::{Done, Shared, same};
use crate::engine::{Read, Sql, Value, Write};
use crate::tables::fences::{self, Fence, Newest, Reach, State};
use crate::tables::journal::{known, replay};
use crate::tables::{ask, changes, families, realms, sessions, users, values};
use rules::decision::Standing;
use rules::ending::Record;
use rules::events::{Event, Kind};
use rules::id::{ClientId, FamilyId, RealmId, SessionId, UserId};
use rules::jose::Alg;
use rules::keys::Key;
use rules::login::session::Session;
use rules::oauth::claims::ClaimsRequest;
use rules::oauth::client::Client;
use rules::oauth::code::{Code, Granted};
use rules::oauth::consent::Consent;
use rules::oauth::family::{Family, Previous, Refresh, Rotation};
use rules::oauth::scope::Scope;
use rules::people::User;
use rules::secret::PasswordHash;
use rules::{Change, Fresh, Handle, Span, Time};

/// When the copy is made that is restored later.
const COPY: Time = Time(10_000_000);
/// When the failover happens.
const END: Time = Time(COPY.0 + 60_000);

/// A realm in a database, and the journals of two nodes.
struct World {
    engine: Shared,
    realm: RealmId,
    seed: u8,
    journals: [Vec<Record>; 2],
}

pub(super) fn user(name: &str) -> User {
    User { password: Some(format!("{name} 1")), ..User::new(name.into(), name, Time(1)) }
}

pub(super) fn ordered(name: &str, at: Time) -> String {
    Fresh::new([7; 32]).ordered(name, at)
}

pub(super) fn session(of: &str, name: &str, at: Time) -> Session {
    Session {
        id: SessionId(ordered(name, at)),
        handle: Handle::of(name),
        user: of.into(),
        auth_time: at,
        amr: vec![],
        created: at,
        last_seen: at,
        expires: at + Span::days(9),
        agent: String::new(),
        address: String::new(),
        ended_at: None,
    }
}

fn granted() -> Granted {
    let (scope, claims) = (Scope::default(), ClaimsRequest::default());
    Granted {
        scope,
        resources: vec![],
        auth_time: Time(1),
        amr: vec![],
        acr: "1".into(),
        nonce: None,
        claims,
        session: None,
    }
}

pub(super) fn family(of: &str, name: &str, at: Time) -> Family {
    Family {
        id: FamilyId(ordered(name, at)),
        client: "shop".into(),
        life: None,
        user: of.into(),
        session: None,
        granted: granted(),
        refresh: Some(Refresh { current: Handle::of(&format!("{name} 0")), previous: None, turn: 0 }),
        created: at,
        idle_until: at + Span::days(9),
        expires: at + Span::days(9),
        revoked_at: None,
    }
}

pub(super) fn rotation(name: &str, turn: i64) -> Rotation {
    let was = Handle::of(&format!("{name} {}", turn - 1));
    let previous = Previous { handle: was, until: END, bridge: [1; 32] };
    Rotation { was, current: Handle::of(&format!("{name} {turn}")), previous, idle_until: END, turn }
}

pub(super) fn client(id: &str) -> Client {
    let text = format!(
        r#"{{"id":"{id}","name":"{id}","grants":[],"scope":"openid","auth_methods":[],"id_token_alg":"RS256",
            "access_format":"jwt","access_alg":"RS256"}}"#
    );
    let parsed: Client = serde_json::from_str(&text).unwrap_or_else(|error| unreachable!("{error}"));
    Client { secret: Some(Handle::of("secret 1")), ..parsed }
}

impl World {
    async fn begin(engine: Shared) -> Result<Self, String> {
        let realm = RealmId("main".into());
        engine.migrate().await.map_err(|why| why.0)?;
        commit(&engine, realms::ensure(&realm, "http://a", Time(1))).await?;
        let mut world = World { engine, realm, seed: 0, journals: [vec![], vec![]] };
        let key = |kid: &str| Key {
            kid: kid.into(),
            alg: Alg::RS256,
            public: "{}".into(),
            sealed: vec![1],
            created: Time(1),
            active_from: Time(1),
            publish_until: None,
            revoked_at: None,
        };
        let mut changes = vec![Change::AddKey(Box::new(key("key")))];
        changes.extend(["shop", "mill", "bank"].map(|id| Change::AddClient(Box::new(client(id)))));
        changes.push(Change::AddGroup { group: "staff".into(), name: "staff".into() });
        for name in ["ada", "bob", "cyd", "dan", "eve"] {
            changes.push(Change::AddUser(Box::new(user(name))));
            changes.push(Change::StartSession(Box::new(session(name, name, Time(5_000)))));
            changes.push(Change::StartFamily(Box::new(family(name, name, Time(5_000)))));
            changes.push(Change::SetMember { group: "staff".into(), user: name.into(), member: true });
        }
        for name in ["ada", "eve"] {
            let consent =
                Consent { user: name.into(), client: "shop".into(), scope: Scope::default(), granted: Time(5) };
            changes.push(Change::GrantConsent { consent: Box::new(consent), seen: None });
        }
        for name in ["used", "open"] {
            changes.push(Change::IssueCode(Box::new(code(name))));
        }
        world.acts(0, Time(5_000), changes).await?;
        Ok(world)
    }

    /// A node commits, and journals what the changes ended.
    async fn acts(&mut self, node: usize, at: Time, mut changes: Vec<Change>) -> Done {
        self.seed += 1;
        let fresh = Fresh::new([self.seed; 32]);
        changes.push(Change::Record(Event::new(Kind::UserChanged, at)));
        commit(&self.engine, changes::batch(&self.realm, &changes, at, &fresh)).await?;
        let witness = changes::witness(&changes, at, &fresh);
        self.journals[node].extend(Record::of(changes, at, witness));
        Ok(())
    }

    async fn fence(&self) -> Result<Fence, String> {
        let (newest, reach) =
            ask(&*self.engine, &self.realm, (Newest, Reach { by: END + Span::days(1) })).await.map_err(|why| why.0)?;
        let reached = reach.ok_or("a realm")?;
        let number = newest.map_or(1, |fence| fence.number + 1);
        let fence = Fence { number, at: END.max(reached.newest), identity: "next".into(), epoch: reached.epoch };
        commit(&self.engine, fences::raise(&self.realm, &fence, Time(0), &["a".into(), "b".into()])).await?;
        Ok(fence)
    }

    /// A node replays what is missing: each record twice, as when an answer was lost.
    async fn says_again(&self, node: usize, fence: &Fence) -> Done {
        let witnesses = self.journals[node].iter().filter_map(|record| record.witness.clone()).collect();
        let known = known(&*self.engine, &self.realm, witnesses).await.map_err(|why| why.0)?;
        for record in self.journals[node].iter().rev() {
            if record.witness.as_ref().is_none_or(|witness| !known.contains_key(witness)) {
                for batch in [record; 2].into_iter().flat_map(|record| replay(&self.realm, record, fence, END)) {
                    commit(&self.engine, batch).await?;
                }
            }
        }
        Ok(())
    }

    async fn session(&self, name: &str, at: Time) -> Result<Option<(Session, User)>, String> {
        let id = SessionId(ordered(name, at));
        ask(&*self.engine, &self.realm, sessions::ForEnding(Some(&id))).await.map_err(|why| why.0)
    }

    async fn family(&self, name: &str) -> Result<Family, String> {
        let id = FamilyId(ordered(name, Time(5_000)));
        let found = ask(&*self.engine, &self.realm, families::ForEnding(&id)).await.map_err(|why| why.0)?;
        found.map(|found| found.family).ok_or_else(|| format!("family {name} is gone"))
    }

    async fn user(&self, name: &str) -> Result<Option<User>, String> {
        ask(&*self.engine, &self.realm, users::ById(&name.into())).await.map_err(|why| why.0)
    }

    async fn count(&self, sql: &'static str, what: &str) -> Result<usize, String> {
        let read = Read { sql: Sql::fixed(sql), args: values![&self.realm, what] };
        Ok(self.engine.fetch(&[read]).await.map_err(|why| why.0)?.concat().len())
    }

    async fn epoch(&self) -> Result<i64, String> {
        ask(&*self.engine, &self.realm, realms::Epoch).await.map_err(|why| why.0)?.ok_or_else(|| "a realm".into())
    }
}

pub(super) fn code(name: &str) -> Code {
    Code {
        handle: Handle::of(name),
        client: "shop".into(),
        life: None,
        user: "ada".into(),
        session: "s".into(),
        family: FamilyId(ordered(name, Time(9_000))),
        by_consent: None,
        redirect_uri: String::new(),
        challenge: None,
        granted: granted(),
        expires: END,
        redeemed_at: None,
    }
}

pub(super) async fn commit(engine: &Shared, writes: Vec<Write>) -> Done {
    engine.commit(writes).await.map(drop).map_err(|error| format!("a batch did not stand: {error:?}"))
}

/// Opens on an empty database with the real [`MIGRATIONS`](crate::migrations::MIGRATIONS), and checks everything.
///
/// # Errors
/// What was wrong.
pub async fn replays(engine: Shared) -> Done {
    let mut world = World::begin(engine).await?;
    before_the_copy(&mut world).await?;
    let copy = Copy::of(&world.engine).await?;
    in_the_lost_tail(&mut world).await?;
    for order in [[0, 1], [1, 0]] {
        copy.put_back(&world.engine).await?;
        let fence = world.fence().await?;
        held_while_waited_for(&world).await?;
        after_the_fence(&mut world).await?;
        // Twice, since a node may be stopped in between.
        for node in order.into_iter().chain(order) {
            world.says_again(node, &fence).await?;
        }
        let what = |why: String| format!("in the order {order:?}: {why}");
        nothing_acknowledged_is_undone(&world).await.map_err(what)?;
        nothing_newer_is_overwritten(&world).await.map_err(what)?;
        lifted_when_nobody_is_waited_for(&world, &fence).await.map_err(what)?;
        no_later_fence_says_it_again(&mut world).await.map_err(what)?;
    }
    super::addresses::taken_away(&world.engine).await
}

/// State that the database keeps and that changed later: replays must leave it alone.
async fn before_the_copy(world: &mut World) -> Done {
    let (eve, at) = (UserId::from("eve"), Time(6_000));
    let off = Change::SetDisabled { user: eve.clone(), disabled_at: Some(at), at };
    let all = Change::EndSessionsOf { user: eve.clone(), except: None, at };
    world.acts(0, at, vec![off, all]).await?;
    let later = Time(7_000);
    world.acts(1, later, vec![Change::SetDisabled { user: eve.clone(), disabled_at: None, at: later }]).await?;
    // By a clock that is behind the clock of the node that ended the others.
    world.acts(1, Time(5_990), vec![Change::StartSession(Box::new(session("eve", "again", Time(5_990))))]).await?;
    let out = Change::SetMember { group: "staff".into(), user: eve.clone(), member: false };
    world.acts(0, later, vec![out]).await?;
    world.acts(1, later, vec![Change::SetMember { group: "staff".into(), user: eve, member: true }]).await
}

async fn in_the_lost_tail(world: &mut World) -> Done {
    let at = Time(COPY.0 + 1_000);
    let [ada, bob, cyd] = ["ada", "bob", "cyd"].map(UserId::from);
    let shop = ClientId::from("shop");
    let id = |name: &str| FamilyId(ordered(name, Time(5_000)));
    // Two nodes in turn, on the same data.
    for turn in 1..=4 {
        let rotate = Change::RotateFamily { family: id("ada"), rotation: rotation("ada", turn) };
        world.acts(turn as usize % 2, at, vec![rotate]).await?;
    }
    for (node, time) in [(0, 20_000), (1, 30_000)] {
        let (was, raised) = (Handle::of(["bob", "raised 0"][node]), format!("raised {node}"));
        let raised =
            Session { handle: Handle::of(&raised), auth_time: Time(time), ..session("bob", "bob", Time(5_000)) };
        world.acts(node, at, vec![Change::RaiseSession { session: Box::new(raised), was }]).await?;
        let (seen, password) = (Some(format!("bob {}", node + 1).into()), format!("bob {}", node + 2).into());
        let new = Change::SetPassword { user: bob.clone(), seen, password, at: Time(time) };
        world.acts(node, at, vec![new]).await?;
    }
    world.acts(0, at, vec![Change::RevokeFamily { family: id("bob"), at }]).await?;
    world.acts(1, at, vec![Change::EndSessionsOf { user: bob, except: None, at }]).await?;
    let ends = vec![
        Change::SetDisabled { user: cyd.clone(), disabled_at: Some(at), at },
        // By a clock that is behind: their sessions are younger, by the clock of the node that made them.
        Change::EndSessionsOf { user: cyd.clone(), except: None, at: Time(4_000) },
        Change::RevokeFamiliesOf { user: cyd, client: None, except: None, at: Time(4_000) },
    ];
    world.acts(1, Time(4_000), ends).await?;
    world.acts(0, at, vec![Change::EndSession { session: SessionId(ordered("ada", Time(5_000))), at }]).await?;
    world.acts(0, at, vec![Change::RemoveUser("dan".into())]).await?;
    let member = Change::SetMember { group: "staff".into(), user: ada.clone(), member: false };
    world.acts(1, at, vec![Change::RevokeConsent { user: ada, client: shop.clone(), at }, member]).await?;
    let eve = UserId::from("eve");
    let families =
        Change::RevokeFamiliesOf { user: eve.clone(), client: Some(shop.clone()), except: None, at: Time(4_000) };
    let consent = Change::RevokeConsent { user: eve, client: shop.clone(), at };
    world.acts(0, at, vec![consent, families]).await?;
    let used = Change::UseAssertion { client: shop, jti: Handle::of("assertion"), issued: END, expires: END + Span(1) };
    world.acts(1, at, vec![used, Change::RevokeToken { jti: "jti".into(), expires: END + Span(1) }]).await?;
    world.acts(0, at, vec![Change::BurnCode { family: FamilyId(ordered("used", Time(9_000))), at }]).await?;
    world.acts(0, at, vec![Change::RevokeKey { kid: "key".into(), at }, Change::BumpEpoch]).await?;
    for (node, secret, disabled_at) in [(0, "secret 2", None), (1, "secret 3", Some(at))] {
        let life = Some("another life".into());
        let saved = Client { secret: Some(Handle::of(secret)), disabled_at, life, ..client("shop") };
        world.saves(node, at, Change::SaveClient(Box::new(saved))).await?;
        let saved = Client { secret: Some(Handle::of(secret)), ..client("bank") };
        world.saves(node, at, Change::SaveClient(Box::new(saved))).await?;
    }
    world.saves(1, at, Change::RemoveClient("mill".into())).await
}

impl World {
    async fn saves(&mut self, node: usize, at: Time, change: Change) -> Done {
        let stands = Change::Stands(Standing { epoch: Some(self.epoch().await?), ..Standing::default() });
        self.acts(node, at, vec![stands, change, Change::BumpEpoch]).await
    }
}

async fn held_while_waited_for(world: &World) -> Done {
    let id = SessionId(ordered("again", Time(5_990)));
    let use_it = ask(&*world.engine, &world.realm, sessions::WithUser(Some(&id))).await.map_err(|why| why.0)?;
    same(use_it.is_none(), true, "a session from before the fence is not there")?;
    let (id, shop) = (FamilyId(ordered("eve", Time(5_000))), ClientId::from("shop"));
    let questions = (families::InContext(Some(&id)), fences::Holds(&id, &shop));
    let (found, held) = ask(&*world.engine, &world.realm, questions).await.map_err(|why| why.0)?;
    same((found.is_none(), held), (true, true), "a family from before the fence is held")?;
    let held = ask(&*world.engine, &world.realm, fences::Holds(&id, &"bank".into())).await.map_err(|why| why.0)?;
    same(held, false, "which is told to nobody but its client")?;
    same(
        world.count("SELECT 1 FROM codes WHERE realm = ? AND client_id = ?", "shop").await?,
        0,
        "open codes are void",
    )?;
    let early = world.engine.commit(fences::lift(&world.realm)).await;
    same(early.is_err(), true, "a fence that waits is not lifted")
}

/// Changes made while nodes are waited for.
async fn after_the_fence(world: &mut World) -> Done {
    let (at, eve) = (END + Span(5), UserId::from("eve"));
    // Who signed out everywhere signs in again, and so does who had been disabled.
    let late = ["bob", "cyd"].map(|name| Change::StartSession(Box::new(session(name, &format!("{name} late"), at))));
    world.acts(1, at, late.into()).await?;
    // By a consent that had been withdrawn.
    world.acts(0, at, vec![Change::StartFamily(Box::new(family("eve", "without", at)))]).await?;
    // By a password that had been changed, and is hashed again: that leaves no audit line.
    let bob = world.user("bob").await?.ok_or("bob is gone")?;
    let rehashed = vec![bob.rehashed("bob 1 again".into())];
    commit(&world.engine, changes::batch(&world.realm, &rehashed, at, &Fresh::new([0; 32]))).await?;
    world.journals[0].extend(Record::of(rehashed, at, None));
    let seen = world.user("eve").await?.and_then(|user| user.password).map(PasswordHash::from);
    let new = Change::SetPassword { user: eve, seen, password: "eve new".into(), at };
    let bank = Client { secret: Some(Handle::of("newest")), ..client("bank") };
    let stands = Change::Stands(Standing { epoch: Some(world.epoch().await?), ..Standing::default() });
    let back = Change::SetMember { group: "staff".into(), user: "ada".into(), member: true };
    let changes = vec![stands, new, Change::SaveClient(Box::new(bank)), back, Change::BumpEpoch];
    world.seed += 1;
    commit(&world.engine, changes::batch(&world.realm, &changes, at, &Fresh::new([world.seed; 32]))).await
}

async fn nothing_acknowledged_is_undone(world: &World) -> Done {
    let refresh = |family: Family| family.refresh.map(|refresh| (refresh.current, refresh.turn));
    let ada = world.family("ada").await?;
    same(ada.revoked_at, None, "a rotated family lives")?;
    same(refresh(ada), Some((Handle::of("ada 4"), 4)), "the last token that was handed out is the current one")?;
    let ended = |found: Option<(Session, User)>| found.is_none_or(|(session, _)| session.ended_at.is_some());
    same(ended(world.session("ada", Time(5_000)).await?), true, "an ended session")?;
    let bob = world.session("bob", Time(5_000)).await?.map(|(session, _)| session.handle);
    same(bob, Some(Handle::of("raised 1")), "a raised session has its last secret")?;
    let password = world.user("bob").await?.and_then(|user| user.password);
    same(password.as_deref(), Some("bob 3"), "a password that was changed twice")?;
    same(world.family("bob").await?.revoked_at.is_some(), true, "a revoked family")?;
    same(world.user("cyd").await?.is_some_and(|user| user.disabled_at.is_some()), true, "a disabled account")?;
    same(ended(world.session("cyd", Time(5_000)).await?), true, "sessions of a disabled account")?;
    same(ended(world.session("cyd late", END + Span(5)).await?), true, "a session that it began meanwhile")?;
    same(ended(world.session("bob", Time(5_000)).await?), true, "sessions of who signed out everywhere")?;
    same(world.family("cyd").await?.revoked_at.is_some(), true, "families of a disabled account")?;
    same(world.user("dan").await?.is_none(), true, "a removed account")?;
    let without = world.count("SELECT 1 FROM families WHERE realm = ? AND user_id = ? AND revoked_at IS NULL", "eve");
    same(without.await?, 0, "what was opened by a consent that had been taken back")?;
    for (sql, what, count) in [
        ("SELECT 1 FROM consents WHERE realm = ? AND user_id = ?", "eve", 0),
        ("SELECT 1 FROM consents WHERE realm = ? AND user_id = ?", "ada", 0),
        ("SELECT 1 FROM revoked_tokens WHERE realm = ? AND jti = ?", "jti", 1),
        ("SELECT 1 FROM assertions WHERE realm = ? AND client_id = ?", "shop", 1),
        ("SELECT 1 FROM signing_keys WHERE realm = ? AND kid = ? AND revoked_at IS NOT NULL", "key", 1),
        ("SELECT 1 FROM clients WHERE realm = ? AND id = ? AND disabled_at IS NOT NULL", "shop", 1),
        ("SELECT 1 FROM clients WHERE realm = ? AND id = ? AND life = 'another life'", "shop", 1),
        ("SELECT 1 FROM clients WHERE realm = ? AND id = ?", "mill", 0),
    ] {
        same(world.count(sql, what).await?, count, sql)?;
    }
    Ok(())
}

async fn nothing_newer_is_overwritten(world: &World) -> Done {
    same(world.user("eve").await?.is_some_and(|user| user.disabled_at.is_none()), true, "an account enabled again")?;
    let password = world.user("eve").await?.and_then(|user| user.password);
    same(password.as_deref(), Some("eve new"), "a password changed after the fence")?;
    for (name, at) in [("again", Time(5_990)), ("bob late", END + Span(5))] {
        let lives = world.session(name, at).await?.is_some_and(|(session, _)| session.ended_at.is_none());
        same(lives, true, name)?;
    }
    let read = Read {
        sql: Sql::fixed("SELECT secret FROM clients WHERE realm = ? AND id = ?"),
        args: values![&world.realm, "bank"],
    };
    let secret = world.engine.fetch(&[read]).await.map_err(|why| why.0)?.concat().concat();
    same(secret, vec![Value::Blob(Handle::of("newest").0.to_vec())], "an application changed after the fence")?;
    for name in ["ada", "eve"] {
        let there = world.count("SELECT 1 FROM members WHERE realm = ? AND user_id = ?", name).await?;
        same(there, 1, "somebody who joined a group again")?;
    }
    Ok(())
}

async fn lifted_when_nobody_is_waited_for(world: &World, fence: &Fence) -> Done {
    commit(&world.engine, vec![fences::replayed(&world.realm, (fence.number, Time(i64::MIN)), "a", END)]).await?;
    same(world.engine.commit(fences::lift(&world.realm)).await.is_err(), true, "one is still waited for")?;
    commit(&world.engine, vec![fences::waive(&world.realm, fence.number, "b", END)]).await?;
    commit(&world.engine, fences::lift(&world.realm)).await?;
    let (fenced, nodes) =
        ask(&*world.engine, &world.realm, (fences::Fenced, fences::Nodes)).await.map_err(|why| why.0)?;
    let states: Vec<State> = nodes.into_iter().map(|node| node.state).collect();
    same((fenced, states), (None, vec![State::Replayed, State::Waived]), "the fence")?;
    let id = SessionId(ordered("again", Time(5_990)));
    let used = ask(&*world.engine, &world.realm, sessions::WithUser(Some(&id))).await.map_err(|why| why.0)?;
    same(used.is_some(), true, "a session from before the fence is there again")
}

async fn no_later_fence_says_it_again(world: &mut World) -> Done {
    let (at, cyd) = (END + Span(10), UserId::from("cyd"));
    let on = Change::SetDisabled { user: cyd.clone(), disabled_at: None, at };
    let back = Change::SetMember { group: "staff".into(), user: "ada".into(), member: true };
    let changes = [on, back, Change::StartSession(Box::new(session("cyd", "since", at)))];
    world.seed += 1;
    commit(&world.engine, changes::batch(&world.realm, &changes, at, &Fresh::new([world.seed; 32]))).await?;
    let fence = world.fence().await?;
    for node in [0, 1] {
        world.says_again(node, &fence).await?;
    }
    same(world.user("cyd").await?.is_some_and(|user| user.disabled_at.is_none()), true, "who was enabled since")?;
    same(world.count("SELECT 1 FROM members WHERE realm = ? AND user_id = ?", "ada").await?, 1, "who joined since")?;
    let lives = world.session("since", at).await?.is_some_and(|(session, _)| session.ended_at.is_none());
    same(lives, true, "a session that was begun since")
}
