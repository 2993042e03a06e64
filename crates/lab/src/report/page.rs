//! The report as a page: one file, without scripts or external resources.

use super::verdict::Finding;
use super::{End, LEGEND, Outcome, Report, bars, table};
use crate::experiments::Published;
use load::page::chart::escaped;
use load::page::frame;
use std::fmt::Write as _;

/// The style in addition to that of the load generator's pages.
const MORE: &str = "ul.findings { padding-left: 0; list-style: none; } ul.findings li { padding-left: 1.4rem; text-indent: -1.4rem; }\n\
    .yes::before { content: \"✓ \"; color: var(--c2); font-weight: bold; }\n\
    .no::before { content: \"✗ \"; color: var(--c3); font-weight: bold; }\n\
    .open::before { content: \"· \"; font-weight: bold; }\n\
    dt { font-weight: 600; margin-top: .5rem; } dd { margin-left: 0; }\n\
    h3 { margin: 1.6rem 0 .3rem; font-size: 1rem; } .wide { margin-top: .8rem; } summary { cursor: pointer; }\n\
    a { color: var(--c0); } nav li { margin: .2rem 0; } td:first-child { white-space: normal; min-width: 9rem; }\n";

/// Returns the page of a report.
pub fn page(report: &Report) -> String {
    let title = if report.experiments.len() == 1 { report.experiments[0].experiment.title } else { "Experiments" };
    let mut out = format!("<style>\n{MORE}{}</style>\n", bars::STYLE);
    let (version, machine) = (escaped(report.version), escaped(&report.machine.to_string()));
    let _ = writeln!(out, "<p>Portiere {version} on {machine}{}.</p>", report.begun());
    for warning in report.warnings() {
        let _ = writeln!(out, "<p class=\"note\">{warning}</p>");
    }
    let _ = writeln!(out, "<p class=\"soft\">{LEGEND}</p>");
    if report.experiments.len() > 1 {
        contents(&mut out, report);
    }
    report.experiments.iter().for_each(|outcome| section(&mut out, outcome));
    frame(title, &out)
}

fn contents(out: &mut String, report: &Report) {
    out.push_str("<nav><ul>\n");
    for outcome in &report.experiments {
        let (name, title) = (escaped(outcome.experiment.name), escaped(outcome.experiment.title));
        let _ = writeln!(out, "<li><a href=\"#{name}\">{title}</a>: {}", escaped(&outcome.conclusion));
    }
    out.push_str("</ul></nav>\n");
}

fn section(out: &mut String, outcome: &Outcome) {
    let experiment = &outcome.experiment;
    let (name, title) = (escaped(experiment.name), escaped(experiment.title));
    let _ = writeln!(out, "<h2 id=\"{name}\">{title}</h2>\n<dl>");
    for (term, text) in
        [("Hypothesis", experiment.hypothesis), ("Method", experiment.method), ("Conclusion", &outcome.conclusion)]
    {
        let _ = writeln!(out, "<dt>{term}<dd>{}", escaped(text));
    }
    out.push_str("</dl>\n");
    findings(out, &outcome.findings, outcome.findings.len() < 4);
    for note in &outcome.sheet.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(note));
    }
    for group in &outcome.sheet.groups {
        for figure in 0..group.judged().max(1) {
            let _ = writeln!(out, "<h3>{}</h3>\n{}", bars::title(group, figure), bars::svg(group, figure));
        }
        let (head, rows) = table(group);
        rows_of(out, &head, &rows);
    }
    if let Some(published) = &experiment.published {
        beside(out, published);
    }
    if outcome.end == End::Done {
        let _ = writeln!(out, "<p class=\"soft\">Took {:.0} s: portiere lab run {name}</p>", outcome.seconds);
    }
}

/// Lists decided findings openly, the rest in a part that unfolds.
fn findings(out: &mut String, findings: &[Finding], open: bool) {
    let decided = |finding: &&Finding| finding.expected.is_some() || finding.is_shown;
    let (decided, rest): (Vec<_>, Vec<_>) = findings.iter().partition(decided);
    list(out, &decided);
    if !rest.is_empty() {
        let count = rest.len();
        let (word, open) = (if count == 1 { "comparison" } else { "comparisons" }, if open { " open" } else { "" });
        let _ = writeln!(out, "<details{open}><summary>{count} {word} without a verdict</summary>");
        list(out, &rest);
        out.push_str("</details>\n");
    }
}

fn list(out: &mut String, findings: &[&Finding]) {
    if findings.is_empty() {
        return;
    }
    out.push_str("<ul class=\"findings\">\n");
    for finding in findings {
        let class = match finding.expected {
            Some(true) => "yes",
            Some(false) => "no",
            None => "open",
        };
        let _ = writeln!(out, "<li class=\"{class}\">{}", escaped(&finding.text));
    }
    out.push_str("</ul>\n");
}

fn rows_of(out: &mut String, head: &[String], rows: &[Vec<String>]) {
    let cells =
        |cells: &[String], tag: &str| cells.iter().map(|cell| format!("<{tag}>{}", escaped(cell))).collect::<String>();
    // On a phone it scrolls sideways; with the keyboard, too.
    let _ = writeln!(out, "<div class=\"wide\" tabindex=\"0\"><table><tr>{}", cells(head, "th"));
    for row in rows {
        let _ = writeln!(out, "<tr>{}", cells(row, "td"));
    }
    out.push_str("</table></div>\n");
}

fn beside(out: &mut String, published: &Published) {
    let _ = writeln!(out, "<h3>Published</h3>\n<p class=\"soft\">{}</p>", escaped(published.source));
    let rows: Vec<Vec<String>> =
        published.rows.iter().map(|(what, value)| vec![(*what).to_owned(), (*value).to_owned()]).collect();
    rows_of(out, &["what".to_owned(), "published".to_owned()], &rows);
}
