//! A record as a line: sixteen hexadecimal digits of its SHA-256, a space, and the record as JSON.

use rules::Handle;
use rules::ending::Record;
use rules::secret::hexadecimal;

/// Digits of the checksum.
const DIGITS: usize = 16;

/// Returns the line of a record, with its line ending.
pub(super) fn write(record: &Record) -> Result<String, String> {
    let json = serde_json::to_string(record).map_err(|error| error.to_string())?;
    let mut line = sum(&json);
    line.reserve(json.len() + 2);
    line.push(' ');
    line.push_str(&json);
    line.push('\n');
    Ok(line)
}

/// Returns the records of a file. Torn or garbled lines are left out; a line that is whole and not understood is an
/// error, since it was acknowledged.
pub(super) fn read(file: &[u8]) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    for line in file.split(|byte| *byte == b'\n') {
        let Some(json) = whole(line) else { continue };
        let record = serde_json::from_str(json)
            .map_err(|error| format!("an entry cannot be read: a newer program wrote it: {error}"))?;
        records.push(record);
    }
    Ok(records)
}

fn whole(line: &[u8]) -> Option<&str> {
    let (found, json) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    (found == sum(json)).then_some(json)
}

fn sum(json: &str) -> String {
    hexadecimal(&Handle::of(json).0[..DIGITS / 2])
}
