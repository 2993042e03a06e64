//! Who a request is a part of, in the header of W3C Trace Context.

use hyper::HeaderMap;

/// What `traceparent` says.
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
    /// Of a request; `None` when it says nothing, nothing that makes sense, or twice something.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all("traceparent").iter();
        match (lines.next(), lines.next()) {
            (Some(line), None) => Parent::read(line.to_str().ok()?),
            _ => None,
        }
    }

    /// W3C Trace Context §3.2: `version-trace-parent-flags`, of which a later version may have more.
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
}
