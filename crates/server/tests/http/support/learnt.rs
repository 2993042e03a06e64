//! What servers measure when they hash for the first time: the first server measures, which takes all cores for a
//! moment, and later servers get its results.

use std::collections::HashMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};

/// The file of the results, in a server's data folder.
pub const FILE: &str = "hashing";

/// Settings on which the results depend, besides the machine.
const OF: [&str; 2] = ["PORTIERE_HASH_THREADS", "PORTIERE_HASH_ARGON2_"];

type Kind = Vec<(String, String)>;

/// The files in which servers of each kind keep the results, or will.
static FILES: LazyLock<Mutex<HashMap<Kind, Vec<PathBuf>>>> = LazyLock::new(Mutex::default);

/// Makes a data folder with the results of servers with these settings; without results, the server makes the folder.
pub fn tell(data: &Path, settings: &[(&str, &str)]) {
    let of = settings.iter().filter(|(name, _)| OF.iter().any(|of| name.starts_with(of)));
    let kind = of.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut files = FILES.lock().unwrap();
    let files = files.entry(kind).or_default();
    // Servers write the file in one step; the folder of a server that ended is gone.
    if let Some(learnt) = files.iter().find_map(|file| std::fs::read(file).ok()) {
        DirBuilder::new().mode(0o700).create(data).unwrap();
        let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(data.join(FILE)).unwrap();
        open.write_all(&learnt).unwrap();
    }
    files.push(data.join(FILE));
}
