//! What flows cost on a database: reads, lines of the audit log, and whole refreshes (the facts, then the rotation under
//! its guards), at 1, 16 and 64 at a time.
//!
//! `cargo run --release -p store --example rounds sqlite:FILE|postgres://… [MS]`, into an empty database. MS milliseconds
//! are added to each round trip by a proxy, for a server that is further away than this one.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use rules::decision::{Change, Standing};
use rules::events::{Event, Kind};
use rules::fresh::Fresh;
use rules::id::{ClientId, FamilyId, RealmId, SessionId, UserId};
use rules::login::session::{ACR_SINGLE, Method, Session};
use rules::oauth::authorize::ClaimsRequest;
use rules::oauth::code::Granted;
use rules::oauth::family::{Family, Previous, Refresh, Rotation};
use rules::oauth::scope::Scope;
use rules::people::User;
use rules::secret::Handle;
use rules::time::{Span, Time};
use store::engine::{Engine, Write};
use store::migrations::MIGRATIONS;
use store::postgres::Postgres;
use store::remote::Settings;
use store::sqlite::{Options, Sqlite};
use store::tables::changes::batch;
use store::tables::{ask, families, realms};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

type Failure = Box<dyn Error + Send + Sync>;

/// How long each figure is measured.
const SPAN: Duration = Duration::from_secs(3);

/// People with a refresh token each.
const PEOPLE: u64 = 2000;

/// An application, as it is kept.
const CLIENT: &str = r#"{"id": "app", "name": "App", "grants": ["authorization_code", "refresh_token"], "scope": "openid",
    "auth_methods": ["client_secret_basic"], "id_token_alg": "ES256", "access_format": "jwt", "access_alg": "ES256"}"#;

const USAGE: &str = "usage: rounds sqlite:FILE|postgres://… [MS [CONNECTIONS]]";

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (Some(url), delay) = (args.first(), args.get(1).map_or(Ok(0), |ms| ms.parse())?) else {
        return Err(USAGE.into());
    };
    let connections = args.get(2).map(|count| count.parse::<NonZeroUsize>()).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let town = Arc::new(Town::found(open(url, delay, connections).await?).await?);
        println!(
            "{:>8} {:>10} {:>14} {:>14} {:>14}   us of our CPU",
            "", "at a time", "each second", "p50 ms", "p99 ms"
        );
        for (name, flow) in [("reads", Flow::Read), ("events", Flow::Record), ("refreshes", Flow::Refresh)] {
            for tasks in [1, 16, 64] {
                measure(&town, name, flow, tasks).await?;
            }
        }
        Ok(())
    })
}

async fn open(url: &str, delay: u64, connections: Option<NonZeroUsize>) -> Result<Arc<dyn Engine>, Failure> {
    if let Some(file) = url.strip_prefix("sqlite:") {
        return Ok(Arc::new(Sqlite::open(Options::at(file), MIGRATIONS)?));
    }
    let mut settings = Settings::at(if delay == 0 { url.to_owned() } else { further(url, delay)? });
    settings.connections = connections.unwrap_or(settings.connections);
    Ok(Arc::new(Postgres::open(settings, MIGRATIONS).await?))
}

/// The same server, so many milliseconds away.
fn further(url: &str, delay: u64) -> Result<String, Failure> {
    let (before, rest) = url.split_once("127.0.0.1:").ok_or("the server is not at 127.0.0.1")?;
    let (port, database) = rest.split_once('/').ok_or("no database in the URL")?;
    let (listener, port) = (std::net::TcpListener::bind("127.0.0.1:0")?, port.parse::<u16>()?);
    listener.set_nonblocking(true)?;
    let near = listener.local_addr()?.port();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || runtime.block_on(serve(listener, port, Duration::from_millis(delay))));
    Ok(format!("{before}127.0.0.1:{near}/{database}"))
}

async fn serve(listener: std::net::TcpListener, port: u16, delay: Duration) -> std::io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut pipes = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await?;
        let server = TcpStream::connect(("127.0.0.1", port)).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        pipes.spawn(pipe(from_client, to_server, Duration::ZERO));
        pipes.spawn(pipe(from_server, to_client, delay));
    }
}

