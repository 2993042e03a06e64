//! Times as text, in UTC: to the minute for people, to the second or the millisecond for programs.

use crate::time::Time;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// RFC 3339, to the second.
pub fn iso(at: Time) -> String {
    let (hour, minute, second) = clock(at);
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", date(at))
}

/// RFC 3339, to the millisecond.
pub fn iso_ms(at: Time) -> String {
    let (hour, minute, second) = clock(at);
    format!("{}T{hour:02}:{minute:02}:{second:02}.{:03}Z", date(at), at.0.rem_euclid(1000))
}

/// Date and time to the minute.
pub fn when(at: Time) -> String {
    let (hour, minute, _) = clock(at);
    format!("{} {hour:02}:{minute:02}", date(at))
}

/// The date in the proleptic Gregorian calendar: whole 400-year cycles, then centuries, then years counted from March,
/// so that the leap day is the last of its year.
pub fn date(at: Time) -> String {
    const CYCLE: i64 = 146_097;
    let day = at.seconds().div_euclid(DAY) + 719_468;
    let of_cycle = day.rem_euclid(CYCLE);
    let year_of_cycle = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / (CYCLE - 1)) / 365;
    let of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = day.div_euclid(CYCLE) * 400 + year_of_cycle + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{of_month:02}")
}

/// Parses `YYYY-MM-DD`, `YYYY-MM-DDTHH:MM` or `YYYY-MM-DDTHH:MM:SS`, with or without a `Z`, always as UTC. Seconds may
/// have a fraction (RFC 3339 §5.6, time-secfrac); whatever is smaller than a millisecond is ignored.
pub fn parse(text: &str) -> Option<Time> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let (time, fraction) = time.split_once('.').map_or((time, None), |(time, fraction)| (time, Some(fraction)));
    let numbers = |text: &str, mark: char| -> Option<Vec<i64>> {
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()) && (1..=4).contains(&part.len());
        text.split(mark).map(|part| plain(part).then(|| part.parse().ok()).flatten()).collect()
    };
    let (&[year, month, day], time) = (numbers(day, '-')?.as_slice(), numbers(time, ':')?) else { return None };
    let (hour, minute, second) = match *time.as_slice() {
        [hour, minute] if fraction.is_none() => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    if !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 || year < 1970 {
        return None;
    }
    // Years from March on, so that the leap day is the last of its year.
    let (of_year, from_march) = (year - i64::from(month <= 2), (month + 9) % 12);
    let days =
        of_year * 365 + of_year / 4 - of_year / 100 + of_year / 400 + (153 * from_march + 2) / 5 + day - 1 - 719_468;
    let at = Time(
        Time::from_seconds(days * DAY + hour * HOUR + minute * MINUTE + second).0
            + fraction.map_or(Some(0), milliseconds)?,
    );
    // Refuses a 31st in a month that has none, and the like.
    (date(at) == format!("{year:04}-{month:02}-{day:02}")).then_some(at)
}

/// The whole milliseconds in the digits of a fraction of a second.
fn milliseconds(digits: &str) -> Option<i64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.bytes().chain(*b"00").take(3).fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

fn clock(at: Time) -> (i64, i64, i64) {
    let second = at.seconds().rem_euclid(DAY);
    (second / HOUR, second % HOUR / MINUTE, second % MINUTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso(Time::from_seconds(seconds)), expected);
        }
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            ("2000-02-29T00:00:00Z", Some(951_782_400)),
            ("2024-02-29 23:59:59", Some(1_709_251_199)),
            ("2100-03-01T00:00", Some(4_107_542_400)),
            ("2023-02-29", None),
            ("2024-04-31", None),
            ("2024-13-01", None),
            ("2024-01-01T24:00", None),
            ("2024-01", None),
            ("+2024-01-01", None),
            ("", None),
        ] {
            assert_eq!(parse(text).map(Time::seconds), expected, "{text}");
        }
        // red without `milliseconds`: an exported time could not be used in a query.
        for (fraction, expected) in [
            (".379Z", Some(379)),
            (".379", Some(379)),
            (".3Z", Some(300)),
            (".05Z", Some(50)),
            (".3799999999999999999999999Z", Some(379)),
            (".Z", None),
            (".+1Z", None),
            (".3.7Z", None),
        ] {
            let text = format!("1970-01-01T00:00:00{fraction}");
            assert_eq!(parse(&text), expected.map(Time), "{text}");
        }
        assert_eq!(parse(&iso_ms(Time(1_700_000_000_001))), Some(Time(1_700_000_000_001)));
        for bad in ["1970-01-01T00:00.5Z", "1970-01-01.5"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(iso_ms(Time(-1)), "1969-12-31T23:59:59.999Z");
        assert_eq!(when(Time::from_seconds(951_782_461)), "2000-02-29 00:01");
    }
}
