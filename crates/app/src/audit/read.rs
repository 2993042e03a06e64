//! Reading the audit log, a bounded piece at a time: all entries by when they were written, or the sealed ones in the
//! order of the chain.

use super::wire::outcome;
use crate::{App, Fault};
use rules::audit::{Block, Checkpoint, Head, Line, Link};
use rules::events::Rejection;
use rules::fresh::first_id;
use rules::id::{ClientId, RealmId};
use rules::secret::hexadecimal;
use rules::{Span, Time};
use serde::{Deserialize, Serialize};
use store::tables::alien;
use store::tables::audit::{Before, Begins, Between, Newest, Place, Readable, Within, is_nameable};
use store::tables::counters::{Rejections, Strangers};
use store::tables::events::Window;

/// Entries that one step looks at. A rare entry is looked for in such steps, so that no request is a long scan.
const WINDOW: i64 = 2000;

/// What is counted is counted by minute.
const MINUTE: Span = Span::seconds(60);

/// Which entries are wanted. A field that is not set does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Of one of these kinds; if empty, of any kind.
    pub kinds: Vec<String>,
    /// About this person, by id.
    pub user: Option<String>,
    /// Through this application.
    pub client: Option<String>,
    /// In this session.
    pub session: Option<String>,
    /// From this address.
    pub address: Option<String>,
    /// In this request.
    pub request: Option<String>,
    /// Not before this time.
    pub since: Option<Time>,
    /// Before this time.
    pub until: Option<Time>,
    /// `done` or `refused`.
    pub outcome: Option<String>,
}

/// Refusals to somebody who was not authenticated, which have no audit entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// The minute in which they were.
    pub minute: Time,
    /// What was refused; `None`: the name that somebody signed in with is nobody's.
    pub of: Option<Rejection>,
    /// The address that they came from.
    pub address: String,
    /// How many.
    pub count: i64,
}

impl Failures {
    /// Returns what was refused, in one word.
    pub fn what(&self) -> &str {
        self.of.as_ref().map_or("name", Rejection::name)
    }
    /// Returns the application that they were about, if any.
    pub fn client(&self) -> Option<&str> {
        self.of.as_ref().and_then(Rejection::client).map(ClientId::as_str)
    }
}

/// A piece of a longer list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The entries that are wanted, at most as many as were asked for.
    pub lines: Vec<Line>,
    /// The id after (or before) which to go on; `None` at the end.
    pub next: Option<String>,
}

impl Filter {
    /// Whether an entry is wanted.
    pub fn wants(&self, line: &Line) -> bool {
        let same = |wanted: &Option<String>, has: &Option<String>| wanted.is_none() || wanted == has;
        (self.kinds.is_empty() || self.kinds.contains(&line.kind))
            && same(&self.user, &line.user)
            && same(&self.client, &line.client)
            && same(&self.session, &line.session)
            && same(&self.address, &line.address)
            && same(&self.request, &line.request)
            && self.since.is_none_or(|since| since <= line.at)
            && self.until.is_none_or(|until| line.at < until)
            && self.outcome.as_deref().is_none_or(|wanted| wanted == outcome(line))
    }
}

impl App {
    /// Returns what was refused since then to callers that were not authenticated, at most `limit` of it: newest minutes
    /// first, after the last that is known.
    pub async fn strangers(&self, since: Time, last: Option<&Failures>, limit: i64) -> Result<Vec<Failures>, Fault> {
        // What this node has not written yet is part of it; a database that takes no writes is read all the same.
        self.write_rejections().await.ok();
        // Within a minute names come first: after one of them come all others, and after one of these no name.
        let kept = last.and_then(|last| last.of.as_ref()).map(Rejection::text);
        let (name, other) = match (last, &kept) {
            (None, _) => (None, None),
            (Some(last), None) => (Some((last.minute, last.address.as_str())), Some((last.minute, "", ""))),
            (Some(last), Some(kept)) => {
                (Some((last.minute - MINUTE, "")), Some((last.minute, kept.as_str(), last.address.as_str())))
            }
        };
        let asked = (Strangers { since, after: name, limit }, Rejections { since, after: other, limit });
        let (names, others) = self.ask(asked).await?;
        let name = |(minute, address, count)| Failures { minute, of: None, address, count };
        let other = |(minute, of, address, count)| Failures { minute, of: Some(of), address, count };
        let mut found: Vec<Failures> = names.into_iter().map(name).chain(others.into_iter().map(other)).collect();
        // Stable: within a minute, each kind keeps its order.
        found.sort_by_key(|one| std::cmp::Reverse(one.minute));
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(found)
    }

