//! What depends on a session depends on its proved secret: once that is replaced, nothing is issued for the old one.

use super::replays::{client, commit, ordered, session, user};
use super::{Done, Read, Shared, Sql, Value, rows, same, together};
use crate::engine::{Broken, CommitError, Write};
use crate::tables::{changes, realms};
use rules::decision::Standing;
use rules::id::{FamilyId, RealmId};
use rules::login::session::Session;
use rules::oauth::claims::ClaimsRequest;
use rules::oauth::code::{Code, Granted};
use rules::oauth::device::{Approval, Device, Stage};
use rules::oauth::scope::Scope;
use rules::{Change, Fresh, Handle, Span, Time};

/// The time of all changes.
const AT: Time = Time(10_000);
/// The number of codes and device answers.
const MANY: usize = 60;

const OPEN: Sql = Sql::fixed("SELECT family FROM codes WHERE realm = ? AND redeemed_at IS NULL");
const APPROVED: Sql = Sql::fixed("SELECT family FROM devices WHERE realm = ? AND stage = 'approved'");

fn granted() -> Granted {
    let (scope, claims) = (Scope::default(), ClaimsRequest::default());
    let (amr, acr, resources) = (vec![], "1".into(), vec![]);
    Granted { scope, resources, auth_time: AT, amr, acr, nonce: None, claims, session: None }
}

fn code(name: &str, of: &Session) -> Change {
    Change::IssueCode(Box::new(Code {
        handle: Handle::of(name),
        client: "shop".into(),
        life: None,
        user: of.user.clone(),
        session: of.id.clone(),
        family: FamilyId(ordered(name, AT)),
        by_consent: None,
        redirect_uri: String::new(),
        challenge: None,
        granted: granted(),
        expires: AT + Span::minutes(1),
        redeemed_at: None,
    }))
}

fn device(name: &str) -> Change {
    Change::AskDevice(Box::new(Device {
        handle: Handle::of(name),
        user_code: Handle::of(&format!("user code {name}")),
        client: "shop".into(),
        life: None,
        scope: Scope::default(),
        resources: vec![],
        address: String::new(),
        asked: AT,
        expires: AT + Span::minutes(10),
        interval_s: 5,
        polled: None,
        stage: Stage::Pending,
    }))
}

fn approved(name: &str, of: &Session) -> Change {
    let family = FamilyId(ordered(name, AT));
    let approval = Approval { user: of.user.clone(), session: of.id.clone(), family, granted: granted() };
    Change::AnswerDevice { device: Handle::of(name), approval: Some(Box::new(approval)), at: AT }
}

/// The guard of codes and device answers, for a client that proved this secret.
fn stands(of: &Session) -> Change {
    Change::Stands(Standing {
        user: Some(of.user.clone()),
        client: Some("shop".into()),
        session: Some(of.id.clone()),
        handle: Some(of.handle),
        ..Standing::default()
    })
}

/// Runs on the real schema.
pub async fn raising(engine: Shared) -> Done {
    engine.migrate().await.map_err(|why| why.0)?;
    let realm = RealmId("raised".into());
    let batch = |changes: Vec<Change>| -> Vec<Write> { changes::batch(&realm, &changes, AT, &Fresh::new([7; 32])) };
    commit(&engine, realms::ensure(&realm, "http://raised", AT)).await?;
    let before = session("ada", "ada", AT);
    let after = Session { handle: Handle::of("raised"), auth_time: AT + Span(1), ..before.clone() };
    let mut first = vec![Change::AddUser(Box::new(user("ada"))), Change::AddClient(Box::new(client("shop")))];
    first.push(Change::StartSession(Box::new(before.clone())));
    first.extend((0..MANY).map(|who| device(&format!("device {who}"))));
    commit(&engine, batch(first)).await?;

    let give = |who: usize| {
        let given = match who.is_multiple_of(2) {
            true => code(&format!("code {who}"), &before),
            false => approved(&format!("device {who}"), &before),
        };
        batch(vec![stands(&before), given])
    };
    // Like a change of the password, with a code for the new secret in the same batch.
    let raise = batch(vec![
        Change::SetPassword { user: "ada".into(), seen: Some("ada 1".into()), password: "ada 2".into(), at: AT },
        Change::BurnCodesOf { user: "ada".into(), since: Time(0), at: AT },
        Change::DropApprovalsOf { user: "ada".into(), client: None },
        Change::RaiseSession { session: Box::new(after.clone()), was: before.handle },
        stands(&after),
        code("by the new one", &after),
    ]);
    let mut batches: Vec<Vec<Write>> = (0..MANY - 2).map(give).collect();
    batches.insert(MANY / 2, raise);
    let answers = together(&engine, batches).await?;
    same(answers[MANY / 2].is_ok(), true, "the secret is replaced")?;

    let left = async |sql: Sql| rows(&engine, Read { sql, args: vec![Value::Text(realm.0.clone())] }).await;
    let new = vec![vec![Value::Text(ordered("by the new one", AT))]];
    same(left(OPEN).await?, new.clone(), "open codes")?;
    same(left(APPROVED).await?, vec![], "approvals")?;
    for who in [MANY - 2, MANY - 1] {
        let late = engine.commit(give(who)).await;
        same(late, Err(CommitError::Conflict { at: 2, why: Broken::Guard }), "what is given for the old secret")?;
    }
    same(left(OPEN).await?, new, "open codes, later")
}
