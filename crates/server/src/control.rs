//! The control socket.

use crate::boot::{BootError, Instance};
use std::path::Path;

/// A socket on which commands arrive.
pub struct Control;

/// Listens in the data folder.
pub fn listen(_data: &Path, _instance: &Instance) -> Result<Control, BootError> {
    Ok(Control)
}

impl Control {
    /// Serves commands until it fails.
    pub async fn run(self) {
        std::future::pending::<()>().await;
    }
}
