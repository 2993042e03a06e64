//! Turns an option's text into a typed value, and writes a value back.

use super::secret_file::SecretFile;
use crate::net::Cidr;
use rules::{Secret, Span};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tracing::level_filters::LevelFilter;

/// A value as it was found, before its option gives it a type.
pub enum Raw {
    /// From the environment or the command line, where everything is text.
    Word(String),
    /// A TOML string.
    Text(String),
    /// A TOML integer.
    Integer(i64),
    /// A TOML float.
    Float(f64),
    /// A TOML boolean.
    Boolean(bool),
    /// A TOML array.
    List(Vec<Raw>),
    /// A TOML value of a kind that no option has, by the name of that kind.
    Other(&'static str),
}

impl Raw {
    fn kind(&self) -> &'static str {
        match self {
            Raw::Word(_) | Raw::Text(_) => "a string",
            Raw::Integer(_) => "an integer",
            Raw::Float(_) => "a fraction",
            Raw::Boolean(_) => "a boolean",
            Raw::List(_) => "a list",
            Raw::Other(kind) => kind,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Raw::Word(text) | Raw::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A type that an option may have.
pub trait Value: Sized {
    /// Describes what the option takes, as a noun phrase for messages and the documentation.
    fn takes() -> String;
    /// Parses a value. The error is the end of a sentence that begins with the option's name.
    fn parse(raw: &Raw) -> Result<Self, String>;
    /// Returns the value as TOML; `None` if nothing is set. Secrets show as `(hidden)`.
    fn show(&self) -> Option<String>;
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A share of everything, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(pub f64);

impl Share {
    /// Returns whether something with this luck, a uniformly distributed number, belongs to the share.
    pub fn holds(self, luck: u64) -> bool {
        // The numbers below this share of all numbers; those that an f64 cannot tell apart may fall on either side.
        self.0 >= 1.0 || (luck as f64) < self.0 * (u64::MAX as f64)
    }
}

/// Returns a TOML basic string.
pub fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn mismatch<T: Value>(raw: &Raw) -> String {
    format!("expected {}, found {}", T::takes(), raw.kind())
}

fn text_of<T: Value>(raw: &Raw) -> Result<&str, String> {
    raw.text().ok_or_else(|| mismatch::<T>(raw))
}

/// Splits `15m` into 15 and `m`.
fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, &text[digits..]))
}

const TIME_UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
const SIZE_UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

fn measure(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*factor).filter(|total| i64::try_from(*total).is_ok())
}

/// Writes an amount in the largest unit that divides it.
fn in_units(amount: u64, units: &[(&str, u64)], zero: &str) -> String {
    match units.iter().find(|(_, factor)| amount > 0 && amount.is_multiple_of(*factor)) {
        Some((unit, factor)) => quoted(&format!("{}{unit}", amount / factor)),
        None => quoted(zero),
    }
}

impl Value for Duration {
    fn takes() -> String {
        "a duration such as \"15m\" (units ms, s, m, h, d)".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let text = text_of::<Self>(raw)?;
        let millis = measure(text, &TIME_UNITS).ok_or_else(|| format!("{text:?} is not {}", Self::takes()))?;
        Ok(Duration::from_millis(millis))
    }
    fn show(&self) -> Option<String> {
        Some(in_units(self.as_millis() as u64, &TIME_UNITS, "0s"))
    }
}

impl Value for Span {
    fn takes() -> String {
        Duration::takes()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        Duration::parse(raw).map(Span::from)
    }
    fn show(&self) -> Option<String> {
        Duration::from(*self).show()
    }
}

impl Value for Size {
    fn takes() -> String {
        "a size such as \"64KiB\" (units B, KiB, MiB, GiB)".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let text = text_of::<Self>(raw)?;
        measure(text, &SIZE_UNITS).map(Size).ok_or_else(|| format!("{text:?} is not {}", Self::takes()))
    }
    fn show(&self) -> Option<String> {
        Some(in_units(self.0, &SIZE_UNITS, "0B"))
    }
}

impl Value for Share {
    fn takes() -> String {
        "a number such as 0.1".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let share = match raw {
            Raw::Float(share) => Some(*share),
            Raw::Integer(share) => Some(*share as f64),
            raw => text_of::<Self>(raw)?.parse().ok(),
        };
        share.filter(|share| share.is_finite()).map(Share).ok_or_else(|| format!("is not {}", Self::takes()))
    }
    fn show(&self) -> Option<String> {
        Some(toml::Value::Float(self.0).to_string())
    }
}

