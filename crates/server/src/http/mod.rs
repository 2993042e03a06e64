//! The doors: what HTTP says becomes a use case's argument, and its answer becomes HTTP again.

mod again;
mod api;
mod cookies;
mod cors;
mod door;
mod error;
mod extract;
mod front;
mod oauth;
mod pages;
mod reply;
mod routes;
mod site;
#[cfg(test)]
mod tests;
pub mod try_it;
mod visit;

pub use pages::health::is_ready;
pub use reply::plain;
pub use routes::router;
pub use site::Site;
