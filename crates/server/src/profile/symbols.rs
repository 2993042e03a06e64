//! Names for addresses in this process.

use super::elf::Symbols;
use super::names;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// This program's own file, even after it was replaced by a newer one.
const OWN: &str = "/proc/self/exe";
/// The name of what is no function of a file: code that was made at run time, or an address of no code.
pub const UNKNOWN: &str = "[unknown]";

/// Code in memory, and the files that it was loaded from.
pub struct Loaded {
    places: Vec<Place>,
    files: HashMap<String, Option<Symbols>>,
    known: HashMap<u64, String>,
}

/// A range of addresses that holds a part of a file.
#[derive(Debug, PartialEq)]
struct Place {
    begin: u64,
    end: u64,
    offset: u64,
    file: String,
}

impl Loaded {
    /// Reads what is loaded now.
    ///
    /// # Errors
    /// Why no names can be given, in one line.
    pub fn now() -> Result<Self, String> {
        let own = Symbols::of(Path::new(OWN))
            .map_err(|error| format!("the program's symbol table cannot be read: {error}"))?;
        if !own.whole {
            return Err("this program was stripped of its symbol table, so functions have no names".into());
        }
        let maps = fs::read_to_string("/proc/self/maps").map_err(|error| format!("/proc/self/maps: {error}"))?;
        let program = fs::read_link(OWN).map(|path| path.display().to_string()).unwrap_or_default();
        let places = maps.lines().filter_map(Place::read).collect();
        Ok(Loaded { places, files: HashMap::from([(program, Some(own))]), known: HashMap::new() })
    }

    /// Finds out which function is at an address, for [`Loaded::name`].
    pub fn learn(&mut self, address: u64) {
        if !self.known.contains_key(&address) {
            let name = self.find(address);
            self.known.insert(address, name);
        }
    }

    /// Returns the readable name of the function at an address that was learnt.
    pub fn name(&self, address: u64) -> &str {
        self.known.get(&address).map_or(UNKNOWN, String::as_str)
    }

    fn find(&mut self, address: u64) -> String {
        let Some(place) = self.places.iter().find(|place| (place.begin..place.end).contains(&address)) else {
            return UNKNOWN.into();
        };
        let symbols = self.files.entry(place.file.clone()).or_insert_with(|| Symbols::of(Path::new(&place.file)).ok());
        let library = place.file.rsplit('/').next().unwrap_or_default();
        match symbols.as_ref().and_then(|symbols| Some((symbols, symbols.at(address - place.begin + place.offset)?))) {
            Some((program, symbol)) if program.whole => names::readable(symbol),
            Some((_, symbol)) => format!("{symbol} [{}]", library.split('.').next().unwrap_or_default()),
            None => format!("[{library}]"),
        }
    }
}

impl Place {
    /// Reads a line of proc_pid_maps(5), if it is about code.
    fn read(line: &str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
        let (begin, end) = range.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        // The device and the inode come between.
        let file = fields.nth(2)?.trim_start().to_owned();
        let code = rights.as_bytes().get(2) == Some(&b'x') && !file.is_empty();
        code.then_some(Place { begin: number(begin)?, end: number(end)?, offset: number(offset)?, file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files_is_a_place() {
        let line = "55e0a000-55e0b000 r-xp 0001c000 fd:00 4711                      /opt/a b/portiere";
        let place = Place { begin: 0x55e0_a000, end: 0x55e0_b000, offset: 0x1c000, file: "/opt/a b/portiere".into() };
        assert_eq!(Place::read(line), Some(place));
        assert_eq!(Place::read(&line.replace("r-xp", "rw-p")), None, "data");
        assert_eq!(Place::read("55e0a000-55e0b000 r-xp 00000000 00:00 0 "), None, "of no file");
        assert_eq!(Place::read("nonsense"), None);
    }

    #[test]
    fn a_function_of_this_program_and_one_of_a_library_have_names() {
        let mut loaded = Loaded::now().unwrap();
        let mut name = |address| {
            loaded.learn(address);
            loaded.name(address).to_owned()
        };
        let own = name(Loaded::now as fn() -> Result<Loaded, String> as usize as u64);
        assert!(own.ends_with("symbols::Loaded::now"), "{own}");
        assert_eq!(name(1), UNKNOWN);
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let library = maps.lines().filter_map(Place::read).find(|place| place.file.contains("libc.so")).unwrap();
        assert_ne!(name(library.begin.midpoint(library.end)), UNKNOWN);
    }
}
