//! What people, browsers, applications and operators do. Each act decides on the facts as the use case of that name
//! does, and says what it means in the books.

pub mod authorize;
pub mod devices;
pub mod people;
pub mod tokens;

/// The `back`th thing from the end, so that what happened last is what happens to most.
pub fn recent(count: usize, back: u8) -> Option<usize> {
    (count > 0).then(|| count - 1 - usize::from(back) % count)
}
