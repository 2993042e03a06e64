//! `move`: moves everything from one database to another.

mod bar;
mod check;
mod ends;
mod giving_up;
mod telling;
mod tls;

use self::bar::Bar;
pub use self::ends::AtSource;
use self::ends::{Act, Source, Target, Way};
use self::telling::{moved, status};
use self::tls::{Given, OfSource, OfTarget, secret_file};
use super::outcome::{Failure, Reply, mutter, say};
use crate::boot::Orders;
use crate::config::{self, Config, Raw, SecretFile, Statements, StoreUrl, Value as _};
use crate::named_file;
use clap::{Args, ValueHint};
use rules::Secret;
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use store::engine::Engine;
use store::moving::claim::{self, Mover};
use store::moving::marks::{Arrival, Leave, Mark, Marks};
use store::moving::{self, Move, PAGE, Sum};

/// The arguments of `move`.
#[derive(Clone, Debug, Args)]
pub struct Moving {
    /// The database to move, as store.url names it [default: store.url]
    #[arg(long, value_name = "URL", value_parser = secret, conflicts_with = "from_file")]
    from: Option<Secret>,
    /// File with the URL in its first line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from_file: Option<PathBuf>,
    /// File with the password, if the URL has none [default without --from: store.password_file]
    #[arg(long, value_name = "FILE", value_parser = secret_file, value_hint = ValueHint::FilePath)]
    from_password_file: Option<SecretFile>,
    #[command(flatten)]
    from_tls: OfSource,
    /// The database to move to
    #[arg(long, value_name = "URL", value_parser = secret, conflicts_with = "to_file")]
    to: Option<Secret>,
    /// File with the URL in its first line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    to_file: Option<PathBuf>,
    /// File with the password, if the URL has none
    #[arg(long, value_name = "FILE", value_parser = secret_file, value_hint = ValueHint::FilePath)]
    to_password_file: Option<SecretFile>,
    #[command(flatten)]
    to_tls: OfTarget,
    /// Do not ask for confirmation. Without a terminal, a move asks nothing, and --abort needs this option
    #[arg(long)]
    yes: bool,
    /// Only check whether the target can be reached and takes everything, as each move does before writes stop. Nothing
    /// changes
    #[arg(long, conflicts_with_all = ["abort", "status", "yes"])]
    check: bool,
    /// Show how far a move is
    #[arg(long, conflicts_with_all = ["abort", "yes"])]
    status: bool,
    /// Abort a move: the source accepts writes again, and the copy is void. Not possible once a server has run on the
    /// target
    #[arg(long)]
    abort: bool,
    /// With --abort: the target cannot be reached, and no server has run on it
    #[arg(long, requires = "abort")]
    target_is_gone: bool,
}

fn secret(text: &str) -> Result<Secret, String> {
    Ok(Secret::new(text))
}

/// The environment variables for the URLs.
const FROM: &str = "PORTIERE_MOVE_FROM";
const TO: &str = "PORTIERE_MOVE_TO";

