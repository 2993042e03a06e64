//! What background work says in the log: the same trouble once.

/// What the background said last: a database that takes no writes for long, while it is being moved, is reported once.
#[derive(Default)]
pub(crate) struct Complaint(Option<String>);

impl Complaint {
    pub(crate) fn tell(&mut self, why: &dyn std::fmt::Display, what: &str) {
        if let Some(why) = self.anew(why) {
            tracing::warn!(fault = why, "{what}");
        }
    }

    /// The same about what only an operator can put right.
    pub(crate) fn accuse(&mut self, why: &dyn std::fmt::Display, what: &str) {
        if let Some(why) = self.anew(why) {
            tracing::error!(fault = why, "{what}");
        }
    }

    fn anew(&mut self, why: &dyn std::fmt::Display) -> Option<&str> {
        let why = Some(why.to_string()).filter(|why| self.0.as_ref() != Some(why))?;
        Some(self.0.insert(why))
    }

    pub(crate) fn over(&mut self) {
        self.0 = None;
    }
}
