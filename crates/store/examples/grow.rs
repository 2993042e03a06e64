//! Fills the database of a stopped server with users and sessions, to measure whether the cost of a flow grows with the
//! data.
//!
//! `cargo run --release -p store --example grow FILE TEMPLATE CLIENT [USERS [SESSIONS]]`, by default a million and five
//! million. Users are called `user-0000000` and so on, and all have the password of the account TEMPLATE, so that one
//! hash serves for all. Sessions began over the last ten days, each with an audit line; every tenth has a refresh token
//! for CLIENT, and a second line. The rows are what the server itself would write, by the same statements.
//!
//! Nothing is synced until the end: an interrupted run leaves an unusable file.
#![allow(clippy::print_stdout, reason = "printing is its purpose")]

use std::error::Error;
use std::io::{IsTerminal, Write as _, stderr};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rules::decision::Change;
use rules::events::{Event, Kind};
use rules::fresh::Fresh;
use rules::id::{ClientId, RealmId, SessionId, UserId};
use rules::login::session::{ACR_SINGLE, Method, Session};
use rules::oauth::claims::ClaimsRequest;
use rules::oauth::code::Granted;
use rules::oauth::family::{Family, Refresh};
use rules::oauth::scope::Scope;
use rules::people::User;
use rules::realm::Settings;
use rules::time::{Span, Time};
use rusqlite::{Connection, OpenFlags, params_from_iter, types};
use store::engine::{Value, Write};
use store::tables::changes::batch;

type Failure = Box<dyn Error>;

/// The number of users or sessions in one transaction.
const TOGETHER: u64 = 50_000;

/// One in this many sessions has a refresh token.
const PER_FAMILY: u64 = 10;

/// The period in which sessions began. Shorter than their maximum lifetime, so that the server keeps them for a while.
const PERIOD: Span = Span::days(10);

const USAGE: &str = "usage: grow FILE TEMPLATE CLIENT [USERS [SESSIONS]]";

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, template, client, counts @ ..] = args.as_slice() else { return Err(USAGE.into()) };
    let count = |at: usize, default| counts.get(at).map_or(Ok(default), |text: &String| text.parse::<u64>());
    let (users, sessions) = (count(0, 1_000_000)?, count(1, 5_000_000)?);
    if counts.len() > 2 || users == 0 {
        return Err(USAGE.into());
    }
    let mut town = Town::found(Path::new(file), template, client)?;
    let indexes = town.drop_indexes()?;
    town.settle(users)?;
    town.bustle(sessions)?;
    for (name, sql) in indexes {
        let begun = Instant::now();
        town.conn.execute_batch(&sql)?;
        println!("{name}: {:.1} s", begun.elapsed().as_secs_f64());
    }
    town.close()?;
    println!("{file}: {:.2} GiB", std::fs::metadata(file)?.len() as f64 / f64::from(1 << 30));
    Ok(())
}

/// The database, and what all new rows have in common.
struct Town {
    conn: Connection,
    realm: RealmId,
    client: ClientId,
    password: String,
    settings: Settings,
    now: Time,
    people: Vec<UserId>,
}

impl Town {
    /// Opens a database that the server has created.
    fn found(file: &Path, template: &str, client: &str) -> Result<Self, Failure> {
        let conn = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        for (pragma, value) in [("locking_mode", "EXCLUSIVE"), ("journal_mode", "OFF"), ("synchronous", "OFF")] {
            conn.pragma_update(None, pragma, value)?;
        }
        // In KiB: keeps the pages in memory to which many tables append.
        conn.pragma_update(None, "cache_size", -262_144)?;
        conn.set_prepared_statement_cache_capacity(64);
        let sql = "SELECT realm, password FROM users WHERE username = ? AND password IS NOT NULL";
        let (realm, password) = conn
            .query_row(sql, [template], |row| Ok((row.get(0)?, row.get(1)?)))
            .map_err(|error| format!("no account {template} with a password: {error}"))?;
        Ok(Town {
            conn,
            realm: RealmId(realm),
            client: client.into(),
            password,
            settings: Settings::default(),
            now: now()?,
            people: Vec::new(),
        })
    }

