//! The forms of standard claims (OpenID Connect Core §5.1): what an application may rely on when it reads one.

use crate::utc;
use serde_json::{Map, Value};

/// The members of an address (OpenID Connect Core §5.1.1).
const ADDRESS: [&str; 6] = ["formatted", "street_address", "locality", "region", "postal_code", "country"];

/// Returns a claim's value as stored, if `text` is of the claim's form; otherwise describes the form.
pub fn read(claim: &str, text: &str) -> Result<Value, &'static str> {
    let fits = match claim {
        "profile" | "picture" | "website" => (is_url(text), "must be a URL that begins with https:// or http://"),
        "birthdate" => {
            (is_birthdate(text), "must be a date as YYYY-MM-DD, a year as YYYY, or 0000-MM-DD without the year")
        }
        "zoneinfo" => (is_zone(text), "must be a time zone such as Europe/Paris"),
        "locale" => (is_locale(text), "must be a language tag such as en or en-GB"),
        "phone_number" => (is_phone(text), "must be a telephone number such as +44 20 7946 0000"),
        "address" => return address(text),
        _ => (true, ""),
    };
    if fits.0 { Ok(Value::from(text)) } else { Err(fits.1) }
}

/// RFC 3986 §3, as far as a link on a page needs it.
fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or(""));
    let legal = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte));
    legal && host.is_some_and(|host| !host.is_empty() && !host.contains('@'))
}

/// ISO 8601-1 `YYYY-MM-DD`, with a year of 0000 if the year is not told, or a year alone.
fn is_birthdate(text: &str) -> bool {
    let year = |text: &str| text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((of_year, day)) = text.split_once('-') else { return year(text) && text != "0000" };
    // A leap year, so that the 29th of February is a day.
    let known = if of_year == "0000" { "2000" } else { of_year };
    // The calendar of `utc` begins later than people do, and repeats itself every 400 years.
    let Ok(number) = known.parse::<u32>() else { return false };
    let alike = 2000 + number % 400;
    year(of_year) && day.len() == 5 && utc::parse(&format!("{alike:04}-{day}")).is_some()
}

/// A name of the time zone database.
fn is_zone(text: &str) -> bool {
    let is_part = |part: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte);
        (1..=32).contains(&part.len())
            && part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(letter)
    };
    text.split('/').count() <= 3 && text.split('/').all(is_part)
}

/// BCP 47 (RFC 5646) in outline; an underscore is accepted, too.
fn is_locale(text: &str) -> bool {
    let mut parts = text.split(['-', '_']);
    let language = parts.next().unwrap_or("");
    let is_tag = |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (2..=8).contains(&language.len()) && language.bytes().all(|byte| byte.is_ascii_alphabetic()) && parts.all(is_tag)
}

/// E.164, with the characters that people write between digits, and the extension of RFC 3966.
fn is_phone(text: &str) -> bool {
    let (number, extension) = text.split_once(";ext=").unwrap_or((text, "0"));
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let bare = number.strip_prefix('+').unwrap_or(number);
    let legal = bare.bytes().all(|byte| byte.is_ascii_digit() || b" -.()/".contains(&byte));
    let extends = !extension.is_empty() && extension.bytes().all(|byte| byte.is_ascii_digit());
    legal && extends && (2..=15).contains(&digits)
}

/// Reads an address: text as it stands on a letter, or the claim's JSON object.
fn address(text: &str) -> Result<Value, &'static str> {
    if !text.trim_start().starts_with(['{', '[']) {
        return Ok(serde_json::json!({ "formatted": text }));
    }
    let members: Map<String, Value> = serde_json::from_str(text).map_err(|_| "its JSON cannot be read")?;
    let known = members.iter().all(|(name, value)| ADDRESS.contains(&name.as_str()) && value.is_string());
    match known && !members.is_empty() {
        true => Ok(Value::Object(members)),
        false => {
            Err("as JSON it may only have the members formatted, street_address, locality, region, postal_code and \
             country, as text")
        }
    }
}

/// A value that a claim may have.
#[cfg(test)]
pub(crate) fn example(claim: &str) -> &'static str {
    match claim {
        "profile" | "picture" | "website" => "https://ada.test/",
        "birthdate" => "1815-12-10",
        "zoneinfo" => "Europe/London",
        "locale" => "en-GB",
        "phone_number" => "+39",
        _ => "x",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_of_the_form_that_applications_expect() {
        for (claim, good, bad) in [
            (
                "website",
                &["https://ada.test", "http://ada.test:8080/a?b#c"][..],
                &[
                    "foo",
                    "ada.test",
                    "javascript:alert(1)",
                    "https://",
                    "https://a b.test",
                    "https://u:p@ada.test/",
                    "ftp://a",
                ][..],
            ),
            (
                "birthdate",
                &["1815-12-10", "1815", "0000-02-29", "2000-02-29", "1896-02-29"],
                &[
                    "yesterday",
                    "10.12.1815",
                    "1815-13-10",
                    "1815-02-30",
                    "1900-02-29",
                    "0000",
                    "181",
                    "1815-1-1",
                    "+815-01-01",
                    "1815-12-10T00:00",
                ],
            ),
            (
                "zoneinfo",
                &["Europe/Paris", "UTC", "America/Argentina/Buenos_Aires", "Etc/GMT+1"],
                &["CET time", "Europe/", "/", "+01:00"],
            ),
            ("locale", &["en", "en-GB", "zh-Hant-TW", "en_US"], &["english please", "e", "en-", "en-GB!", "12"]),
            (
                "phone_number",
                &["+1 (425) 555-1212", "+56 (2) 687 2400", "+1 (604) 555-1234;ext=5678", "112"],
                &["call me", "+", "1", "+1 425 555 1212 1234 1234", "+1;ext=", "++1 425"],
            ),
            (
                "address",
                &["12 St James's Square\u{2028}London", r#"{"locality":"London","country":"UK"}"#],
                &["{", "{}", "[]", r#"{"town":"London"}"#, r#"{"locality":1}"#],
            ),
            ("nickname", &["anything at all"], &[]),
        ] {
            for text in good {
                assert!(read(claim, text).is_ok(), "{claim}={text}: {:?}", read(claim, text));
            }
            for text in bad {
                assert!(read(claim, text).is_err(), "{claim}={text}");
            }
        }
        assert_eq!(read("address", r#"{"locality":"London"}"#).unwrap()["locality"], "London");
        assert_eq!(read("address", "London").unwrap()["formatted"], "London");
    }
}
