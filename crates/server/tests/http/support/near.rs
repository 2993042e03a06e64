//! CO-10: near misses of a credential.

/// Returns near misses of `good`: prefixes, longer texts, flipped bits, other last characters, other case, white space
/// around it. Of a long credential every `step`th place is tried, and all of the last 90.
pub fn near(good: &str, step: usize) -> Vec<String> {
    let places: Vec<usize> = (0..good.len()).filter(|at| at % step == 0 || at + 90 > good.len()).collect();
    let mut near: Vec<String> = places.iter().map(|at| good[..*at].to_owned()).collect();
    near.extend((1..=64).map(|more| format!("{good}{}", "A".repeat(more))));
    for at in places {
        let bytes = good.as_bytes();
        let flipped = (0..7).map(|bit| bytes[at] ^ (1 << bit)).filter(|byte| (0x21..0x7f).contains(byte));
        near.extend(flipped.map(|byte| format!("{}{}{}", &good[..at], char::from(byte), &good[at + 1..])));
    }
    let alphabet = (b'a'..=b'z').chain(b'A'..=b'Z').chain(b'0'..=b'9').chain(*b"-_=+/.~");
    near.extend(alphabet.map(|last| format!("{}{}", &good[..good.len() - 1], char::from(last))));
    near.extend([
        good.to_uppercase(),
        good.to_lowercase(),
        format!(" {good}"),
        format!("{good} "),
        format!("{good}\n"),
    ]);
    near.extend([
        format!("{good}="),
        format!("{good}=="),
        format!("{good}."),
        format!("{good}\u{0}"),
        format!("\"{good}\""),
    ]);
    near.retain(|text| text != good);
    near
}

/// Likewise for a header field: white space around a value is not part of it on the wire, and a line break ends it.
pub fn near_in_header(good: &str, step: usize) -> Vec<String> {
    let mut near = near(good, step);
    near.retain(|text| text.trim() != good && !text.contains(['\n', '\0', ';', ',']));
    near
}
