//! Reads files that a user names, which may be anything: a device that never ends, or the wrong file of many gigabytes.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The longest text that is read, in bytes: longer than any configuration, key set, head or URL.
const LONGEST: u64 = 1 << 20;

/// Reads the text of a file, and no more of it than it takes to see that it is too long.
pub fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    match text.len() as u64 > LONGEST {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "longer than 1 MiB")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_read_as_far_as_any_of_ours_goes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        for (length, fits) in [(0, true), (LONGEST, true), (LONGEST + 1, false)] {
            fs::write(&file, vec![b'a'; usize::try_from(length).unwrap()]).unwrap();
            assert_eq!(text(&file).is_ok(), fits, "{length}");
        }
        fs::write(&file, [0xff]).unwrap();
        assert!(text(&file).is_err() && text(folder.path()).is_err());
    }

    /// Red without `take`: the test would not end.
    #[test]
    fn what_never_ends_is_too_long() {
        assert_eq!(text(Path::new("/dev/zero")).unwrap_err().to_string(), "longer than 1 MiB");
    }
}
