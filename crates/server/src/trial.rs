//! Finds, without a start, what would keep a server from starting: in the files that the configuration names, and in
//! what it says about places. No address is bound, no server is called, and nothing is written. A check of the
//! configuration asks this, and so does a start before anything else, so that both say the same.

use crate::auditing;
use crate::boot;
use crate::config::{Config, Problem, SecretFile, declared};
use crate::database::Database;
use crate::hashing;
use crate::http;
use crate::metrics;
use crate::net::{self, Terms, TlsError};
use crate::private::{self, Unread};
use crate::receivers;
use crate::trace::Exporter;
use app::clock::Clock;
use std::io::ErrorKind;
use std::path::{Path, absolute};

/// Something that is tried, and the options that it depends on: names, and what names of a section begin with.
type Trial = (fn(&Config) -> Result<(), String>, &'static [&'static str]);

const TRIALS: [Trial; 12] = [
    (with_server, &["store."]),
    (tls, &["tls."]),
    (try_it, &["public_url", "try_it"]),
    (database, &["store.", "data"]),
    (hashes, &["hash."]),
    (streams, &["audit."]),
    (metrics_secret, &["metrics."]),
    (traces, &["trace."]),
    (master_key, &["keys.", "store.", "data"]),
    (audit_key, &["audit.", "store.", "data"]),
    (old_audit_keys, &["audit."]),
    (data_folder, &["data"]),
];

/// The options whose defaults name a place that may be of another server: if it is not known what was meant, nothing is
/// said about that place.
const PLACES: [&str; 3] = ["store.", "data", "public_url"];

/// Returns everything that would keep the server from starting, one sentence each.
pub fn problems(config: &Config) -> Vec<String> {
    beside(config, &[])
}