    /// Drops the indexes: building them at the end, sorted, is far faster than row by row.
    fn drop_indexes(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut named =
            self.conn.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")?;
        let indexes: Vec<(String, String)> =
            named.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
        for (name, _) in &indexes {
            self.conn.execute_batch(&format!("DROP INDEX {name}"))?;
        }
        Ok(indexes)
    }

    /// Adds the users, before that period, in the order of their ids, so that pages fill one after another.
    fn settle(&mut self, users: u64) -> Result<(), Failure> {
        self.people = (0..users).map(|number| fresh(b'u', number).user()).collect();
        self.people.sort();
        let gap = PERIOD.0 as f64 / users as f64;
        self.fill("people", users, |town, number| {
            let at = town.now - PERIOD - PERIOD + Span((number as f64 * gap) as i64);
            let name = format!("user-{number:07}");
            let user = User {
                email: Some(format!("{name}@example.com")),
                email_verified: true,
                password: Some(town.password.clone()),
                ..User::new(town.people[usize::try_from(number).unwrap_or_default()].clone(), name, at)
            };
            let event = Event::new(Kind::UserAdded, at).user(&user.id);
            (vec![Change::AddUser(Box::new(user)), Change::Record(event)], at, fresh(b'e', number))
        })
    }

    /// Adds the sessions, spread evenly over the period.
    fn bustle(&self, sessions: u64) -> Result<(), Failure> {
        let gap = PERIOD.0 as f64 / sessions.max(1) as f64;
        self.fill("sessions", sessions, |town, number| {
            let (fresh, at) = (fresh(b's', number), town.now - PERIOD + Span((number as f64 * gap) as i64));
            let [a, b, c, d, ..] = fresh.bytes("who");
            let who = u32::from_be_bytes([a, b, c, d]) as usize % town.people.len();
            let session = town.session(&town.people[who], at, &fresh);
            let family = (number % PER_FAMILY == 0).then(|| town.family(&session, &fresh));
            let signed_in = Event::new(Kind::SignedIn, at).user(&session.user).session(&session.id);
            let address = session.address.clone();
            let mut changes =
                vec![Change::StartSession(Box::new(session)), Change::Record(signed_in.address(&address))];
            if let Some(family) = family {
                let issued = Event::new(Kind::TokensIssued, at).user(&family.user).client(&family.client);
                changes.extend([Change::StartFamily(Box::new(family)), Change::Record(issued)]);
            }
            (changes, at, fresh)
        })
    }

    fn session(&self, user: &UserId, at: Time, fresh: &Fresh) -> Session {
        let [a, b, c, ..] = fresh.bytes("where");
        Session {
            id: SessionId(fresh.ordered("sid", at)),
            handle: fresh.secret("session").handle(),
            user: user.clone(),
            auth_time: at,
            amr: vec![Method::Password.amr().to_owned()],
            created: at,
            last_seen: at,
            expires: at + self.settings.session_absolute,
            agent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0".to_owned(),
            address: format!("10.{a}.{b}.{c}"),
            ended_at: None,
        }
    }

    fn family(&self, session: &Session, fresh: &Fresh) -> Family {
        let at = session.created;
        Family {
            id: fresh.family(at),
            client: self.client.clone(),
            life: None,
            user: session.user.clone(),
            session: Some(session.id.clone()),
            granted: Granted {
                scope: Scope::parse("openid profile email").unwrap_or_default(),
                resources: Vec::new(),
                auth_time: at,
                amr: session.amr.clone(),
                acr: ACR_SINGLE.to_owned(),
                nonce: Some(fresh.name("nonce")),
                claims: ClaimsRequest::default(),
                session: None,
            },
            refresh: Some(Refresh { current: fresh.secret("refresh").handle(), previous: None, turn: 0 }),
            created: at,
            idle_until: at + self.settings.refresh_idle,
            expires: at + self.settings.refresh_absolute,
            revoked_at: None,
        }
    }

