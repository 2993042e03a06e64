//! What is sent: statements with their arguments, encoded as bytes on the caller's thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use super::{holds, wire};
use crate::dialect::postgres::{self as dialect, Form, Lock, Verb};
use crate::engine::{Must, Read, Value, Write};
use crate::remote::Statements;

/// A statement in the server's dialect, the same on every connection.
#[derive(Debug)]
pub(super) struct Statement {
    /// Its number among all statements; a connection uses it to remember whether it prepared the statement.
    pub(super) id: usize,
    /// Its name on the server; empty if it is prepared anew each time.
    pub(super) name: String,
    /// Whether it raises an error if its row count is wrong.
    pub(super) guarded: bool,
    text: String,
    args: usize,
    read: bool,
    prepared: OnceLock<Prepared>,
}

/// How a statement is prepared, according to the first arguments that it got.
#[derive(Debug)]
struct Prepared {
    /// The types of the arguments; 0 if the first argument was NULL, which leaves the type to the server.
    kinds: Vec<u32>,
    bytes: Vec<u8>,
}

impl Statement {
    /// The messages that prepare it and, for a read, ask for its columns.
    pub(super) fn prepare(&self) -> &[u8] {
        self.prepared.get().map_or(&[], |prepared| &prepared.bytes)
    }

    /// Appends the messages that run it. Anything wrong with the arguments is found here, before anything is sent: a
    /// batch must not begin if its middle cannot be sent.
    fn run(&self, out: &mut Vec<u8>, args: &[Value], more: Option<i64>) -> Result<(), String> {
        if args.len() != self.args {
            return Err(format!("{} arguments for {} placeholders", args.len(), self.args));
        }
        let kinds = args.iter().map(wire::kind).chain(more.iter().map(|number| wire::kind(&Value::Int(*number))));
        let prepared = match self.prepared.get() {
            Some(prepared) => prepared,
            None => {
                let made = self.first(kinds.clone().collect()).map_err(|_| "a statement is too long".to_owned())?;
                self.prepared.get_or_init(|| made)
            }
        };
        if !prepared.kinds.iter().zip(kinds).all(|(had, now)| *had == 0 || now == 0 || *had == now) {
            return Err("an argument is of another type than before".to_owned());
        }
        wire::run(out, &self.name, args, more).map_err(|_| "an argument is too long".to_owned())
    }

    fn first(&self, kinds: Vec<u32>) -> Result<Prepared, wire::TooLong> {
        let mut bytes = Vec::new();
        wire::parse(&mut bytes, &self.name, &self.text, &kinds)?;
        if self.read {
            wire::describe(&mut bytes, &self.name)?;
        }
        Ok(Prepared { kinds, bytes })
    }
}

/// Every statement that was used so far. There are as many as the program has, in few forms.
pub(super) struct Book {
    mode: Statements,
    next: AtomicUsize,
    /// One map for each form.
    known: [RwLock<HashMap<String, Arc<Statement>>>; 6],
}

impl Book {
    pub(super) fn new(mode: Statements) -> Self {
        Book { mode, next: AtomicUsize::new(0), known: Default::default() }
    }

    /// Returns the statement for this text, which is translated once.
    fn statement(&self, sql: &str, form: Form) -> Arc<Statement> {
        let map = match form {
            Form::Read => &self.known[0],
            Form::Plain => &self.known[1],
            Form::Guarded(Lock::Share) => &self.known[2],
            Form::Guarded(Lock::Update) => &self.known[3],
            Form::Guarded(Lock::Delete) => &self.known[4],
            Form::Guarded(Lock::Held) => &self.known[5],
        };
        if let Some(statement) = map.read().unwrap_or_else(PoisonError::into_inner).get(sql) {
            return Arc::clone(statement);
        }
        let (text, args) = dialect::translate(sql, form);
        let id = self.next.fetch_add(1, Relaxed);
        let name = match self.mode {
            Statements::Kept => format!("p{id}"),
            Statements::Unnamed => String::new(),
        };
        let (guarded, read) = (matches!(form, Form::Guarded(_)), form == Form::Read);
        let statement = Arc::new(Statement { id, name, guarded, text, args, read, prepared: OnceLock::new() });
        let mut map = map.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(map.entry(sql.to_owned()).or_insert(statement))
    }

    /// A statement that is run once: prepared without a name, and not remembered.
    fn once(&self, text: String) -> Arc<Statement> {
        let (id, name) = (self.next.fetch_add(1, Relaxed), String::new());
        Arc::new(Statement { id, name, guarded: false, text, args: 0, read: false, prepared: OnceLock::new() })
    }
}

