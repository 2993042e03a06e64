//! What servers learn of the machine when they hash for the first time: the first of them measures, which takes all cores for
//! a moment, and those that start later are told.

use std::collections::HashMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

/// Where a server keeps it, in its data folder.
pub const FILE: &str = "hashing";

/// Settings on which it depends, beside the machine.
const OF: [&str; 2] = ["PORTIERE_HASH_THREADS", "PORTIERE_HASH_ARGON2_"];

type Kind = Vec<(String, String)>;

/// Where servers of each kind keep it, or will.
static FILES: LazyLock<Mutex<HashMap<Kind, Vec<PathBuf>>>> = LazyLock::new(Mutex::default);

/// Makes a data folder with what a server of these settings has learnt; where none has yet, the folder is the server's to make.
pub fn tell(data: &Path, settings: &[(&str, &str)]) {
    let of = settings.iter().filter(|(name, _)| OF.iter().any(|of| name.starts_with(of)));
    let kind = of.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut files = FILES.lock().unwrap();
    let files = files.entry(kind).or_default();
    // Servers put it there whole; the folder of one that ended is gone.
    if let Some(learnt) = files.iter().find_map(|file| std::fs::read(file).ok()) {
        DirBuilder::new().mode(0o700).create(data).unwrap();
        let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(data.join(FILE)).unwrap();
        open.write_all(&learnt).unwrap();
    }
    files.push(data.join(FILE));
}
