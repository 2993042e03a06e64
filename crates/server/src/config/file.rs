//! Splits the TOML file into one value per option, each with its line.

use super::options::SECTIONS;
use super::reader::{Given, Problem, Reader, Source, declared, find, suggestion};
use super::value::Raw;
use crate::named_file;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Passes what the file at `path` says to `reader`. Syntax errors and unknown keys become problems; the rest is read.
pub fn read(path: &Path, reader: &mut Reader) {
    match named_file::text(path) {
        Ok(text) => parse(&path.display().to_string(), &text, reader),
        Err(error) => {
            let message = format!("cannot be read: {error}");
            reader.problems.push(Problem { place: path.display().to_string(), option: None, message });
        }
    }
}

/// Does the same for a text; `name` stands for the file in messages.
pub fn parse(name: &str, text: &str, reader: &mut Reader) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let document = Document { name, text };
    for error in errors {
        let place = document.place(error.span().map_or(0, |span| span.start));
        reader.problems.push(Problem { place, option: None, message: error.message().to_owned() });
    }
    document.walk("", table.get_ref(), reader);
}

struct Document<'a> {
    name: &'a str,
    text: &'a str,
}

impl Document<'_> {
    fn place(&self, offset: usize) -> String {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        format!("{}:{}", self.name, 1 + before.iter().filter(|byte| **byte == b'\n').count())
    }

    fn walk(&self, prefix: &str, table: &DeTable<'_>, reader: &mut Reader) {
        for (key, value) in table {
            let name = format!("{prefix}{}", key.get_ref());
            let below = format!("{name}.");
            match value.get_ref() {
                DeValue::Table(inner) if !inner.is_empty() || SECTIONS.iter().any(|s| s.prefix.starts_with(&below)) => {
                    self.walk(&below, inner, reader);
                }
                _ => self.option(&name, self.place(key.span().start), value, reader),
            }
        }
    }

    fn option(&self, name: &str, place: String, value: &Spanned<DeValue<'_>>, reader: &mut Reader) {
        if let Some(option) = find(name) {
            return reader.give(option, Given { raw: raw(value.get_ref()), source: Source::File, place });
        }
        let message = if SECTIONS.iter().any(|section| section.prefix == format!("{name}.")) {
            "is a section, not an option".to_owned()
        } else {
            format!("is not an option{}", suggestion("", name, declared().map(|option| option.name.to_owned())))
        };
        reader.problems.push(Problem { place, option: Some(name.to_owned()), message });
    }
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Raw::Other("a huge integer"), Raw::Integer)
        }
        DeValue::Boolean(value) => Raw::Boolean(*value),
        DeValue::Array(items) => Raw::List(items.iter().map(|item| raw(item.get_ref())).collect()),
        DeValue::Float(number) => number.as_str().parse().map_or(Raw::Other("a strange number"), Raw::Float),
        DeValue::Datetime(_) => Raw::Other("a date"),
        DeValue::Table(_) => Raw::Other("a table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::options;

    #[test]
    fn what_takes_one_of_some_words_takes_nothing_else() {
        // red where log.level is parsed as the library does: an empty text was "error", and "3" was "info".
        let choices: Vec<_> = declared().filter(|option| (option.takes)().contains("one of \"")).collect();
        assert!(choices.len() >= 8 && choices.iter().any(|option| option.name == "log.level"));
        for option in choices {
            for value in ["\"\"", "\"0\"", "\"3\"", "3", "[\"\"]", "\"INFO\"", "\" off\"", "true"] {
                let mut reader = Reader::default();
                parse("p.toml", &format!("{} = {value}\n", option.name), &mut reader);
                options::build(&mut reader);
                let named = reader.problems.iter().filter_map(|problem| problem.option.as_deref());
                assert!(named.eq([option.name]), "{} = {value}: {:?}", option.name, reader.problems);
            }
        }
    }
}