impl Moving {
    /// Carries out the command.
    pub async fn run(&self, config: &Config) -> Reply {
        let from = given(self.from.as_ref(), self.from_file.as_ref(), FROM)?;
        let to = given(self.to.as_ref(), self.to_file.as_ref(), TO)?;
        let (of_source, of_target) = (self.from_tls.clone().into(), self.to_tls.clone().into());
        let from = match from {
            Some(url) => way(read(&url, "--from")?, self.from_password_file.as_ref(), of_source, "--from")?,
            // Options about a server may be meant for the target.
            None => match config.without_server().first() {
                None => {
                    let password = self.from_password_file.as_ref().or(config.store.password_file.as_ref());
                    way(config.store.url.clone(), password, of_source, "store.url")?
                }
                Some(why) => {
                    return Err(Failure::Use(format!("{why}; if that is the target, name the source with --from")));
                }
            },
        };
        let to = match to {
            Some(url) => Some(way(read(&url, "--to")?, self.to_password_file.as_ref(), of_target, "--to")?),
            None => None,
        };
        let is_postgres = |way: &Way| matches!(way.url, StoreUrl::Postgres(_));
        let has_postgres = is_postgres(&from) || to.as_ref().is_some_and(is_postgres);
        if has_postgres && config.store.statements == Statements::Unnamed {
            return Err(Failure::Use(
                "store.statements is unnamed, as for PgBouncer in transaction mode, through which a move cannot set \
                 its time limits: name the server itself with --from and --to, and set PORTIERE_STORE_STATEMENTS=kept \
                 for this command"
                    .into(),
            ));
        }
        let (source, target) = (Source::new(config, from), to.map(|to| Target::new(config, to)));
        if target.as_ref().is_some_and(|target| target.name == source.name) {
            return Err(Failure::Use("the source and the target are the same database".into()));
        }
        match (self.status, self.abort, target) {
            (true, _, target) => status(&source, target.as_ref()).await,
            (_, true, target) => self.abort(&source, target.as_ref()).await,
            (_, _, Some(target)) if self.check => checked(&source, &target).await,
            (_, _, Some(target)) => self.go(&source, &target).await,
            (_, _, None) => Err(Failure::Use(format!("no target: name the database with --to, --to-file or {TO}"))),
        }
    }

    /// Asks for confirmation, unless it was given beforehand.
    fn confirm(&self, what: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::Use(format!("{what}; confirm with --yes")));
        }
        mutter(&format!("{what}. Go on? [y/N] "));
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Failure::Failed("nothing was done".into())),
        }
    }

    async fn go(&self, source: &Source<'_>, target: &Target) -> Reply {
        let (from, out) = known(source, target).await?;
        // Not for a source that is closed already: the check would keep it closed for longer.
        if out.is_none() {
            check::look(source, &*from, target, None).await?;
        }
        // Before anything is made. If nobody can be asked, the command counts as meant: a move can be given up.
        if out.is_none() && io::stdin().is_terminal() {
            let what = "no writes are possible until the move is done or given up with --abort";
            self.confirm(&format!("moving {} to {}: {what}", source.name, target.name))?;
        }
        let database = target.open().await?;
        let to = target.named(&database);
        let mover = Mover { id: out.as_ref().map(|out| out.id.as_str()), from: &source.name };
        let arrived = claim::examine(&*from, &to, mover).await?;
        let whole = matches!(arrived, Some(Arrival::Ready | Arrival::Serving));
        if out.as_ref().is_some_and(|out| out.state == Leave::Left) && !whole {
            return Err(Failure::Failed(format!(
                "{} was moved to {}, which no longer holds it: if that copy is lost and no server has run on it, give \
                 the move up (portiere move --abort), empty the target and move again",
                source.name, target.name
            )));
        }
        let (began, mut orders) = (Instant::now(), Orders::listen());
        let id = close(source, (&*from, &to), (out, &target.name), orders.next()).await?;
        let done = fill(source, (&*from, &to), &id, orders.next()).await;
        // On a thread that may block: a disk may stall.
        let closed = tokio::task::spawn_blocking(move || database.close());
        let sums = match done {
            Ok(sums) => sums,
            Err(why) => {
                let fenced = async {
                    drop(closed.await);
                    is_fenced(&*from).await
                };
                // A user who interrupts twice does not wait for a disk or a database that does not answer.
                let fenced = tokio::select! {
                    () = orders.next() => true,
                    fenced = fenced => fenced,
                };
                return Err(stopped(why, &source.name, fenced));
            }
        };
        closed.await.map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(moved((&source.name, &target.name), &id, sums, began.elapsed()))
    }
}

