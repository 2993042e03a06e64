//! Whatever is done to a sealed log is found, and named.

use super::*;
use crate::id::RealmId;
use crate::secret::hexadecimal;
use zeroize::Zeroizing;

fn key(seed: u8) -> Key {
    Key::new(Zeroizing::new([seed; 32]))
}

fn keys() -> Keys {
    Keys { current: Some(key(7)), old: Vec::new() }
}

fn line(number: usize) -> Line {
    Line {
        id: format!("{number:026}"),
        at: Time(1_000_000 + number as i64),
        kind: "session.started".into(),
        user: Some(format!("user-{number}")),
        client: number.is_multiple_of(2).then(|| "shop".into()),
        session: Some("s".into()),
        address: Some("192.0.2.7".into()),
        request: None,
        detail: r#"{"a":1}"#.into(),
        block: 0,
    }
}

/// A realm's log as the database has it.
#[derive(Clone)]
struct Log {
    checkpoint: Option<Checkpoint>,
    blocks: Vec<Block>,
    lines: Vec<Line>,
}

fn main() -> RealmId {
    "main".into()
}

impl Log {
    /// Four blocks of five lines.
    fn new() -> Self {
        Log::of((0..20).map(line).collect())
    }

    /// These lines, in blocks of five.
    fn of(lines: Vec<Line>) -> Self {
        let mut log = Log { checkpoint: None, blocks: Vec::new(), lines };
        let (realm, key) = (main(), key(7));
        for (at, lines) in log.lines.chunks_mut(5).enumerate() {
            let end = log.blocks.last().map_or_else(Link::beginning, Link::from);
            let block = Sealing { realm: &realm, key: &key, now: Time(2_000_000 + at as i64) }.block(&end, lines);
            lines.iter_mut().for_each(|line| line.block = block.number);
            log.blocks.push(block);
        }
        log
    }

    fn head(&self) -> Head {
        let last = self.blocks.last().unwrap();
        Head {
            realm: "main".into(),
            block: last.number,
            lines: last.last,
            mac: hexadecimal(&last.mac),
            key: last.key.clone(),
            sealed_at: last.sealed_at,
        }
    }

    /// Takes out the oldest block as retention does.
    fn retire(&mut self) {
        let block = self.blocks.remove(0);
        let (realm, key) = (main(), key(7));
        let sealing = Sealing { realm: &realm, key: &key, now: Time(3_000_000) };
        self.checkpoint = Some(sealing.checkpoint(&Link::from(&block)));
        self.lines.retain(|line| line.block != block.number);
    }

    fn verified(&self, keys: &Keys, head: Option<&Head>) -> Vec<Finding> {
        let (realm, mut lines) = (main(), self.lines.clone());
        lines.sort_by(|one, other| one.id.cmp(&other.id));
        let verifier = Verifier { realm: &realm, keys, head, mark: None };
        let (mut told, mut findings) = verifier.begin(self.checkpoint.as_ref());
        let of = |number| lines.iter().filter(|line| line.block == number).cloned().collect::<Vec<_>>();
        for block in &self.blocks {
            findings.extend(verifier.block(&mut told, block, &of(block.number)));
        }
        let known = |line: &Line| line.block == 0 || self.blocks.iter().any(|block| block.number == line.block);
        let strays: Vec<_> = lines.iter().filter(|line| !known(line)).cloned().collect();
        findings.extend(verifier.strays(&strays));
        findings.extend(verifier.end(&told));
        findings
    }

    #[track_caller]
    fn finds(&self, wanted: &[(&str, i64, Option<usize>)]) {
        let found = self.verified(&keys(), None);
        let told: Vec<_> = found.iter().map(|one| (one.what.as_str(), one.block, one.line.clone())).collect();
        let wanted: Vec<_> = wanted.iter().map(|(what, block, at)| (*what, *block, at.map(|at| line(at).id))).collect();
        assert_eq!(told, wanted, "{found:#?}");
    }
}

/// Every way to change one byte of a text.
fn changed(text: &str) -> Vec<String> {
    let flips = (0..text.len()).map(|at| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] ^= 1;
        String::from_utf8(bytes).unwrap()
    });
    flips.chain([format!("{text} "), text[1..].to_owned()]).collect()
}

type Column = fn(&mut Line) -> &mut Option<String>;

