//! What the audit log costs: whole refreshes (the facts, then the rotation under its guards) without a line, with their
//! line, and with lines that are sealed meanwhile, in turns. Neither HTTP nor signatures are among it, so that the share of
//! the audit log is larger here than in a server.
//!
//! `cargo run -p app --example audit sqlite:FILE [ROUNDS]`, into an empty database.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use app::App;
use app::audit::Terms;
use app::clock::Clock;
use app::keyring::Keyring;
use hasher::Hasher;
use rules::audit::{Key, Keys};
use rules::decision::{Change, Standing};
use rules::events::{Event, Kind};
use rules::id::{FamilyId, SessionId, UserId};
use rules::login::session::{ACR_SINGLE, Method, Session};
use rules::oauth::authorize::ClaimsRequest;
use rules::oauth::code::Granted;
use rules::oauth::family::{Family, Previous, Refresh, Rotation};
use rules::oauth::scope::Scope;
use rules::people::User;
use rules::realm::{Realm, Settings};
use rules::{Fresh, Span};
use store::engine::Engine;
use store::migrations::MIGRATIONS;
use store::postgres::Postgres;
use store::sqlite::{Options, Sqlite};
use store::tables::changes::batch;
use store::tables::{ask, families, realms};
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

/// How long each turn takes.
const TURN: Duration = Duration::from_secs(3);
/// At a time.
const TASKS: usize = 32;
/// People with a refresh token each.
const PEOPLE: usize = 640;

/// An application, as it is kept.
const CLIENT: &str = r#"{"id": "app", "name": "App", "grants": ["authorization_code", "refresh_token"], "scope": "openid",
    "auth_methods": ["client_secret_basic"], "id_token_alg": "ES256", "access_format": "jwt", "access_alg": "ES256"}"#;

/// What is done beside the refresh.
#[derive(Clone, Copy, PartialEq)]
enum Audit {
    Off,
    Written,
    Sealed,
}

struct Town {
    app: App,
    people: Vec<(UserId, SessionId, FamilyId)>,
    next: AtomicU64,
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(url) = args.first() else { return Err("usage: audit sqlite:FILE|postgres://… [ROUNDS]".into()) };
    let rounds = args.get(1).map_or(Ok(5), |text| text.parse())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let town = Arc::new(Town::found(url).await?);
        let mut rates = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (at, audit) in [Audit::Off, Audit::Written, Audit::Sealed].into_iter().enumerate() {
                rates[at].push(turn(&town, audit).await?);
            }
        }
        let [off, written, sealed] = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        });
        println!("refreshes a second, medians of {rounds} turns of {} s, {TASKS} at a time", TURN.as_secs());
        println!("without a line {off:>8.0}");
        println!("with a line    {written:>8.0}  {:>5.1} %", (written / off - 1.0) * 100.0);
        println!("and sealed     {sealed:>8.0}  {:>5.1} %", (sealed / off - 1.0) * 100.0);
        println!("not sealed at the end: {}", town.app.audit_lag().await?.unsealed);
        Ok(())
    })
}

async fn open(url: &str) -> Result<Arc<dyn Engine>, Failure> {
    match url.strip_prefix("sqlite:") {
        Some(file) => Ok(Arc::new(Sqlite::open(Options::at(file), MIGRATIONS)?)),
        None => Ok(Arc::new(Postgres::open(store::remote::Settings::at(url), MIGRATIONS).await?)),
    }
}

impl Town {
    async fn found(url: &str) -> Result<Self, Failure> {
        let engine = open(url).await?;
        engine.migrate().await.map_err(|why| why.0)?;
        let realm = Realm { id: "main".into(), issuer: "http://localhost".into(), settings: Settings::default() };
        let hashing = hasher::Settings { threads: NonZeroUsize::new(1), ..hasher::Settings::default() };
        let app = App::new(realm, engine, Hasher::start(hashing)?, Keyring::new(&[1; 32])?, Clock::system())?;
        app.prepare().await?;
        let key = Key::new(app::entropy::bytes()?.into());
        app.open_books(Terms { keys: Keys { current: Some(key), old: Vec::new() }, ..Terms::default() });
        let mut town = Town { app, people: Vec::new(), next: AtomicU64::new(0) };
        town.commit(&[Change::AddClient(Box::new(serde_json::from_str(CLIENT)?))]).await?;
        for number in 0..PEOPLE {
            let (changes, who) = town.person(number);
            town.commit(&changes).await?;
            town.people.push(who);
        }
        Ok(town)
    }