/// Whether a flight is to return rows or to commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Rows; can be asked for again.
    Read,
    /// A commit, which happens at most once.
    Batch,
}

/// The statements of one flight.
#[derive(Debug)]
pub(super) struct Cargo {
    pub(super) role: Role,
    pub(super) steps: Vec<Step>,
    /// The number of steps at the beginning that are ours and not the caller's.
    pub(super) ours: usize,
    /// The generation of the server that it is for, if it is for one.
    pub(super) within: Option<u64>,
    bytes: Vec<u8>,
}

/// One statement of a flight.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) statement: Arc<Statement>,
    pub(super) must: Must,
    /// Where its bytes end.
    end: usize,
}

impl Cargo {
    fn new(role: Role) -> Self {
        Cargo { role, steps: Vec::new(), ours: 0, within: None, bytes: Vec::new() }
    }

    /// Several reads.
    pub(super) fn reads(book: &Book, reads: &[Read]) -> Result<Self, String> {
        Cargo::reads_after(book, None, reads)
    }

    /// Several reads after a `first` one.
    pub(super) fn reads_after(book: &Book, first: Option<&Read>, reads: &[Read]) -> Result<Self, String> {
        let mut cargo = Cargo::new(Role::Read);
        for read in first.into_iter().chain(reads) {
            cargo.add(book.statement(read.sql.text(), Form::Read), &read.args, Must::Any)?;
        }
        Ok(cargo)
    }

    /// A batch after a `prelude`: settings for this transaction only, and what must be so of its server.
    pub(super) fn batch(book: &Book, prelude: &[(&Read, Must)], writes: &[Write]) -> Result<Self, String> {
        let mut cargo = Cargo::new(Role::Batch);
        for (read, must) in prelude {
            let form = Form::of(read.sql.text(), *must, Lock::Held);
            cargo.add(book.statement(read.sql.text(), form), &read.args, *must)?;
            cargo.ours += 1;
        }
        for (number, alone) in holds::of(writes) {
            let sql = if alone { dialect::ALONE } else { dialect::SHARE };
            cargo.add(book.statement(sql, Form::Plain), &[Value::Int(number)], Must::Any)?;
            cargo.ours += 1;
        }
        for (at, write) in writes.iter().enumerate() {
            let form = Form::of(write.sql.text(), write.must, lock(&writes[at..], book.mode));
            cargo.add(book.statement(write.sql.text(), form), &write.args, write.must)?;
        }
        Ok(cargo)
    }

    /// A step of the schema after other statements, as a batch.
    pub(super) fn schema(book: &Book, before: &[Read], step: Option<&str>) -> Result<Self, String> {
        let mut cargo = Cargo::new(Role::Batch);
        for read in before {
            cargo.add(book.statement(read.sql.text(), Form::Plain), &read.args, Must::Any)?;
        }
        if let Some(step) = step {
            cargo.add(book.once(dialect::schema(step)), &[], Must::Any)?;
        }
        Ok(cargo)
    }

    /// A change of the schema in PostgreSQL's own dialect, after `before`.
    pub(super) fn alteration(book: &Book, before: &Read, statement: String) -> Result<Self, String> {
        let mut cargo = Cargo::new(Role::Batch);
        cargo.add(book.statement(before.sql.text(), Form::Plain), &before.args, Must::Any)?;
        cargo.add(book.once(statement), &[], Must::Any)?;
        Ok(cargo)
    }

    fn add(&mut self, statement: Arc<Statement>, args: &[Value], must: Must) -> Result<(), String> {
        let more = match must {
            Must::Touch(count) | Must::Find(count) if statement.guarded => Some(count.try_into().unwrap_or(i64::MAX)),
            _ => None,
        };
        statement.run(&mut self.bytes, args, more)?;
        self.steps.push(Step { statement, must, end: self.bytes.len() });
        Ok(())
    }

    /// Returns each statement with the bytes that run it.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&Statement, &[u8])> {
        let begins = std::iter::once(0).chain(self.steps.iter().map(|step| step.end));
        begins.zip(&self.steps).map(|(begin, step)| (&*step.statement, &self.bytes[begin..step.end]))
    }
}

