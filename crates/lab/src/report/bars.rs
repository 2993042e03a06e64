//! Bars as SVG, one for each variant, with the range of its rounds. Widths are shares of the picture and letters keep
//! their size, so it fits a phone as well as a wide page.

use super::sheet::Group;
use super::value;
use super::verdict::{Verdict, beyond, times};
use load::page::chart::escaped;
use std::fmt::Write as _;

/// The height of one bar with its name above it.
const ROW: usize = 36;
/// How much of the width the longest bar or range takes, in percent.
const FULL: f64 = 99.0;
/// The colors and fonts of a picture that stands alone.
const ALONE: &str = "text{font:13px system-ui,sans-serif;fill:#57606a}.bar{fill:#0b62c4}.first{fill:#8c959f}\
    .range{stroke:#1b1f24;stroke-width:2}@media(prefers-color-scheme:dark){text{fill:#9da7b3}.bar{fill:#6cb0ff}\
    .first{fill:#6e7681}.range{stroke:#e6edf3}}";

/// Returns the picture of one figure, for a page that includes [`STYLE`].
pub fn svg(group: &Group, figure: usize) -> String {
    let height = height(group);
    format!(
        r#"<svg class="bars" height="{height}" role="img" aria-label="{}">{}</svg>"#,
        title(group, figure),
        body(group, figure)
    )
}

/// Returns the same as a file of its own.
pub fn file(group: &Group, figure: usize) -> String {
    let (height, title) = (height(group), title(group, figure));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"{height}\" role=\"img\" aria-label=\"{title}\">\
         <style>{ALONE}</style>{}</svg>\n",
        body(group, figure)
    )
}

/// The style that a page with such pictures needs.
pub const STYLE: &str = "svg.bars { width: 100%; display: block; } .bars text { font-size: 13px; }\n\
    .bars .bar { fill: var(--c0); } .bars .first { fill: var(--soft); opacity: .6; }\n\
    .bars .range { stroke: var(--text); stroke-width: 2; }\n";

fn height(group: &Group) -> usize {
    group.rows.len() * ROW
}

/// Returns what a picture shows, as escaped text for a page.
pub fn title(group: &Group, figure: usize) -> String {
    let name = &group.figures[figure].name;
    escaped(&if group.title.is_empty() { name.to_string() } else { format!("{}: {name}", group.title) })
}

fn body(group: &Group, figure: usize) -> String {
    let ends = group.rows.iter().map(|row| row.range(figure).1).filter(|end| end.is_finite());
    let longest = ends.fold(0.0, f64::max);
    let share =
        |value: f64| if longest > 0.0 && value.is_finite() { (value / longest * FULL).clamp(0.0, FULL) } else { 0.0 };
    let mut out = String::new();
    for (number, row) in group.rows.iter().enumerate() {
        let (top, median, (low, high)) = (number * ROW, row.median(figure), row.range(figure));
        let class = if number == 0 { "first" } else { "bar" };
        let told = format!("{}{}", value(median, &group.figures[figure].unit), beside(group, number, figure));
        // Writing into a String cannot fail.
        let _ = write!(out, r#"<text x="0" y="{}">{}</text>"#, top + 14, escaped(&row.name));
        let _ = write!(out, r#"<text x="100%" y="{}" text-anchor="end">{}</text>"#, top + 14, escaped(&told));
        let _ = write!(
            out,
            r#"<rect class="{class}" x="0" y="{}" width="{:.2}%" height="10" rx="2"/>"#,
            top + 19,
            share(median)
        );
        if high > low {
            let (from, to, at) = (share(low), share(high), top + 24);
            let _ = write!(out, r#"<line class="range" x1="{from:.2}%" x2="{to:.2}%" y1="{at}" y2="{at}"/>"#);
        }
    }
    out
}

/// Returns the ratio to the first row, if it is judged.
fn beside(group: &Group, row: usize, figure: usize) -> String {
    if row == 0 || figure >= group.rows[row].expected.len() {
        return String::new();
    }
    match group.verdict(row, figure) {
        Verdict::Differs(ratio) => format!("  × {}", times(ratio.middle)),
        Verdict::Beyond(ratio) => format!("  × {}", beyond(ratio)),
        Verdict::Same(_) => "  the same".to_owned(),
        Verdict::Undecided(_) => "  not decided".to_owned(),
        Verdict::Unknown => String::new(),
    }
}
