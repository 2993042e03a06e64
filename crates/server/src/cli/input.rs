//! Reads secrets: from standard input, or typed at a terminal that does not show them. Never from arguments, which
//! every process on the machine can read.

use super::outcome::{Failure, mutter};
use rules::Secret;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use serde::{Deserialize, Deserializer, Serializer};
use std::io::{self, BufRead, IsTerminal, Read};

/// The longest accepted secret, in bytes: far longer than any accepted password.
const LONGEST: u64 = 64 * 1024;
/// The byte that Ctrl-C sends.
const INTERRUPT: u8 = 3;

/// Where secrets come from.
pub enum Input {
    /// A user types.
    Terminal,
    /// A pipe or a file.
    Stream(Box<dyn Read>),
}

/// A secret that is asked for.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// What it is, as in "the password".
    pub what: &'a str,
    /// The flag that says that it comes on standard input.
    pub flag: &'a str,
    /// Whether that flag was given.
    pub given: bool,
}

impl Input {
    /// Returns standard input.
    pub fn of_process() -> Self {
        match io::stdin().is_terminal() {
            true => Input::Terminal,
            false => Input::Stream(Box::new(io::stdin())),
        }
    }

    /// Reads a new secret: typed twice at a terminal, otherwise all of standard input without the line break at its end.
    pub fn secret(&mut self, wanted: Wanted<'_>) -> Result<Secret, Failure> {
        self.read(wanted, typed_twice)
    }

    /// Reads a secret that somebody else knows, too, and that a mistake does not change: typed once.
    pub fn known_secret(&mut self, wanted: Wanted<'_>) -> Result<Secret, Failure> {
        self.read(wanted, |what| typed(&format!("{what}: ")))
    }

    fn read(&mut self, wanted: Wanted<'_>, typed: fn(&str) -> Result<Secret, Failure>) -> Result<Secret, Failure> {
        let Wanted { what, flag, given } = wanted;
        let secret = match self {
            Input::Terminal => typed(what)?,
            Input::Stream(from) if given => writable(piped(from, what)?, what)?,
            Input::Stream(_) => {
                return Err(Failure::Use(format!("the {what} is missing: give it on standard input with {flag}")));
            }
        };
        match secret.reveal().is_empty() {
            true => Err(Failure::Use(format!("the {what} is empty"))),
            false => Ok(secret),
        }
    }
}

impl Input {
    /// Reads a line that the user types and sees; `None` if nobody can be asked.
    pub fn line(&mut self, question: &str) -> Result<Option<String>, Failure> {
        let Input::Terminal = self else { return Ok(None) };
        mutter(question);
        let mut line = String::new();
        let read = io::stdin().lock().take(LONGEST).read_line(&mut line);
        read.map_err(|error| Failure::Failed(format!("cannot read from the terminal: {error}")))?;
        Ok(Some(line.trim().to_owned()))
    }
}

fn piped(from: &mut dyn Read, what: &str) -> Result<Secret, Failure> {
    let mut text = String::new();
    let read = from.take(LONGEST + 1).read_to_string(&mut text);
    let mut secret = Secret::new(text);
    match read {
        Ok(length) if length as u64 > LONGEST => return Err(Failure::Use(format!("the {what} is longer than 64 KiB"))),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(Failure::Use(format!("the {what} is not UTF-8 text")));
        }
        Err(error) => return Err(Failure::Failed(format!("cannot read standard input: {error}"))),
    }
    let line = secret.reveal();
    if let Some(cut) = line.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
        secret = Secret::new(cut);
    }
    Ok(secret)
}

/// Refuses what nobody can type: browsers send no line breaks from password fields. Hashes may be JSON: they pass.
fn writable(secret: Secret, what: &str) -> Result<Secret, Failure> {
    match !what.contains("hash") && secret.reveal().contains(['\n', '\r']) {
        true => Err(Failure::Use(format!("the {what} contains a line break, which nobody can type"))),
        false => Ok(secret),
    }
}

fn typed_twice(what: &str) -> Result<Secret, Failure> {
    let first = typed(&format!("{what}: "))?;
    let second = typed(&format!("{what} again: "))?;
    match rules::secret::same(first.reveal().as_bytes(), second.reveal().as_bytes()) {
        true => Ok(first),
        false => Err(Failure::Failed(format!("the {what} was typed differently the second time"))),
    }
}

