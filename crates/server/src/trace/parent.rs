//! The parent of a request, in the headers of W3C Trace Context.

use hyper::HeaderMap;

/// The content of `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    /// The trace.
    pub trace: [u8; 16],
    /// The span that made the request.
    pub span: [u8; 8],
    /// Whether the caller keeps the trace.
    pub sampled: bool,
}

impl Parent {
    /// Returns the parent that a request names; `None` if it names none, an invalid one, or two.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all("traceparent").iter();
        match (lines.next(), lines.next()) {
            (Some(line), None) => Parent::read(line.to_str().ok()?),
            _ => None,
        }
    }

    /// Reads `version-trace-parent-flags`, to which a later version may add (W3C Trace Context §3.2).
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version] = hex::<1>(version)?;
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace, span, [flags]) = (hex::<16>(trace)?, hex::<8>(span)?, hex::<1>(flags)?);
        let named = trace != [0; 16] && span != [0; 8];
        named.then_some(Parent { trace, span, sampled: flags & 1 == 1 })
    }
}

/// The most entries of a `tracestate`, and the least number of characters that have to be passed on: of all entries,
/// and of a single one where there is no room for all (W3C Trace Context §3.3.1.1, §3.3.1.5).
const ENTRIES: usize = 32;
const LONGEST_STATE: usize = 512;
const LONGEST_ENTRY: usize = 128;

/// Returns what other systems said about their own places in a trace, as it is passed on to them. Empty if there is
/// nothing, or something invalid, of which nothing is passed on (§3.3.1).
pub fn state(headers: &HeaderMap) -> String {
    let lines = headers.get_all("tracestate").iter().map(|line| line.to_str().unwrap_or("?"));
    let entries = lines.flat_map(|line| line.split(',')).map(|entry| entry.trim_matches([' ', '\t']));
    let mut kept: Vec<&str> = entries.filter(|entry| !entry.is_empty()).take(ENTRIES + 1).collect();
    let mut keys: Vec<Option<&str>> = kept.iter().map(|entry| key_of(entry)).collect();
    keys.sort_unstable();
    if kept.len() > ENTRIES || keys.contains(&None) || keys.windows(2).any(|two| two[0] == two[1]) {
        return String::new();
    }
    let length = |kept: &[&str]| kept.iter().map(|entry| entry.len() + 1).sum::<usize>();
    if length(&kept) > LONGEST_STATE + 1 {
        kept.retain(|entry| entry.len() <= LONGEST_ENTRY);
    }
    while length(&kept) > LONGEST_STATE + 1 {
        kept.pop();
    }
    kept.join(",")
}

/// Returns the key of a valid entry, which says whose it is: `system` or `tenant@system` (§3.3.1.3).
fn key_of(entry: &str) -> Option<&str> {
    let (key, value) = entry.split_once('=')?;
    let begins = |part: &str| part.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    let of_key = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
    let of_value = |byte: u8| matches!(byte, b' '..=b'~') && !b",=".contains(&byte);
    let named =
        key.len() <= 256 && key.bytes().all(of_key) && key.matches('@').count() <= 1 && key.split('@').all(begins);
    (named && (1..=256).contains(&value.len()) && value.bytes().all(of_value)).then_some(key)
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_recommendation_says_is_a_parent() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        const SPAN: &str = "b7ad6b7169203331";
        let parent = Parent::read(&format!("00-{TRACE}-{SPAN}-01")).unwrap();
        assert_eq!((parent.trace[0], parent.span[7], parent.sampled), (0x0a, 0x31, true));
        assert!(!Parent::read(&format!("00-{TRACE}-{SPAN}-00")).unwrap().sampled);
        assert!(Parent::read(&format!("cc-{TRACE}-{SPAN}-01-more")).is_some(), "of a later version");
        let bad = [
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{TRACE}0-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-1"),
            "é".repeat(27),
            String::new(),
        ];
        for text in bad {
            assert_eq!(Parent::read(&text), None, "{text}");
        }
        let mut twice = HeaderMap::new();
        for _ in 0..2 {
            twice.append("traceparent", format!("00-{TRACE}-{SPAN}-01").parse().unwrap());
        }
        assert_eq!(Parent::of(&twice), None);
    }

    /// Returns what is passed on of these lines.
    fn handed_on(lines: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("tracestate", hyper::header::HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        state(&headers)
    }

    #[test]
    fn what_others_said_of_their_places_is_handed_on_as_it_came() {
        for (lines, wanted) in [
            (&["vendor=opaque,congo=t61rcWkgMzE"][..], "vendor=opaque,congo=t61rcWkgMzE"),
            (&["vendor=a", "other=b"], "vendor=a,other=b"),
            (&[" vendor=a b~!\t, ,,other=b "], "vendor=a b~!,other=b"),
            (&["fw529a3039@dt=FfeGZJCM,0a_-*/=1"], "fw529a3039@dt=FfeGZJCM,0a_-*/=1"),
            (&[], ""),
            (&[""], ""),
        ] {
            assert_eq!(handed_on(lines), wanted, "{lines:?}");
        }
    }

    #[test]
    fn what_is_no_state_is_not_handed_on() {
        let (many, long) = ((0..33).map(|at| format!("k{at}=v")).collect::<Vec<_>>().join(","), "v".repeat(257));
        let long = format!("a={long}");
        for bad in [
            "vendor",
            "vendor=",
            "=a",
            "Vendor=a",
            "vendor=a=b",
            "a@b@c=d",
            "@b=c",
            "a@=c",
            "a b=c",
            "a=\u{e9}",
            "a=1,b=2,a=3",
            "a=1,bad",
            &many[..],
            &long[..],
        ] {
            assert_eq!(handed_on(&[bad]), "", "{bad}");
        }
    }

    #[test]
    fn what_is_too_long_goes_from_the_longest_entries_and_from_the_end() {
        let entry = |key: &str, length: usize| format!("{key}={}", "v".repeat(length - key.len() - 1));
        // Exactly as much as there is room for.
        let full = [entry("a", 128), entry("b", 128), entry("c", 128), entry("d", 125)].join(",");
        assert_eq!((full.len(), handed_on(&[&full])), (LONGEST_STATE, full.clone()));
        assert_eq!(handed_on(&[&format!("{full},e=1")]), full);
        assert_eq!(handed_on(&[&format!("{full}v")]), full[..386]);
        let longest = entry("long", 129);
        assert_eq!(handed_on(&[&format!("{longest},{full}")]), full);
        assert_eq!(handed_on(&[&longest]), longest, "where there is room");
    }
}