    /// Writes the changes that `made` returns for each number, in large transactions.
    fn fill(
        &self,
        what: &str,
        count: u64,
        made: impl Fn(&Self, u64) -> (Vec<Change>, Time, Fresh),
    ) -> Result<(), Failure> {
        let mut progress = Progress::begin(what, count);
        for first in (0..count).step_by(usize::try_from(TOGETHER)?) {
            self.conn.execute_batch("BEGIN")?;
            for number in first..count.min(first + TOGETHER) {
                let (changes, at, fresh) = made(self, number);
                for write in batch(&self.realm, &changes, at, &fresh) {
                    self.execute(write)?;
                }
                progress.at(number + 1);
            }
            self.conn.execute_batch("COMMIT")?;
        }
        progress.end();
        Ok(())
    }

    fn execute(&self, write: Write) -> Result<(), Failure> {
        let values = write.args.into_iter().map(|value| match value {
            Value::Null => types::Value::Null,
            Value::Int(number) => types::Value::Integer(number),
            Value::Text(text) => types::Value::Text(text),
            Value::Blob(bytes) => types::Value::Blob(bytes),
        });
        self.conn.prepare_cached(write.sql.text())?.execute(params_from_iter(values))?;
        Ok(())
    }

    /// Leaves the file as the server had it: complete, on the disk, with a write-ahead log.
    fn close(self) -> Result<(), Failure> {
        self.conn.pragma_update(None, "synchronous", "FULL")?;
        self.conn.pragma_update(None, "journal_mode", "WAL")?;
        let file = self.conn.path().map(Path::new).map(std::fs::File::open).transpose()?;
        self.conn.close().map_err(|(_, error)| error)?;
        file.map_or(Ok(()), |file| file.sync_all())?;
        Ok(())
    }
}

/// Randomness that is the same in every run: the same arguments give the same ids.
fn fresh(kind: u8, number: u64) -> Fresh {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    Fresh::new(seed)
}

#[allow(clippy::disallowed_methods, reason = "a program of its own, with a clock of its own")]
fn now() -> Result<Time, Failure> {
    Ok(Time(i64::try_from(SystemTime::UNIX_EPOCH.elapsed()?.as_millis())?))
}

/// Shows the progress on the terminal; without one, only a line at the end.
struct Progress<'a> {
    what: &'a str,
    count: u64,
    begun: Instant,
    shown: Option<Instant>,
}

impl<'a> Progress<'a> {
    fn begin(what: &'a str, count: u64) -> Self {
        let begun = Instant::now();
        Progress { what, count, begun, shown: stderr().is_terminal().then_some(begun) }
    }

    fn at(&mut self, done: u64) {
        const WIDTH: usize = 30;
        let due = |shown: &Instant| shown.elapsed() > Duration::from_millis(250);
        if !done.is_multiple_of(256) || !self.shown.as_ref().is_some_and(due) {
            return;
        }
        let share = done as f64 / self.count as f64;
        let rate = done as f64 / self.begun.elapsed().as_secs_f64();
        let (full, left) = ((share * WIDTH as f64) as usize, (self.count - done) as f64 / rate);
        let (what, bar, rest) = (self.what, "#".repeat(full), ".".repeat(WIDTH - full));
        // Failing to show the progress is no reason to end the run.
        drop(write!(stderr(), "\r\x1b[K{what:8} [{bar}{rest}] {:3.0} % {rate:8.0}/s {left:4.0} s left", share * 100.0));
        self.shown = Some(Instant::now());
    }

    fn end(&self) {
        if self.shown.is_some() {
            drop(write!(stderr(), "\r\x1b[K"));
        }
        let seconds = self.begun.elapsed().as_secs_f64();
        println!("{} {}: {seconds:.1} s, {:.0}/s", self.count, self.what, self.count as f64 / seconds);
    }
}