/// Returns the same of what does not depend on options that are wrong by themselves, which have their defaults here.
pub fn beside(config: &Config, wrong: &[Problem]) -> Vec<String> {
    let may_be_tried = |(_, of): &Trial| !wrong.iter().any(|problem| of.iter().any(|part| concerns(problem, part)));
    let said = TRIALS.into_iter().filter(may_be_tried).filter_map(|(tried, _)| tried(config).err());
    // Some errors hold several problems, one per line.
    said.flat_map(|said| said.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Whether a problem is about an option of that name, or that begins so, or may be.
fn concerns(problem: &Problem, part: &str) -> bool {
    let known = problem.option.as_deref().filter(|name| declared().any(|option| option.name == *name));
    let named = problem.option.as_deref().unwrap_or_default();
    named == part.trim_end_matches('.') || named.starts_with(part) || known.is_none() && PLACES.contains(&part)
}

/// Checks that options about a database server are for one.
fn with_server(config: &Config) -> Result<(), String> {
    let wrong = config.without_server();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn database(config: &Config) -> Result<(), String> {
    Database::judge(config).map_err(|error| error.to_string())
}

fn hashes(config: &Config) -> Result<(), String> {
    hashing::settings(config).map(drop).map_err(|error| error.to_string())
}

fn streams(config: &Config) -> Result<(), String> {
    auditing::streams(config).map(drop).map_err(|error| error.to_string())
}

fn traces(config: &Config) -> Result<(), String> {
    Exporter::of(config, "", &Clock::system()).map(drop).map_err(|error| error.to_string())
}

/// Checks the audit key. Whether another node has a missing one, only the database knows.
fn audit_key(config: &Config) -> Result<(), String> {
    if config.audit_key().is_some() {
        return Ok(());
    }
    let file = config.audit_key_file();
    match (sound("audit.key_file", &file)?, config.database()) {
        (false, Some(database)) if !database.exists() => may_be_made("audit.key_file", &file, &config.server.data),
        _ => Ok(()),
    }
}

fn old_audit_keys(config: &Config) -> Result<(), String> {
    auditing::old(&config.audit.old_keys).map(drop).map_err(|error| error.to_string())
}

/// Checks the data folder, if there is one: a first start makes it.
fn data_folder(config: &Config) -> Result<(), String> {
    boot::judge_folder(&config.server.data).map_err(|why| format!("data: {why}"))
}

/// Returns what does not keep the server from starting but should be corrected, one sentence each.
pub fn warnings(config: &Config) -> Vec<String> {
    let tls = Terms::of(config, u64::MAX).ok().and_then(|terms| terms.tls);
    tls.map(|tls| tls.doubts()).unwrap_or_default().into_iter().chain(bared(config)).collect()
}

/// Where a container engine puts a container's secrets, readable for every user in it: nobody else is in there.
const MOUNTED: &str = "/run/secrets";

/// Names, one per sentence, the files that let any user of the machine pose as this node to its database or a receiver.
pub fn bared(config: &Config) -> Vec<String> {
    let password = config.store.password_file.as_deref().filter(|file| !file.starts_with(MOUNTED));
    let password = password.and_then(|file| net::bared("password of store.password_file", file));
    let keys = receivers::all(config).into_iter();
    let keys = keys
        .filter_map(|files| files.key().and_then(|(option, key)| net::bared(&format!("client key of {option}"), key)));
    keys.chain(password).collect()
}

/// Checks the certificate and its key.
fn tls(config: &Config) -> Result<(), String> {
    let certificate = config.tls.certificate.as_deref().unwrap_or(Path::new(""));
    Terms::of(config, u64::MAX).map(drop).map_err(|error| match (error.option(certificate), &config.tls.key, &error) {
        // The option may hold the key itself instead of the file's path.
        (option @ "tls.key", Some(key), TlsError::Unreadable(_, why)) => {
            key.wrong(option, &format_args!("cannot be read: {why}"))
        }
        (option, ..) => format!("{option}: {error}"),
    })
}

/// Checks the client of "Try it": it is registered like any other, and its redirect URI begins with the public URL.
fn try_it(config: &Config) -> Result<(), String> {
    let offered = config.server.public_url.as_ref().filter(|url| http::try_it::is_offered(config, url));
    match offered.and_then(|url| Some((url, http::try_it::problem(url)?))) {
        None => Ok(()),
        Some((url, why)) => Err(format!(
            "public_url: {url} cannot have \"Try it\": {why}; write it as browsers do, or set try_it = \"off\""
        )),
    }
}

/// Checks the secret of the metrics, which nobody has to know if metrics are served nowhere.
fn metrics_secret(config: &Config) -> Result<(), String> {
    match config.metrics.listen.is_empty() {
        true => Ok(()),
        false => metrics::secret(config).map(drop).map_err(|error| error.to_string()),
    }
}

/// Checks the master key. A first start makes it; an existing file has to be a key, and a database needs its own.
fn master_key(config: &Config) -> Result<(), String> {
    if config.master_key().is_some() {
        return Ok(());
    }
    let file = config.master_key_file();
    if sound("keys.master", &file)? {
        return Ok(());
    }
    match config.database().is_some_and(|database| database.exists()) {
        true => {
            Err(file
                .wrong("keys.master", &"is missing, and the database needs the one that it was made with; put it back"))
        }
        false => may_be_made("keys.master", &file, &config.server.data),
    }
}

/// Checks a key's file; returns whether there is one.
fn sound(option: &str, file: &SecretFile) -> Result<bool, String> {
    match private::read_key(file) {
        Ok(_) => Ok(true),
        Err(Unread::Missing) => Ok(false),
        Err(why) => Err(file.wrong(option, &why)),
    }
}

/// Checks that a first start could make a key's file. It makes the data folder itself, but no other one.
fn may_be_made(option: &str, file: &SecretFile, data: &Path) -> Result<(), String> {
    let wrong = |why: String| Err(file.wrong(option, &why));
    let is_in_data = || match (absolute(&**file), absolute(data)) {
        (Ok(file), Ok(data)) => file.parent() == Some(&data),
        _ => false,
    };
    match private::could_be_made(file) {
        Ok(()) => Ok(()),
        Err(_) if !data.exists() && is_in_data() => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            wrong("is missing, and so is its folder: make the folder, or name another file".to_owned())
        }
        Err(error) => wrong(format!("is missing and cannot be made: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Sources;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_client_key_that_everybody_may_read_is_told_of() {
        // red without `bared` in `warnings`.
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("client.key");
        fs::write(&key, "").unwrap();
        let named = |option: &'static str, value: &str| (option, value.to_owned());
        let at = key.display().to_string();
        let flags = vec![
            named("data", "/nowhere"),
            named("store.url", "postgres://u:secret@db.test/d"),
            named("store.certificate", &at),
            named("store.key", &at),
            named("audit.syslog.url", "tls://logs.test"),
            named("audit.syslog.certificate", &at),
            named("audit.syslog.key", &at),
            named("audit.http.url", "https://siem.test"),
            named("audit.http.certificate", &at),
            named("audit.http.key", &at),
            named("trace.endpoint", "https://otel.test"),
            named("trace.certificate", &at),
            named("trace.key", &at),
        ];
        let (url, password) = ("postgres://u@db.test/d", folder.path().join("password"));
        fs::write(&password, "word").unwrap();
        let by_password = vec![
            named("data", "/nowhere"),
            named("store.url", url),
            named("store.password_file", &password.display().to_string()),
        ];
        let config = Config::load(Sources { flags: by_password, ..Sources::default() }).unwrap();
        for (mode, told) in [(0o600, 0), (0o440, 0), (0o444, 1)] {
            fs::set_permissions(&password, Permissions::from_mode(mode)).unwrap();
            let of_password = |line: &&String| line.contains("the password of store.password_file in");
            assert_eq!(warnings(&config).iter().filter(of_password).count(), told, "{mode:o}");
        }
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        for (mode, told) in [(0o600, 0), (0o640, 0), (0o644, 1), (0o602, 1)] {
            fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
            let warnings = warnings(&config);
            for option in ["store.key", "audit.syslog.key", "audit.http.key", "trace.key"] {
                let of_key = |line: &&String| {
                    line.contains(&format!("key of {option} in")) && line.contains("client.key is open to everybody")
                };
                assert_eq!(warnings.iter().filter(of_key).count(), told, "{option} {mode:o}: {warnings:?}");
            }
        }
    }
}