/// Claims the target, then closes the source to writes, in this order: no server starts on the target meanwhile, and of
/// two moves to it, the second is refused while its users can still sign in. Returns the move's ID.
async fn close(
    source: &Source<'_>,
    (from, to): (&dyn Engine, &dyn Engine),
    (out, target): (Option<Mark<Leave>>, &str),
    stop: impl Future<Output = ()>,
) -> Result<String, Failure> {
    let claimed = match &out {
        Some(out) => out.id.clone(),
        None => app::entropy::fresh().map_err(Failure::from)?.name("move"),
    };
    claim::claim(from, to, &claimed, &source.name).await?;
    if out.is_none() {
        // On a database server, this waits for every process that holds a table.
        say(&format!("closing {} to writes", source.name));
    }
    // The target as it was named first.
    let peer = out.map_or_else(|| target.to_owned(), |out| out.peer);
    let raised = tokio::select! {
        biased;
        () = stop => return Err(cut_short(&source.name)),
        raised = source.act(Act::Raise { id: claimed.clone(), peer }) => raised,
    };
    match raised {
        Ok(id) if id == claimed => Ok(id),
        // Another command began the same move meanwhile.
        Ok(id) => {
            claim::withdraw(to, &claimed).await?;
            claim::claim(from, to, &id, &source.name).await?;
            Ok(id)
        }
        Err(why) => {
            // A move that did not begin leaves nothing. If this fails, the same command takes the claim over.
            if Marks::read(from).await.is_ok_and(|marks| marks.out.is_none()) {
                drop(claim::withdraw(to, &claimed).await);
            }
            Err(why)
        }
    }
}

/// Returns what a move begins with: its source, for reading, and the mark of an earlier begin to this target, if any.
async fn known(source: &Source<'_>, target: &Target) -> Result<(Arc<dyn Engine>, Option<Mark<Leave>>), Failure> {
    let from = source.reading().await?;
    let out = Marks::read(&*from).await?.out;
    match &out {
        Some(out) if out.state == Leave::Lifting => return Err(Failure::Failed(out.sentence())),
        Some(out) => is_target(target, out).await?,
        None => {}
    }
    fits(source, &*from, out.as_ref()).await?;
    Ok((from, out))
}

/// Checks, and changes nothing.
async fn checked(source: &Source<'_>, target: &Target) -> Reply {
    let (from, out) = known(source, target).await?;
    if let Some(out) = out.as_ref().filter(|out| out.state == Leave::Left) {
        return Err(Failure::Failed(out.sentence()));
    }
    // A move finds out by itself, before anything is changed.
    source.is_within_reach().await?;
    let looked = check::look(source, &*from, target, out.as_ref().map(|out| out.id.as_str())).await?;
    Ok(looked.outcome((&source.name, &target.name)))
}

/// Returns a URL from the place in which it was given.
fn given(url: Option<&Secret>, file: Option<&PathBuf>, variable: &str) -> Result<Option<Secret>, Failure> {
    if let Some(file) = file {
        let text = named_file::text(file);
        let text = text.map(Secret::new).map_err(|error| Failure::Use(format!("{}: {error}", file.display())))?;
        return Ok(Some(Secret::new(text.reveal().lines().next().unwrap_or("").trim())));
    }
    let named = || config::environment().into_iter().find(|(name, value)| name == variable && !value.is_empty());
    Ok(url.cloned().or_else(|| named().map(|(_, value)| Secret::new(value))))
}

/// Parses a URL. An error never repeats it.
fn read(url: &Secret, what: &str) -> Result<StoreUrl, Failure> {
    StoreUrl::parse(&Raw::Word(url.reveal().to_owned())).map_err(|why| Failure::Use(format!("{what} {why}")))
}

/// Combines the URL with the password's file, if the password is not in the URL, and with TLS files.
fn way(url: StoreUrl, password: Option<&SecretFile>, tls: Given, what: &str) -> Result<Way, Failure> {
    let why = match &url {
        StoreUrl::Sqlite(_) if tls.is_some() => Some("is a file, which is reached without TLS"),
        _ if password.is_none() => None,
        StoreUrl::Sqlite(_) => Some("is a file, which has no password"),
        url => url.has_password().then_some("has a password, and a password file is given, too: give only one of them"),
    };
    match why {
        Some(why) => Err(Failure::Use(format!("{what} {why}"))),
        None => Ok(Way { url, password: password.cloned(), tls }),
    }
}

