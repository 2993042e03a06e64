//! The contents of a server's database, dumped and restored with that server's own tools.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};

/// A copy of a database, and its URL.
pub struct Dump {
    url: String,
    file: tempfile::NamedTempFile,
}

/// How often restoring rows is tried while nodes change the same rows.
const TRIES: usize = 10;

impl Dump {
    /// Copies everything, as an operator would keep it.
    pub fn of(url: &str) -> Dump {
        Dump::taken(url, &["--format=custom"], &["--single-transaction", "--hex-blob"])
    }

    /// Copies only the rows, which can be put back in one step.
    pub fn of_rows(url: &str) -> Dump {
        let mariadb = ["--single-transaction", "--hex-blob", "--no-create-info", "--skip-triggers", "--skip-add-locks"];
        Dump::taken(url, &["--data-only"], &[&mariadb[..], &["--skip-disable-keys"]].concat())
    }

    fn taken(url: &str, postgres: &[&str], mariadb: &[&str]) -> Dump {
        let file = tempfile::NamedTempFile::new().unwrap();
        let dump = match is_postgres(url) {
            true => Command::new("pg_dump").args(postgres).arg("--dbname").arg(url).stdout(written(&file)).status(),
            false => client(url, "mariadb-dump", mariadb).stdout(written(&file)).status(),
        };
        assert!(dump.expect("the server's tools are installed").success());
        Dump { url: url.to_owned(), file }
    }

    /// Replaces the contents with a copy of everything. Nobody may use the database meanwhile.
    pub fn restore(&self) {
        let restored = match is_postgres(&self.url) {
            true => Command::new("pg_restore")
                .args(["--clean", "--if-exists", "--no-owner", "--single-transaction", "--dbname", &self.url])
                .arg(self.file.path())
                .status(),
            false => client(&self.url, "mariadb", &[]).stdin(File::open(self.file.path()).unwrap()).status(),
        };
        assert!(restored.expect("the server's tools are installed").success());
    }

    /// Puts rows back in one step, like a server that lost its last moments; the database may be in use.
    pub fn put_back(&self) {
        let before = match is_postgres(&self.url) {
            true => {
                "DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP \
                 EXECUTE 'TRUNCATE TABLE ' || quote_ident(t); END LOOP; END $$;\n"
                    .to_owned()
            }
            false => {
                let tables = client(&self.url, "mariadb", &["-N", "-B", "-e", "SHOW TABLES"]).output().unwrap();
                let tables = String::from_utf8(tables.stdout).unwrap();
                let emptied: String = tables.lines().map(|table| format!("DELETE FROM `{table}`;\n")).collect();
                format!("SET SESSION foreign_key_checks = 0;\nSTART TRANSACTION;\n{emptied}")
            }
        };
        let rows = std::fs::read_to_string(self.file.path()).unwrap();
        let end = if is_postgres(&self.url) { "" } else { "COMMIT;\n" };
        let whole = format!("{before}{rows}{end}");
        // Another transaction on the same rows may be let through first.
        assert!((0..TRIES).any(|_| self.run(&whole)), "the rows were not put back");
    }

    fn run(&self, sql: &str) -> bool {
        let mut command = match is_postgres(&self.url) {
            true => {
                let mut psql = Command::new("psql");
                psql.args(["--quiet", "--single-transaction", "--set", "ON_ERROR_STOP=1", "--file", "-", "--dbname"]);
                psql.arg(&self.url);
                psql
            }
            false => client(&self.url, "mariadb", &[]),
        };
        let mut running = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // A client that failed reads no more.
        drop(running.stdin.take().unwrap().write_all(sql.as_bytes()));
        running.wait().unwrap().success()
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres")
}

fn written(file: &tempfile::NamedTempFile) -> File {
    file.reopen().unwrap()
}

/// Makes a command of a MariaDB program, on the database of a URL.
fn client(url: &str, program: &str, options: &[&str]) -> Command {
    let (user, rest) = url.strip_prefix("mysql://").and_then(|rest| rest.split_once(':')).expect("a URL of MariaDB");
    let (password, rest) = rest.split_once('@').unwrap();
    let (place, name) = rest.split_once('/').unwrap();
    let (host, port) = place.split_once(':').unwrap();
    let mut command = Command::new(program);
    command.args(["-h", host, "-P", port, "-u", user]).args(options).arg(name).env("MYSQL_PWD", password);
    command
}
