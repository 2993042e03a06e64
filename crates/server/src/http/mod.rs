//! The HTTP doors: they turn a request into the arguments of a use case, and its result into a response.

mod again;
mod api;
mod cookies;
mod cors;
mod door;
mod error;
mod extract;
mod front;
mod health;
mod oauth;
mod pages;
mod reply;
mod routes;
mod site;
#[cfg(test)]
mod tests;
pub mod try_it;
mod visit;

pub use health::{is_ready, readiness};
pub use reply::plain;
pub use routes::router;
pub use site::Site;
