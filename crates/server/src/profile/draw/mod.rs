//! Draws the picture: one self-contained SVG file. It can be read without scripts; its own adds zooming and searching.
//!
//! Widths are shares of the window's, heights are fixed: it fits a phone and a wall, with letters of the same size.

mod flame;
mod text;
mod waits;

use super::Profile;
use std::fmt::Write as _;

/// Height of a line of text.
const LINE: u32 = 19;

/// A picture being drawn, from its top down.
struct Sheet {
    out: String,
    y: u32,
}

impl Sheet {
    /// Draws a line of text.
    fn line(&mut self, class: &str, text: &str) {
        self.y += LINE;
        let _ =
            writeln!(self.out, "<text class=\"{class}\" x=\"2%\" y=\"{}\">{}</text>", self.y - 5, text::escaped(text));
    }

    /// Draws text over as many lines as it needs.
    fn lines(&mut self, class: &str, text: &str) {
        text::wrapped(text).iter().for_each(|line| self.line(class, line));
    }

    /// Draws the heading of a new section.
    fn heading(&mut self, text: &str) {
        self.y += 22;
        self.line("h", text);
        self.y += 3;
    }

    /// Draws a box over a share of the width, with a label, and with what it says when it is pointed at.
    fn area(&mut self, (from, share): (f64, f64), class: &str, label: &str, title: &str) {
        let Sheet { out, y } = self;
        let _ = write!(
            out,
            "<svg x=\"{}%\" y=\"{y}\" width=\"{}%\" height=\"{}\"><title>{}</title><rect class=\"{class}\"/>",
            text::number(100.0 * from),
            text::number(100.0 * share),
            flame::ROW,
            text::escaped(title),
        );
        // Part of a letter is of no use: a window may be narrow, and zooming makes room.
        let room = [(0.008, " class=\"n\""), (0.03, " class=\"s\"")]
            .iter()
            .find(|(least, _)| share < *least)
            .map_or("", |(_, class)| class);
        let _ = writeln!(out, "<text{room} x=\"4\" y=\"13\">{}</text></svg>", text::escaped(label));
    }
}

/// Returns the whole file.
pub fn picture(taken: &Profile) -> String {
    let mut sheet = Sheet { out: String::new(), y: 14 };
    head(&mut sheet, taken);
    flame::draw(&mut sheet, taken);
    waits::draw(&mut sheet, taken);
    let Sheet { out, y } = sheet;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%\" height=\"{}\" lang=\"en\">\n<title>Profile of Portiere</title>\n\
         <meta xmlns=\"http://www.w3.org/1999/xhtml\" name=\"viewport\" content=\"width=device-width\"/>\n<style>{}</style>\n<rect class=\"ground\"/>\n{out}<script>{}</script>\n</svg>\n",
        y + 24,
        include_str!("picture.css"),
        include_str!("picture.js"),
    )
}

fn head(sheet: &mut Sheet, taken: &Profile) {
    let Profile { version, seconds, samples, cpu_seconds, cores, .. } = taken;
    sheet.y += 6;
    sheet.line("t", "Portiere: where the time goes");
    sheet.y += 4;
    let when = rules::utc::when(rules::Time(taken.began));
    sheet.lines("m", &format!("{seconds:.0} s from {when}, version {version}"));
    let busy = 100.0 * cpu_seconds / (seconds * *cores as f64);
    let cores = if *cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
    sheet.lines("m", &format!("{cpu_seconds:.1} s of CPU, {busy:.0} % of {cores}; {samples} samples"));
}

#[cfg(test)]
mod tests;
