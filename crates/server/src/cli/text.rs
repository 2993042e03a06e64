//! Text for people: aligned columns, aligned facts, moments.

use rules::Time;

/// Columns under headings, as wide as what is in them.
pub struct Table<const N: usize> {
    rows: Vec<[String; N]>,
    headed: bool,
}

impl<const N: usize> Table<N> {
    /// An empty table. Pages after the first have no headings.
    pub fn new(headings: [&str; N], headed: bool) -> Self {
        Table { rows: vec![headings.map(str::to_owned)], headed }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| if cell.is_empty() { "-".to_owned() } else { harmless(&cell) }));
    }

    /// The table as lines.
    pub fn render(&self) -> String {
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..N).map(width).collect();
        let shown = self.rows.iter().skip(usize::from(!self.headed));
        shown.map(|row| line(row, &widths)).collect()
    }
}

fn line(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, &width)| format!("{cell:<width$}"));
    format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
}

/// Names and their values; each line of a value on a line of its own. What is empty is left out.
pub fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().filter(|(_, value)| !value.is_empty()).map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = facts.iter().flat_map(|(name, value)| {
        let named = |(at, line)| (if at == 0 { *name } else { "" }, line);
        value.lines().enumerate().map(named)
    });
    lines.map(|(name, line)| format!("{name:<width$}  {}\n", harmless(line))).collect()
}

/// Without control characters, which could make a terminal do something.
pub fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// `true` as `yes`, `false` as nothing.
pub fn yes(fact: bool) -> String {
    if fact { "yes".to_owned() } else { String::new() }
}

/// A moment for people: UTC, to the minute.
pub fn when(at: Time) -> String {
    let (date, clock) = utc(at);
    format!("{date} {}", &clock[..5])
}

/// A moment for programs (RFC 3339, UTC, to the second).
pub fn iso(at: Time) -> String {
    let (date, clock) = utc(at);
    format!("{date}T{clock}Z")
}

/// Date and time of day, by the method of counting days in 400-year eras that begin on 1 March.
fn utc(at: Time) -> (String, String) {
    let (day, second) = (at.seconds().div_euclid(86_400), at.seconds().rem_euclid(86_400));
    let shifted = day + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let clock = format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60);
    (format!("{year:04}-{month:02}-{of_month:02}"), clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["NAME", "X"], true);
        table.row(["a".into(), "1".into()]);
        table.row(["longer".into(), String::new()]);
        assert_eq!(table.render(), "NAME    X\na       1\nlonger  -\n");
        let empty = Table::new(["NAME"], false);
        assert_eq!(empty.render(), "");
    }

    #[test]
    fn a_cell_cannot_drive_the_terminal() {
        assert_eq!(facts(&[("name", "a\u{1b}[2Jb".into()), ("nothing", String::new())]), "name  a\u{fffd}[2Jb\n");
        assert_eq!(facts(&[("a", "1\n2".into()), ("bc", "3".into())]), "a   1\n    2\nbc  3\n");
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso(Time::from_seconds(seconds)), expected);
        }
        assert_eq!(when(Time::from_seconds(951_782_461)), "2000-02-29 00:01");
    }
}
