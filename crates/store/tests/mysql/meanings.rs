//! What each error of a server comes to, as the server itself raises it: a trigger signals the number, as often as a table
//! says that no ROLLBACK undoes. So errors that only MySQL has, and not MariaDB, come from a real server, too.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use store::conformance::three_rows;
use store::engine::{Broken, CommitError, Engine};
use store::mysql::Mysql;

use super::place::{Place, found};

/// What an error before COMMIT means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// Others were faster: begun again, a few times.
    Rival,
    /// Another holds a row: begun again, until the time is over.
    Held,
    /// The connection is lost, or will be: begun again once on another, since nothing was committed.
    Lost,
    /// The server takes no writes: begun again once, if a server is fit.
    Unfit,
    /// A key is there, or is not: facts have changed.
    Conflict(Broken),
    /// Nothing that another attempt would mend.
    Other,
}

const MEANINGS: &[(u16, Means)] = &[
    // A deadlock, or a certification that failed; a row that changed (MariaDB 11.6.2); to be prepared again; a certification that failed
    // (Group Replication).
    (1213, Means::Rival),
    (1020, Means::Rival),
    (1615, Means::Rival),
    (3101, Means::Rival),
    // A lock waited for too long; one that is not to be waited for (MySQL 8).
    (1205, Means::Held),
    (3572, Means::Held),
    // Shutdown; lost on the way, also where a proxy says so; killed; idle for too long (MySQL 8).
    (1053, Means::Lost),
    (1077, Means::Lost),
    (1079, Means::Lost),
    (1158, Means::Lost),
    (1159, Means::Lost),
    (1160, Means::Lost),
    (1161, Means::Lost),
    (1927, Means::Lost),
    (2006, Means::Lost),
    (2013, Means::Lost),
    (4031, Means::Lost),
    // Not part of its cluster; `--read-only` and `--super-read-only`; a transaction that only reads; read-only mode; offline mode
    // (MySQL), which is what a member that left its group is in.
    (1047, Means::Unfit),
    (1290, Means::Unfit),
    (1792, Means::Unfit),
    (1836, Means::Unfit),
    (3032, Means::Unfit),
    (6400, Means::Unfit),
    (6401, Means::Unfit),
    (1062, Means::Conflict(Broken::Unique)),
    (1586, Means::Conflict(Broken::Unique)),
    (1452, Means::Conflict(Broken::Foreign)),
    (1216, Means::Conflict(Broken::Foreign)),
    // A full table; a disk; a value; a statement that took too long (MySQL: 3024); killed; no such table.
    (1114, Means::Other),
    (1021, Means::Other),
    (1366, Means::Other),
    (1406, Means::Other),
    (1317, Means::Other),
    (1969, Means::Other),
    (3024, Means::Other),
    (1146, Means::Other),
];

/// Raises `number` for every insert, until that has happened `times`.
async fn raise(conn: &mut Conn, number: u16, times: i64) {
    conn.query_drop("DROP TRIGGER IF EXISTS raised").await.unwrap();
    conn.exec_drop("UPDATE raising SET left_over = ?", (times,)).await.unwrap();
    let trigger = format!(
        "CREATE TRIGGER raised BEFORE INSERT ON note FOR EACH ROW BEGIN \
         IF (SELECT left_over FROM raising) > 0 THEN \
         UPDATE raising SET left_over = left_over - 1; \
         SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {number}, MESSAGE_TEXT = 'raised'; END IF; END"
    );
    conn.query_drop(trigger).await.unwrap();
}

/// How often it was raised, of `times`.
async fn raised(conn: &mut Conn, times: i64) -> i64 {
    times - conn.query_first::<i64, _>("SELECT left_over FROM raising").await.unwrap().unwrap()
}

/// A connection that was used is waiting, with the batch prepared.
async fn warm(engine: &Mysql, conn: &mut Conn, number: i64) {
    raise(conn, 1064, 0).await;
    engine.commit(three_rows(number)).await.unwrap();
}

#[tokio::test]
async fn each_error_of_a_server_has_one_meaning() {
    // red for its number without it in mysql/fault.rs.
    let Some(mut place) = Place::new().await else { return };
    let as_one = place.is_mariadb().await;
    let engine = place.ready().await;
    let mut conn = place.conn().await;
    conn.query_drop("CREATE TABLE raising (left_over BIGINT NOT NULL) ENGINE = MyISAM").await.unwrap();
    conn.query_drop("INSERT INTO raising VALUES (0)").await.unwrap();
    for (at, (number, means)) in MEANINGS.iter().enumerate() {
        let batch = 1000 + 10 * at as i64;
        // Once: whatever may be tried again stands.
        warm(&engine, &mut conn, batch).await;
        raise(&mut conn, *number, 1).await;
        let answer = engine.commit(three_rows(batch + 1)).await;
        let stands = found(&engine, batch + 1).await;
        match means {
            Means::Rival | Means::Held | Means::Lost | Means::Unfit => {
                assert_eq!((&answer, stands), (&Ok(vec![1, 1, 1]), 3), "{number}")
            }
            // One by one the statements tell which it was; by then there is nothing to tell.
            Means::Conflict(_) | Means::Other if as_one => {
                assert!(answer.is_ok() && stands == 3, "{number}: {answer:?}")
            }
            Means::Conflict(_) | Means::Other => assert!(answer.is_err() && stands == 0, "{number}: {answer:?}"),
        }
        // Always: nothing stands, and nobody tries for ever. How long a row is held for is another test's (rivals.rs).
        if *means == Means::Held {
            continue;
        }
        warm(&engine, &mut conn, batch + 2).await;
        raise(&mut conn, *number, 1000).await;
        let answer = engine.commit(three_rows(batch + 3)).await;
        let tries = raised(&mut conn, 1000).await;
        match (means, &answer) {
            (Means::Rival, Err(CommitError::Unavailable(_))) => assert_eq!(tries, 12, "{number}"),
            (Means::Lost | Means::Unfit, Err(CommitError::Unavailable(_))) => assert_eq!(tries, 2, "{number}"),
            (Means::Other, Err(CommitError::Unavailable(_))) => {
                assert_eq!(tries, if as_one { 2 } else { 1 }, "{number}")
            }
            (Means::Conflict(wanted), Err(CommitError::Conflict { at: 0, why })) => assert_eq!(wanted, why, "{number}"),
            _ => panic!("{number} means {means:?}: {answer:?}"),
        }
        assert_eq!(found(&engine, batch + 3).await, 0, "{number}");
    }
    place.remove().await;
}
