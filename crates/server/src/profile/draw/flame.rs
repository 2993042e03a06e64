//! The flame graph: kinds of threads on top, below each function what it called, as wide as its share of the samples.

use super::{LINE, Sheet, text};
use crate::profile::tree::{DEEPER, LOST, children};
use crate::profile::{Node, Profile, names};

/// Height of a box, with the gap below it.
pub const ROW: u32 = 18;
/// The most boxes: that many fit into a megabyte.
const MOST: usize = 2500;
/// Narrower boxes could not be seen.
const NARROWEST: f64 = 0.000_5;
/// The longest name in a tooltip.
const LONGEST: usize = 240;

/// Whose code a function is, as the colors show it: the class, and its name.
const OWNERS: [(&str, &str); 6] = [
    ("own", "Portiere"),
    ("sql", "SQLite"),
    ("tls", "cryptography"),
    ("run", "runtime"),
    ("lib", "libraries"),
    ("sys", "system"),
];

/// Our own crates, and those of other classes.
const CRATES: [(&str, &[&str]); 3] = [
    ("own", &["portiere", "app", "rules", "store", "hasher"]),
    ("tls", &["aws_lc", "aws_lc_rs", "rustls", "tokio_rustls", "sha2", "hmac"]),
    (
        "run",
        &[
            "std",
            "core",
            "alloc",
            "tokio",
            "hyper",
            "hyper_util",
            "axum",
            "axum_core",
            "tower",
            "futures_util",
            "futures_core",
            "mio",
        ],
    ),
];

/// How the names begin, after underscores, that AWS-LC gives to its assembler and keeps to itself. Such code often does
/// not say who called it.
const ASSEMBLER: [&str; 17] = [
    "aes",
    "bignum_",
    "bn_",
    "chacha20_",
    "ecp_nistz",
    "extract_multiplier_",
    "gcm_",
    "keccak",
    "md5_block",
    "mul4x_internal",
    "mulx4x_internal",
    "poly_hash_ad_internal",
    "rsaz_",
    "sha1_block",
    "sha256_block",
    "sha512_block",
    "vpaes_",
];

/// A box to be drawn.
struct Area<'a> {
    nodes: Vec<&'a Node>,
    class: &'static str,
    from: f64,
    share: f64,
    row: u32,
}

/// Draws the flame graph.
pub fn draw(sheet: &mut Sheet, taken: &Profile) {
    sheet.heading("Where the CPU goes");
    if taken.samples == 0 {
        sheet.lines("m", "No thread used the CPU when a sample was due: the server had nothing to do.");
        return;
    }
    let hint = "Read it from the top: below each box is what it called, as wide as its share of all samples. Threads that wait \
                use no CPU, and are not in it.";
    sheet.lines("m", hint);
    legend(sheet);
    let least = least(taken);
    let areas = areas(taken, least);
    let rows = areas.iter().map(|area| area.row + 1).max().unwrap_or(0);
    let top = sheet.y;
    sheet.out.push_str(&format!("<svg id=\"flame\" x=\"2%\" y=\"{top}\" width=\"96%\" height=\"{}\">\n", rows * ROW));
    for area in &areas {
        sheet.y = area.row * ROW;
        let (label, title) = area.words(taken.samples);
        sheet.area((area.from, area.share), area.class, &label, &title);
    }
    sheet.out.push_str("</svg>\n");
    sheet.y = top + rows * ROW + 4;
    let hidden = taken.nodes.iter().filter(|node| node.total < least).count();
    if hidden > 0 {
        let below = text::percent(least as f64 / taken.samples as f64);
        sheet.lines("m", &format!("Left out: {hidden} boxes of less than {below}; --json has them."));
    }
}

fn legend(sheet: &mut Sheet) {
    sheet.y += 4;
    let (y, third) = (sheet.y, 96.0 / 3.0);
    for (at, (class, name)) in OWNERS.iter().enumerate() {
        let x = 2.0 + third * (at % 3) as f64;
        let y = y + LINE * (at / 3) as u32;
        sheet.out.push_str(&format!(
            "<svg x=\"{}%\" y=\"{y}\" width=\"{third}%\" height=\"16\"><rect class=\"{class} key\"/><text class=\"m\" x=\"20\" y=\"12\">{name}</text></svg>\n",
            text::number(x),
        ));
    }
    sheet.y += 2 * LINE + 8;
}