#[test]
fn what_was_not_touched_is_verified() {
    let mut log = Log::new();
    log.finds(&[]);
    let head = log.head();
    log.lines.push(line(99));
    assert_eq!(log.verified(&keys(), Some(&head)), []);
    log.retire();
    log.retire();
    assert_eq!(log.verified(&keys(), Some(&head)), []);
    assert_eq!(Log { checkpoint: None, blocks: vec![], lines: vec![line(1)] }.verified(&keys(), None), []);
}

#[test]
fn every_edit_of_any_column_of_a_line_is_named() {
    let columns: [Column; 5] = [
        |line| &mut line.user,
        |line| &mut line.client,
        |line| &mut line.session,
        |line| &mut line.address,
        |line| &mut line.request,
    ];
    let wanted = [("line.edited", 2, Some(8))];
    for column in columns {
        let was = column(&mut Log::new().lines[8]).clone();
        let others: Vec<Option<String>> = match was {
            Some(text) => changed(&text).into_iter().map(Some).chain([None]).collect(),
            None => vec![Some(String::new()), Some("x".into())],
        };
        for other in others {
            let mut log = Log::new();
            *column(&mut log.lines[8]) = other;
            log.finds(&wanted);
        }
    }
    for text in changed(&line(8).kind) {
        let mut log = Log::new();
        log.lines[8].kind = text;
        log.finds(&wanted);
    }
    for text in changed(&line(8).detail) {
        let mut log = Log::new();
        log.lines[8].detail = text;
        log.finds(&wanted);
    }
    for bit in 0..64 {
        let mut log = Log::new();
        log.lines[8].at.0 ^= 1 << bit;
        log.finds(&wanted);
    }
    let taken: Vec<_> = (0..20).map(|at| line(at).id).collect();
    for text in changed(&line(8).id).into_iter().filter(|id| !taken.contains(id)) {
        let mut log = Log::new();
        log.lines[8].id = text.clone();
        let found = log.verified(&keys(), None);
        let mut told: Vec<_> = found.iter().map(|one| (one.what.as_str(), one.line.clone().unwrap())).collect();
        told.sort();
        assert_eq!(told, [("line.inserted", text), ("line.missing", line(8).id)]);
    }
}

#[test]
fn what_two_columns_share_cannot_move_between_them() {
    let mut log = Log::new();
    let (user, client) = (log.lines[8].user.take(), log.lines[8].client.take());
    (log.lines[8].user, log.lines[8].client) = (client, user);
    log.finds(&[("line.edited", 2, Some(8))]);
}

#[test]
fn lines_that_are_removed_inserted_swapped_or_moved_are_named() {
    let mut log = Log::new();
    log.lines.remove(8);
    log.finds(&[("line.missing", 2, Some(8))]);

    let mut log = Log::new();
    log.lines.push(Line { block: 2, ..line(30) });
    log.finds(&[("line.inserted", 2, Some(30))]);

    let mut log = Log::new();
    let (one, other) = (log.lines[7].clone(), log.lines[8].clone());
    log.lines[7] = Line { id: one.id, ..other.clone() };
    log.lines[8] = Line { id: other.id, ..line(7) };
    log.lines[8].block = 2;
    log.finds(&[("line.edited", 2, Some(7)), ("line.edited", 2, Some(8))]);

    let mut log = Log::new();
    log.lines[8].block = 3;
    log.finds(&[("line.missing", 2, Some(8)), ("line.inserted", 3, Some(8))]);

    for nowhere in [5, -1, i64::MAX] {
        let mut log = Log::new();
        log.lines[8].block = nowhere;
        log.finds(&[("line.missing", 2, Some(8)), ("line.inserted", nowhere, Some(8))]);
    }

    let mut log = Log::new();
    log.lines[8].block = 0;
    log.finds(&[("line.missing", 2, Some(8))]);
}

/// Ids that somebody gives to lines who writes into the database: long ones, also of characters of several bytes, and
/// several that begin with the same 255 bytes, or with part of the same character there.
fn long_ids() -> Vec<String> {
    let same =
        |many: usize, ends: &[&str]| ends.iter().map(|end| format!("{}{end}", "s".repeat(many))).collect::<Vec<_>>();
    let mut ids: Vec<String> = [255, 256, 1000].map(|many| "x".repeat(many)).into();
    for letter in ["é", "€", "𝄞"] {
        ids.extend([85, 128, 300].map(|many| letter.repeat(many)));
    }
    ids.extend(same(255, &["", "0", "1", "2", "é"]));
    ids.extend(same(254, &["", "t", "é", "éb", "ê", "€"]));
    ids
}

