//! Parses the values of flags: times, shares, pairs, files.

use crate::Refusal;
use std::fs::read_to_string;
use std::path::Path;
use std::time::Duration;

/// Parses `name=value` for the authorization endpoint; the name must not be one that every request has.
pub fn parameter(text: &str) -> Result<(String, String), String> {
    const OURS: [&str; 8] = [
        "response_type",
        "client_id",
        "redirect_uri",
        "scope",
        "state",
        "nonce",
        "code_challenge",
        "code_challenge_method",
    ];
    pair(text, &OURS)
}

/// The same for the token endpoint.
pub fn token_parameter(text: &str) -> Result<(String, String), String> {
    const OURS: [&str; 9] = [
        "grant_type",
        "client_id",
        "client_secret",
        "redirect_uri",
        "scope",
        "code",
        "code_verifier",
        "refresh_token",
        "device_code",
    ];
    pair(text, &OURS)
}

fn pair(text: &str, ours: &[&str]) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, _)) if ours.contains(&name) => Err(format!("`{name}` is given twice")),
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not NAME=VALUE")),
    }
}

/// Returns the text of a file.
pub fn read(path: &Path) -> Result<String, Refusal> {
    read_to_string(path).map_err(|error| Refusal::Use(format!("{}: {error}", path.display())))
}

/// Parses a share in percent.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| format!("`{text}` is not a percentage from 0 to 100"))
}

/// The same above zero.
pub fn some_percent(text: &str) -> Result<f64, String> {
    percent(text)
        .ok()
        .filter(|number| *number > 0.0)
        .ok_or_else(|| format!("`{text}` is not a percentage above 0, up to 100"))
}

/// The longest time that is accepted: beyond any measurement, and far from the limits of clocks.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Parses `250ms`, `20s`, `1.5m`, `1h` or `2d`, up to 30 days.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time such as 250ms, 20s or 2m");
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
    if time > LONGEST { Err(format!("`{text}` is longer than 30 days")) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!([duration("720h"), duration("30d")], [Ok(LONGEST), Ok(LONGEST)]);
        for text in ["", "20", "s", "-1s", "1w", "1e999s", "720.1h", "31d", "1e15s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parameters_are_pairs_that_say_something_new() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(parameter("prompt=consent"), pair("prompt", "consent"));
        assert_eq!((parameter("a="), parameter("a=b=c")), (pair("a", ""), pair("a", "b=c")));
        for text in ["", "prompt", "=x", "state=x", "scope=openid"] {
            assert!(parameter(text).is_err(), "{text}");
        }
        assert_eq!(token_parameter("resource=https://api"), pair("resource", "https://api"));
        for text in ["resource", "scope=x", "grant_type=password", "client_secret=x"] {
            assert!(token_parameter(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_numbers_from_nothing_to_all() {
        assert_eq!((percent("0"), percent("0.5"), some_percent("100")), (Ok(0.0), Ok(0.5), Ok(100.0)));
        for text in ["NaN", "-1", "101", "inf", "x", ""] {
            assert!(percent(text).is_err() && some_percent(text).is_err(), "{text}");
        }
        assert!(some_percent("0").is_err());
    }
}
