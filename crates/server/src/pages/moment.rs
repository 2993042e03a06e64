//! Moments in words: "3 hours ago" to read, the exact time in UTC to look up.

use super::messages::Messages;
use rules::time::Time;
use rules::utc;

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
    /// Returns how long ago it was, up to thirty days; then the date.
    pub fn words(self, t: &Messages) -> String {
        let ago = self.now.since(self.at).0 / 1000;
        match ago {
            ..MINUTE => t.say("ago.now").to_owned(),
            MINUTE..HOUR => t.count("ago.minutes", ago / MINUTE),
            HOUR..DAY => t.count("ago.hours", ago / HOUR),
            _ if ago < 30 * DAY => t.count("ago.days", ago / DAY),
            _ => utc::date(self.at),
        }
    }

    /// Returns the RFC 3339 form, for the `datetime` attribute.
    pub fn iso(self) -> String {
        utc::iso(self.at)
    }

    /// Returns date and time to the minute, in UTC.
    pub fn exact(self) -> String {
        format!("{} UTC", utc::when(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::Language;

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