    /// Returns entries that `filter` wants, at most `limit`, sealed or not: newest first before the id `from`, or
    /// oldest first after it. Looks at a bounded number, so a page may be empty without being the last. A page never
    /// ends with an entry that no statement can name: it has some more than `limit`, or the next one begins with them.
    pub async fn audit_lines(
        &self,
        filter: &Filter,
        from: &str,
        newest_first: bool,
        limit: usize,
    ) -> Result<Page, Fault> {
        // Ids begin with the time of their entries.
        let (mut after, mut before) =
            (filter.since.map_or(String::new(), first_id), filter.until.map_or(String::new(), first_id));
        if !from.is_empty() {
            let bound = if newest_first { &mut before } else { &mut after };
            *bound = from.to_owned();
        }
        let window = Window { after: &after, before: &before, newest_first, limit: WINDOW };
        let mut looked = match self.ask(window).await {
            Ok(looked) => looked,
            // An entry in which somebody put a value of another type keeps no other from being read.
            Err(fault) if fault.is_alien() => {
                self.ask(Readable(Window { after: &after, before: &before, newest_first, limit: WINDOW })).await?
            }
            Err(fault) => return Err(fault),
        };
        let mut last = None;
        if looked.len() as i64 == WINDOW {
            let end = looked.iter().rposition(is_nameable);
            let end = end.ok_or_else(|| alien(format_args!("the ids of {WINDOW} lines in a row")))?;
            looked.truncate(end + 1);
            last = Some(looked[end].id.clone());
        }
        let mut wanted = looked.into_iter().filter(|line| filter.wants(line)).peekable();
        let mut lines: Vec<Line> = Vec::new();
        while lines.len() < limit || lines.last().is_some_and(|line| !is_nameable(line)) {
            let Some(line) = wanted.next() else { break };
            lines.push(line);
        }
        let more = wanted.peek().is_some();
        let next = if more { lines.last().map(|line| line.id.clone()) } else { last };
        Ok(Page { lines, next })
    }

    /// Returns the next sealed entries after a place, in the order of the chain: no gaps and none twice, however late
    /// an entry was committed.
    pub async fn sealed_after(&self, place: &Place, limit: i64) -> Result<Vec<Line>, Fault> {
        // Block 0 holds what is not sealed.
        let (block, after) = if place.block > 0 { (place.block, place.line.as_str()) } else { (1, "") };
        // The later blocks first: the place may be before a block that is not sealed yet, and the other way round, what
        // is sealed between the two reads would be passed over.
        let others = self.ask(Between { after: block, before: i64::MAX, limit }).await?;
        let mut lines = self.ask(Within { block, after, limit }).await?;
        let room = usize::try_from(limit).unwrap_or(usize::MAX) - lines.len();
        lines.extend(others.into_iter().take(room));
        // Nobody can go on from an entry whose id is of another type: it would come again and again.
        match lines.iter().find(|line| !is_nameable(line)) {
            Some(line) => Err(alien(format_args!("the id of a line in block {}", line.block)).into()),
            None => Ok(lines),
        }
    }

    /// Returns the place before the newest `lines` sealed entries, or some more; after the last one for 0.
    pub async fn place_before(&self, lines: i64) -> Result<Place, Fault> {
        let (begins, newest) = self.ask((Begins, Newest)).await?;
        let Some(newest) = newest else {
            return Ok(begins.as_ref().map_or_else(Place::default, |of| (&Link::from(of)).into()));
        };
        if lines == 0 {
            return Ok(Place::from(&Link::from(&newest)));
        }
        let wanted = newest.last.saturating_sub(lines).saturating_add(1);
        let mut number = newest.number.saturating_add(1);
        loop {
            let blocks = self.ask(Before { number, limit: 256 }).await?;
            if let Some(block) = blocks.iter().find(|block| block.first <= wanted) {
                return Ok(Place { block: block.number, line: String::new() });
            }
            match blocks.last() {
                Some(oldest) => number = oldest.number,
                None => return Ok(Place { block: number, line: String::new() }),
            }
        }
    }

    /// Returns the end of the chain as it is exported, to be kept elsewhere.
    pub async fn audit_head(&self) -> Result<Head, Fault> {
        let (begins, newest) = self.ask((Begins, Newest)).await?;
        Ok(head(&self.realm.id, newest.as_ref(), begins.as_ref()))
    }
}

/// Returns the end of a chain.
pub(super) fn head(realm: &RealmId, newest: Option<&Block>, begins: Option<&Checkpoint>) -> Head {
    let (link, key, at) = match (newest, begins) {
        (Some(block), _) => (Link::from(block), block.key.clone(), block.sealed_at),
        (None, Some(begins)) => (Link::from(begins), begins.key.clone(), begins.removed_at),
        (None, None) => (Link { mac: hexadecimal(&[0; 32]), ..Link::beginning() }, String::new(), Time(0)),
    };
    let realm = realm.as_str().to_owned();
    Head { realm, block: link.number, lines: link.last, mac: link.mac, key, sealed_at: at }
}
