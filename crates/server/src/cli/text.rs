//! Text for people: aligned columns, aligned facts.

use rules::people::names::drives;
use serde_json::{Map, Value};

/// Columns under headings, as wide as what is in them.
pub struct Table<const N: usize> {
    rows: Vec<[String; N]>,
    headed: bool,
}

impl<const N: usize> Table<N> {
    /// Returns an empty table. Pages after the first have no headings.
    pub fn new(headings: [&str; N], headed: bool) -> Self {
        Table { rows: vec![headings.map(str::to_owned)], headed }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| if cell.is_empty() { "-".to_owned() } else { harmless(&cell) }));
    }

    /// Renders the table as lines.
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

/// Formats names and their values; each line of a value has a line of its own. Empty values are left out.
pub fn facts(facts: &[(&str, String)]) -> String {
    let width = facts.iter().filter(|(_, value)| !value.is_empty()).map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = facts.iter().flat_map(|(name, value)| {
        let named = |(at, line)| (if at == 0 { *name } else { "" }, line);
        value.lines().enumerate().map(named)
    });
    lines.map(|(name, line)| format!("{name:<width$}  {}\n", harmless(line))).collect()
}

/// Lists what changed, one setting per line: what it gained and lost, or was and is.
pub fn differences(changed: &Map<String, Value>) -> String {
    let word = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    };
    let part = |(name, value): (&String, &Value)| match word(value) {
        word if word.is_empty() => None,
        word => Some(format!("{name} {word}")),
    };
    let line = |(name, difference): (&String, &Value)| {
        let parts = difference.as_object().into_iter().flatten().filter_map(part);
        (name.clone(), parts.collect::<Vec<_>>().join(", "))
    };
    let lines: Vec<(String, String)> = changed.iter().map(line).collect();
    facts(&lines.iter().map(|(name, told)| (name.as_str(), told.clone())).collect::<Vec<_>>())
}

/// Replaces what could make a terminal do something, or show text in another order than it is in.
pub fn harmless(text: &str) -> String {
    text.chars().map(|c| if drives(c) { '\u{fffd}' } else { c }).collect()
}

/// Returns the same JSON, with the characters that [`harmless`] replaces written as escapes (RFC 8259, section 7).
pub fn harmless_json(json: String) -> String {
    let obeyed = |c: char| !c.is_ascii_graphic() && !c.is_ascii_whitespace() && drives(c);
    if !json.contains(obeyed) {
        return json;
    }
    let escaped = |c: char| if obeyed(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    json.chars().map(escaped).collect()
}

/// Returns `yes` for `true`, and nothing for `false`.
pub fn yes(fact: bool) -> String {
    if fact { "yes".to_owned() } else { String::new() }
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
        assert_eq!(harmless("\u{9b}2J\u{202e}b\u{e9}"), "\u{fffd}2J\u{fffd}b\u{e9}");
        assert_eq!(facts(&[("a", "1\n2".into()), ("bc", "3".into())]), "a   1\n    2\nbc  3\n");
    }

    /// Red without either half of `drives`, or with white space in `obeyed`.
    #[test]
    fn json_cannot_drive_the_terminal_and_says_the_same() {
        let value = serde_json::json!({ "name": "a\u{1b}\u{7f}\u{9b}2J\u{202e}b\u{e9}\u{1f600}\n" });
        for json in [value.to_string(), format!("{value:#}")] {
            let shown = harmless_json(json);
            assert!(shown.chars().all(|c| c == '\n' || !drives(c)), "{shown:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
        assert_eq!(harmless_json("{\n  \"a\": \"\u{e9}\"\n}".into()), "{\n  \"a\": \"\u{e9}\"\n}");
    }
}
