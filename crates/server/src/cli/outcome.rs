//! The outcome of a command: something to show, or an error line and an exit code.

use super::text::{harmless, harmless_json};
use crate::boot::BootError;
use crate::config::LogFormat;
use crate::logs;
use app::Fault;
use app::admin::{Ground, Refused};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;
use store::moving::Trouble;
use store::remote::is_lasting;

/// What a command answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The answer for people.
    pub text: String,
    /// The answer for programs; a list is an array.
    pub json: Value,
    /// Where the next page of a list begins, if there may be one.
    pub next: Option<String>,
    /// What the caller may have meant otherwise, for standard error.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Why a command did not do what was asked: one line per problem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The command makes no sense as given.
    Use(String),
    /// It was understood, but could not be done.
    Failed(String),
    /// Likewise: what was named does not exist.
    NotFound(String),
    /// Likewise: what was to be made exists already.
    Exists(String),
    /// Likewise: it is not allowed.
    Refused(String),
    /// Likewise, but the same command may succeed later: nothing was done.
    Later(String),
    /// Nobody knows whether it was done.
    InDoubt(String),
    /// Likewise, and a command that follows something must not go on with it later.
    Lasting(String),
}

/// The commands that make another link, and another token of a worker.
pub const ANOTHER_LINK: &str = "portiere setup-link";
pub const ANOTHER_TOKEN: &str = "portiere verifier token";

/// Returns the command that makes another secret of a client.
pub fn another_secret(client: &str) -> String {
    format!("portiere client rotate-secret {client}")
}

/// The result of carrying out a command.
pub type Reply = Result<Outcome, Failure>;

impl Outcome {
    /// Returns what the outcome tells once and never again, and the command that makes another.
    fn told_once(&self) -> Option<(&'static str, String)> {
        let says = |name: &str| self.json.get(name).and_then(Value::as_str);
        let of_client = || says("client_secret").and(says("client_id"));
        let rotate = |id| ("the client has a new secret", another_secret(id));
        let link = || says("link").map(|_| ("the link was made", ANOTHER_LINK.to_owned()));
        let token = || says("token").map(|_| ("the token was made", ANOTHER_TOKEN.to_owned()));
        of_client().map(rotate).or_else(link).or_else(token)
    }

    /// Returns the failure of a command whose answer could not be shown and was to be seen only this once: the command
    /// was carried out, and its answer is lost.
    pub fn lost(&self, error: &io::Error) -> Option<Failure> {
        let (done, command) = self.told_once()?;
        let why = match error.kind() {
            io::ErrorKind::BrokenPipe => "the reader closed it".to_owned(),
            _ => error.to_string(),
        };
        Some(Failure::Failed(format!(
            "cannot write to standard output: {why}: {done}, but it was not shown; make another: {command}"
        )))
    }

    /// Returns the same answer for people and for programs.
    pub fn new(text: impl Into<String>, json: Value) -> Self {
        Outcome { text: text.into(), json, next: None, notes: Vec::new() }
    }

    /// Makes this a page of a list, after which there may be another one.
    pub fn then(self, next: Option<String>) -> Self {
        Outcome { next, ..self }
    }

    /// Adds notes to the answer.
    pub fn noting(self, notes: Vec<String>) -> Self {
        Outcome { notes, ..self }
    }
}

impl Failure {
    /// Returns 2 for wrong use, 75 for what may succeed later (`EX_TEMPFAIL` of sysexits.h), 1 for anything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Use(_) => 2,
            Failure::Later(_) => 75,
            Failure::Failed(_) | Failure::NotFound(_) | Failure::Exists(_) | Failure::Refused(_) => 1,
            Failure::InDoubt(_) | Failure::Lasting(_) => 1,
        }
    }

    /// Returns the name of the kind of failure, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Failure::Use(_) => "use",
            Failure::Failed(_) | Failure::Lasting(_) => "failed",
            Failure::NotFound(_) => "not-found",
            Failure::Exists(_) => "exists",
            Failure::Refused(_) => "refused",
            Failure::Later(_) => "unavailable",
            Failure::InDoubt(_) => "in-doubt",
        }
    }

    /// Returns the failure of a command that got no answer from the database, which may have one later, or only after
    /// an operator has changed something.
    pub fn away(why: String) -> Self {
        if is_lasting(&why) { Failure::Failed(why) } else { Failure::Later(why) }
    }

    /// Returns the failure of a command of which nobody knows whether it was carried out.
    pub fn in_doubt(why: &str) -> Self {
        Failure::InDoubt(format!("{why}: the command may or may not have been carried out"))
    }

    /// Returns the failure of a command that was carried out, and whose answer could not be read: the same command
    /// would do it once more.
    pub fn unread(fault: &Fault) -> Self {
        Failure::Failed(format!("{fault}: the command was carried out, but its outcome could not be read"))
    }

    /// Returns the problems, a line each.
    pub fn told(&self) -> &str {
        match self {
            Failure::Use(lines) | Failure::Failed(lines) | Failure::Later(lines) => lines,
            Failure::NotFound(lines) | Failure::Exists(lines) | Failure::Refused(lines) => lines,
            Failure::InDoubt(lines) | Failure::Lasting(lines) => lines,
        }
    }

    /// Returns why, if a command that follows something goes on when that is over.
    pub fn passes(&self) -> Option<&str> {
        match self {
            Failure::Failed(why) | Failure::Later(why) => Some(why),
            Failure::NotFound(_) | Failure::Exists(_) | Failure::Refused(_) => None,
            Failure::Use(_) | Failure::InDoubt(_) | Failure::Lasting(_) => None,
        }
    }

    /// Writes the failure to standard error: for people, or as one object on one line.
    pub fn tell(&self, as_json: bool) -> ExitCode {
        match as_json {
            true => mutter(&self.as_json()),
            false => self.told().lines().for_each(say),
        }
        ExitCode::from(self.exit_code())
    }

    fn as_json(&self) -> String {
        let told = json!({ "error": { "code": self.code(), "message": self.told() } });
        format!("{}\n", harmless_json(told.to_string()))
    }

    /// Writes the failure as a server's log does: programs that read the log learn there why the server ended.
    pub fn tell_as(&self, format: LogFormat) -> ExitCode {
        if format == LogFormat::Text {
            return self.tell(false);
        }
        self.told().lines().for_each(|line| logs::tell_failure(&harmless(line)));
        ExitCode::from(self.exit_code())
    }
}

