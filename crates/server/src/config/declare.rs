//! What the table says about each option.

/// When an option is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Once, when the server starts.
    Start,
    /// The file it names is read again whenever it changes, while the server runs.
    Live,
}

/// One option as the table declares it.
pub struct Declared {
    /// Its dotted name, as in `store.url`.
    pub name: &'static str,
    /// What it does, in sentences.
    pub doc: &'static str,
    /// What kind of value it takes.
    pub takes: fn() -> String,
    /// The bounds of its value, if there are any.
    pub bounds: fn() -> Option<String>,
    /// Its default as TOML; `None` when it is computed or unset.
    pub default: fn() -> Option<String>,
    /// Describes a default that is not a constant.
    pub computed: &'static str,
    /// When it is read.
    pub when: When,
}

/// Options that belong together: a table of the TOML file.
pub struct Section {
    /// What its options' names begin with: empty, or a dotted name and a dot.
    pub prefix: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Its options.
    pub options: &'static [Declared],
}
