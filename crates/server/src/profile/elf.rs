//! The symbol table of a program or library: which function an address belongs to. Nothing else of the file is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The longest part of a file that is read: tables of symbols and of their names.
const MOST: u64 = 256 << 20;
const HEADER: usize = 64;
const SYMBOL: usize = 24;
const SECTION: usize = 64;
const SEGMENT: usize = 56;

/// Types of sections that hold symbols: all of them, or those that other files may use.
const ALL_SYMBOLS: u32 = 2;
const SHARED_SYMBOLS: u32 = 11;
/// The type of a segment that is loaded.
const LOADED: u32 = 1;
/// Types of symbols that are code: assembler without a type, functions, and functions that are chosen when loaded.
const CODE: [u8; 3] = [0, 2, 10];

/// The functions of a file.
pub struct Symbols {
    functions: Vec<Function>,
    names: Vec<u8>,
    segments: Vec<Segment>,
    /// Whether it has the file's own functions, and not only those that other files may use.
    pub whole: bool,
}

struct Function {
    begin: u64,
    size: u64,
    name: usize,
}

/// Where a part of the file is in memory, relative to where the whole file was loaded.
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

impl Symbols {
    /// Reads the symbols of a file.
    ///
    /// # Errors
    /// Those of the file, and `InvalidData` if it is no little-endian program of 64 bits.
    pub fn of(file: &Path) -> io::Result<Self> {
        let file = File::open(file)?;
        let header = part(&file, 0, HEADER as u64)?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let table =
            |at, size: usize, count| part(&file, long(&header, at), size as u64 * u64::from(short(&header, count)));
        let segments = table(32, SEGMENT, 56)?;
        let sections = table(40, SECTION, 60)?;
        let sections: Vec<&[u8]> = sections.chunks_exact(SECTION).collect();
        let of_kind = |kind| sections.iter().find(|section| word(section, 4) == kind);
        let whole = of_kind(ALL_SYMBOLS);
        let symbols = whole.or_else(|| of_kind(SHARED_SYMBOLS)).ok_or(io::ErrorKind::InvalidData)?;
        let names = sections.get(word(symbols, 40) as usize).ok_or(io::ErrorKind::InvalidData)?;
        let content = |section: &[u8]| part(&file, long(section, 24), long(section, 32));
        Ok(Symbols {
            functions: functions(&content(symbols)?),
            names: content(names)?,
            segments: segments.chunks_exact(SEGMENT).filter(|part| word(part, 0) == LOADED).map(Segment::of).collect(),
            whole: whole.is_some(),
        })
    }

    /// Returns the name of the function at this offset of the file, as the linker knows it.
    pub fn at(&self, offset: u64) -> Option<&str> {
        let segment = self.segments.iter().find(|part| (part.offset..part.offset + part.size).contains(&offset))?;
        let address = offset - segment.offset + segment.address;
        let behind = self.functions.partition_point(|function| function.begin <= address);
        let function = &self.functions[behind.checked_sub(1)?];
        // Assembler functions do not always say how long they are.
        let within = function.size == 0 || address < function.begin + function.size;
        let name = within.then(|| self.names.get(function.name..))??;
        std::str::from_utf8(&name[..name.iter().position(|byte| *byte == 0)?]).ok()
    }
}

impl Segment {
    fn of(entry: &[u8]) -> Self {
        Segment { offset: long(entry, 8), size: long(entry, 32), address: long(entry, 16) }
    }
}

fn functions(symbols: &[u8]) -> Vec<Function> {
    let code = symbols.chunks_exact(SYMBOL).filter(|symbol| CODE.contains(&(symbol[4] & 15)) && long(symbol, 8) != 0);
    let function =
        |symbol: &[u8]| Function { begin: long(symbol, 8), size: long(symbol, 16), name: word(symbol, 0) as usize };
    let mut functions: Vec<Function> = code.map(function).collect();
    // Of several functions at one place, the one that says how long it is comes last, and so is found.
    functions.sort_by_key(|function| (function.begin, function.size));
    functions
}

fn part(file: &File, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    if size > MOST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| io::ErrorKind::InvalidData)?];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn bytes<const N: usize>(of: &[u8], at: usize) -> [u8; N] {
    of.get(at..).and_then(|from| from.first_chunk()).copied().unwrap_or([0; N])
}

fn short(of: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes(of, at))
}

fn word(of: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes(of, at))
}

fn long(of: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(of, at))
}
