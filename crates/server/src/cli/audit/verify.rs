//! `audit verify`, page by page.

use super::super::outcome::{Failure, Outcome, Reply};
use super::super::text::{harmless, harmless_json};
use crate::named_file;
use app::App;
use app::audit::Verified;
use clap::{Args, ValueHint};
use rules::audit::{Finding, Head, Told};
use rules::utc::iso;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The most findings that are named. Further ones are counted.
const NAMED: u64 = 1000;

/// The arguments of `audit verify`.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Verify {
    /// A head that `portiere audit head` printed before; nothing from before it may be missing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub head: Option<PathBuf>,
    /// The content of that file.
    #[arg(skip)]
    pub exported: Option<Head>,
    /// Whether the answer is JSON.
    #[arg(skip)]
    pub json: bool,
    /// How far the verification is.
    #[arg(skip)]
    pub state: Option<State>,
}

/// How far a verification is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    told: Told,
    /// The first findings so far.
    found: Vec<Finding>,
    /// How many findings there were so far.
    count: u64,
    /// The newest block.
    newest: i64,
    /// Whether everything was looked at.
    done: bool,
}

impl Verify {
    /// Reads the exported head.
    pub fn complete(&mut self) -> Result<(), Failure> {
        let Some(file) = &self.head else { return Ok(()) };
        // Not a failure, which would say that the log is wrong.
        let wrong = |why: String| Failure::Use(format!("{}: {why}", file.display()));
        let text = named_file::text(file).map_err(|error| wrong(error.to_string()))?;
        let head = serde_json::from_str(&text);
        self.exported = Some(head.map_err(|error| wrong(format!("is not an exported head: {error}")))?);
        Ok(())
    }

    /// Returns how far the verification is.
    pub fn progress(&self) -> Option<String> {
        let state = self.state.as_ref().filter(|state| !state.done)?;
        Some(format!("block {} of {}", state.told.end.number, state.newest))
    }

    /// Goes on with the next blocks.
    pub fn go_on(&mut self, next: &str) {
        self.state = serde_json::from_str(next).ok();
    }

    /// Carries out the next step.
    pub async fn execute(self, app: &App) -> Reply {
        if let Some(state) = self.state.as_ref().filter(|state| state.done) {
            return Err(Failure::Failed(self.objection(state).unwrap_or_default()));
        }
        let told = self.state.as_ref().map(|state| &state.told);
        let step = app.verify_audit(told, self.exported.as_ref()).await?;
        let before = self.state.as_ref().map_or((Vec::new(), 0), |state| (state.found.clone(), state.count));
        let (mut found, mut count) = before;
        let mut text = String::new();
        for finding in &step.findings {
            count += 1;
            if count > NAMED {
                continue;
            }
            found.push(finding.clone());
            if !self.json {
                text.push_str(&format!("{}\n", harmless(&finding.why)));
            }
        }
        let state = State {
            told: step.told.clone(),
            found,
            count,
            newest: step.newest.max(step.told.end.number),
            done: step.done,
        };
        if step.done {
            text.push_str(&self.summary(&step, &state));
        }
        let goes_on = !step.done || self.objection(&state).is_some();
        let next = goes_on.then(|| serde_json::to_string(&state)).transpose();
        let next = next.map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(Outcome::new(text, Value::Null).then(next))
    }

    /// Whether the exported head was compared with its block, if one was given.
    fn compared(&self, state: &State) -> Option<bool> {
        self.exported.as_ref().map(|head| state.told.met_head() || head.block == 0)
    }

    /// Why the command fails at the end, if it does. Whoever gives a head wants to know that the log was not cut:
    /// nothing was proved without it.
    fn objection(&self, state: &State) -> Option<String> {
        match state.count {
            0 if self.compared(state) == Some(false) => Some("the exported head was not compared".to_owned()),
            0 => None,
            1 => Some("1 thing is wrong with the audit log".to_owned()),
            count => Some(format!("{count} things are wrong with the audit log")),
        }
    }

