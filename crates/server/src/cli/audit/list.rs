//! `audit list` and `audit export`.

use super::super::outcome::{Failure, Outcome, Reply};
use super::super::text::{Table, harmless_json};
use super::tail::reached;
use super::wanted::Wanted;
use app::App;
use app::audit::{Filter, Page, wire};
use clap::Args;
use rules::audit::Line;
use rules::utc::iso;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use store::tables::audit::Place;

/// How many lines one request asks for; a longer list takes several.
const PAGE: i64 = 500;
/// The same for sealed lines.
const CHAINED: i64 = if cfg!(test) { 4 } else { 1000 };

/// The arguments of `audit list`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct List {
    /// Which lines.
    #[command(flatten)]
    pub wanted: Wanted,
    /// The most entries to list
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..))]
    pub limit: i64,
    /// Only entries older than the entry with this id
    #[arg(long, value_name = "ID", allow_hyphen_values = true, value_parser = line)]
    pub before: Option<String>,
    /// Whether an earlier page had any lines.
    #[arg(skip)]
    pub had: bool,
    /// Whether there was an earlier page.
    #[arg(skip)]
    #[serde(default)]
    pub goes_on: bool,
}

/// How to write lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// An object on each line
    Jsonl,
    /// RFC 4180, with a header
    Csv,
}

/// The arguments of `audit export`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Export {
    /// Which lines.
    #[command(flatten)]
    pub wanted: Wanted,
    /// The output format
    #[arg(long, value_enum, default_value = "jsonl")]
    pub format: Format,
    /// Only sealed entries after this block, in the order of the chain: exports that continue where the previous one
    /// ended have no gaps
    #[arg(long, value_name = "BLOCK[:CODE]", conflicts_with_all = ["since", "until"])]
    #[serde(default)]
    pub after_block: Option<Behind>,
    /// The line after which the next page begins.
    #[arg(skip)]
    pub after: Option<String>,
    /// Whether an earlier page began the export.
    #[arg(skip)]
    pub goes_on: bool,
}

/// A block after which an export goes on, and how its code begins: a restored database uses block numbers again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Behind {
    /// Its number; 0 for the beginning.
    pub block: i64,
    code: Option<String>,
}

/// How many digits of a block's code distinguish it from others.
const DIGITS: usize = 12;

impl FromStr for Behind {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str =
            "the number of a block (0: from the beginning), or what the last export printed: 1042:5f0c21aa93d7";
        let (block, code) = text.split_once(':').map_or((text, None), |(block, code)| (block, Some(code)));
        let digits = |code: &str| code.len() == DIGITS && code.bytes().all(|digit| digit.is_ascii_hexdigit());
        let block = block.parse().ok().filter(|block| *block >= 0).ok_or(WRONG)?;
        match code {
            Some(code) if !digits(code) => Err(WRONG),
            code => Ok(Behind { block, code: code.map(str::to_ascii_lowercase) }),
        }
    }
}

impl fmt::Display for Behind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.block)?;
        self.code.iter().try_for_each(|code| write!(out, ":{code}"))
    }
}

impl Behind {
    async fn of(app: &App, block: i64) -> Result<Self, Failure> {
        let code = app.audit_code(block).await?.and_then(|code| code.get(..DIGITS).map(str::to_owned));
        Ok(Behind { block, code })
    }

    /// Fails if the log has another block of that number.
    pub async fn is_there(&self, app: &App) -> Result<(), Failure> {
        let there = Behind::of(app, self.block).await?.code;
        match self.code.as_ref().zip(there) {
            Some((code, there)) if *code != there => Err(Failure::Failed(format!(
                "block {} is not the one that was exported: the database was restored to an earlier block, and new \
                 blocks have reused the numbers since. Continue after the last block that is as it was exported, by \
                 its number alone, and keep what was exported",
                self.block
            ))),
            _ => Ok(()),
        }
    }
}

/// Parses the ID of a line. Other text sorts somewhere, too, and would be answered with lines that nobody asked for.
fn line(text: &str) -> Result<String, String> {
    match rules::fresh::from_base32hex(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("not the id of a line, as --json shows it".to_owned()),
    }
}

impl List {
    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        let limit = self.limit.clamp(0, PAGE);
        let (filter, mut notes) = self.wanted.filter(app).await?;
        if self.goes_on {
            notes.clear();
        }
        let before = self.before.as_deref().unwrap_or("");
        let page = app.audit_lines(&filter, before, true, usize::try_from(limit).unwrap_or(0)).await?;
        let left = (self.limit - page.lines.len() as i64).max(0);
        notes.extend(page.next.as_ref().filter(|_| left == 0).map(|id| on_from(id, page.lines.last())));
        let next = page.next.filter(|_| left > 0).map(|id| format!("{left} {id}"));
        if page.lines.is_empty() && next.is_none() && !self.had {
            return Ok(Outcome::new("no events", json!([])).noting(notes));
        }
        let text = if page.lines.is_empty() { String::new() } else { table(app, &page.lines, !self.had).await? };
        let items = page.lines.iter().map(|line| wire::json(&app.realm.id, line)).collect();
        Ok(Outcome::new(text, items).then(next).noting(notes))
    }

    /// Goes on where a page ended, with the number of lines that are left to list.
    pub fn go_on(&mut self, next: String) {
        let (left, before) = next.split_once(' ').unwrap_or(("0", &next));
        let left = left.parse().unwrap_or(0);
        self.had |= left < self.limit;
        self.goes_on = true;
        (self.limit, self.before) = (left, Some(before.to_owned()));
    }
}

