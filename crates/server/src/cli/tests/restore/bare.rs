//! A file that was copied without `portiere backup`.

use super::*;

/// The newest changes of a database in use are in its log: without it they are missing, and nothing in the file tells.
#[tokio::test]
async fn the_bare_file_of_a_database_is_restored_only_by_name() {
    // Red without `journal_mode` in store/sqlite/backup.rs (the backup is refused, too), or without is_whole.
    let house = House::new().await;
    let data = house.fresh();
    std::fs::copy(house.path("old/portiere.db"), house.path("bare.db")).unwrap();
    let Err(Failure::Failed(why)) = house.restore(&data, "bare.db", false).await else { panic!("refused") };
    assert!(why.contains("bare.db was not made by portiere backup") && why.contains("--raw-copy"), "{why}");
    assert!(!data.join("portiere.db").exists());
    let by_name = Restore { raw_copy: true, ..house.asked("bare.db", false, false) };
    by_name.run(&config(&data)).await.unwrap();
    house.restore(&data, "copy.db", true).await.unwrap();
}

/// The log of a killed server's database would be put aside, and only the rest restored.
#[tokio::test]
async fn a_database_with_its_log_is_not_restored_over_itself() {
    // red where cli/restore.rs, make, does not look for a log.
    let house = House::new().await;
    let old = house.path("old");
    std::fs::write(old.join("portiere.db-wal"), "what it knows last").unwrap();
    let before = files(&old);
    let Err(Failure::Failed(why)) = house.restore(&old, "old/portiere.db", true).await else { panic!("refused") };
    assert!(why.contains("portiere.db-wal") && why.contains("portiere backup"), "{why}");
    assert_eq!(files(&old), before);
}