    fn summary(&self, step: &Verified, state: &State) -> String {
        let told = &step.told;
        let compared = self.compared(state);
        if self.json {
            let shown = json!({
                "ok": state.count == 0,
                "blocks": told.blocks,
                "lines": told.lines,
                "first_block": told.begin + 1,
                "last_block": told.end.number,
                "unsealed": step.unsealed,
                "head_compared": compared,
                "mark": step.mark.as_ref().map(|mark| mark.block),
                "findings": state.found,
                "findings_in_all": state.count,
            });
            return harmless_json(serde_json::to_string_pretty(&shown).unwrap_or_default()) + "\n";
        }
        let mut text = String::new();
        if state.count > NAMED {
            text.push_str(&format!("and {} more\n", state.count - NAMED));
        }
        let verdict = match state.count {
            0 => "as they were sealed",
            _ if state.is_only(&[MARK]) => "as they were sealed",
            _ if state.is_only(&[MARK, KEY]) => "not all of them can be proved",
            _ => "not all as they were sealed",
        };
        text.push_str(&format!("{} lines in {} blocks: {verdict}\n", told.lines, told.blocks));
        if told.begin > 0 {
            text.push_str(&format!("blocks up to {} were removed by retention\n", told.begin));
        }
        if step.unsealed > 0 {
            text.push_str(&format!("{} lines are not sealed yet, so not proved\n", step.unsealed));
        }
        match (&self.exported, compared) {
            (Some(head), Some(true)) if state.count == 0 => {
                let (block, at) = (head.block, iso(head.sealed_at));
                text.push_str(&format!("nothing up to block {block} was cut off, the end at {at} (--head)\n"));
            }
            (Some(head), Some(false)) if head.block <= told.begin => {
                let block = head.block;
                text.push_str(&format!(
                    "the exported head, block {block}, was removed by retention: export a newer one\n"
                ));
            }
            _ => {}
        }
        text.push_str(&since_the_mark(step, state, self.exported.is_some()));
        text
    }
}

/// The finding that this node's mark cannot be used.
const MARK: &str = "mark.edited";
/// The finding that the key of a block is not here: nothing is known about its lines.
const KEY: &str = "key.missing";

impl State {
    fn has(&self, what: &str) -> bool {
        self.found.iter().any(|finding| finding.what == what)
    }

    fn is_only(&self, what: &[&str]) -> bool {
        self.count <= NAMED && self.found.iter().all(|finding| what.contains(&&*finding.what))
    }
}

