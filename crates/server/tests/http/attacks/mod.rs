//! Real vulnerabilities of the field as tests, each by its number. A comment names the line whose removal turns it red.

mod altered;
mod codes;
mod disabled;
mod forms;
mod guessing;
mod headers;
mod injection;
mod jose;
mod limits;
mod redirects;
mod refresh;
mod secrets;
mod sessions;