#[test]
fn a_line_with_a_long_id_is_proved_like_any_other_and_hides_nothing() {
    // Red where a block stores the whole id: it could not be proved, whatever was done to its other lines.
    let long = long_ids().into_iter().enumerate().map(|(number, id)| Line { id, ..line(number) });
    let whole = Log::of(long.chain((0..20).map(line)).collect());
    whole.finds(&[]);
    for at in 0..whole.lines.len() {
        let (id, block) = (&whole.lines[at].id, whole.lines[at].block);
        let mut log = whole.clone();
        log.lines[at].user = Some("eve".into());
        let found = log.verified(&keys(), None);
        assert_eq!((found.len(), found[0].what.as_str(), found[0].block), (1, "line.edited", block), "{id}");
        let edits: [fn(&mut Log, usize); 3] = [
            |log, at| drop(log.lines.remove(at)),
            |log, at| log.lines[at].id.push('y'),
            |log, at| log.lines.push(Line { id: log.lines[at].id.clone() + "0y", ..log.lines[at].clone() }),
        ];
        for edit in edits {
            let mut log = whole.clone();
            edit(&mut log, at);
            let found = log.verified(&keys(), None);
            assert!(!found.is_empty() && found.iter().all(|one| one.block == block), "{id}: {found:?}");
        }
    }
}

#[test]
fn a_block_that_does_not_say_which_lines_it_has_hides_no_edit_of_them() {
    // Red where that is all that is said of the block.
    let mut log = Log::new();
    log.blocks[1].leaves = vec![255];
    log.finds(&[("block.edited", 2, None); 2]);
    log.lines[8].user = Some("eve".into());
    log.finds(&[("block.edited", 2, None); 3]);
}

#[test]
fn what_is_told_is_short_whatever_somebody_wrote() {
    // Red without `shown` in verify.rs, or without it in `bounded` or `missing`: it travels with each step.
    let (realm, keys, long) = (main(), keys(), "\u{1}".repeat(100_000));
    let verifier = Verifier { realm: &realm, keys: &keys, head: None, mark: None };
    let whole = Log::new().blocks.remove(0);
    let many = vec![7; 100_000];
    let block = Block { key: long.clone(), mac: many.clone(), digest: many.clone(), leaves: many, ..whole };
    let lines = [Line { id: long, block: 1, ..line(0) }];
    let mut told = verifier.begin(None).0;
    let mut findings = verifier.block(&mut told, &block, &lines);
    findings.extend(verifier.strays(&lines));
    findings.extend(verifier.block(&mut told, &Block { number: 2, ..block.clone() }, &[]));
    assert_eq!(findings.iter().filter(|one| one.what == "key.missing").count(), 1, "{findings:?}");
    let sizes = findings.iter().map(|one| serde_json::to_string(one).unwrap().len());
    assert!(sizes.max() < Some(1000) && serde_json::to_string(&told).unwrap().len() < 1000, "{findings:?} {told:?}");
}

type Bytes = fn(&mut Block) -> &mut Vec<u8>;
type Number = fn(&mut Block) -> &mut i64;

#[test]
fn every_edit_of_a_block_is_found() {
    let bytes: [Bytes; 4] =
        [|block| &mut block.digest, |block| &mut block.leaves, |block| &mut block.before, |block| &mut block.mac];
    for column in bytes {
        for at in 0..column(&mut Log::new().blocks[1]).len() {
            for bit in [1, 128] {
                let mut log = Log::new();
                column(&mut log.blocks[1])[at] ^= bit;
                let found = log.verified(&keys(), None);
                assert!(found.iter().any(|one| one.what == "block.edited" && one.block == 2), "{found:?}");
            }
        }
    }
    let numbers: [Number; 5] = [
        |block| &mut block.first,
        |block| &mut block.last,
        |block| &mut block.oldest.0,
        |block| &mut block.newest.0,
        |block| &mut block.sealed_at.0,
    ];
    for column in numbers {
        for bit in 0..64 {
            let mut log = Log::new();
            *column(&mut log.blocks[1]) ^= 1 << bit;
            assert!(log.verified(&keys(), None).iter().any(|one| one.what == "block.edited"));
        }
    }
    let mut log = Log::new();
    log.blocks[1].key = key(8).id().to_owned();
    let both = Keys { old: vec![key(8)], ..keys() };
    assert!(log.verified(&both, None).iter().any(|one| one.what == "block.edited"));
}

