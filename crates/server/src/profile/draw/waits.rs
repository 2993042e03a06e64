//! What requests waited for, a bar for each route, and how long the queues were.

use super::{LINE, Sheet, flame, text};
use crate::profile::{Profile, Route};
use std::collections::BTreeSet;

/// The most routes that are drawn: those that took most of the time.
const MOST: usize = 10;
/// Time that was not spent waiting for anything that is timed, named as in the log of slow requests.
const OTHER: &str = "other";

/// What each phase is, in a few words; the order is that of a sign-in.
const PHASES: [(&str, &str); 11] = [
    ("body", "the body of the request has to come"),
    ("door", "others go first: every place of the kind is taken"),
    ("fetch", "the database has to answer"),
    ("turnstile", "lock of the account, others go first"),
    ("hash_queue", "other passwords are hashed first"),
    ("hash", "a password is hashed"),
    ("evening", "kept back, so that its time tells nothing"),
    ("commit_queue", "other changes are written first"),
    ("commit", "changes are written, synced and journalled"),
    ("sign", "a token is signed"),
    ("pace", "refused, and told after others who were"),
];

/// Draws the routes and the queues.
pub fn draw(sheet: &mut Sheet, taken: &Profile) {
    sheet.heading("Where requests wait");
    if taken.routes.is_empty() {
        sheet.lines("m", "No request was answered meanwhile.");
    }
    taken.routes.iter().take(MOST).for_each(|route| bar(sheet, route));
    if let Some(more) = taken.routes.len().checked_sub(MOST).filter(|more| *more > 0) {
        sheet.lines("m", &format!("and {more} other routes, with less time: --json has them"));
    }
    let named: BTreeSet<&str> = taken.routes.iter().flat_map(|route| &route.phases).map(|phase| &*phase.name).collect();
    sheet.y += 8;
    for (name, about) in PHASES.iter().filter(|(name, _)| named.contains(name)) {
        key(sheet, name, &format!("{name}: {about}"));
    }
    if !taken.routes.is_empty() {
        key(sheet, OTHER, "other: computing, rendering, waiting for a core");
    }
    sheet.heading("Queues");
    for queue in &taken.queues {
        sheet.line("", &format!("{}: {:.1} in the mean, {} at most", queue.name, queue.mean, queue.most));
    }
}

fn key(sheet: &mut Sheet, class: &str, text: &str) {
    let (y, text) = (sheet.y, text::escaped(text));
    sheet.out.push_str(&format!(
        "<svg x=\"2%\" y=\"{y}\" width=\"96%\" height=\"16\"><rect class=\"{class} key\"/><text class=\"m\" x=\"20\" y=\"12\">{text}</text></svg>\n"
    ));
    sheet.y += LINE;
}

/// Draws one route: its name, a bar, and the bar in words.
fn bar(sheet: &mut Sheet, route: &Route) {
    sheet.y += 6;
    let mean = 1000.0 * route.seconds / route.requests.max(1) as f64;
    sheet.line("b", &route.route);
    sheet
        .lines("m", &format!("{} requests, {mean:.1} ms in the mean, {:.1} s together", route.requests, route.seconds));
    let top = std::mem::replace(&mut sheet.y, 0);
    sheet.out.push_str(&format!("<svg x=\"2%\" y=\"{top}\" width=\"96%\" height=\"{}\">\n", flame::ROW));
    let parts = route.phases.iter().map(|phase| (&*phase.name, phase.share)).chain([(OTHER, route.other())]);
    let parts: Vec<(&str, f64)> = parts.filter(|(_, share)| *share > 0.0).collect();
    // Phases that go on side by side are counted twice, and may be more than all.
    let whole: f64 = parts.iter().map(|(_, share)| share).sum::<f64>().max(1.0);
    let mut from = 0.0;
    for (name, share) in &parts {
        let told = format!("{name} {}", text::percent(*share));
        sheet.area((from, share / whole), name, &told, &told);
        from += share / whole;
    }
    sheet.out.push_str("</svg>\n");
    sheet.y = top + flame::ROW + 2;
    let mut told: Vec<_> = parts.iter().filter(|(_, share)| *share >= 0.005).collect();
    told.sort_by(|a, b| b.1.total_cmp(&a.1));
    let told: Vec<String> =
        told.iter().map(|(name, share)| format!("{name} {}", text::percent(*share)).replace(' ', "\u{a0}")).collect();
    sheet.lines("m", &told.join(", "));
}