/// Writes a line to standard error.
pub fn say(line: &str) {
    mutter(&format!("portiere: {}\n", harmless(line)));
}

/// Writes to standard error, as is. If nobody reads there any more, what was done stays done.
pub fn mutter(text: &str) {
    let mut out = io::stderr().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        match refused.ground {
            Ground::Rule => Failure::Refused(refused.why),
            Ground::Missing => Failure::NotFound(refused.why),
            Ground::Taken => Failure::Exists(refused.why),
        }
    }
}
impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let told = fault.to_string();
        match fault {
            Fault::Unavailable(_) => Failure::away(told),
            Fault::InDoubt(_) => Failure::in_doubt(&told),
            Fault::Busy(_) | Fault::Over(_) | Fault::Contended(_) => Failure::Later(told),
            Fault::Broken(_) | Fault::Foreign(_) => Failure::Failed(told),
        }
    }
}
impl From<BootError> for Failure {
    fn from(error: BootError) -> Self {
        match error {
            BootError::Wrong(problems) => Failure::Use(problems.join("\n")),
            BootError::Away(why) => Failure::away(why),
            BootError::InUse | BootError::Other(_) => Failure::Failed(error.to_string()),
        }
    }
}
impl From<Trouble> for Failure {
    fn from(Trouble { why, is_away }: Trouble) -> Self {
        if is_away { Failure::away(why) } else { Failure::Failed(why) }
    }
}
impl From<load::Refusal> for Failure {
    fn from(refusal: load::Refusal) -> Self {
        match refusal {
            load::Refusal::Use(line) => Failure::Use(line),
            load::Refusal::Failure(line) => Failure::Failed(line),
        }
    }
}
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Failed(error.to_string())
    }
}

/// Writes outcomes. A list arrives in pages and is written as one: in JSON as an array with one item per line.
pub struct Printer<W> {
    out: W,
    json: bool,
    items: usize,
    open: bool,
}

impl<W: Write> Printer<W> {
    /// Writes to `out`, as JSON or as text.
    pub fn new(out: W, json: bool) -> Self {
        Printer { out, json, items: 0, open: false }
    }

    /// Writes an outcome, or the next page of one.
    pub fn show(&mut self, outcome: &Outcome) -> io::Result<()> {
        if !self.json {
            let end = if outcome.text.is_empty() || outcome.text.ends_with('\n') { "" } else { "\n" };
            write!(self.out, "{}{end}", outcome.text)?;
            return self.out.flush();
        }
        let Value::Array(items) = &outcome.json else {
            writeln!(self.out, "{}", harmless_json(serde_json::to_string_pretty(&outcome.json)?))?;
            return self.out.flush();
        };
        self.open = true;
        for item in items {
            self.out.write_all(if self.items == 0 { b"[\n" } else { b",\n" })?;
            self.out.write_all(harmless_json(serde_json::to_string(item)?).as_bytes())?;
            self.items += 1;
        }
        Ok(())
    }

