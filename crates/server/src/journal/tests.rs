use super::*;
use rules::ending::Ending;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

fn record(at: i64) -> Record {
    let endings = vec![Ending::Token { jti: format!("token {at}"), expires: Time(at) }];
    Record { at: Time(at), witness: Some(format!("line {at}")), endings }
}

fn times(journal: &Folder) -> Vec<i64> {
    let parts = journal.parts().unwrap();
    parts.iter().rev().flat_map(|part| journal.read(*part).unwrap()).map(|record| record.at.0).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn what_was_added_is_read_again_over_every_start() {
    let data = tempfile::tempdir().unwrap();
    for start in 0..3 {
        let journal = Folder::open(data.path(), "a").await.unwrap();
        for at in 0..4 {
            journal.append(&record(start * 10 + at)).await.unwrap();
        }
    }
    let journal = Folder::open(data.path(), "b").await.unwrap();
    assert_eq!(times(&journal), [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
    assert!(!journal.is_cut());
    assert_eq!(journal.memory().node, "a", "a node keeps its name");
}

#[tokio::test]
async fn it_is_its_owners_alone() {
    let data = tempfile::tempdir().unwrap();
    let journal = Folder::open(data.path(), "a").await.unwrap();
    journal.append(&record(1)).await.unwrap();
    let folder = data.path().join(FOLDER);
    assert_eq!(mode(&folder), 0o700);
    for file in [MEMORY, "00000001.log"] {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
}

#[tokio::test]
async fn a_torn_line_is_not_read_and_hides_nothing() {
    let data = tempfile::tempdir().unwrap();
    let journal = Folder::open(data.path(), "a").await.unwrap();
    for at in 0..3 {
        journal.append(&record(at)).await.unwrap();
    }
    let file = data.path().join(FOLDER).join("00000001.log");
    let whole = fs::read(&file).unwrap();
    let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for end in second..whole.len() {
        fs::write(&file, &whole[..end]).unwrap();
        let kept = times(&journal);
        assert!(kept == [0] || kept == [0, 1] || (kept == [0, 1, 2] && end == whole.len() - 1), "{end}: {kept:?}");
    }
    let mut garbled = whole.clone();
    for at in 0..second - 1 {
        garbled[at] ^= 1;
        fs::write(&file, &garbled).unwrap();
        assert_eq!(times(&journal), [1, 2], "byte {at}");
        garbled[at] ^= 1;
    }
}

#[test]
fn what_took_an_address_away_is_read_as_it_was_written() {
    // red without `later` in rules/ending.rs, From<Written>.
    let taken = Ending::Email { user: "ada".into(), email: Some("ada@example.org".into()), verified: true };
    let written = Record { endings: vec![taken], ..record(1) };
    let read = line::read(line::write(&written).unwrap().as_bytes()).unwrap();
    let [Record { endings, .. }] = &read[..] else { panic!("{read:?}") };
    let [Ending::Email { user, email, verified: true }] = &endings[..] else { panic!("{endings:?}") };
    assert_eq!((user.as_str(), email.as_deref()), ("ada", Some("ada@example.org")));
}

#[test]
fn what_was_acknowledged_and_is_not_understood_is_an_error() {
    let text = line::write(&record(1)).unwrap();
    assert_eq!(line::read(text.as_bytes()).unwrap().len(), 1);
    let json = r#"{"at":1,"endings":[{"of_a_newer_program":{}}]}"#;
    let digits = rules::secret::hexadecimal(&rules::Handle::of(json).0[..8]);
    assert!(line::read(format!("{digits} {json}\n").as_bytes()).unwrap_err().contains("newer"));
}

#[tokio::test]
async fn files_are_followed_by_others_and_go_when_they_are_old() {
    let data = tempfile::tempdir().unwrap();
    let mut journal = Folder::open(data.path(), "a").await.unwrap();
    journal.writer = Writer::start(journal.folder.clone(), 1, 200).unwrap();
    for at in 0..10 {
        journal.append(&record(at)).await.unwrap();
    }
    let before = journal.parts().unwrap();
    assert!(before.len() > 2, "{before:?}");
    assert_eq!(times(&journal), (0..10).collect::<Vec<_>>());
    journal.forget(Time(0)).unwrap();
    assert_eq!(journal.parts().unwrap(), before);
    journal.forget(Time(i64::MAX)).unwrap();
    assert_eq!(journal.parts().unwrap(), before[..1], "the one that is written to stays");
    assert!(journal.is_cut());
    // The file is followed by another one, so that it can be removed some day.
    journal.append(&record(10)).await.unwrap();
    assert_eq!(journal.parts().unwrap()[0], before[0] + 1);
    assert!(Folder::open(data.path(), "a").await.unwrap().is_cut());
}

#[tokio::test]
async fn who_cannot_write_says_so_and_goes_on_when_it_can() {
    let data = tempfile::tempdir().unwrap();
    let journal = Folder::open(data.path(), "a").await.unwrap();
    let (folder, aside) = (data.path().join(FOLDER), data.path().join("aside"));
    fs::rename(&folder, &aside).unwrap();
    assert!(journal.append(&record(1)).await.is_err());
    assert!(journal.works().is_err());
    fs::rename(&aside, &folder).unwrap();
    // Without any request: a node that is not ready gets none.
    let began = std::time::Instant::now();
    while journal.works().is_err() {
        assert!(began.elapsed() < std::time::Duration::from_secs(30));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    journal.append(&record(2)).await.unwrap();
    assert_eq!(times(&journal), [2]);
}

/// However young they are: the disk is finite.
#[tokio::test]
async fn the_oldest_files_go_when_there_are_too_many() {
    let data = tempfile::tempdir().unwrap();
    let journal = Folder::open(data.path(), "a").await.unwrap();
    journal.append(&record(1)).await.unwrap();
    let newest = journal.parts().unwrap()[0];
    let more = MOST as u64 + 2;
    for part in newest + 1..=newest + more {
        fs::write(part_file(&data.path().join(FOLDER), part), "\n").unwrap();
    }
    assert!(!journal.is_cut());
    journal.forget(Time(0)).unwrap();
    let kept = journal.parts().unwrap();
    assert_eq!((kept.len(), kept[0]), (MOST, newest + more));
    assert!(journal.is_cut());
}

/// A process that was killed between making a file and writing to it left such a file.
#[tokio::test]
async fn files_that_say_nothing_end_none_that_do() {
    let data = tempfile::tempdir().unwrap();
    let journal = Folder::open(data.path(), "a").await.unwrap();
    journal.append(&record(1)).await.unwrap();
    for part in 2..MOST as u64 + 10 {
        fs::write(part_file(&data.path().join(FOLDER), part), "").unwrap();
    }
    journal.forget(Time(0)).unwrap();
    assert_eq!(times(&journal), [1]);
    journal.forget(Time(i64::MAX)).unwrap();
    assert_eq!(journal.parts().unwrap(), [MOST as u64 + 9, 1], "the empty ones go when they are old");
    assert!(!journal.is_cut() && times(&journal) == [1]);
}

static FULL: AtomicBool = AtomicBool::new(false);

/// On a full disk a file can be made, but not written to.
fn create_on_a_full_disk(path: &Path) -> io::Result<fs::File> {
    let file = writer::create(path)?;
    if FULL.load(SeqCst) { fs::File::options().write(true).open("/dev/full") } else { Ok(file) }
}

#[tokio::test]
async fn a_full_disk_is_no_place_to_write_to_and_fills_with_no_empty_files() {
    let data = tempfile::tempdir().unwrap();
    let mut journal = Folder::open(data.path(), "a").await.unwrap();
    journal.writer = Writer::start_with(create_on_a_full_disk, journal.folder.clone(), 1, 1).unwrap();
    journal.append(&record(1)).await.unwrap();
    FULL.store(true, SeqCst);
    assert!(journal.append(&record(2)).await.is_err());
    // Over several of the thread's own tries.
    for _ in 0..25 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let said = journal.works().unwrap_err();
        assert!(said.contains("space"), "{said}");
    }
    assert!(journal.append(&record(3)).await.is_err());
    assert_eq!(journal.parts().unwrap(), [1]);
    FULL.store(false, SeqCst);
    let began = std::time::Instant::now();
    while journal.works().is_err() {
        assert!(began.elapsed() < std::time::Duration::from_secs(30));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    journal.append(&record(4)).await.unwrap();
    assert_eq!(times(&journal), [1, 4]);
    assert!(!Folder::open(data.path(), "a").await.unwrap().is_cut());
}

#[tokio::test]
async fn many_at_a_time_are_all_kept() {
    let data = tempfile::tempdir().unwrap();
    let journal = std::sync::Arc::new(Folder::open(data.path(), "a").await.unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..500 {
        let journal = journal.clone();
        tasks.spawn(async move { journal.append(&record(at)).await });
    }
    assert!(tasks.join_all().await.iter().all(Result::is_ok));
    let mut kept = times(&journal);
    kept.sort_unstable();
    assert_eq!(kept, (0..500).collect::<Vec<_>>());
}

#[test]
fn what_a_node_remembers_is_there_at_the_next_start() {
    let data = tempfile::tempdir().unwrap();
    let memory = Memory {
        identity: Some("PostgreSQL 7 timeline 2".into()),
        fence: Some((3, Time(5))),
        mark: 9,
        lossy: true,
        ..Folder::opened(data.path(), "a").unwrap().memory()
    };
    Folder::opened(data.path(), "a").unwrap().remember(&memory).unwrap();
    assert_eq!(Folder::opened(data.path(), "a").unwrap().memory(), memory);
}

#[tokio::test]
async fn what_is_left_of_a_journal_that_is_not_kept_any_more_expires() {
    // Red without `remove`: password hashes stayed in the folder for ever.
    let data = tempfile::tempdir().unwrap();
    let remove = async |before: Time| {
        let data = data.path().to_owned();
        private::aside(move || expired::remove(&data, before)).await.unwrap();
    };
    remove(Time(i64::MAX)).await;
    assert!(!data.path().join(FOLDER).exists());
    for at in 0..2 {
        Folder::open(data.path(), "a").await.unwrap().append(&record(at)).await.unwrap();
    }
    remove(Time(0)).await;
    assert_eq!(times(&Folder::open(data.path(), "b").await.unwrap()), [0, 1], "they are young");
    for _ in 0..2 {
        remove(Time(i64::MAX)).await;
        let journal = Folder::open(data.path(), "b").await.unwrap();
        assert!(times(&journal).is_empty());
        assert_eq!(journal.memory().node, "a", "what it remembers stays");
        // Red without the empty file: a replay would take the journal for whole.
        assert!(journal.is_cut());
    }
}
