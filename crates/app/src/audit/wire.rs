//! An audit entry for other programs: as JSON, as a row of a table, as a syslog message.

use rules::audit::Line;
use rules::events::Kind;
use rules::id::RealmId;
use rules::people::names::drives;
use rules::utc::iso_ms;
use serde_json::{Value, json};

/// The columns of [`row`].
pub const COLUMNS: [&str; 12] =
    ["realm", "id", "at", "event", "outcome", "user", "client", "session", "address", "request", "detail", "block"];

/// Says whether what an entry records was refused or done.
pub fn outcome(line: &Line) -> &'static str {
    match Kind::named(&line.kind) {
        Some(kind) if kind.is_refusal() => "refused",
        _ => "done",
    }
}

/// Formats an entry as JSON. One that is not sealed yet has no block.
pub fn json(realm: &RealmId, line: &Line) -> Value {
    json!({
        "realm": realm.as_str(),
        "id": line.id,
        "at": iso_ms(line.at),
        "event": line.kind,
        "outcome": outcome(line),
        "user": line.user,
        "client": line.client,
        "session": line.session,
        "address": line.address,
        "request": line.request,
        "detail": serde_json::from_str::<Value>(&line.detail).unwrap_or_else(|_| Value::from(line.detail.as_str())),
        "block": (line.block > 0).then_some(line.block),
    })
}

/// Formats an entry as a row of CSV (RFC 4180).
pub fn row(realm: &RealmId, line: &Line) -> String {
    let block = if line.block > 0 { line.block.to_string() } else { String::new() };
    let maybe = |column: &Option<String>| column.clone().unwrap_or_default();
    let cells: [String; 12] = [
        realm.as_str().to_owned(),
        line.id.clone(),
        iso_ms(line.at),
        line.kind.clone(),
        outcome(line).to_owned(),
        maybe(&line.user),
        maybe(&line.client),
        maybe(&line.session),
        maybe(&line.address),
        maybe(&line.request),
        line.detail.clone(),
        block,
    ];
    format!("{}\r\n", cells.each_ref().map(|text| cell(text)).join(","))
}

/// Returns the header row of such a table.
pub fn head() -> String {
    format!("{}\r\n", COLUMNS.join(","))
}

/// Formats one cell. What a spreadsheet would take for a formula gets an apostrophe in front: then it is text.
/// Characters that a terminal would obey, or that turn the direction of the text, are replaced.
fn cell(text: &str) -> String {
    let obeyed = |c: char| drives(c) && !matches!(c, '\t' | '\r' | '\n');
    let text = &text.replace(obeyed, "\u{fffd}");
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let guarded = if formula { format!("'{text}") } else { text.to_owned() };
    if guarded.contains(['"', ',', '\n', '\r', '\'']) {
        return format!("\"{}\"", guarded.replace('"', "\"\""));
    }
    guarded
}

/// The facility of audit messages (RFC 5424 §6.2.1: log audit).
const AUDIT: u8 = 13;
/// The severities of what was refused and of what was done.
const WARNING: u8 = 4;
const INFORMATIONAL: u8 = 6;

/// Formats an entry as a syslog message (RFC 5424) without a frame. It contains JSON, without control characters.
pub fn syslog(realm: &RealmId, host: &str, line: &Line) -> String {
    let severity = if outcome(line) == "refused" { WARNING } else { INFORMATIONAL };
    let priority = AUDIT * 8 + severity;
    let printable = |text: &str, most| {
        let text: String = text.chars().filter(char::is_ascii_graphic).take(most).collect();
        if text.is_empty() { "-".to_owned() } else { text }
    };
    let (host, event) = (printable(host, 255), printable(&line.kind, 32));
    format!("<{priority}>1 {} {host} portiere - {event} - {}", iso_ms(line.at), json(realm, line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::Time;

    fn line() -> Line {
        Line {
            id: "0a".into(),
            at: Time(1_500),
            kind: "signin.failed".into(),
            user: Some("=cmd|' /C calc'!A0".into()),
            client: Some("a,b\"c".into()),
            session: None,
            address: Some("192.0.2.1".into()),
            request: Some("-x".into()),
            detail: "{\"agent\":\"a\\r\\n<1>1 forged\"}".into(),
            block: 0,
        }
    }

    #[test]
    fn no_cell_is_a_formula_and_none_leaves_its_place() {
        let row = row(&"main".into(), &line());
        assert_eq!(
            row,
            "main,0a,1970-01-01T00:00:01.500Z,signin.failed,refused,\"'=cmd|' /C calc'!A0\",\"a,b\"\"c\",,192.0.2.1,\
             \"'-x\",\"{\"\"agent\"\":\"\"a\\r\\n<1>1 forged\"\"}\",\r\n"
        );
        for start in ["=1", "+1", "-1", "@a", "\t=1", "\r=1", "\n=1"] {
            assert!(cell(start).starts_with("\"'"), "{start:?}");
        }
        assert_eq!(cell("a\u{1b}[31m\u{202e}b"), "a\u{fffd}[31m\u{fffd}b");
        assert_eq!(head().matches(',').count() + 1, COLUMNS.len());
    }

    #[test]
    fn a_message_is_one_line_whatever_it_tells() {
        let message = syslog(&"main".into(), "login.example.test", &line());
        let start = "<108>1 1970-01-01T00:00:01.500Z login.example.test portiere - signin.failed - {";
        assert!(message.starts_with(start), "{message}");
        assert!(!message.contains(['\r', '\n']));
    }
}
