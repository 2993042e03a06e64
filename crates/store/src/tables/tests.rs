//! Checks on every statement of the tables, as their source contains them.

use super::restore::OF_FILES;
use super::{Question, clients, counters, fences, users, values};
use crate::dialect::{self, postgres::Verb};
use crate::postgres::holds;
use rules::{Handle, Time};
use std::fs;
use std::path::{Path, PathBuf};

/// The string literals of a source file, without its tests and comments. `\` at the end of a line joins it to the next.
fn texts(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let (mut texts, mut text): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut letters = source.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, &mut text) {
            ('/', None) if letters.peek() == Some(&'/') => while letters.next_if(|next| *next != '\n').is_some() {},
            ('"', None) => text = Some(String::new()),
            ('"', Some(_)) => texts.extend(text.take()),
            ('\\', Some(text)) => match letters.next() {
                Some('\n') => while letters.next_if(|next| next.is_whitespace()).is_some() {},
                Some(other) => text.push(other),
                None => {}
            },
            (letter, Some(text)) => text.push(letter),
            (_, None) => {}
        }
    }
    texts
}

/// Whether a string is a statement, or a piece of one.
fn is_sql(text: &str) -> bool {
    const WORDS: [&str; 10] =
        ["SELECT", "INSERT", "UPDATE", "DELETE", "FROM", "WHERE", "JOIN", "AND", "ORDER", "PRAGMA"];
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').any(|word| WORDS.contains(&word))
}

/// The files of a folder and of its subfolders.
fn within(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { within(&path) } else { vec![path] }).collect()
}

fn statements() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![folder.join("moving/marks.rs")];
    files.extend(within(&folder.join("tables")));
    let of = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let texts = if name == "tests.rs" { Vec::new() } else { texts(&fs::read_to_string(file).unwrap()) };
        texts.into_iter().filter(|text| is_sql(text)).map(move |text| (name.clone(), text)).collect::<Vec<_>>()
    };
    files.iter().flat_map(of).collect()
}

#[test]
fn every_statement_keeps_to_what_every_engine_understands() {
    let statements = statements();
    assert!(statements.len() > 150, "{}", statements.len());
    for (file, sql) in statements.iter().filter(|(_, sql)| sql != OF_FILES) {
        assert_eq!(dialect::check(sql), Ok(()), "{file}: {sql}");
    }
}

/// On PostgreSQL, a batch that relies on such a row holds an advisory lock on its name, and not a lock on the row.
#[test]
fn who_changes_what_everybody_relies_on_says_which_row() {
    for (table, named) in holds::TABLES {
        let mut changes = 0;
        for (file, sql) in statements() {
            let changed = matches!(dialect::postgres::verb(&sql), Verb::Update | Verb::Delete);
            if changed && dialect::postgres::table(&sql) == Some(table) {
                assert!(dialect::postgres::names_row(&sql, named).is_some(), "{file}: {sql}");
                changes += 1;
            }
        }
        assert!(changes >= 4, "{table}: {changes}");
    }
}

/// Rows that a later version wrote, next to rows of this one: each is shown in its own words, and hides no other.
#[test]
fn what_only_a_later_version_knows_hides_no_row() {
    let none = None::<Time>;
    let person =
        |id: &str, role: &str| values![id, id, None::<&str>, false, "{}", None::<&str>, role, none, Time(1), Time(1)];
    let people = users::Page { after: "", limit: 9 }.fact(vec![person("a", "member"), person("b", "auditor")]);
    let roles: Vec<_> = people.unwrap().into_iter().map(|user| user.role.name().to_owned()).collect();
    assert_eq!(roles, ["member", "auditor"]);

    let node = |name: &str, state: &str| values![1_i64, name, state, Time(1)];
    let nodes = fences::Nodes.fact(vec![node("a", "waiting"), node("b", "resting")]).unwrap();
    assert_eq!(nodes.iter().map(|node| node.state.name()).collect::<Vec<_>>(), ["waiting", "resting"]);

    let refused = |what: &str| values![1_i64, what, "192.0.2.1", 2_i64];
    let rows = ["client:shop", "proof:shop", "proof"].map(refused).to_vec();
    let found = counters::Rejections { since: Time(0), after: None, limit: 9 }.fact(rows).unwrap();
    let told: Vec<_> = found.iter().map(|(_, what, ..)| (what.name(), what.client().map(|id| id.as_str()))).collect();
    assert_eq!(told, [("client", Some("shop")), ("proof", Some("shop")), ("proof", None)]);
    assert_eq!(found[1].1.text(), "proof:shop");

    let application = |id: &str, grant: &str| {
        let stored = format!(
            r#"{{"id":"{id}","name":"{id}","grants":["{grant}"],"scope":"openid","auth_methods":["none"],
                "id_token_alg":"RS256","access_format":"jwt","access_alg":"RS256"}}"#
        );
        values![stored, None::<Handle>, none, None::<&str>, Time(1), 1_i64]
    };
    let rows = vec![application("a", "authorization_code"), application("b", "urn:later:grant")];
    let found = clients::Page { after: "", limit: 9 }.fact(rows).unwrap();
    assert_eq!(found.iter().map(|client| client.is_enabled()).collect::<Vec<_>>(), [true, false]);
    // A row that no version writes is still an error.
    assert!(clients::Page { after: "", limit: 9 }.fact(vec![values!["{}", none, none, none, none, none]]).is_none());
}

#[test]
fn a_source_is_read_as_the_compiler_reads_it() {
    let source = "let a = \"SELECT 1 \\\n     FROM t\"; // \"no\"\nlet b = concat!(\"x\", y!(), \" FROM \\\"t\\\"\");";
    assert_eq!(texts(source), ["SELECT 1 FROM t", "x", " FROM \"t\""]);
}

#[test]
fn no_list_is_cut_without_a_way_to_go_on() {
    // The limits that may cut a list, and why nobody misses the rest.
    const CUT: [(&str, &str); 3] = [
        ("LIMIT 500", "the `groups` claim: a token has an end; operators are shown all"),
        ("LIMIT 200", "nodes of fences, for people; `Waiting` has all that matter"),
        ("LIMIT 100", "fences that go: the next sweep takes more"),
    ];
    for (file, text) in statements() {
        let limit = text.split("LIMIT ").nth(1).map(|rest| rest.split(' ').next().unwrap_or_default().to_owned());
        let Some(limit) = limit.filter(|limit| limit.parse::<u32>().is_ok_and(|limit| limit > 1)) else { continue };
        let named = format!("LIMIT {limit}");
        assert!(CUT.iter().any(|(cut, _)| *cut == named), "{file}: {text}");
    }
}