/// Reads one line from the terminal, unseen. Ctrl-C ends the line and the command, after the terminal was restored.
fn typed(prompt: &str) -> Result<Secret, Failure> {
    let stdin = io::stdin().lock();
    let failed = |error: rustix::io::Errno| Failure::Failed(format!("cannot read from the terminal: {error}"));
    let before = tcgetattr(&stdin).map_err(failed)?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    quiet.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
    tcsetattr(&stdin, OptionalActions::Flush, &quiet).map_err(failed)?;
    mutter(prompt);
    let mut line = Vec::new();
    let read = read_line(stdin.take(LONGEST), &mut line);
    mutter("\n");
    tcsetattr(io::stdin(), OptionalActions::Now, &before).map_err(failed)?;
    let text = String::from_utf8(line);
    match (read, text) {
        (Ok(()), Ok(text)) if text.contains(INTERRUPT as char) => Err(Failure::Failed("interrupted".into())),
        (Ok(()), Ok(text)) => {
            let secret = Secret::new(text.trim_end_matches('\n'));
            match secret.reveal().chars().any(char::is_control) {
                // A key that means something to a terminal, and nothing to a page.
                true => Err(Failure::Use("a control character was typed: try again".into())),
                false => Ok(secret),
            }
        }
        (Ok(()), Err(_)) => Err(Failure::Use("what was typed is not UTF-8 text".into())),
        (Err(error), _) => Err(Failure::Failed(format!("cannot read from the terminal: {error}"))),
    }
}

fn read_line(mut from: impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let available = from.fill_buf()?;
        let end = available.iter().position(|byte| matches!(*byte, b'\n' | INTERRUPT));
        let taken = end.map_or(available.len(), |end| end + 1);
        line.extend_from_slice(&available[..taken]);
        from.consume(taken);
        if end.is_some() || taken == 0 {
            return Ok(());
        }
    }
}

/// Writes a secret for the control socket.
pub fn serialize<S: Serializer>(secret: &Option<Secret>, to: S) -> Result<S::Ok, S::Error> {
    match secret {
        Some(secret) => to.serialize_some(secret.reveal()),
        None => to.serialize_none(),
    }
}

/// Reads a secret from the control socket.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
    Option::<String>::deserialize(from).map(|text| text.map(Secret::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static [u8], given: bool) -> Result<String, Failure> {
        let wanted = Wanted { what: "password", flag: "--password-stdin", given };
        Input::Stream(Box::new(text)).secret(wanted).map(|secret| secret.reveal().to_owned())
    }

    #[test]
    fn one_line_break_at_the_end_is_no_part_of_a_secret() {
        assert_eq!(read(b"correct horse\n", true).unwrap(), "correct horse");
        assert_eq!(read(b"correct horse\r\n", true).unwrap(), "correct horse");
        assert_eq!(read(b" correct horse \n", true).unwrap(), " correct horse ");
        assert_eq!(read(b"correct horse", true).unwrap(), "correct horse");
    }

    #[test]
    fn what_nobody_can_type_is_no_password() {
        // Red without `writable`: such users would be locked out.
        for text in [&b"correct horse\n\n"[..], b"correct\nhorse\n", b"correct\rhorse"] {
            let Failure::Use(line) = read(text, true).unwrap_err() else { panic!("wrong use") };
            assert!(line.contains("nobody can type"), "{line}");
        }
        let wanted = Wanted { what: "password hash", flag: "--password-hash-stdin", given: true };
        let hash = Input::Stream(Box::new(&b"{\n\"a\": 1\n}\n"[..])).secret(wanted).unwrap();
        assert_eq!(hash.reveal(), "{\n\"a\": 1\n}");
    }

    #[test]
    fn a_missing_secret_is_wrong_use_and_says_how() {
        let Failure::Use(line) = read(b"ignored\n", false).unwrap_err() else { panic!("wrong use") };
        assert!(line.contains("--password-stdin"), "{line}");
        assert_eq!(read(b"\n", true).unwrap_err(), Failure::Use("the password is empty".into()));
        assert_eq!(read(b"\xff", true).unwrap_err(), Failure::Use("the password is not UTF-8 text".into()));
    }

    #[test]
    fn an_endless_secret_is_refused() {
        let wanted = Wanted { what: "password", flag: "--password-stdin", given: true };
        let endless = Input::Stream(Box::new(io::repeat(b'x'))).secret(wanted);
        assert_eq!(endless.unwrap_err(), Failure::Use("the password is longer than 64 KiB".into()));
    }
}
