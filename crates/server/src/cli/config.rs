//! `config`: shows what can be set, what is set, and what is wrong with it.

use super::outcome::{Failure, Outcome, say};
use super::text::Table;
use crate::config::{Config, Problem, Sources, example};
use crate::control;
use crate::trial;
use clap::Subcommand;
use serde_json::{Value, json};

/// The subcommands of `config`.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Print a configuration file with every option, its documentation and its default
    #[command(after_long_help = "\
Examples:
  portiere config example > portiere.toml")]
    Example,
    /// Report everything that is wrong with the configuration, at once
    ///
    /// Reads what the server would read: the file, PORTIERE_ variables, --data, and the files of keys and certificates
    /// that they name. Files that depend on an option that is wrong are read once it is right. Exits with 2 if
    /// something is wrong.
    #[command(after_long_help = "\
Examples:
  portiere config check --config portiere.toml")]
    Check,
    /// Print every option with its effective value and where the value came from; secrets are hidden
    Show,
}

impl Command {
    /// Carries out the command. Problems are an answer, too, which programs read.
    pub fn run(&self, sources: Sources) -> Result<(Outcome, Option<Failure>), Failure> {
        match self {
            Command::Example => Ok((Outcome::new(example(), json!({ "example": example() })), None)),
            Command::Check => Ok(check(sources)),
            Command::Show => Ok((shown(&load(sources)?), None)),
        }
    }
}

/// Loads the configuration. Reports all that is wrong with it at once, one line each.
pub fn load(sources: Sources) -> Result<Config, Failure> {
    Config::load(sources).map_err(|problems| failure(&problems))
}

/// Loads it for a command that the running server carries out, which needs only the data folder. What is wrong beside that
/// is told, and returned for the case that this process has to open the database itself.
pub fn to_ask(sources: Sources) -> Result<(Config, Option<Failure>), Failure> {
    let (config, problems) = Config::judged(sources);
    if problems.is_empty() {
        return Ok((config, None));
    }
    let wrong = failure(&problems);
    if !config.knows_its_data(&problems) || !control::is_heard(&config.server.data) {
        return Err(wrong);
    }
    wrong.told().lines().for_each(say);
    say(ASKED);
    Ok((config, Some(wrong)))
}

/// Why a command goes on beside a wrong configuration.
const ASKED: &str = "a server runs, and is asked all the same; it would not start again with this configuration";

fn failure(problems: &[Problem]) -> Failure {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    Failure::Use(lines.join("\n"))
}

fn check(sources: Sources) -> (Outcome, Option<Failure>) {
    let file = sources.file.clone();
    let (config, mut problems) = Config::judged(sources);
    let mut warnings: Vec<String> = Vec::new();
    // Of a configuration with defaults in the place of what is wrong, warnings would be about these.
    if problems.is_empty() {
        warnings.extend(config.warnings.iter().cloned().chain(trial::warnings(&config)));
    }
    let problem = |message| Problem { place: String::new(), option: None, message };
    let of_files = trial::beside(&config, &problems).into_iter().map(problem);
    problems.extend(of_files);
    let told: Vec<Value> = problems.iter().map(told).collect();
    let named = file.as_ref().map(|file| file.display().to_string());
    let json = json!({ "file": named, "problems": told, "warnings": warnings });
    if !problems.is_empty() {
        return (Outcome::new("", json), Some(failure(&problems)));
    }
    let what = named.unwrap_or_else(|| "no configuration file; defaults, environment and flags".to_owned());
    let text = format!("{}{what}: {}", lines(&warnings), verdict(warnings.len()));
    (Outcome::new(text, json), None)
}

fn lines(warnings: &[String]) -> String {
    warnings.iter().map(|warning| format!("warning: {warning}\n")).collect()
}

/// Says how a configuration without errors is.
fn verdict(warnings: usize) -> String {
    match warnings {
        0 => "nothing is wrong".to_owned(),
        1 => "1 warning, no errors".to_owned(),
        many => format!("{many} warnings, no errors"),
    }
}

/// Describes a problem for programs; what is not known is null.
fn told(problem: &Problem) -> Value {
    let place = Some(&problem.place).filter(|place| !place.is_empty());
    json!({ "place": place, "option": problem.option, "message": problem.message })
}