/// Returns how many samples a box needs to be drawn, so that there are not too many boxes.
fn least(taken: &Profile) -> u64 {
    let mut totals: Vec<u64> = taken.nodes.iter().map(|node| node.total).collect();
    totals.sort_unstable_by(|a, b| b.cmp(a));
    let visible = (NARROWEST * taken.samples as f64).ceil() as u64;
    totals.get(MOST).map_or(0, |next| next + 1).max(visible).max(1)
}

/// Returns the boxes. Functions of the runtime, and of the system where a thread begins, that only call one other
/// function share one box with it.
fn areas(taken: &Profile, least: u64) -> Vec<Area<'_>> {
    let below = children(&taken.nodes);
    let shown = |of: usize| below[of].iter().copied().filter(|child| taken.nodes[*child].total >= least);
    let width = |node: &Node| node.total as f64 / taken.samples as f64;
    let mut areas = Vec::new();
    // For each function: where it begins, in which row, and the class of the one above it.
    let mut next = Vec::new();
    let stack_up = |of: usize, mut from: f64, row: u32, class: &'static str, next: &mut Vec<_>| {
        for child in shown(of) {
            next.push((child, from, row, class));
            from += width(&taken.nodes[child]);
        }
    };
    stack_up(taken.nodes.len(), 0.0, 0, "thr", &mut next);
    while let Some((mut at, from, row, above)) = next.pop() {
        let first = &taken.nodes[at];
        let class = if first.parent.is_none() { "thr" } else { owner(&first.name, above) };
        let mut nodes = vec![first];
        let plain = |class: &str| class == "run" || (class == "sys" && above == "thr");
        // A box that says that something is missing must not be missed.
        let missing = [DEEPER, LOST].contains(&&*first.name);
        while !missing && plain(class) && taken.nodes[at].own == 0 {
            let mut callees = shown(at);
            let (Some(only), None) = (callees.next(), callees.next()) else { break };
            if !plain(owner(&taken.nodes[only].name, "run")) || taken.nodes[only].total < taken.nodes[at].total {
                break;
            }
            nodes.push(&taken.nodes[only]);
            at = only;
        }
        let class = if nodes.len() > 1 { "run" } else { class };
        areas.push(Area { nodes, class, from, share: width(first), row });
        stack_up(at, from, row + 1, class, &mut next);
    }
    areas
}

/// Returns whose code a function is, by its name; for a C function, by what called it.
fn owner(name: &str, above: &'static str) -> &'static str {
    if name.ends_with(']') {
        return "sys";
    }
    if name.starts_with("sqlite3") {
        return "sql";
    }
    let path = name.trim_start_matches(['<', '&', '(']).trim_start_matches("dyn ").trim_start_matches("mut ");
    match path.split_once("::") {
        Some((krate, _)) => CRATES.iter().find(|(_, crates)| crates.contains(&krate)).map_or("lib", |(class, _)| class),
        None if matches!(above, "sql" | "tls") => above,
        None if is_assembler(name) => "tls",
        None => "lib",
    }
}

fn is_assembler(name: &str) -> bool {
    let name = name.trim_start_matches('_').to_ascii_lowercase();
    ASSEMBLER.iter().any(|begin| name.starts_with(begin))
}

impl Area<'_> {
    /// Returns the label of the box, and its tooltip.
    fn words(&self, samples: u64) -> (String, String) {
        let Some(last) = self.nodes.last() else { return (String::new(), String::new()) };
        let share = |part: u64| text::percent(part as f64 / samples as f64);
        let mut title = String::new();
        let skipped = self.nodes.len().saturating_sub(6);
        if skipped > 0 {
            title.push_str(&format!("({skipped} more)\n"));
        }
        for node in &self.nodes[skipped..] {
            title.extend(node.name.chars().take(LONGEST).chain(['\n']));
        }
        title.push_str(&format!("{} of all samples, {} in itself", share(last.total), share(last.own)));
        let name = names::tail(&last.name);
        let label = match self.nodes.len() {
            1 => name.into_owned(),
            many => format!("{name}  (+{})", many - 1),
        };
        (label, title)
    }
}