/// Copies everything and marks the source as moved, unless it is told to `stop` before that.
async fn fill(
    source: &Source<'_>,
    (from, to): (&dyn Engine, &dyn Engine),
    id: &str,
    stop: impl Future<Output = ()>,
) -> Result<Option<Vec<Sum>>, Failure> {
    let bar = Bar::new();
    let tell = |step| bar.tell(step);
    let moving = Move { from, to, id, from_name: &source.name, page: PAGE, tell: &tell };
    let work = async {
        let sums = moving.run().await?;
        source.act(Act::Left { id: id.to_owned() }).await?;
        Ok(sums)
    };
    let done = tokio::select! {
        biased;
        () = stop => Err(Failure::Failed("interrupted".into())),
        done = work => done,
    };
    bar.end();
    done
}

/// Checks that a move goes to this target: by its name, or, as a database may have several, by the target's mark.
async fn is_target(target: &Target, out: &Mark<Leave>) -> Result<(), Failure> {
    if target.name == out.peer {
        return Ok(());
    }
    let into = match target.looking().await {
        Ok(engine) => Marks::read(&*engine).await.ok().and_then(|marks| marks.into),
        Err(_) => None,
    };
    match into {
        Some(into) if into.id == out.id => Ok(()),
        _ => Err(Failure::Failed(misnamed(&target.name, out))),
    }
}

/// Says that a target is not known to be the target of a move.
fn misnamed(name: &str, out: &Mark<Leave>) -> String {
    let peer = &out.peer;
    let told = format!("--to names {name}, but this move goes to {peer}: name {peer} as when the move began");
    match out.state {
        Leave::Left => format!("{}; {told}", out.sentence()),
        _ => told,
    }
}

/// The failure where it is not known whether the source was closed to writes: that may still be done there.
fn cut_short(source: &str) -> Failure {
    Failure::Failed(format!(
        "interrupted while writes to {source} were being stopped: portiere move --status says whether the move has begun; if so, \
         {source} takes no writes until it is run again or given up with --abort"
    ))
}

/// Returns whether a source takes no writes; `true` if it cannot be asked.
async fn is_fenced(from: &dyn Engine) -> bool {
    Marks::read(from).await.map_or(true, |marks| marks.out.is_some())
}

/// Says why a move did not finish, and what that means for users of the source.
fn stopped(why: Failure, source: &str, fenced: bool) -> Failure {
    let mut told = why.told().to_owned();
    if told.contains("max_allowed_packet") {
        told += " (raise max_allowed_packet on that server: SET GLOBAL max_allowed_packet = 67108864, \
                 and in its configuration)";
    }
    if fenced {
        told += &format!("; {source} takes no writes until this move is run again or given up with --abort");
    }
    match why {
        Failure::Later(_) => Failure::Later(told),
        _ => Failure::Failed(told),
    }
}