    /// Ends a list that was begun.
    pub fn finish(mut self) -> io::Result<()> {
        if self.open {
            self.out.write_all(if self.items == 0 { b"[]\n" } else { b"\n]\n" })?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::Span;
    use store::engine::Unavailable;

    fn printed(json: bool, outcomes: &[Outcome]) -> String {
        let mut written = Vec::new();
        let mut printer = Printer::new(&mut written, json);
        outcomes.iter().for_each(|outcome| printer.show(outcome).unwrap());
        printer.finish().unwrap();
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn the_pages_of_a_list_are_one_array() {
        let page = |items| Outcome::new("x", items);
        let pages = [page(json!([{ "a": 1 }, 2])), page(json!([3]))];
        assert_eq!(printed(true, &pages), "[\n{\"a\":1},\n2,\n3\n]\n");
        assert_eq!(printed(true, &[page(json!([]))]), "[]\n");
        assert_eq!(printed(false, &pages), "x\nx\n");
        assert_eq!(printed(true, &[page(json!({ "a": 1 }))]), "{\n  \"a\": 1\n}\n");
    }

    #[test]
    fn whatever_is_told_once_has_a_command_that_makes_another() {
        let lost = |json, kind| Outcome::new("x", json).lost(&io::Error::from(kind));
        for (json, command) in [
            (json!({ "client_id": "shop", "client_secret": "s" }), "portiere client rotate-secret shop"),
            (json!({ "link": "https://id.test/setup#x" }), "portiere setup-link"),
            (json!({ "token": "pvt1.a.b" }), "portiere verifier token"),
        ] {
            for kind in [io::ErrorKind::BrokenPipe, io::ErrorKind::StorageFull] {
                let Some(Failure::Failed(line)) = lost(json.clone(), kind) else { panic!("{command}") };
                assert!(line.ends_with(command) && !line.contains("pvt1") && !line.contains("setup#"), "{line}");
            }
        }
        for json in [json!({ "client_id": "shop" }), json!([{ "token": "x" }]), json!({ "link": null })] {
            assert_eq!(lost(json, io::ErrorKind::StorageFull), None);
        }
    }

    #[test]
    fn a_command_that_follows_goes_on_through_what_may_pass() {
        // Red without Later in `passes`: `audit tail -f` would end when a server stops, or the database is away.
        let why = || "away".to_owned();
        assert_eq!([Failure::Failed(why()), Failure::Later(why())].each_ref().map(Failure::passes), [Some("away"); 2]);
        assert_eq!([Failure::Use(why()), Failure::Lasting(why())].each_ref().map(Failure::passes), [None; 2]);
    }

    #[test]
    fn a_program_reads_of_each_failure_what_kind_it_is() {
        let why = || "no\nand \u{9b}2J".to_owned();
        for (failure, code) in [
            (Failure::Use(why()), "use"),
            (Failure::Failed(why()), "failed"),
            (Failure::Lasting(why()), "failed"),
            (Failure::NotFound(why()), "not-found"),
            (Failure::Exists(why()), "exists"),
            (Failure::Refused(why()), "refused"),
            (Failure::Later(why()), "unavailable"),
            (Failure::InDoubt(why()), "in-doubt"),
            (Refused::new(why()).into(), "refused"),
            (Refused::missing(why()).into(), "not-found"),
            (Refused::taken(why()).into(), "exists"),
        ] {
            let line = failure.as_json();
            assert!(line.ends_with("}\n") && line.lines().count() == 1 && line.contains("\\u009b"), "{line:?}");
            let told: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(told, json!({ "error": { "code": code, "message": why() } }));
        }
    }

    #[test]
    fn json_holds_nothing_that_a_terminal_obeys() {
        // Red without either `harmless_json` in `Printer::show`.
        let drives = json!({ "name": "\u{9b}2J" });
        for shown in [json!([drives]), drives] {
            let text = printed(true, &[Outcome::new("x", shown)]);
            assert!(text.contains("\\u009b2J"), "{text:?}");
        }
    }

    #[test]
    fn wrong_use_ends_with_two_and_failure_with_one_unless_it_may_pass() {
        assert_eq!(Failure::Use(String::new()).exit_code(), 2);
        assert_eq!(Failure::from(Refused::new("no")).exit_code(), 1);
        assert_eq!(Failure::from(load::Refusal::Use("no".into())).exit_code(), 2);
        assert_eq!(Failure::from(BootError::Wrong(vec!["no".into()])).exit_code(), 2);
        assert_eq!(Failure::from(BootError::InUse).exit_code(), 1);
        assert_eq!(Failure::from(BootError::Away("refused".into())).exit_code(), 75);
        let later = [Fault::Busy(Span::seconds(2)), Fault::Unavailable("away".into()), Fault::Contended("x".into())];
        assert!(later.into_iter().all(|fault| Failure::from(fault).exit_code() == 75));
        assert_eq!(Failure::from(Fault::Broken("x".into())).exit_code(), 1);
        // Red without `is_away` in Trouble, as in a move whose source is killed, and without `is_lasting`.
        let of_move = |why: &str| Failure::from(Trouble::from(Unavailable(why.to_owned()))).exit_code();
        assert_eq!(of_move("Connection refused (os error 111)"), 75);
        assert_eq!(Failure::from(Trouble::new("the target is not empty")).exit_code(), 1);
        let pooler = "(26000): a connection pooler in transaction mode needs store.statements = \"unnamed\"";
        assert_eq!((of_move("permission denied (42501)"), of_move("error 1142: INSERT command denied")), (1, 1));
        assert_eq!((of_move(pooler), Failure::from(Fault::Unavailable(pooler.into())).exit_code()), (1, 1));
    }
}