/// Says that a list ended at its limit, and how to go on with entries before `id`.
fn on_from(id: &str, last: Option<&Line>) -> String {
    // Beyond what was looked at, it is not known whether there are others that match.
    let there = if last.is_some_and(|last| last.id == id) { "there are" } else { "there may be" };
    format!("{there} older entries: go on with --before {id}, or list more at once with --limit")
}

impl Export {
    /// Carries out the command.
    pub async fn execute(self, app: &App) -> Reply {
        let (filter, mut notes) = self.wanted.filter(app).await?;
        if self.goes_on {
            notes.clear();
        }
        let after = self.after.as_deref().unwrap_or("");
        let page = match &self.after_block {
            None => app.audit_lines(&filter, after, false, usize::MAX).await?,
            Some(behind) => {
                let (page, note) = chained(app, &filter, (behind, after)).await?;
                notes.extend(note);
                page
            }
        };
        let realm = &app.realm.id;
        let mut text = match self.format {
            Format::Csv if !self.goes_on => wire::head(),
            _ => String::new(),
        };
        for line in &page.lines {
            match self.format {
                Format::Csv => text.push_str(&wire::row(realm, line)),
                Format::Jsonl => {
                    text.push_str(&harmless_json(wire::json(realm, line).to_string()));
                    text.push('\n');
                }
            }
        }
        Ok(Outcome::new(text, Value::Null).then(page.next).noting(notes))
    }
}

/// Returns the next sealed lines after a block, or after the place (`BLOCK ID`) where the previous page ended. The note
/// says where the log ended, or, on the first page, what is missing at its beginning.
async fn chained(
    app: &App,
    filter: &Filter,
    (behind, after): (&Behind, &str),
) -> Result<(Page, Option<String>), Failure> {
    let place = match after.split_once(' ') {
        Some((block, line)) => Place { block: block.parse().unwrap_or(i64::MAX), line: line.to_owned() },
        None => {
            behind.is_there(app).await?;
            Place { block: behind.block.saturating_add(1), line: String::new() }
        }
    };
    let looked = app.sealed_after(&place, CHAINED).await?;
    if looked.is_empty() {
        reached(app, &place).await?;
    }
    let more = looked.len() as i64 == CHAINED;
    let end = looked.last().map(|line| (line.block, format!("{} {}", line.block, line.id)));
    let begins = looked.first().map(|line| line.block).filter(|begins| after.is_empty() && *begins > place.block);
    let note = match (&end, begins) {
        (_, Some(begins)) => Some(format!("the log begins with block {begins}: earlier blocks were removed")),
        _ if more => None,
        _ => {
            let newest = end.as_ref().map_or(place.block - i64::from(place.line.is_empty()), |(block, _)| *block);
            let behind = Behind::of(app, newest).await?;
            Some(format!("exported up to block {newest}; next time: --after-block {behind}"))
        }
    };
    let next = end.map(|(_, next)| next).filter(|_| more || begins.is_some());
    let lines = looked.into_iter().filter(|line| filter.wants(line)).collect();
    Ok((Page { lines, next }, note))
}

/// Renders lines for people: times in UTC, and users by their present names.
pub async fn table(app: &App, lines: &[Line], headed: bool) -> Result<String, Failure> {
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for id in lines.iter().filter_map(|line| line.user.as_deref()) {
        if !names.contains_key(id) {
            names.insert(id, app.username(&id.into()).await?.unwrap_or_else(|| id.to_owned()));
        }
    }
    let mut table = Table::new(["AT (UTC)", "EVENT", "OUTCOME", "USER", "CLIENT", "ADDRESS", "DETAIL"], headed);
    for line in lines {
        let user = line.user.as_deref().and_then(|id| names.get(id)).cloned().unwrap_or_default();
        let (client, address) = (line.client.clone().unwrap_or_default(), line.address.clone().unwrap_or_default());
        let detail = words(&serde_json::from_str(&line.detail).unwrap_or(Value::Null));
        let outcome = wire::outcome(line).to_owned();
        table.row([iso(line.at).replace('T', " "), line.kind.clone(), outcome, user, client, address, detail]);
    }
    Ok(table.render())
}

fn words(detail: &Value) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pairs = detail.as_object().into_iter().flatten().map(|(name, value)| format!("{name}={}", word(value)));
    pairs.collect::<Vec<_>>().join(" ")
}
