//! The database, as one URL.

use super::value::{Raw, Value};
use rules::Secret;
use std::path::PathBuf;

/// A database. What is shown of it never contains a password.
#[derive(Clone, Debug)]
pub enum StoreUrl {
    /// Embedded SQLite: a file; a relative path starts at the data folder.
    Sqlite(PathBuf),
    /// PostgreSQL, by a URL that may contain a password.
    Postgres(Secret),
    /// MySQL or MariaDB, likewise.
    Mysql(Secret),
}

impl StoreUrl {
    /// Returns whether the URL contains a password.
    pub fn has_password(&self) -> bool {
        match self {
            StoreUrl::Sqlite(_) => false,
            StoreUrl::Postgres(url) | StoreUrl::Mysql(url) => without_password(url.reveal()) != url.reveal(),
        }
    }
}

impl Value for StoreUrl {
    fn takes() -> String {
        "\"sqlite:FILE\", \"postgres://USER:PASSWORD@HOST/DATABASE\" or \"mysql://USER:PASSWORD@HOST/DATABASE\""
            .to_owned()
    }

    // No message repeats the value: it may contain a password.
    fn parse(raw: &Raw) -> Result<Self, String> {
        let text = String::parse(raw)?;
        let wrong = || format!("is not {}", Self::takes());
        // A driver takes what follows the first `?` for parameters, and so the rest of a password with a `?`.
        if text.split_once('?').is_some_and(|(_, rest)| rest.contains('@')) && !text.starts_with("sqlite:") {
            return Err(
                "has an @ after a ?: percent-encode them (%40, %3F) in a user, a password or a parameter".into()
            );
        }
        let (scheme, rest) = text.split_once(':').ok_or_else(wrong)?;
        // PostgreSQL's driver takes what follows the first `@` for the host, and tells it if the host is not found.
        if scheme.starts_with("postgres") && rest.matches('@').count() > 1 {
            return Err("has more than one @: percent-encode those in a user or a password (%40)".into());
        }
        match scheme {
            "sqlite" if !rest.is_empty() && !rest.starts_with("//") && !rest.starts_with(':') => {
                Ok(StoreUrl::Sqlite(rest.into()))
            }
            "postgres" | "postgresql" if names_a_database(rest) => Ok(StoreUrl::Postgres(Secret::new(text))),
            "mysql" | "mariadb" if names_a_database(rest) => Ok(StoreUrl::Mysql(Secret::new(format!("mysql:{rest}")))),
            _ => Err(wrong()),
        }
    }

    fn show(&self) -> Option<String> {
        match self {
            StoreUrl::Sqlite(file) => format!("sqlite:{}", file.display()).show(),
            StoreUrl::Postgres(url) | StoreUrl::Mysql(url) => without_password(url.reveal()).show(),
        }
    }
}

/// Returns whether this is `//HOST/DATABASE`: without a name each driver would choose a database of its own.
fn names_a_database(rest: &str) -> bool {
    let path = rest.strip_prefix("//").and_then(|rest| rest.split_once('/'));
    path.is_some_and(|(_, name)| !name.split('?').next().unwrap_or("").is_empty())
}

/// Returns the URL as it may be shown: a password in it becomes `(hidden)`, also one among its parameters.
fn without_password(url: &str) -> String {
    // The last `@` of all: whatever a password contains, it ends before that.
    let (before, after) = url.split_at(url.rfind('@').unwrap_or(0));
    let (after, query) = after.split_once('?').map_or((after, None), |(after, query)| (after, Some(query)));
    let user = before.match_indices(':').nth(1).map_or(before, |(colon, _)| &before[..colon]);
    let hidden = if user.len() < before.len() { ":(hidden)" } else { "" };
    let shown = query.map(|query| {
        let parts = query.split('&').map(|part| match part.split_once('=') {
            Some((name, _)) if is_secret(name) => format!("{name}=(hidden)"),
            _ => part.to_owned(),
        });
        format!("?{}", parts.collect::<Vec<_>>().join("&"))
    });
    format!("{user}{hidden}{after}{}", shown.unwrap_or_default())
}

/// Returns whether a parameter holds a password, by its name: also one that no driver of ours knows (`sslpassword`), since
/// a URL that is refused is shown, too.
fn is_secret(name: &str) -> bool {
    percent_encoding::percent_decode_str(name).decode_utf8_lossy().to_ascii_lowercase().contains("pass")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<StoreUrl, String> {
        StoreUrl::parse(&Raw::Word(text.to_owned()))
    }

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("sqlite:a/b.db", "\"sqlite:a/b.db\""),
            ("postgres://u:pa:ss@h:1/d", "\"postgres://u:(hidden)@h:1/d\""),
            ("postgresql://u@h,i/d?sslmode=require", "\"postgresql://u@h,i/d?sslmode=require\""),
            ("postgres://h/d?user=u&password=x&port=1", "\"postgres://h/d?user=u&password=(hidden)&port=1\""),
            // Red where only parameters that begin with `password` are hidden.
            ("postgres://h/d?sslPassw%6Frd=x&a=b", "\"postgres://h/d?sslPassw%6Frd=(hidden)&a=b\""),
            ("mariadb://u:p@@h/d", "\"mysql://u:(hidden)@h/d\""),
            ("postgres:///d?host=/run/postgresql", "\"postgres:///d?host=/run/postgresql\""),
        ] {
            assert_eq!(read(url).unwrap().show().as_deref(), Some(shown), "{url}");
            assert_eq!(read(url).unwrap().has_password(), shown.contains("(hidden)"), "{url}");
        }
    }

    #[test]
    fn an_at_sign_after_a_question_mark_is_refused_and_never_shown() {
        for url in ["postgres://u:pa?ss@h/d", "mysql://u:pa?ss@h/d", "postgres://h/d?user=u@h&password=pa", "x?pa@ss"] {
            let why = read(url).unwrap_err();
            assert!(why.contains("percent-encode") && !why.contains("pa?") && !why.contains("=pa"), "{url}: {why}");
        }
        assert!(read("postgres://u:pa%3Fss@h/d?application_name=a%40b").is_ok());
        assert!(read("sqlite:a?b@c.db").is_ok(), "a file may be called so");
        assert_eq!(without_password("postgres://u:pa?ss@h/d?port=1"), "postgres://u:(hidden)@h/d?port=1");
    }

    #[test]
    fn an_at_sign_in_a_password_is_refused_where_the_driver_would_split_it() {
        for url in ["postgres://u:pa@tail@h/d", "postgresql://u@tail:x@h/d?port=1"] {
            let why = read(url).unwrap_err();
            assert!(why.contains("%40") && !why.contains("tail"), "{url}: {why}");
        }
        assert!(read("postgres://u:pa%40ss@h/d").is_ok() && read("mysql://u:pa@ss@h/d").is_ok());
    }

    #[test]
    fn what_is_no_database_is_refused_without_repeating_it() {
        for url in [
            "",
            "sqlite:",
            "sqlite:///x",
            "sqlite::memory:",
            "postgres://u:secret@h",
            "postgres://u:secret@h/",
            "mysql:u:secret@h/d",
            "http://u:secret@h/d",
            "secret",
        ] {
            let why = read(url).unwrap_err();
            assert!(why.contains("sqlite:FILE") && !why.contains("secret"), "{url}: {why}");
        }
    }
}
