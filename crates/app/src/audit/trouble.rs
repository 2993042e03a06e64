//! Why a stream does not go on, in sentences: each is in the stream's row, and known by how it begins.

/// The beginning where the receiver refuses an entry for good.
const STUCK: &str = "the receiver refuses the line ";

/// The beginning where the receiver refuses whatever it is sent.
const EVERY: &str = "the receiver refuses every line";

/// A part of the sentence where an entry may be what makes the receiver fail.
const DOUBTED: &str = " (so it does for the line ";

/// The beginning where what is to be delivered cannot be read, up to the number of the block where that is.
pub(super) const HALTED: &str = "what comes next cannot be read, from";

/// The beginning where the log ends before the place that was delivered up to, up to the number of that block.
const CUT: &str = "it was delivered up to block ";

/// What comes next, up to the number of the block with which the log ends.
const ENDS: &str = ", but the log ends with block ";

/// Says that the log ends before what was delivered.
pub(super) fn cut(delivered: i64, ends: i64) -> String {
    format!(
        "{CUT}{delivered}{ENDS}{ends}: nothing more is delivered until an operator has checked (portiere audit verify, \
         portiere audit accept)"
    )
}

/// Returns the block with which the log ended when it was seen to end before what was delivered; `None` for any other
/// trouble.
pub(super) fn cut_at(trouble: &str) -> Option<i64> {
    let (_, ends) = trouble.strip_prefix(CUT)?.split_once(ENDS)?;
    ends.split_once(':')?.0.parse().ok()
}

/// Whether the log was seen to end before what was delivered. That stays until an operator has checked: the numbers of
/// blocks are given again, and soon nothing else shows it.
pub(super) fn is_cut(trouble: &str) -> bool {
    cut_at(trouble).is_some()
}

/// Says that the receiver refuses an entry for good, and `every` other as well, as far as it was seen.
pub(super) fn stuck(stream: &str, line: &str, every: bool, why: &str) -> String {
    match every {
        true => format!(
            "{EVERY} that it was sent, now {line} ({why}): check its URL, and the format in which it wants lines; \
             nothing is delivered, and it is retried"
        ),
        false => format!(
            "{STUCK}{line} for good ({why}): nothing after it is delivered, and it is retried; to skip it: portiere \
             audit skip {stream} {line}"
        ),
    }
}

/// Says that the receiver fails, maybe over the one entry it is sent: only somebody who knows the receiver can tell.
pub(super) fn doubted(stream: &str, line: &str, why: &str) -> String {
    format!("{why}{DOUBTED}{line} alone; if that is why: portiere audit skip {stream} {line})")
}

/// Whether an entry is refused for good.
pub(super) fn is_stuck(trouble: &str) -> bool {
    trouble.starts_with(STUCK) || trouble.starts_with(EVERY)
}

/// Whether it names an entry that an operator may leave out.
pub(super) fn names_a_line(trouble: &str) -> bool {
    is_stuck(trouble) || trouble.contains(DOUBTED)
}