/// Checks that this program can do the move. A finished move stays finished, whichever version did it.
async fn fits(source: &Source<'_>, from: &dyn Engine, out: Option<&Mark<Leave>>) -> Result<(), Failure> {
    moving::fits(from, out.is_some()).await.map_err(|trouble| match out {
        Some(out) if out.state == Leave::Left => Failure::Failed(format!(
            "{} was moved to {} already, by another version of this program",
            source.name, out.peer
        )),
        _ => trouble.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;
    use store::migrations::MIGRATIONS;
    use store::sqlite::{Options, Sqlite};

    #[test]
    fn a_move_that_is_told_to_stop_stops_and_says_so() {
        // red without `stop` in `fill`: a signal would end the move without a word.
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let open = |name: &str| Sqlite::open(Options::at(file(name)), MIGRATIONS).unwrap();
        let (from, to) = (open("from.db"), open("to.db"));
        let flags = vec![("data", folder.path().display().to_string())];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let url = StoreUrl::parse(&Raw::Text(format!("sqlite:{}", file("from.db").display()))).unwrap();
        let source = Source::new(&config, Way { url, password: None, tls: Given::default() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let done = runtime.block_on(fill(&source, (&from, &to), "a move", std::future::ready(())));
        assert_eq!(done.err(), Some(Failure::Failed("interrupted".into())));
    }

    #[test]
    fn a_move_claims_its_target_before_it_closes_its_source() {
        // red where `close` raises the fence first, or leaves the claim of a move that did not begin.
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let open = |name: &str| Sqlite::open(Options::at(file(name)), MIGRATIONS).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (from, to) = (open("from.db"), open("to.db"));
        let flags = vec![("data", folder.path().display().to_string())];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        // Whose fence fails.
        let url = StoreUrl::parse(&Raw::Text("postgres://u@127.0.0.1:1/none".into())).unwrap();
        let source = Source::new(&config, Way { url, password: None, tls: Given::default() });
        let closed = || close(&source, (&from, &to), (None, "to"), std::future::pending());
        runtime.block_on(async {
            from.migrate().await.unwrap();
            to.migrate().await.unwrap();
            assert!(matches!(closed().await, Err(Failure::Later(_))));
            assert_eq!(Marks::read(&to).await.unwrap(), Marks::default(), "nothing is left of it");
            claim::claim(&from, &to, "another", "elsewhere").await.unwrap();
            let Err(Failure::Failed(why)) = closed().await else { panic!("it reached for its source") };
            assert!(why.contains("another move, from elsewhere"), "{why}");
        });
    }

    #[test]
    fn a_target_that_is_not_that_of_the_move_is_told_beside_the_one_that_is() {
        let out = |state| Mark { id: "m".into(), state, peer: "postgres://u@localhost/d".into() };
        let told = misnamed("postgres://u@127.0.0.1/d", &out(Leave::Fenced));
        assert!(
            told.starts_with("--to names postgres://u@127.0.0.1/d, but this move goes to postgres://u@localhost/d: ")
        );
        let told = misnamed("sqlite:/b.db", &out(Leave::Left));
        assert!(
            told.contains("was moved to postgres://u@localhost/d") && told.contains("--to names sqlite:/b.db"),
            "{told}"
        );
    }

    #[test]
    fn a_move_that_was_done_stays_done_for_every_version() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("old.db");
        let earlier = Sqlite::open(Options::at(file.clone()), &MIGRATIONS[..1]).unwrap();
        let config = Config::load(Sources::default()).unwrap();
        let url = StoreUrl::parse(&Raw::Text(format!("sqlite:{}", file.display()))).unwrap();
        let source = Source::new(&config, Way { url, password: None, tls: Given::default() });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let told = |state| {
            let out = Mark { id: "m".into(), state, peer: "mysql://h/d".into() };
            match runtime.block_on(fits(&source, &earlier, Some(&out))) {
                Err(Failure::Failed(told)) => told,
                other => panic!("{other:?}"),
            }
        };
        runtime.block_on(earlier.migrate()).unwrap();
        assert!(told(Leave::Left).contains("was moved to mysql://h/d already"));
        assert!(told(Leave::Fenced).contains("begun by another version"));
    }

    #[test]
    fn a_move_that_stops_says_that_writes_are_still_refused_and_what_helps() {
        // red without `stopped` in Moving::go.
        let told = |why: &str, fenced| match stopped(Failure::Failed(why.into()), "sqlite:/a.db", fenced) {
            Failure::Failed(told) => told,
            other => panic!("{other:?}"),
        };
        let line = told("mysql://h/d: Packet is larger than max_allowed_packet", true);
        assert!(line.starts_with("mysql://h/d: ") && line.contains("SET GLOBAL max_allowed_packet"), "{line}");
        assert!(line.ends_with("; sqlite:/a.db takes no writes until this move is run again or given up with --abort"));
        assert_eq!(told("the source is no longer fenced", false), "the source is no longer fenced");
    }
}