/// Says what this node's mark showed, beside an exported head or alone.
fn since_the_mark(step: &Verified, state: &State, beside: bool) -> String {
    match &step.mark {
        Some(mark) if state.count == 0 => {
            let (block, at) = (mark.block, iso(mark.sealed_at));
            let more = if beside { "" } else { "; --head compares with another machine" };
            format!("nothing up to block {block} was cut off, the end that this node saw at {at}{more}\n")
        }
        None if !beside && step.told.end.number > 0 => {
            let why =
                if state.has(MARK) { "the mark of this node cannot be used" } else { "this node keeps no mark yet" };
            format!("without --head, nobody can tell whether newer blocks were cut off: {why}\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::*;
    use crate::cli::Request;
    use crate::control::LONGEST_REQUEST;
    use rules::Time;
    use rules::audit::{Block, Keys, Line, Link, Verifier};

    /// Returns the end of a verification that found these, of a log of 11 lines in 2 blocks, and met an exported head.
    fn ended(found: &[&str], met: bool) -> State {
        let end = json!({ "number": 2, "last": 11, "mac": "" });
        let told = json!({ "end": end, "begin": 0, "blocks": 2, "lines": 11, "missing": null, "met": met });
        let told: Told = serde_json::from_value(told).unwrap();
        let findings: Vec<_> = found.iter().map(|what| Finding::of(1, what, String::new())).collect();
        let count = findings.len() as u64;
        State { told, found: findings, count, newest: 2, done: true }
    }

    /// Returns the summary where these were found.
    fn said(found: &[&str]) -> String {
        let state = ended(found, false);
        let (told, findings) = (state.told.clone(), Vec::new());
        let step = Verified { told, findings, done: true, newest: 2, mark: None, unsealed: 0 };
        Verify { head: None, exported: None, json: false, state: None }.summary(&step, &state)
    }

    #[test]
    fn whoever_gives_a_head_that_is_not_compared_is_told_so_by_the_exit_code() {
        // Red where the findings alone decide: of a log that retention has passed the head by, nothing was proved.
        let (realm, mac, key) = ("main".to_owned(), String::new(), "k".to_owned());
        let head = Head { realm, block: 1, lines: 5, mac, key, sealed_at: Time(0) };
        let objection = |exported: Option<&Head>, found: &[&str], met| {
            let of = Verify { head: None, exported: exported.cloned(), json: false, state: None };
            of.objection(&ended(found, met))
        };
        assert_eq!(objection(None, &[], false), None);
        assert_eq!(objection(Some(&head), &[], true), None);
        assert_eq!(objection(Some(&Head { block: 0, ..head.clone() }), &[], false), None, "there was nothing yet");
        assert!(objection(Some(&head), &[], false).is_some_and(|why| why.contains("not compared")));
        assert!(objection(Some(&head), &[KEY], false).is_some_and(|why| why.starts_with("1 thing is")));
        assert!(objection(None, &[KEY, "line.edited"], false).is_some_and(|why| why.starts_with("2 things are")));
    }

    /// Returns how far a verification is that found so many lines of this id, of a block with this key.
    fn far(many: u64, id: &str, key: &str) -> State {
        let (realm, keys) = ("main".into(), Keys::default());
        let verifier = Verifier { realm: &realm, keys: &keys, head: None, mark: None };
        let block = Block {
            number: 1,
            first: 1,
            last: 1,
            oldest: Time(0),
            newest: Time(0),
            sealed_at: Time(0),
            key: key.to_owned(),
            digest: vec![7; 1 << 16],
            leaves: vec![],
            before: Link::beginning().code(),
            mac: vec![7; 1 << 16],
        };
        let line = Line {
            id: id.to_owned(),
            at: Time(0),
            kind: String::new(),
            user: None,
            client: None,
            session: None,
            address: None,
            request: None,
            detail: String::new(),
            block: i64::MAX,
        };
        let mut told = verifier.begin(None).0;
        let mut found = verifier.block(&mut told, &block, &[]);
        while (found.len() as u64) < many {
            found.extend(verifier.strays(std::slice::from_ref(&line)));
        }
        State { told, found, count: many, newest: i64::MAX, done: false }
    }

    #[test]
    fn how_far_it_is_fits_into_a_request_whatever_somebody_wrote_into_the_database() {
        // Red without `shown` in rules/audit/verify.rs: a few lines with long ids would break every verification off.
        for letter in ["\u{1}", "\"", "\\", "x", "€", "\u{10ffff}"] {
            let long = letter.repeat(5_000);
            let state = Some(far(NAMED, &long, &long));
            let verify = Verify { head: None, exported: None, json: true, state };
            let request = Request::Audit(Box::new(Command::Verify(verify)));
            let bytes = serde_json::to_string(&request).unwrap().len();
            // There is a version, too.
            assert!(bytes + 1024 < LONGEST_REQUEST as usize, "{letter:?}: {bytes}");
        }
    }

    #[test]
    fn what_cannot_be_told_is_not_said_to_be_wrong() {
        // Red without either `is_only` in summary, or without `has` in since_the_mark.
        for (found, verdict, mark) in [
            (&[][..], "in 2 blocks: as they were sealed\n", "keeps no mark yet"),
            (&[MARK], "in 2 blocks: as they were sealed\n", "mark of this node cannot be used"),
            (&[KEY], "in 2 blocks: not all of them can be proved\n", "keeps no mark yet"),
            (&[MARK, KEY], "in 2 blocks: not all of them can be proved\n", "mark of this node cannot be used"),
            (&[KEY, "line.edited"], "in 2 blocks: not all as they were sealed\n", "keeps no mark yet"),
        ] {
            let said = said(found);
            assert!(said.contains(verdict) && said.contains(mark), "{found:?}: {said}");
        }
    }
}
