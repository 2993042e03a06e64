//! The report as text, page and Markdown.

use super::{experiment, group};
use lab::report::{End, Expect, Group, Machine, Outcome, Report, Sheet, markdown, page};
use load::made::Made;

fn report(end: End, group: Group) -> Report {
    let sheet = Sheet { groups: vec![group], notes: vec!["Note <s> | *it*.".to_owned()] };
    let machine = Machine {
        cpu: "CPU <x>".to_owned(),
        cores: 2,
        memory_gib: 4.0,
        system: "Linux 1".to_owned(),
        ..Machine::default()
    };
    let outcome = Outcome::of(experiment(), sheet, end, 12.0);
    Report {
        machine,
        version: "1.2.3",
        made: None,
        build: None,
        quick: true,
        seconds: 12.0,
        experiments: vec![outcome.clone(), outcome],
    }
}

fn made_up() -> Report {
    let rows: [(&str, &[Expect], &[f64]); 2] =
        [("a <em>", &[], &[1000.0, 1010.0, 990.0]), ("b | _c_", &[Expect::More], &[2000.0, 2030.0, 1990.0])];
    let named = Group { title: "1 core & <more>".to_owned(), ..group(&rows) };
    report(End::Done, named)
}

#[test]
fn a_page_stands_alone_and_nothing_of_the_text_is_markup() {
    let page = page(&made_up());
    for markup in ["<i>", "<b>", "<u>", "<em>", "<s>", "<x>", "<more>"] {
        assert!(!page.contains(markup) && page.contains(&markup.replace('<', "&lt;").replace('>', "&gt;")), "{markup}");
    }
    for outside in ["<script", "src=", "url(", "@import", "http-equiv", "http:", "https:", "NaN"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("prefers-color-scheme: dark") && page.matches("<svg").count() == 2);
    assert!(page.contains("Portiere 1.2.3 on CPU &lt;x&gt;, 2 cores, 4.0 GiB, Linux 1"), "{page}");
    assert!(page.contains("A quick run") && page.contains("class=\"yes\""), "{page}");
    assert!(page.contains("<td>2,000/s ±1 %<td>2.01"), "{page}");
    assert!(page.contains("<td>rate|it<td>1 &amp; 2"), "{page}");
}

#[test]
fn markdown_has_its_pictures_beside_it_and_cells_that_stay_cells() {
    let (text, pictures) = markdown(&made_up(), "performance");
    assert_eq!(pictures.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["made-up-1-1.svg"; 2]);
    assert!(text.contains("](performance/made-up-1-1.svg)"), "{text}");
    for (_, picture) in &pictures {
        assert!(
            picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && !picture.contains("var("),
            "{picture}"
        );
        assert!(picture.contains("a &lt;em&gt;") && picture.contains("prefers-color-scheme:dark"), "{picture}");
    }
    assert!(!text.contains("<em>") && text.contains("| a &lt;em&gt; | 1,000/s"), "{text}");
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let row = text.lines().find(|line| line.starts_with("| b \\| \\_c\\_ |")).unwrap();
    assert_eq!(columns(row), 4, "{row}");
    assert!(text.contains("| rate\\|it | 1 &amp; 2 |") && text.contains("what \\*it\\* is."), "{text}");
}

#[test]
fn the_longest_bar_is_that_of_the_highest_value_and_all_begin_at_zero() {
    let (_, pictures) = markdown(&made_up(), "x");
    let widths: Vec<f64> = pictures[0]
        .1
        .split("<rect")
        .skip(1)
        .map(|bar| {
            assert!(bar.contains("x=\"0\""), "{bar}");
            bar.split("width=\"").nth(1).unwrap().split('%').next().unwrap().parse().unwrap()
        })
        .collect();
    assert!((widths[0] / widths[1] - 0.5).abs() < 0.01 && widths[1] > 90.0, "{widths:?}");
}

#[test]
fn what_is_not_a_number_is_drawn_as_nothing() {
    let rows: [(&str, &[Expect], &[f64]); 2] =
        [("a", &[], &[f64::NAN, 0.0]), ("b", &[Expect::More], &[0.0, f64::INFINITY])];
    let report = report(End::Failed("it broke".to_owned()), group(&rows));
    let (text, pictures) = markdown(&report, "x");
    for text in [&page(&report), &text, &pictures[0].1, &report.to_string()] {
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
    assert!(text.contains("Ended before its time: it broke."), "{text}");
}

#[test]
fn the_text_keeps_columns_and_lines_in_their_width() {
    let text = made_up().to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let rows: Vec<_> = text.lines().filter(|line| line.contains("/s ±")).collect();
    assert_eq!(rows[0].find("/s"), rows[1].find("/s"), "{text}");
    assert!(text.contains("  + 1 core & <more>: b | _c_, beside a <em>: hashes a second 2.01 times as high"), "{text}");
    assert!(text.contains("  = The hypothesis holds on this machine, in the one comparison."), "{text}");
}

/// Red without `begun`: a file that is found later says how fast it was, and not when.
#[test]
fn a_report_says_when_it_was_begun() {
    let made = Made { version: "1.2.3".to_owned(), at: 784_111_777, machine: "a machine".to_owned() };
    let report = Report { made: Some(made), ..made_up() };
    let begun = ", begun Sun, 06 Nov 1994 08:49:37 GMT";
    let (text, page, markdown) = (report.to_string(), page(&report), markdown(&report, "x").0);
    assert!(text.contains(&format!("\nPortiere 1.2.3{begun}\n")), "{text}");
    assert!(page.contains(&format!("{begun}.</p>")) && markdown.contains(&format!("{begun}.\n")), "{markdown}");
    assert!(!made_up().to_string().contains("begun") && made_up().to_string().contains("\nPortiere 1.2.3\n"));
}
