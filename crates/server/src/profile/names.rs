//! Readable names of functions: without hashes, versions and the arguments of generics.

use std::borrow::Cow;

/// Returns a symbol of the linker as it is shown.
pub fn readable(symbol: &str) -> String {
    match rustc_demangle::try_demangle(symbol) {
        Ok(name) => traits(&short(&format!("{name:#}"))),
        Err(_) => unprefixed(symbol).into_owned(),
    }
}

/// Replaces the version that AWS-LC puts before each of its names.
fn unprefixed(symbol: &str) -> Cow<'_, str> {
    let versioned =
        symbol.strip_prefix("aws_lc_").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_'));
    versioned.filter(|name| !name.is_empty()).map_or(Cow::Borrowed(symbol), |name| format!("aws_lc::{name}").into())
}

/// Leaves out the arguments of generics, and writes closures in one way. `<A<B> as C<D>>::e` becomes `<A as C>::e`.
fn short(name: &str) -> String {
    let name =
        name.replace("{{", "{").replace("}}", "}").replace("::{shim:vtable#0}", "").replace("{closure#0}", "{closure}");
    let mut out = String::with_capacity(name.len());
    // For each open bracket: whether it is of arguments, which are left out, or of `<A as B>`.
    let mut open: Vec<bool> = Vec::new();
    let mut before = ' ';
    for letter in name.chars() {
        let hidden = open.contains(&true);
        match letter {
            '<' => {
                let arguments = before.is_alphanumeric() || matches!(before, '_' | ':' | '}' | '>');
                if !hidden && !arguments {
                    out.push('<');
                }
                if !hidden && arguments {
                    out.truncate(out.trim_end_matches("::").len());
                }
                open.push(arguments);
            }
            // The arrow in the type of a function closes nothing.
            '>' if before != '-' => {
                open.pop();
                if !hidden {
                    out.push('>');
                }
            }
            letter if !hidden => out.push(letter),
            _ => {}
        }
        before = letter;
    }
    out
}

/// Keeps only the last part of a trait's path: `<a::B as core::future::Future>::poll` becomes `<a::B as Future>::poll`.
fn traits(name: &str) -> String {
    let Some((before, after)) = name.split_once(" as ") else { return name.to_owned() };
    let end = after.find('>').unwrap_or(after.len());
    let last = after[..end].rfind("::").map_or(0, |at| at + 2);
    format!("{before} as {}", &after[last..])
}

/// Returns what says most in little room: the last two parts of a path; of `<a::B as C>::d`, the type and the last.
pub fn tail(name: &str) -> Cow<'_, str> {
    if let Some((of, method)) = name.strip_prefix('<').and_then(|inside| inside.split_once(">::")) {
        let of = of.split(" as ").next().unwrap_or(of);
        return format!("{}::{method}", of.rsplit("::").next().unwrap_or(of)).into();
    }
    let name = name.strip_prefix("aws_lc::").unwrap_or(name);
    let mut parts = name.rmatch_indices("::").map(|(at, _)| at);
    // A closure is named after the function that it is in.
    let kept = name.split("::").filter(|part| part.starts_with('{')).count() + 1;
    parts.nth(kept).map_or(name, |at| &name[at + 2..]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generics_hashes_and_versions_are_left_out() {
        let cases = [
            ("_ZN6hasher6argon24fill17h0123456789abcdefE", "hasher::argon2::fill"),
            (
                "_ZN3app7sign_in8password28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
                "app::sign_in::password::{closure}",
            ),
            ("aws_lc_0_32_0_EC_POINT_mul", "aws_lc::EC_POINT_mul"),
            ("aws_lc_0_32_0_", "aws_lc_0_32_0_"),
            ("sqlite3VdbeExec", "sqlite3VdbeExec"),
        ];
        for (symbol, expected) in cases {
            assert_eq!(readable(symbol), expected);
        }
        let generics = [
            ("tokio::task::poll::<fn(u8) -> Box<dyn Fn<u8>>, S>::{closure#0}", "tokio::task::poll::{closure}"),
            ("<alloc::vec::Vec<T> as core::iter::Extend<U>>::extend", "<alloc::vec::Vec as Extend>::extend"),
            ("<T as core::convert::Into<U>>::into::<V>", "<T as Into>::into"),
            ("core::ops::FnOnce::call_once{{vtable.shim}}", "core::ops::FnOnce::call_once{vtable.shim}"),
        ];
        for (name, expected) in generics {
            assert_eq!(traits(&short(name)), expected);
        }
    }

    #[test]
    fn little_room_is_for_the_end_of_a_path() {
        let cases = [
            ("hasher::argon2::avx2::fill", "avx2::fill"),
            ("store::commit", "store::commit"),
            ("main", "main"),
            ("app::sign_in::password::{closure}", "sign_in::password::{closure}"),
            ("app::sign_in::password::{closure}::{closure#1}", "sign_in::password::{closure}::{closure#1}"),
            ("<a::b::C as D>::e", "C::e"),
            ("<a::b::C>::d", "C::d"),
            ("aws_lc::EC_POINT_mul", "EC_POINT_mul"),
        ];
        for (name, expected) in cases {
            assert_eq!(tail(name), expected, "{name}");
        }
    }
}
