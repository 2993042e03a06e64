//! Moments in words: "3 hours ago" to read, the exact time in UTC to look up.

use super::messages::Messages;
use rules::time::Time;

/// A moment, seen from `now`.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub at: Time,
    pub now: Time,
}

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

impl Moment {
    /// How long ago, up to thirty days; then the date.
    pub fn words(self, t: &Messages) -> String {
        let ago = self.now.since(self.at).0 / 1000;
        match ago {
            ..MINUTE => t.say("ago.now").to_owned(),
            MINUTE..HOUR => t.count("ago.minutes", ago / MINUTE),
            HOUR..DAY => t.count("ago.hours", ago / HOUR),
            _ if ago < 30 * DAY => t.count("ago.days", ago / DAY),
            _ => date(self.at),
        }
    }

    /// RFC 3339, for the `datetime` attribute.
    pub fn iso(self) -> String {
        let (hour, minute, second) = clock(self.at);
        format!("{}T{hour:02}:{minute:02}:{second:02}Z", date(self.at))
    }

    /// Date and time to the minute, in UTC.
    pub fn exact(self) -> String {
        let (hour, minute, _) = clock(self.at);
        format!("{} {hour:02}:{minute:02} UTC", date(self.at))
    }
}

fn clock(at: Time) -> (i64, i64, i64) {
    let second = at.seconds().rem_euclid(DAY);
    (second / HOUR, second % HOUR / MINUTE, second % MINUTE)
}

/// The date in the proleptic Gregorian calendar, UTC: whole 400-year cycles, then centuries, then years counted from
/// March, so that the leap day is the last of its year.
fn date(at: Time) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::Language;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            let at = Time::from_seconds(seconds);
            assert_eq!(Moment { at, now: at }.iso(), expected);
        }
    }

    #[test]
    fn the_past_is_said_in_words_and_the_future_is_now() {
        let now = Time::from_seconds(1_700_000_000);
        let english = Messages::of(Language::English);
        for (ago, expected) in [
            (-500, "just now"),
            (59, "just now"),
            (60, "1 minute ago"),
            (7200, "2 hours ago"),
            (DAY, "1 day ago"),
            (29 * DAY, "29 days ago"),
            (30 * DAY, "2023-10-15"),
        ] {
            let at = Time(now.0 - ago * 1000);
            assert_eq!(Moment { at, now }.words(english), expected);
        }
    }
}