impl Value for bool {
    fn takes() -> String {
        "true or false".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Boolean(value) => Ok(*value),
            Raw::Word(word) => word.parse().map_err(|_| format!("{word:?} is neither true nor false")),
            other => Err(mismatch::<Self>(other)),
        }
    }
    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

macro_rules! whole_numbers {
    ($($kind:ty),+) => {$(
        impl Value for $kind {
            fn takes() -> String {
                "a whole number".to_owned()
            }
            fn parse(raw: &Raw) -> Result<Self, String> {
                let too_large = |n: &dyn std::fmt::Display| format!("{n} is not between 0 and {}", <$kind>::MAX);
                match raw {
                    Raw::Integer(n) => <$kind>::try_from(*n).map_err(|_| too_large(n)),
                    Raw::Word(word) => match word.parse::<i64>() {
                        Ok(n) => Self::parse(&Raw::Integer(n)),
                        Err(_) => Err(format!("{word:?} is not a whole number")),
                    },
                    other => Err(mismatch::<Self>(other)),
                }
            }
            fn show(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )+};
}

whole_numbers!(u32, usize);

impl Value for String {
    fn takes() -> String {
        "a string".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let text = text_of::<Self>(raw)?;
        // Configured text ends up in headers and pages: a line break there would split a response.
        if text.chars().any(char::is_control) {
            return Err("contains a control character".to_owned());
        }
        Ok(text.to_owned())
    }
    fn show(&self) -> Option<String> {
        Some(quoted(self))
    }
}

impl Value for PathBuf {
    fn takes() -> String {
        "a path".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match text_of::<Self>(raw)? {
            "" => Err("is empty".to_owned()),
            text if text.contains('\0') => Err("contains a NUL".to_owned()),
            text => Ok(PathBuf::from(text)),
        }
    }
    fn show(&self) -> Option<String> {
        Some(quoted(&self.to_string_lossy()))
    }
}

impl Value for Secret {
    fn takes() -> String {
        "a secret string".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        text_of::<Self>(raw).map(Secret::new)
    }
    fn show(&self) -> Option<String> {
        Some("(hidden)".to_owned())
    }
}

impl Value for SocketAddr {
    fn takes() -> String {
        "an address with port such as \"127.0.0.1:8080\" or \"[::1]:8080\"".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let text = text_of::<Self>(raw)?;
        text.parse().map_err(|_| format!("{text:?} is not {}", Self::takes()))
    }
    fn show(&self) -> Option<String> {
        Some(quoted(&self.to_string()))
    }
}

impl Value for Cidr {
    fn takes() -> String {
        "a network such as \"10.0.0.0/8\" or an address".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        text_of::<Self>(raw)?.parse().map_err(|e: crate::net::CidrError| e.to_string())
    }
    fn show(&self) -> Option<String> {
        Some(quoted(&self.to_string()))
    }
}

/// A secret in a file, and the name that password hashes have for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// 1 to 8 letters and digits.
    pub name: String,
    /// Where the secret is.
    pub file: SecretFile,
}

impl Value for KeyFile {
    fn takes() -> String {
        "a name and a file with a colon between them".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let text = text_of::<Self>(raw)?;
        // The text is not repeated: it may be the secret.
        let (name, file) = text.split_once(':').ok_or_else(|| format!("is not {}", Self::takes()))?;
        let file = SecretFile::parse(&Raw::Text(file.to_owned()))?;
        Ok(KeyFile { name: Self::name(name)?, file })
    }
    fn show(&self) -> Option<String> {
        Some(quoted(&format!("{}:{}", self.name, self.file.display())))
    }
}

impl KeyFile {
    /// Returns the name, if the text is one.
    pub fn name(text: &str) -> Result<String, String> {
        let fits = (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if fits {
            Ok(text.to_owned())
        } else {
            Err("the name of such a secret must be 1 to 8 letters and digits".to_owned())
        }
    }
}

impl<T: Value> Value for Option<T> {
    fn takes() -> String {
        T::takes()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        T::parse(raw).map(Some)
    }
    fn show(&self) -> Option<String> {
        self.as_ref().and_then(T::show)
    }
}

/// Returns all values, or everything that is wrong with any of them.
pub fn all<T>(parsed: impl Iterator<Item = Result<T, String>>) -> Result<Vec<T>, Vec<String>> {
    let (mut good, mut wrong) = (Vec::new(), Vec::new());
    for one in parsed {
        match one {
            Ok(one) => good.push(one),
            Err(why) => wrong.push(why),
        }
    }
    if wrong.is_empty() { Ok(good) } else { Err(wrong) }
}

impl<T: Value> Value for Vec<T> {
    fn takes() -> String {
        format!("a list, each {}", T::takes())
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::List(items) => all(items.iter().map(T::parse)).map_err(|wrong| wrong.join("; ")),
            Raw::Word(words) => {
                let words = words.split(',').map(str::trim).filter(|word| !word.is_empty());
                all(words.map(|word| T::parse(&Raw::Word(word.to_owned())))).map_err(|wrong| wrong.join("; "))
            }
            other => Err(mismatch::<Self>(other)),
        }
    }
    fn show(&self) -> Option<String> {
        let items: Vec<String> = self.iter().filter_map(T::show).collect();
        Some(format!("[{}]", items.join(", ")))
    }
}

impl Value for LevelFilter {
    fn takes() -> String {
        "one of \"off\", \"error\", \"warn\", \"info\", \"debug\", \"trace\"".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match text_of::<Self>(raw)? {
            "off" => Ok(LevelFilter::OFF),
            "error" => Ok(LevelFilter::ERROR),
            "warn" => Ok(LevelFilter::WARN),
            "info" => Ok(LevelFilter::INFO),
            "debug" => Ok(LevelFilter::DEBUG),
            "trace" => Ok(LevelFilter::TRACE),
            other => Err(format!("{other:?} is not {}", Self::takes())),
        }
    }
    fn show(&self) -> Option<String> {
        Some(quoted(&self.to_string()))
    }
}

/// Declares an enum with a word for every value.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant),+
        }

        impl Value for $name {
            fn takes() -> String {
                format!("one of {}", [$($word),+].map(quoted).join(", "))
            }
            fn parse(raw: &Raw) -> Result<Self, String> {
                match text_of::<Self>(raw)? {
                    $($word => Ok($name::$variant),)+
                    other => Err(format!("{other:?} is not {}", Self::takes())),
                }
            }
            fn show(&self) -> Option<String> {
                Some(quoted(match self { $($name::$variant => $word),+ }))
            }
        }
    };
}

