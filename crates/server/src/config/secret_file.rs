//! Files that hold a secret, as their options name them. Other options take a secret itself: an operator who confuses
//! the two kinds has put a secret where a path belongs, and no message may repeat it.

use super::value::{Raw, Value};
use std::fmt::{self, Display};
use std::ops::Deref;
use std::path::{Component, Path, PathBuf};

/// The path of a file with a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretFile {
    file: PathBuf,
    /// Whether the name is the server's own, which cannot be a secret.
    ours: bool,
}

/// Stands for a name that may be a secret.
const HIDDEN: &str = "(hidden)";

impl SecretFile {
    /// Returns the file that is meant if its option is not set.
    pub fn of_ours(file: PathBuf) -> Self {
        SecretFile { file, ours: true }
    }

    /// Displays the name, unless it may be a secret. To be used instead of [`Path::display`], which does not check.
    pub fn display(&self) -> impl Display + '_ {
        fmt::from_fn(|f| match self.may_be_told() {
            true => self.file.display().fmt(f),
            false => f.write_str(HIDDEN),
        })
    }

    /// Says what is wrong with the file, as a sentence about its `option`.
    pub fn wrong(&self, option: &str, why: &dyn Display) -> String {
        let (file, why) = (self.file.display(), why.to_string());
        // What goes on as a sentence about the file has no second colon.
        let goes_on = ["is ", "cannot ", "holds "].iter().any(|verb| why.starts_with(verb));
        let why = if goes_on { format!(" {why}") } else { format!(": {why}") };
        match (self.may_be_told(), self.ours || self.exists()) {
            (true, true) => format!("{option}: {file}{why}"),
            (true, false) => format!("{option}: {file}{why} (the option takes the path of a file)"),
            (false, _) => format!(
                "{option}: takes the path of a file, and the given file does not exist (its name is not repeated here: \
                 it may be the secret itself)"
            ),
        }
    }

    /// Returns whether the name may be told: a file that exists was meant, and so was a name that can only be a path.
    fn may_be_told(&self) -> bool {
        self.ours || is_plainly_a_path(&self.file) || self.exists()
    }
}

/// Returns whether a text can only be a path. Base64 may have slashes anywhere, so if the text begins with one, its
/// first folder must exist, too.
fn is_plainly_a_path(file: &Path) -> bool {
    let drive =
        matches!(file.as_os_str().as_encoded_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    let mut parts = file.components();
    match parts.next() {
        // Dots without a slash may begin something else.
        Some(Component::CurDir | Component::ParentDir) => file.as_os_str().as_encoded_bytes().contains(&b'/'),
        Some(Component::RootDir) => parts.next().is_some_and(|first| Path::new("/").join(first).is_dir()),
        _ => drive,
    }
}

impl Deref for SecretFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.file
    }
}

impl fmt::Debug for SecretFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretFile({})", self.display())
    }
}

