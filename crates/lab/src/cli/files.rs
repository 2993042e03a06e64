//! The report files, tested for being writable before anybody waits for a report.

use super::{Options, to_json};
use crate::experiments::{ALL, Experiment};
use crate::report::{Report, Saved, markdown, page};
use load::Refusal;
use load::output::{apart, try_out, write};
use std::path::{Path, PathBuf};

/// The files that the report is written to.
pub struct Files {
    html: Option<PathBuf>,
    save: Option<PathBuf>,
    markdown: Option<(PathBuf, PathBuf)>,
}

impl Files {
    /// Returns the files that were asked for, after testing that they are writable.
    pub fn of(options: &Options) -> Result<Files, Refusal> {
        let Options { html, save, markdown, .. } = options.clone();
        let files = || [&html, &save, &markdown].into_iter().flatten();
        // The folder of a page's pictures is named like the page, without its extension.
        let pictures = markdown.as_ref().map(|file| file.with_extension(""));
        apart(files().chain(&pictures))?;
        files().try_for_each(|file| try_out(file))?;
        let markdown = markdown.map(with_pictures).transpose()?;
        Ok(Files { html, save, markdown })
    }

    /// Writes the report as it is by now, and replaces what was there. A file that cannot be written does not prevent
    /// the others.
    pub fn write(&self, report: &Report) -> Result<(), Refusal> {
        let none = Ok(());
        let save = self.save.as_ref().map_or(none.clone(), |file| write(file, &to_json(report)?));
        let html = self.html.as_ref().map_or(none.clone(), |file| write(file, &page(report)));
        let markdown = self.markdown.as_ref().map_or(none, |(file, folder)| with_its_pictures(file, folder, report));
        save.and(html).and(markdown)
    }
}

fn with_its_pictures(file: &Path, folder: &Path, report: &Report) -> Result<(), Refusal> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let (text, pictures) = markdown(report, &name);
    pictures.iter().try_for_each(|(name, picture)| write(&folder.join(name), picture))?;
    write(file, &text)?;
    remove_pictures(folder, |name| pictures.iter().any(|(picture, _)| picture == name))
}

/// Returns the report in `file`; `None` if there is no such file yet.
pub fn read(file: &Path) -> Result<Option<Saved>, Refusal> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) if text.trim().is_empty() => return Ok(None),
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Refusal::Use(format!("{} cannot be read: {error}", file.display()))),
    };
    let saved = serde_json::from_str(&text);
    saved.map(Some).map_err(|error| Refusal::Use(format!("{} is not a report of the lab: {error}", file.display())))
}

/// Returns the page, and the folder of its pictures, which is created.
fn with_pictures(file: PathBuf) -> Result<(PathBuf, PathBuf), Refusal> {
    if file.extension().is_none_or(|extension| extension != "md") {
        return Err(Refusal::Use(format!("--markdown {}: the name has to end in .md", file.display())));
    }
    let folder = file.with_extension("");
    std::fs::create_dir_all(&folder).map_err(|error| cannot(&folder, &error))?;
    Ok((file, folder))
}

/// Removes pictures of an earlier run that this report does not have, and nothing else.
fn remove_pictures(folder: &Path, is_shown: impl Fn(&str) -> bool) -> Result<(), Refusal> {
    let entries = std::fs::read_dir(folder).map_err(|error| cannot(folder, &error))?;
    let pictures = entries.filter_map(Result::ok).map(|entry| entry.path());
    let mut pictures = pictures.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        is_picture(&name) && !is_shown(&name)
    });
    pictures.try_for_each(|path| std::fs::remove_file(&path).map_err(|error| cannot(&path, &error)))
}

/// Whether it is the name of one of our pictures: that of an experiment and two numbers.
fn is_picture(name: &str) -> bool {
    let numbers = |rest: &str| {
        rest.split('-').all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let rest = |one: &Experiment| name.strip_suffix(".svg")?.strip_prefix(one.name)?.strip_prefix('-');
    ALL.iter().filter_map(rest).any(numbers)
}

fn cannot(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::Failure(format!("{} cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red where the first failure ends it: a failing page would leave no JSON file to resume the run from.
    #[test]
    fn a_file_that_cannot_be_written_keeps_none_of_the_others_from_it() {
        let folder = std::env::temp_dir().join(format!("lab-files-{}", std::process::id()));
        let pictures = folder.join("a");
        std::fs::create_dir_all(&pictures).unwrap();
        for name in ["lanes-1-1.svg", "mine.svg"] {
            std::fs::write(pictures.join(name), "").unwrap();
        }
        let full = PathBuf::from("/dev/full");
        let (save, page) = (folder.join("a.json"), folder.join("a.md"));
        let report = Report {
            machine: Default::default(),
            version: "1",
            made: None,
            build: None,
            quick: true,
            seconds: 1.0,
            experiments: Vec::new(),
        };
        let markdown = Some((page.clone(), pictures.clone()));
        let files = Files { html: Some(full), save: Some(save.clone()), markdown };
        let refusal = files.write(&report).unwrap_err();
        assert!(refusal.to_string().starts_with("/dev/full cannot be written: "), "{refusal}");
        assert!(save.exists() && page.exists());
        assert!(!pictures.join("lanes-1-1.svg").exists() && pictures.join("mine.svg").exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Red without `apart`: after an hour each result would overwrite the one before.
    #[test]
    fn no_two_results_are_one_file() {
        let folder = std::env::temp_dir().join(format!("lab-apart-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = |name: &str| Some(folder.join(name));
        let of = |save: &str, html: &str, markdown: &str| {
            Files::of(&Options { save: file(save), html: file(html), markdown: file(markdown), ..Options::default() })
        };
        assert!(of("r.json", "r.html", "r.md").is_ok());
        for (save, html, markdown) in [("a", "a", "b.md"), ("a.json", "a.md", "a.md"), ("p", "a.html", "p.md")] {
            let Err(refusal) = of(save, html, markdown) else { panic!("{save} {html} {markdown}") };
            assert!(refusal.to_string().contains("would hold two results"), "{refusal}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn only_pictures_of_ours_are_removed() {
        let ours = ["lanes-1-1.svg", "last-seen-12-3.svg"];
        assert!(ours.into_iter().all(is_picture));
        let others = ["lanes.svg", "lanes-.svg", "lanes-1-1.png", "mine-1-1.svg", "lanes-1-one.svg", "lanesx-1.svg"];
        assert!(!others.into_iter().any(is_picture));
    }
}
