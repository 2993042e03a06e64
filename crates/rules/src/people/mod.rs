//! People: who they are, what they may be called, which groups they belong to.

pub mod forms;
pub mod labels;
pub mod names;
pub mod user;

pub use user::{Role, User};