fn shown(config: &Config) -> Outcome {
    let mut table = Table::new(["OPTION", "VALUE", "FROM"], true);
    let mut json = Vec::new();
    for option in config.show() {
        let value = option.value.clone().unwrap_or_default();
        table.row([option.name.into(), value, option.source.as_str().into()]);
        json.push(json!({ "name": option.name, "value": option.json(), "source": option.source.as_str() }));
    }
    Outcome::new(table.render(), Value::Array(json)).noting(config.warnings.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn checked(text: &str) -> (Value, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.toml");
        fs::write(&file, text.replace("FOLDER", &folder.path().display().to_string())).unwrap();
        let [made, other] = [0; 2].map(|_| rcgen::generate_simple_self_signed(vec!["login.test".to_owned()]).unwrap());
        fs::write(folder.path().join("c.pem"), made.cert.pem()).unwrap();
        fs::write(folder.path().join("other.key"), other.signing_key.serialize_pem()).unwrap();
        let flags = vec![("data", folder.path().join("data").display().to_string())];
        let (outcome, failure) = check(Sources { file: Some(file), flags, ..Sources::default() });
        assert!(!folder.path().join("data").exists(), "whoever looks makes nothing");
        let lines = failure.map(|failure| match failure {
            Failure::Use(lines) => lines,
            other => panic!("{other:?}"),
        });
        (outcome.json, lines)
    }

    #[test]
    fn what_stops_the_server_is_wrong() {
        for (text, why) in [
            // red without `option` in net/tls.rs: a file is named, and no option.
            ("[tls]\ncertificate = 'FOLDER/none.pem'\nkey = 'FOLDER/none.key'", "tls.certificate: cannot read "),
            ("[tls]\ncertificate = 'FOLDER/c.pem'\nkey = 'FOLDER/none.key'", "none.key cannot be read: "),
            ("[tls]\ncertificate = 'FOLDER/p.toml'\nkey = 'FOLDER/none.key'", "tls.certificate: "),
            ("[tls]\ncertificate = 'FOLDER/c.pem'\nkey = 'FOLDER/c.pem'", "tls.key: "),
            ("[store]\nurl = 'mysql://u:p%zz@127.0.0.1/d'", "store.url: "),
            ("[store]\nurl = 'postgres://u@127.0.0.1:port/d'", "store.url: "),
            // red without `named` in database.rs: every error would name store.url.
            ("[store]\nurl = 'postgres://u@127.0.0.1/d'\nauthorities = 'FOLDER/none.pem'", "store.authorities: "),
            ("[store]\nurl = 'mysql://u@127.0.0.1/d'\nauthorities = 'FOLDER/none.pem'", "store.authorities: "),
            (
                "[store]\nurl = 'postgres://u@127.0.0.1/d'\ncertificate = 'FOLDER/none.pem'\nkey = 'FOLDER/none.key'",
                "store.certificate: ",
            ),
            (
                "[store]\nurl = 'postgres://u@127.0.0.1/d'\ncertificate = 'FOLDER/c.pem'\nkey = 'FOLDER/none.key'",
                "store.key: ",
            ),
            // red without Mismatch in receivers.rs: the error would be about store.url.
            (
                "[store]\nurl = 'postgres://u@db/d'\ncertificate = 'FOLDER/c.pem'\nkey = 'FOLDER/other.key'",
                "other.key does not belong to the certificate in ",
            ),
            // red without `is_escape` in store/src/postgres/connect.rs: the driver sends it as it is.
            ("[store]\nurl = 'postgres://u:p%zz@127.0.0.1/d'", "store.url: the URL of the database cannot be read: a "),
            ("[store]\nurl = 'postgres://u@db/d'\npassword_file = 'FOLDER/none'", "store.password_file: "),
            ("[store]\nurl = 'mysql://u@db/d'\npassword_file = 'FOLDER/none'", "store.password_file: "),
            ("[hash]\npeppers = ['p1:FOLDER/none']", "none"),
            ("[metrics]\nlisten = ['127.0.0.1:9464']\nsecret = 'FOLDER/none'", "metrics.secret"),
            ("[audit.http]\nurl = 'https://siem.test/'\ntoken_file = 'FOLDER/none'", "audit.http.token_file: "),
            ("[trace]\nendpoint = 'https://otel.test/'\nauthorities = 'FOLDER/none'", "trace.authorities"),
            // red without `try_it` in trial.rs: only a start would say so.
            ("public_url = 'https://Login.test'\ntry_it = 'on'", "public_url: https://Login.test cannot have"),
            ("public_url = 'http://LOCALHOST:8080'", "public_url: "),
            ("[keys]\nmaster = 'FOLDER/p.toml'", "keys.master"),
            ("[audit]\nkey_file = 'FOLDER/p.toml'", "audit.key_file"),
        ] {
            let (json, lines) = checked(text);
            let lines = lines.unwrap_or_else(|| panic!("{text}: nothing is wrong"));
            assert!(lines.contains(why) && !lines.contains("p%zz"), "{text}: {lines}");
            assert_eq!(json["problems"].as_array().unwrap().len(), 1, "{text}: {json}");
        }
        for text in ["", "public_url = 'https://Login.test'", "public_url = 'http://LOCALHOST:8080'\ntry_it = 'off'"] {
            let (json, lines) = checked(text);
            assert_eq!((&json["problems"], lines), (&json!([]), None), "{text}");
        }
    }

    #[test]
    fn a_configuration_with_warnings_is_not_said_to_have_nothing_wrong() {
        assert_eq!([0, 1, 2].map(verdict), ["nothing is wrong", "1 warning, no errors", "2 warnings, no errors"]);
    }

    #[test]
    fn files_are_looked_at_beside_a_value_that_is_wrong() {
        // Red where a wrong value ends the check: each correction would bring up the next problem.
        let tls = "[tls]\ncertificate = 'FOLDER/none.pem'\nkey = 'FOLDER/none.key'";
        let rest = "[hash]\npeppers = ['p1:FOLDER/none']\n[token]\naccess_ttl = 900";
        let (json, lines) = checked(&format!("{tls}\n{rest}\n"));
        let lines = lines.unwrap();
        for why in ["token.access_ttl: ", "tls.certificate: cannot read ", "hash.peppers"] {
            assert!(lines.contains(why), "{why}: {lines}");
        }
        assert_eq!(json["problems"].as_array().unwrap().len(), 3, "{json}");
        // Red without `concerns` in trial.rs: a default would be judged in the place of what was meant.
        let key = "[keys]\nmaster = 'FOLDER/p.toml'\n";
        for (text, many) in [
            ("[tls]\ncertificate = 5\nkey = 'FOLDER/none.key'".to_owned(), 1),
            (format!("[dta]\nx = 1\n{key}"), 1),
            (format!("[token]\naccess_ttl = 900\n{key}"), 2),
        ] {
            let (json, lines) = checked(&text);
            assert_eq!(json["problems"].as_array().unwrap().len(), many, "{text}: {lines:?}");
        }
    }

    #[test]
    fn what_browsers_will_refuse_is_a_warning() {
        // Red without trial::warnings.
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["www.login.test".to_owned()]).unwrap();
        fs::write(folder.path().join("c"), made.cert.pem()).unwrap();
        fs::write(folder.path().join("k"), made.signing_key.serialize_pem()).unwrap();
        let at = folder.path().display();
        let tls = format!("public_url = 'https://login.test'\n[tls]\ncertificate = '{at}/c'\nkey = '{at}/k'");
        let (json, lines) = checked(&tls);
        assert_eq!(lines, None);
        assert!(json["warnings"][0].as_str().is_some_and(|told| told.ends_with("is not for login.test")), "{json}");
    }

    #[test]
    fn a_program_is_told_what_is_wrong_and_where() {
        let (json, lines) = checked("[token]\naccess_ttl = 900\n[refresh]\nidle = '200d'\n");
        let problems = json["problems"].as_array().unwrap();
        assert_eq!(lines.unwrap().lines().count(), 2, "{json}");
        assert!(problems[0]["place"].as_str().unwrap().ends_with("p.toml:2"), "{json}");
        assert_eq!(
            (&problems[0]["option"], &problems[1]["option"]),
            (&json!("token.access_ttl"), &json!("refresh.idle"))
        );
        assert_eq!(problems[1]["place"], Value::Null);
    }

    #[test]
    fn what_is_in_force_is_shown_as_it_is() {
        let flags = vec![("data", "/nowhere".to_owned()), ("listen", "127.0.0.1:4444".to_owned())];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let json = shown(&config).json;
        let of = |name: &str| {
            json.as_array().unwrap().iter().find(|option| option["name"] == name).unwrap()["value"].clone()
        };
        assert_eq!(of("public_url"), json!("http://localhost:4444"));
        assert_eq!(of("listen"), json!(["127.0.0.1:4444"]));
        assert_eq!(of("keys.master"), json!("/nowhere/master.key"));
        assert_eq!(of("signup.enabled"), json!(false));
        assert!(of("hash.threads").as_u64() >= Some(1) && of("store.readers").as_u64() >= Some(2), "{json}");
        assert!(of("hash.memory").is_string() && of("tls.key").is_null(), "{json}");
    }
}