#[test]
fn blocks_that_are_removed_or_swapped_are_named() {
    let mut log = Log::new();
    log.blocks.remove(1);
    log.lines.retain(|line| line.block != 2);
    log.finds(&[("block.missing", 3, None)]);

    let mut log = Log::new();
    log.blocks.remove(0);
    log.lines.retain(|line| line.block != 1);
    log.finds(&[("block.missing", 2, None)]);

    let mut log = Log::new();
    let (one, other) = (log.blocks[1].clone(), log.blocks[2].clone());
    log.blocks[1] = Block { number: 2, ..other };
    log.blocks[2] = Block { number: 3, ..one };
    let found = log.verified(&keys(), None);
    for block in [2, 3] {
        for what in ["block.unlinked", "block.edited"] {
            assert!(found.iter().any(|one| one.what == what && one.block == block), "{block} {what}");
        }
    }
}

#[test]
fn a_tail_that_was_cut_is_found_with_an_exported_head() {
    let head = Log::new().head();
    for kept in 0..4 {
        let mut log = Log::new();
        log.blocks.truncate(kept);
        log.lines.retain(|line| line.block <= kept as i64);
        assert_eq!(log.verified(&keys(), None), [], "nobody can tell without a head");
        let found = log.verified(&keys(), Some(&head));
        assert_eq!((found[0].what.as_str(), found[0].block, found.len()), ("chain.cut", kept as i64 + 1, 1));
    }
    // A tail that somebody with the key has rewritten.
    let mut log = Log::new();
    log.blocks.pop();
    let end = Link::from(log.blocks.last().unwrap());
    let (realm, key) = (main(), key(7));
    log.lines.truncate(16);
    let block = Sealing { realm: &realm, key: &key, now: Time(5) }.block(&end, &mut log.lines[15..]);
    log.blocks.push(block);
    assert_eq!(log.verified(&keys(), Some(&head))[0].what, "head.differs");
    let elsewhere = Head { realm: "other".into(), ..Log::new().head() };
    assert_eq!(Log::new().verified(&keys(), Some(&elsewhere))[0].what, "head.differs");
}

#[test]
fn a_checkpoint_cannot_be_made_without_the_key() {
    let mut log = Log::new();
    log.retire();
    log.retire();
    log.finds(&[]);
    let good = log.checkpoint.clone().unwrap();

    log.checkpoint = Some(Checkpoint { removed_at: Time(0), ..good.clone() });
    log.finds(&[("checkpoint.edited", 2, None)]);
    log.checkpoint = None;
    log.finds(&[("block.missing", 3, None)]);

    // Somebody removes one block more, and claims that retention did.
    let third = log.blocks.remove(0);
    log.lines.retain(|line| line.block != 3);
    log.checkpoint = Some(Checkpoint { number: 3, last: third.last, mac: third.mac, ..good });
    log.finds(&[("checkpoint.edited", 3, None)]);

    let mut log = Log::new();
    let whole = log.clone();
    log.retire();
    log.blocks = whole.blocks;
    log.finds(&[("block.inserted", 1, None)]);
}

#[test]
fn another_key_proves_nothing_and_says_so_once() {
    let found = Log::new().verified(&Keys { current: Some(key(8)), old: vec![] }, None);
    let told: Vec<_> = found.iter().map(|one| (one.what.as_str(), one.block)).collect();
    assert_eq!(told, [("key.missing", 1)]);
    assert!(found[0].why.contains(key(7).id()));
    let found = Log::new().verified(&Keys { current: Some(key(8)), old: vec![key(7)] }, None);
    assert_eq!(found, []);
}

#[test]
fn each_place_is_told_at_which_blocks_say_a_key_that_is_not_here() {
    // Red without `take` in proved_again: nobody would be told of the places after the first.
    let mut log = Log::new();
    let last = log.blocks.len() as i64;
    assert!(last >= 3, "{last}");
    log.blocks[1].key = "lost".into();
    log.finds(&[("key.missing", 2, None), ("key.missing", 2, None)]);
    log.blocks[0].key = "lost".into();
    log.finds(&[("key.missing", 1, None), ("key.missing", 2, None)]);
}