/// Passes bytes on, each so much later than it came.
async fn pipe(mut from: tokio::net::tcp::OwnedReadHalf, mut to: tokio::net::tcp::OwnedWriteHalf, delay: Duration) {
    let (sender, mut queue) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let reading = async move {
        let mut chunk = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut chunk).await {
            if sender.send((Instant::now() + delay, chunk[..count].to_vec())).is_err() {
                break;
            }
        }
    };
    let writing = async move {
        while let Some((due, bytes)) = queue.recv().await {
            tokio::time::sleep_until(due.into()).await;
            if to.write_all(&bytes).await.is_err() {
                break;
            }
        }
    };
    futures_util::future::join(reading, writing).await;
}

#[derive(Clone, Copy)]
enum Flow {
    Read,
    Record,
    Refresh,
}

/// A realm with an application and people who have refresh tokens for it.
struct Town {
    engine: Arc<dyn Engine>,
    realm: RealmId,
    client: ClientId,
    now: Time,
    people: Vec<(UserId, SessionId, FamilyId)>,
    next: AtomicU64,
}

impl Town {
    async fn found(engine: Arc<dyn Engine>) -> Result<Self, Failure> {
        engine.migrate().await.map_err(|why| why.0)?;
        let now = now()?;
        let mut town = Town {
            engine,
            realm: RealmId("main".to_owned()),
            client: "app".into(),
            now,
            people: Vec::new(),
            next: AtomicU64::new(1 << 40),
        };
        let stand = |error| format!("{error:?}");
        town.engine.commit(realms::ensure(&town.realm, "http://localhost", now)).await.map_err(stand)?;
        let client = serde_json::from_str(CLIENT)?;
        let register = batch(&town.realm, &[Change::AddClient(Box::new(client))], now, &fresh(b'c', 0, now));
        town.engine.commit(register).await.map_err(stand)?;
        for number in 0..PEOPLE {
            let (changes, who) = town.move_in(&fresh(b'u', number, now));
            let writes = batch(&town.realm, &changes, now, &fresh(b'm', number, now));
            town.engine.commit(writes).await.map_err(stand)?;
            town.people.push(who);
        }
        Ok(town)
    }

    fn move_in(&self, fresh: &Fresh) -> (Vec<Change>, (UserId, SessionId, FamilyId)) {
        let at = self.now;
        let stored = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo".to_owned();
        let name = fresh.name("username").to_lowercase();
        let user = User { password: Some(stored), ..User::new(fresh.user(), name, at) };
        let session = Session {
            id: SessionId(fresh.ordered("sid", at)),
            handle: fresh.secret("session").handle(),
            user: user.id.clone(),
            auth_time: at,
            amr: vec![Method::Password.amr().to_owned()],
            created: at,
            last_seen: at,
            expires: at + Span::days(10),
            agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0".to_owned(),
            address: "10.1.2.3".to_owned(),
            ended_at: None,
        };
        let family = Family {
            id: fresh.family(at),
            client: self.client.clone(),
            life: None,
            user: user.id.clone(),
            session: Some(session.id.clone()),
            granted: Granted {
                scope: Scope::parse("openid profile email").unwrap_or_default(),
                resources: Vec::new(),
                auth_time: at,
                amr: session.amr.clone(),
                acr: ACR_SINGLE.to_owned(),
                nonce: Some(fresh.name("nonce")),
                claims: ClaimsRequest::default(),
            },
            refresh: Some(Refresh { current: fresh.secret("refresh").handle(), previous: None, turn: 0 }),
            created: at,
            idle_until: at + Span::days(10),
            expires: at + Span::days(30),
            revoked_at: None,
        };
        let who = (user.id.clone(), session.id.clone(), family.id.clone());
        let changes = vec![
            Change::AddUser(Box::new(user)),
            Change::StartSession(Box::new(session)),
            Change::StartFamily(Box::new(family)),
        ];
        (changes, who)
    }