choice! {
    /// Whether the home page offers "Try it".
    TryIt {
        /// On a localhost public URL only.
        Auto = "auto",
        /// Always.
        On = "on",
        /// Never.
        Off = "off",
    }
}

choice! {
    /// How SQLite waits for the disk.
    Synchronous {
        /// Each commit is on the disk before its answer.
        Full = "full",
        /// A power cut may lose the last commits.
        Normal = "normal",
    }
}

choice! {
    /// How statements are sent to a database server.
    Statements {
        /// Prepared once for a connection.
        Kept = "kept",
        /// Anew each time.
        Unnamed = "unnamed",
    }
}

choice! {
    /// Whether a node keeps a journal of the endings that it acknowledged.
    Journal {
        /// While the database may lose acknowledged writes at a failover.
        Auto = "auto",
        /// Never.
        Off = "off",
    }
}

choice! {
    /// What an operator says about a database server's replication.
    Replication {
        /// Nothing.
        Observed = "observed",
        /// The server never acknowledges what no standby has confirmed.
        Strict = "strict",
        /// Another server may take over that did not get the last commits.
        Bounded = "bounded",
    }
}

choice! {
    /// What a database server may be configured to lose silently.
    Loss {
        /// The last commits, when its process dies.
        Commits = "commits",
        /// Everything, at power loss.
        Database = "database",
    }
}

choice! {
    /// The shape of log lines.
    LogFormat {
        /// For people.
        Text = "text",
        /// One JSON object per line.
        Json = "json",
    }
}

choice! {
    /// The one header in which listed proxies name the client.
    ProxyHeader {
        /// `X-Forwarded-For`, with `X-Forwarded-Proto`.
        XForwardedFor = "x-forwarded-for",
        /// `Forwarded` (RFC 7239).
        Forwarded = "forwarded",
    }
}