/// How strongly the first of these statements has to lock the rows that it finds, because of the statements after it.
fn lock(writes: &[Write], mode: Statements) -> Lock {
    let Some((first, later)) = writes.split_first() else { return Lock::Share };
    let sql = first.sql.text();
    // Without session settings, a statement may see data from before its wait for the lock; a row lock then fails.
    if mode == Statements::Kept && holds::covers(first) {
        return Lock::Held;
    }
    if dialect::verb(sql) != Verb::Select {
        return Lock::Share;
    }
    let table = dialect::table(sql);
    let stronger = |write: &Write| match dialect::verb(write.sql.text()) {
        Verb::Update => Lock::Update,
        Verb::Delete => Lock::Delete,
        _ => Lock::Share,
    };
    let same = later.iter().filter(|write| dialect::table(write.sql.text()) == table);
    same.map(stronger).max().unwrap_or(Lock::Share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Sql;

    const FIND: Sql = Sql::fixed("SELECT 1 FROM a WHERE id = ?");
    const UPDATE: Sql = Sql::fixed("UPDATE a SET n = ?");
    const DELETE: Sql = Sql::fixed("DELETE FROM a WHERE n = ?");
    const OTHER: Sql = Sql::fixed("UPDATE b SET n = ?");

    fn write(sql: Sql, must: Must) -> Write {
        Write { sql, args: vec![Value::Int(1)], must }
    }

    #[test]
    fn a_read_of_rows_that_its_batch_changes_later_locks_them_at_once() {
        let any = |sql: &Sql| write(sql.clone(), Must::Any);
        for (later, wanted) in [
            (vec![], Lock::Share),
            (vec![any(&OTHER)], Lock::Share),
            (vec![any(&OTHER), any(&UPDATE)], Lock::Update),
            (vec![any(&UPDATE), any(&DELETE), any(&UPDATE)], Lock::Delete),
        ] {
            let batch: Vec<Write> = std::iter::once(write(FIND, Must::Find(1))).chain(later).collect();
            assert_eq!(lock(&batch, Statements::Kept), wanted, "{batch:?}");
        }
    }

    #[test]
    fn who_changes_what_everybody_holds_queues_for_it_first() {
        let book = Book::new(Statements::Kept);
        let one = |sql: &'static str| write(Sql::fixed(sql), Must::Touch(1));
        let text = |text: &str| Value::Text(text.into());
        let named = |sql: &'static str| Write { args: vec![text("main"), text("shop")], ..one(sql) };
        let first = |write: Write| {
            let cargo = Cargo::batch(&book, &[], &[one("UPDATE b SET n = ?"), write]).unwrap();
            assert_eq!(cargo.steps.len(), 2 + cargo.ours);
            (cargo.ours == 1).then(|| cargo.steps[0].statement.text.clone())
        };
        let alone = "SELECT pg_advisory_xact_lock($1)";
        let shared = "SELECT pg_advisory_xact_lock_shared($1)";
        for (sql, wanted) in [
            ("UPDATE clients SET n = 1 WHERE realm = ? AND id = ?", Some(alone)),
            ("DELETE FROM clients WHERE realm = ? AND id = ?", Some(alone)),
            ("SELECT 1 FROM clients WHERE realm = ? AND id = ?", Some(shared)),
            ("UPDATE realms SET n = 1 WHERE id = ? AND n = ?", Some(alone)),
            ("SELECT 1 FROM realms WHERE id = ? AND n = ?", Some(shared)),
            ("INSERT INTO clients (realm, id) VALUES (?, ?)", None),
            ("UPDATE a SET n = 1 WHERE realm = ? AND id = ?", None),
        ] {
            assert_eq!(first(named(sql)).as_deref(), wanted, "{sql}");
        }
    }

    #[test]
    fn wrong_arguments_are_found_before_anything_is_sent() {
        let book = Book::new(Statements::Kept);
        let with = |args: Vec<Value>| Cargo::reads(&book, &[Read { sql: FIND, args }]).map(drop);
        assert!(with(vec![]).is_err());
        assert!(with(vec![Value::Null]).is_ok());
        assert!(with(vec![Value::Null, Value::Null]).is_err());
        let batch = |value| {
            let writes = [write(UPDATE, Must::Touch(1)), Write { args: vec![value], ..write(UPDATE, Must::Touch(1)) }];
            Cargo::batch(&book, &[], &writes).map(drop)
        };
        assert!(batch(Value::Int(2)).is_ok());
        assert!(batch(Value::Null).is_ok());
        assert!(batch(Value::Text("2".into())).is_err());
    }

    #[test]
    fn a_statement_is_translated_once_for_each_form() {
        let book = Book::new(Statements::Kept);
        let plain = book.statement(UPDATE.text(), Form::Plain);
        assert!(Arc::ptr_eq(&plain, &book.statement(UPDATE.text(), Form::Plain)));
        assert_ne!(plain.name, book.statement(UPDATE.text(), Form::Guarded(Lock::Share)).name);
    }
}
