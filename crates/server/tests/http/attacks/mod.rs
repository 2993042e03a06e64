//! Real vulnerabilities of the field as tests, each by its number. A comment names the line whose removal turns it red.

mod abandoned;
mod account_api;
mod account_api_forms;
mod account_api_kept;
mod admission;
mod altered;
mod codes;
mod disabled;
mod forms;
mod guessing;
mod headers;
mod injection;
mod jose;
mod keys;
mod known;
mod limits;
pub mod passwords;
mod proxies;
mod redirects;
mod refresh;
mod revocation;
mod secrets;
mod sessions;
mod sign_up;
mod spraying;
mod written_down;
