//! `--limit` of lists that come page by page.

use clap::Args;
use serde::{Deserialize, Serialize};

/// How many entries are still to be listed.
#[derive(Clone, Copy, Debug, Default, Args, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Limit {
    /// The most entries to list [default: all]
    #[arg(long = "limit", value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    left: Option<i64>,
}

/// Where a page ends: the next page, if it is wanted, or else a note if there may be one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct End {
    /// What [`Limit::go_on`] takes.
    pub next: Option<String>,
    /// For the user.
    pub notes: Vec<String>,
}

impl Limit {
    /// Cuts off what is not wanted of a page. Another one may follow if it has as many entries as a page `holds`.
    pub fn cut<T>(self, page: &mut Vec<T>, holds: i64, id: impl Fn(&T) -> &str) -> End {
        let there = page.len() as i64;
        let full = there >= holds;
        page.truncate(usize::try_from(self.left.unwrap_or(there)).unwrap_or(usize::MAX));
        let Some(last) = page.last().map(id) else { return End::default() };
        match self.left {
            None => End { next: full.then(|| last.to_owned()), notes: Vec::new() },
            Some(left) if left > there => {
                End { next: full.then(|| format!("{} {last}", left - there)), notes: Vec::new() }
            }
            Some(left) if left < there || full => {
                let more = if left < there { "there are" } else { "there may be" };
                End { next: None, notes: vec![format!("{more} more than these: go on with --after {last}")] }
            }
            Some(_) => End::default(),
        }
    }

    /// Takes the next page, and returns the ID after which it begins.
    pub fn go_on(&mut self, next: String) -> String {
        let Some(left) = &mut self.left else { return next };
        let (rest, after) = next.split_once(' ').unwrap_or(("0", &next));
        *left = rest.parse().unwrap_or(0);
        after.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is listed of five, in pages of two, and the notes.
    fn listed(left: Option<i64>) -> (Vec<&'static str>, Vec<String>) {
        let (all, mut limit) = (["a", "b", "c", "d", "e"], Limit { left });
        let (mut listed, mut after) = (Vec::new(), String::new());
        loop {
            let mut page: Vec<&str> = all.into_iter().filter(|id| **id > *after).take(2).collect();
            let end = limit.cut(&mut page, 2, |id| id);
            listed.extend(page);
            match end.next {
                Some(next) => after = limit.go_on(next),
                None => return (listed, end.notes),
            }
        }
    }

    #[test]
    fn a_list_ends_at_its_limit_and_says_how_to_go_on() {
        // Red without the count in `next`, or without the note.
        let all = ["a", "b", "c", "d", "e"];
        for (left, notes) in [
            (None, None),
            (Some(1), Some("there are more than these: go on with --after a")),
            (Some(3), Some("there are more than these: go on with --after c")),
            (Some(4), Some("there may be more than these: go on with --after d")),
            (Some(5), None),
            (Some(9), None),
        ] {
            let wanted = left.map_or(5, |left| left.min(5) as usize);
            let notes: Vec<String> = notes.into_iter().map(str::to_owned).collect();
            assert_eq!(listed(left), (all[..wanted].to_vec(), notes), "{left:?}");
        }
    }
}