impl Value for SecretFile {
    fn takes() -> String {
        "the path of a file".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        Ok(SecretFile { file: PathBuf::parse(raw)?, ours: false })
    }
    fn show(&self) -> Option<String> {
        if self.may_be_told() { self.file.show() } else { Some(HIDDEN.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, KeyFile, Sources, declared, variable};
    use crate::trial;

    fn named(name: &str) -> SecretFile {
        SecretFile::parse(&Raw::Word(name.to_owned())).unwrap()
    }

    #[test]
    fn only_what_can_be_nothing_but_a_path_is_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("none").display().to_string();
        for path in [&*there, "./none", "../none", "/etc/none", "c:\\none", "D:/none"] {
            let said = named(path).wrong("metrics.secret", &"is missing");
            let whole = format!("metrics.secret: {path} is missing (the option takes the path of a file)");
            assert_eq!((said, named(path).display().to_string()), (whole, path.to_owned()));
        }
        for secret in [
            "Sup3rS3cretValue1234",
            "c2Vj/cmV0/c2VjcmV0Cg==",
            "/c2VjcmV0/c2VjcmV0Cg==",
            "/c2VjcmV0c2VjcmV0Cg==",
            ".Sup3r",
            "..Sup3r/S3cret",
            "-----BEGIN PRIVATE KEY-----\nMC4C",
            "xy:/Sup3r",
        ] {
            let said = named(secret).wrong("metrics.secret", &"is missing");
            assert!(said.starts_with("metrics.secret: takes the path of a file, ") && !said.contains(secret), "{said}");
            assert_eq!(named(secret).display().to_string(), HIDDEN, "{secret}");
            assert_eq!(
                (named(secret).show().as_deref(), format!("{:?}", named(secret)).contains(secret)),
                (Some(HIDDEN), false)
            );
        }
    }

    #[test]
    fn a_file_that_is_there_is_named_however_it_is_called() {
        // The tests run in the folder of their crate.
        let said = named("Cargo.toml").wrong("keys.master", &"is not 32 bytes");
        assert_eq!(said, "keys.master: Cargo.toml is not 32 bytes");
        let ours = SecretFile::of_ours("data/master.key".into());
        // Red without `goes_on`: two colons in a row.
        assert_eq!(ours.wrong("keys.master", &"is missing"), "keys.master: data/master.key is missing");
        assert_eq!(ours.wrong("keys.master", &"line 2"), "keys.master: data/master.key: line 2");
    }

    const SECRET: &str = "Sup3rS3cretValue1234";

    /// What must be set beside an option for it to be looked at.
    fn beside(option: &str) -> Vec<(&'static str, &'static str)> {
        match option {
            "tls.key" => vec![("PORTIERE_TLS_CERTIFICATE", "FOLDER/c.pem")],
            "store.password_file" => vec![("PORTIERE_STORE_URL", "postgres://u@127.0.0.1/d")],
            "store.key" => {
                vec![("PORTIERE_STORE_CERTIFICATE", "FOLDER/c.pem"), ("PORTIERE_STORE_URL", "postgres://u@127.0.0.1/d")]
            }
            "hash.binding_keys" => vec![("PORTIERE_HASH_PEPPERS", "p1:FOLDER/pepper")],
            "metrics.secret" => vec![("PORTIERE_METRICS_LISTEN", "127.0.0.1:9464")],
            "trace.headers" => vec![("PORTIERE_TRACE_ENDPOINT", "https://otel.test/")],
            "trace.key" => {
                vec![("PORTIERE_TRACE_ENDPOINT", "https://otel.test/"), ("PORTIERE_TRACE_CERTIFICATE", "FOLDER/c.pem")]
            }
            "audit.syslog.key" => vec![
                ("PORTIERE_AUDIT_SYSLOG_URL", "tls://logs.test"),
                ("PORTIERE_AUDIT_SYSLOG_CERTIFICATE", "FOLDER/c.pem"),
            ],
            "audit.http.key" => vec![
                ("PORTIERE_AUDIT_HTTP_URL", "https://siem.test/"),
                ("PORTIERE_AUDIT_HTTP_CERTIFICATE", "FOLDER/c.pem"),
            ],
            option if option.starts_with("audit.http.") => vec![("PORTIERE_AUDIT_HTTP_URL", "https://siem.test/")],
            _ => Vec::new(),
        }
    }

    /// Returns everything that is said about a configuration, when it is read and when a server would start.
    fn said(env: Vec<(String, String)>, folder: &Path) -> String {
        let flags = vec![("data", folder.join("data").display().to_string())];
        match Config::load(Sources { env, flags, ..Sources::default() }) {
            Err(problems) => problems.iter().map(|problem| format!("{problem}\n")).collect(),
            Ok(config) => {
                let shown: Vec<_> = config.show().into_iter().filter_map(|shown| shown.value).collect();
                format!(
                    "{}\n{:?}\n{config:?}\n{}",
                    trial::problems(&config).join("\n"),
                    config.warnings,
                    shown.join("\n")
                )
            }
        }
    }

    /// Red where an option of a file with a secret is a `PathBuf`, or its problems are not told by `wrong`.
    #[test]
    fn a_secret_in_the_place_of_its_file_is_repeated_by_no_option() {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["login.test".to_owned()]).unwrap();
        std::fs::write(folder.path().join("c.pem"), made.cert.pem()).unwrap();
        crate::private::create(&folder.path().join("pepper"), &[7; 32]).unwrap();
        let class = [SecretFile::takes(), KeyFile::takes()];
        let class = class.iter().flat_map(|takes| [takes.clone(), format!("a list, each {takes}")]).collect::<Vec<_>>();
        let options: Vec<_> = declared().filter(|option| class.contains(&(option.takes)())).map(|o| o.name).collect();
        assert_eq!(
            options,
            [
                "store.password_file",
                "store.key",
                "hash.peppers",
                "hash.binding_keys",
                "hash.import_keys",
                "keys.master",
                "tls.key",
                "metrics.secret",
                "trace.headers",
                "trace.key",
                "audit.key_file",
                "audit.old_keys",
                "audit.syslog.key",
                "audit.http.token_file",
                "audit.http.headers",
                "audit.http.signature_key",
                "audit.http.key",
            ]
        );
        for option in options {
            for value in [SECRET.to_owned(), format!("p1:{SECRET}")] {
                let whole = |text: &str| text.replace("FOLDER", &folder.path().display().to_string());
                let mut env: Vec<_> =
                    beside(option).iter().map(|(name, value)| ((*name).to_owned(), whole(value))).collect();
                env.push((variable(option), value));
                let said = said(env, folder.path());
                assert!(!said.contains(SECRET), "{option}: {said}");
                // A file that does not exist yet is made by the first start.
                let is_later = ["keys.master", "audit.key_file"].contains(&option);
                assert!(said.contains(&format!("{option}: ")) || is_later, "{option}: {said}");
            }
        }
    }

    /// Red where a new option with a path is no [`SecretFile`] and nobody has considered whether it is one.
    #[test]
    fn the_other_paths_name_no_secrets() {
        let paths: Vec<_> = declared().filter(|o| (o.takes)().ends_with(&PathBuf::takes())).map(|o| o.name).collect();
        assert_eq!(
            paths,
            [
                "data",
                "store.authorities",
                "store.certificate",
                "tls.certificate",
                "trace.authorities",
                "trace.certificate",
                "audit.syslog.authorities",
                "audit.syslog.certificate",
                "audit.http.authorities",
                "audit.http.certificate",
            ]
        );
    }
}