    /// A number that was not used before.
    fn number(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    async fn run(&self, flow: Flow, person: usize) -> Result<(), Failure> {
        let (user, session, family) = &self.people[person];
        match flow {
            Flow::Read => drop(self.facts(family).await?),
            Flow::Record => {
                let fresh = fresh(b'e', self.number(), self.now);
                let changes: Vec<Change> = (0..3)
                    .map(|_| Change::Record(Event::new(Kind::SignedIn, self.now).user(user).session(session)))
                    .collect();
                self.commit(batch(&self.realm, &changes, self.now, &fresh)).await?;
            }
            Flow::Refresh => {
                let was = self.facts(family).await?;
                let fresh = fresh(b'r', self.number(), self.now);
                let rotation = Rotation {
                    was,
                    current: fresh.secret("refresh").handle(),
                    previous: Previous { handle: was, until: self.now + Span::days(1), bridge: fresh.bytes("bridge") },
                    idle_until: self.now + Span::days(10),
                    turn: 1,
                };
                let standing = Standing {
                    user: Some(user.clone()),
                    client: Some(self.client.clone()),
                    session: Some(session.clone()),
                    ..Standing::default()
                };
                let changes = [
                    Change::Stands(standing),
                    Change::RotateFamily { family: family.clone(), rotation },
                    Change::Record(
                        Event::new(Kind::TokensIssued, self.now).user(user).client(&self.client).session(session),
                    ),
                ];
                self.commit(batch(&self.realm, &changes, self.now, &fresh)).await?;
            }
        }
        Ok(())
    }

    /// What a refresh asks for first; the current token's hash of it.
    async fn facts(&self, family: &FamilyId) -> Result<Handle, Failure> {
        let question = realms::AtEpoch(families::InContext(Some(family)));
        let read = ask(&*self.engine, &self.realm, question).await.map_err(|why| why.0)?;
        let refresh = read.and_then(|(_, found)| found?.family.refresh).ok_or("a family is not there")?;
        Ok(refresh.current)
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<(), Failure> {
        self.engine.commit(writes).await.map(drop).map_err(|error| format!("{error:?}").into())
    }
}

/// So many at a time, each with people of its own.
async fn measure(town: &Arc<Town>, name: &str, flow: Flow, tasks: usize) -> Result<(), Failure> {
    let (start, before) = (Instant::now(), cpu());
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let town = Arc::clone(town);
        running.spawn(async move {
            let mut took = Vec::new();
            let mut person = task;
            while start.elapsed() < SPAN {
                let begun = Instant::now();
                town.run(flow, person).await?;
                took.push(begun.elapsed());
                person = if person + tasks < town.people.len() { person + tasks } else { task };
            }
            Ok::<_, Failure>(took)
        });
    }
    let mut took = Vec::new();
    while let Some(done) = running.join_next().await {
        took.extend(done??);
    }
    let (elapsed, cpu) = (start.elapsed(), cpu() - before);
    took.sort_unstable();
    let ms = |share: usize| took[(took.len() - 1) * share / 100].as_secs_f64() * 1e3;
    let rate = took.len() as f64 / elapsed.as_secs_f64();
    let each = cpu.as_secs_f64() * 1e6 / took.len() as f64;
    println!("{name:>9} {tasks:>9} {rate:>14.0} {:>14.2} {:>14.2} {each:>10.1}", ms(50), ms(99));
    Ok(())
}

/// Chance that differs from run to run.
fn fresh(kind: u8, number: u64, now: Time) -> Fresh {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    seed[8..16].copy_from_slice(&now.0.to_be_bytes());
    Fresh::new(seed)
}

#[allow(clippy::disallowed_methods, reason = "a program of its own, with a clock of its own")]
fn now() -> Result<Time, Failure> {
    Ok(Time(i64::try_from(SystemTime::UNIX_EPOCH.elapsed()?.as_millis())?))
}

/// CPU time of the whole process so far.
fn cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
