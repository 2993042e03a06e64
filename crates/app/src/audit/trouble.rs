//! What keeps a stream from going on, in sentences: each is in its row, and is told from the others by how it begins.

/// How it begins where the receiver refuses a line for good.
const STUCK: &str = "the receiver refuses the line ";

/// How it begins where the receiver refuses whatever it is sent.
const EVERY: &str = "the receiver refuses every line";

/// What it has in it where the receiver may fail over a line.
const DOUBTED: &str = " (so it does for the line ";

/// How it begins where it cannot be read what is to be delivered, up to the number of the block where that is.
pub(super) const HALTED: &str = "what comes next cannot be read, from";

/// The receiver refuses a line for good, and `every` other as well, as far as it was seen.
pub(super) fn stuck(stream: &str, line: &str, every: bool, why: &str) -> String {
    match every {
        true => format!(
            "{EVERY} that it was sent, now {line} ({why}): look at its URL, and at the form in which it wants lines; nothing is \
             delivered, and it is tried again"
        ),
        false => format!(
            "{STUCK}{line} for good ({why}): nothing behind it is delivered, and it is tried again; to leave it out: portiere \
             audit skip {stream} {line}"
        ),
    }
}

/// The receiver fails, and it may be over the one line that it is sent: only whoever knows the receiver can tell.
pub(super) fn doubted(stream: &str, line: &str, why: &str) -> String {
    format!("{why}{DOUBTED}{line} alone; if that is why: portiere audit skip {stream} {line})")
}

/// Whether a line is refused for good.
pub(super) fn is_stuck(trouble: &str) -> bool {
    trouble.starts_with(STUCK) || trouble.starts_with(EVERY)
}

/// Whether there is a line that an operator may leave out.
pub(super) fn names_a_line(trouble: &str) -> bool {
    is_stuck(trouble) || trouble.contains(DOUBTED)
}