    fn person(&self, number: usize) -> (Vec<Change>, (UserId, SessionId, FamilyId)) {
        let now = self.app.clock.now();
        let fresh = self.fresh();
        let user = User::new(fresh.user(), format!("person-{number}-{}", fresh.name("n")), now);
        let session = Session {
            id: SessionId(fresh.ordered("session", now)),
            handle: fresh.secret("session").handle(),
            user: user.id.clone(),
            auth_time: now,
            amr: vec![Method::Password.amr().to_owned()],
            created: now,
            last_seen: now,
            expires: now + Span::days(30),
            agent: String::new(),
            address: String::new(),
            ended_at: None,
        };
        let granted = Granted {
            scope: Scope::default(),
            resources: vec![],
            auth_time: now,
            amr: vec![],
            acr: ACR_SINGLE.into(),
            nonce: None,
            claims: ClaimsRequest::default(),
        };
        let family = Family {
            id: fresh.family(now),
            client: "app".into(),
            life: None,
            user: user.id.clone(),
            session: Some(session.id.clone()),
            granted,
            refresh: Some(Refresh { current: fresh.secret("refresh").handle(), previous: None, turn: 0 }),
            created: now,
            idle_until: now + Span::days(10),
            expires: now + Span::days(90),
            revoked_at: None,
        };
        let who = (user.id.clone(), session.id.clone(), family.id.clone());
        let (user, session) = (Change::AddUser(Box::new(user)), Change::StartSession(Box::new(session)));
        (vec![user, session, Change::StartFamily(Box::new(family))], who)
    }

    fn fresh(&self) -> Fresh {
        let mut seed = [7; 32];
        seed[..8].copy_from_slice(&self.next.fetch_add(1, Relaxed).to_be_bytes());
        seed[8..16].copy_from_slice(&self.app.clock.now().0.to_be_bytes());
        Fresh::new(seed)
    }

    async fn commit(&self, changes: &[Change]) -> Result<(), Failure> {
        let writes = batch(&self.app.realm.id, changes, self.app.clock.now(), &self.fresh());
        self.app.engine.commit(writes).await.map(drop).map_err(|error| format!("{error:?}").into())
    }

    async fn refresh(&self, person: usize, audit: Audit) -> Result<(), Failure> {
        let (user, session, family) = &self.people[person];
        let question = realms::AtEpoch(families::InContext(Some(family)));
        let read = ask(&*self.app.engine, &self.app.realm.id, question).await.map_err(|why| why.0)?;
        let was = read.and_then(|(_, found)| found?.family.refresh).ok_or("a family is not there")?.current;
        let (now, fresh) = (self.app.clock.now(), self.fresh());
        let previous = Previous { handle: was, until: now + Span::days(1), bridge: fresh.bytes("bridge") };
        let rotation = Rotation {
            was,
            current: fresh.secret("next").handle(),
            previous,
            idle_until: now + Span::days(10),
            turn: 1,
        };
        let client = Some("app".into());
        let standing =
            Standing { user: Some(user.clone()), client, session: Some(session.clone()), ..Standing::default() };
        let mut changes = vec![Change::Stands(standing), Change::RotateFamily { family: family.clone(), rotation }];
        if audit != Audit::Off {
            let event = Event::new(Kind::TokensIssued, now).user(user).client(&"app".into()).session(session);
            changes.push(Change::Record(event.address("192.0.2.17")));
        }
        self.commit(&changes).await
    }
}

/// One turn: so many refreshes a second.
async fn turn(town: &Arc<Town>, audit: Audit) -> Result<f64, Failure> {
    let (began, done) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut running = JoinSet::new();
    for task in 0..TASKS {
        let (town, done) = (Arc::clone(town), Arc::clone(&done));
        running.spawn(async move {
            let mut person = task;
            while began.elapsed() < TURN {
                town.refresh(person, audit).await?;
                done.fetch_add(1, Relaxed);
                person = if person + TASKS < PEOPLE { person + TASKS } else { task };
            }
            Ok::<_, Failure>(())
        });
    }
    let all = async {
        while let Some(one) = running.join_next().await {
            one??;
        }
        Ok::<_, Failure>(())
    };
    match audit {
        Audit::Sealed => tokio::select! {
            ended = all => ended?,
            () = town.app.keep_books() => {}
        },
        _ => all.await?,
    }
    Ok(done.load(Relaxed) as f64 / began.elapsed().as_secs_f64())
}
