use super::*;
use crate::migrations::MIGRATIONS;
use crate::schema::MARKERS;

fn text(sql: &str) -> String {
    say(sql).unwrap().text
}

#[test]
fn a_statement_is_known_by_what_it_does_to_which_table() {
    let insert = |if_absent| Kind::Insert { if_absent };
    for (sql, kind, table, values) in [
        ("SELECT u.a FROM users u JOIN t ON t.a = u.a WHERE u.a = ? AND u.b IN (?, ?)", Kind::Select, "users", 3),
        ("SELECT (SELECT MAX(a) FROM other) FROM main WHERE a = ?", Kind::Select, "main", 1),
        ("INSERT INTO t (a, b) VALUES (?, '?')", insert(false), "t", 1),
        ("INSERT INTO t (a, b) VALUES (?, ?) ON CONFLICT DO NOTHING", insert(true), "t", 2),
        ("UPDATE t SET a = ? WHERE b = ?", Kind::Change, "t", 2),
        ("DELETE FROM t WHERE a = ?", Kind::Change, "t", 1),
    ] {
        let said = say(sql).unwrap();
        assert_eq!((said.kind, said.table.as_str(), said.values), (kind, table, values), "{sql}");
    }
    for sql in ["PRAGMA quick_check(1)", "", "VACUUM", "UPDATE t"] {
        assert!(say(sql).is_err(), "{sql}");
    }
}

#[test]
fn a_row_that_is_there_is_let_be_and_told() {
    assert_eq!(
        text("INSERT INTO t (realm, b) VALUES (?, 0) ON CONFLICT DO NOTHING"),
        "INSERT INTO t (realm, b) VALUES (?, 0) ON DUPLICATE KEY UPDATE b = IF(LAST_INSERT_ID(1), b, b)"
    );
}

#[test]
fn reads_that_give_a_row_for_each_row_may_be_counted_together() {
    let rows = |sql: &str| say(sql).unwrap().rows;
    assert_eq!(rows("SELECT 1 FROM t WHERE a = ?").as_deref(), Some("FROM t WHERE a = ?"));
    for sql in [
        "SELECT COUNT(*) FROM t",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t ORDER BY a LIMIT ?",
        "SELECT a FROM t WHERE b IN (SELECT b FROM s UNION SELECT c FROM s)",
    ] {
        assert_eq!(rows(sql), None, "{sql}");
    }
    assert_eq!(
        counted_together([("FROM t WHERE a = ?", false), ("FROM s", true)].into_iter()),
        "(SELECT 0 FROM t WHERE a = ? LOCK IN SHARE MODE) UNION ALL (SELECT 1 FROM s FOR UPDATE)"
    );
}

#[test]
fn an_inner_select_is_a_table_of_its_own() {
    assert_eq!(
        text("DELETE FROM t WHERE a = ? AND id IN (SELECT id FROM t WHERE a = ? ORDER BY id LIMIT ?)"),
        "DELETE t FROM t WHERE a = ? AND id IN \
         (SELECT id FROM (SELECT id FROM t WHERE a = ? ORDER BY id LIMIT ?) AS bounded)"
    );
    assert_eq!(
        text("UPDATE t SET a = ? WHERE id IN (SELECT id FROM t WHERE b IN (?, ?)) AND c = ?"),
        "UPDATE t SET a = ? WHERE id IN (SELECT id FROM (SELECT id FROM t WHERE b IN (?, ?)) AS bounded) AND c = ?"
    );
    let plain = "DELETE FROM t WHERE a = ? AND id IN (?, ?)";
    assert_eq!(text(plain), plain);
}

#[test]
fn an_assignment_reads_nothing_that_one_before_it_changed() {
    for good in [
        "UPDATE t SET a = a + 1, b = CASE WHEN b > ? THEN b ELSE ? END + ? WHERE c = ?",
        "UPDATE t SET a = ?, b = ? WHERE a = b",
        "UPDATE t SET a = COALESCE(b, ?), b = ?",
    ] {
        assert!(say(good).is_ok(), "{good}");
    }
    for bad in ["UPDATE t SET a = ?, b = a WHERE c = ?", "UPDATE t SET a = a + 1, c = ?, b = COALESCE(?, a)"] {
        assert!(say(bad).is_err(), "{bad}");
    }
}

fn said(steps: &[&str]) -> Vec<String> {
    let keyed = Keyed::of(steps);
    steps.iter().map(|sql| step(sql, &keyed, Flavor::MariaDb).unwrap()).collect()
}

#[test]
fn text_of_a_key_has_a_longest_length_and_any_other_none() {
    let steps = said(&[
        "CREATE TABLE t (realm text NOT NULL, id text, body text NOT NULL, at bigint, mark blob, seal blob,
            PRIMARY KEY (realm, mark), UNIQUE (at)) WITHOUT ROWID",
        "CREATE UNIQUE INDEX t_id ON t (realm, id)",
    ]);
    assert_eq!(
        steps[0],
        "CREATE TABLE t (realm VARCHAR(255) NOT NULL, id VARCHAR(255), body LONGTEXT NOT NULL, at bigint, \
         mark VARBINARY(255), seal LONGBLOB, PRIMARY KEY (realm, mark), UNIQUE (at)) \
         ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC"
    );
    assert_eq!(steps[1], "CREATE UNIQUE INDEX t_id ON t (realm, id)");
}

#[test]
fn a_parent_is_named_by_the_table() {
    let steps = said(&["CREATE TABLE t (id text NOT NULL PRIMARY KEY, a text NOT NULL REFERENCES p (id), b text)"]);
    assert!(
        steps[0].starts_with(
            "CREATE TABLE t (id VARCHAR(255) NOT NULL PRIMARY KEY, a VARCHAR(255) NOT NULL, b LONGTEXT, \
             FOREIGN KEY (a) REFERENCES p (id)) ENGINE"
        ),
        "{}",
        steps[0]
    );
}

#[test]
fn later_steps_are_said_too() {
    let steps = said(&[
        "ALTER TABLE t ADD COLUMN note text",
        "ALTER TABLE t ADD COLUMN name text NOT NULL DEFAULT (?)",
        "ALTER TABLE t ADD COLUMN seal blob",
        "ALTER TABLE t DROP COLUMN old",
        "CREATE INDEX t_name ON t (name)",
        "DROP TABLE gone",
        "DELETE FROM t WHERE id IN (SELECT id FROM t WHERE at < 0)",
    ]);
    assert_eq!(steps[0], "ALTER TABLE t ADD COLUMN note LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin");
    assert_eq!(
        steps[1],
        "ALTER TABLE t ADD COLUMN name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL DEFAULT (?)"
    );
    assert_eq!(steps[2], "ALTER TABLE t ADD COLUMN seal LONGBLOB");
    assert_eq!(steps[3], "ALTER TABLE t DROP COLUMN old");
    assert_eq!(steps[5], "DROP TABLE gone");
    assert!(steps[6].contains("AS bounded"));
}

#[test]
fn mysql_has_another_name_for_the_order_of_bytes() {
    let of = |flavor| step(MARKERS, &Keyed::default(), flavor).unwrap();
    assert!(of(Flavor::MySql).contains("COLLATE utf8mb4_0900_bin "));
    assert!(of(Flavor::MariaDb).starts_with("CREATE TABLE IF NOT EXISTS schema_steps (version bigint NOT NULL, "));
}

/// Every index, as the server would build it: its table, and its columns with their attributes.
fn keys() -> Vec<(String, Vec<String>)> {
    let mut keys = Vec::new();
    for sql in MIGRATIONS.iter().flat_map(|migration| migration.steps) {
        let columns = |list: &str| list.split(',').map(|column| column.trim().to_owned()).collect();
        if let Some(created) = Created::of(sql) {
            for item in created.items().filter(|item| is_constraint(item) && !item.starts_with("FOREIGN")) {
                let list = item.split_once('(').unwrap().1.trim_end_matches(')');
                keys.push((created.table.to_owned(), columns(list)));
            }
        } else if let Some((_, rest)) = sql.split_once(" ON ") {
            let (table, list) = rest.split_once('(').unwrap();
            keys.push((table.trim().to_owned(), columns(list.trim_end_matches(')'))));
        }
    }
    keys
}

/// The definition of a column from the step that created it.
fn column(table: &str, name: &str) -> String {
    for migration in MIGRATIONS {
        let keyed = Keyed::of(migration.steps);
        let steps = migration.steps.iter().map(|sql| step(sql, &keyed, Flavor::MySql).unwrap());
        for sql in steps {
            if let Some(added) = sql.strip_prefix(&format!("ALTER TABLE {table} ADD COLUMN {name} ")) {
                return added.to_owned();
            }
            let made = Created::of(&sql).filter(|created| created.table == table);
            if let Some(item) = made.and_then(|made| made.items().find(|item| item.starts_with(&format!("{name} ")))) {
                return item[name.len() + 1..].to_owned();
            }
        }
    }
    panic!("{table}.{name} is not made")
}

#[test]
fn every_index_of_the_schema_fits() {
    assert!(keys().len() > 30);
    for (table, columns) in keys() {
        let bytes: usize = columns
            .iter()
            .map(|name| match column(table.as_str(), name) {
                kind if kind.starts_with("VARCHAR(255)") => 4 * LONGEST_KEY,
                kind if kind.starts_with("VARBINARY(255)") => LONGEST_KEY,
                kind if kind.starts_with("bigint") => 8,
                kind => panic!("{table}.{name} is {kind}: a later version cannot index what was made without a length"),
            })
            .sum();
        assert!(bytes <= 3072, "{table} {columns:?}: {bytes} bytes");
    }
}

/// Words that MySQL 8.4 or MariaDB 11 reserves in every position.
const RESERVED: &str = "accessible add all alter analyze and as asc asensitive before between bigint binary blob both by \
    call cascade case change char character check collate column condition constraint continue convert create cross cube \
    cume_dist current_date current_role current_time current_timestamp current_user cursor database databases day_hour \
    day_microsecond day_minute day_second dec decimal declare default delayed delete dense_rank desc describe \
    deterministic distinct distinctrow div do_domain_ids double drop dual each else elseif empty enclosed escaped except \
    exists exit explain false fetch first_value float float4 float8 for force foreign from fulltext function general \
    generated get grant group grouping groups having high_priority hour_microsecond hour_minute hour_second if ignore \
    ignore_domain_ids ignore_server_ids in index infile inner inout insensitive insert int int1 int2 int3 int4 int8 \
    integer intersect interval into io_after_gtids io_before_gtids is iterate join json_table key keys kill lag \
    last_value lateral lead leading leave left like limit linear lines load localtime localtimestamp lock long longblob \
    longtext loop low_priority manual master_bind master_heartbeat_period master_ssl_verify_server_cert match maxvalue \
    mediumblob mediumint mediumtext middleint minute_microsecond minute_second mod modifies natural not \
    no_write_to_binlog nth_value ntile null numeric of offset on optimize optimizer_costs option optionally or order out \
    outer outfile over page_checksum parallel parse_vcol_expr partition percent_rank portion precision primary procedure \
    purge qualify range rank read reads read_write real recursive references ref_system_id regexp release rename repeat \
    replace require resignal restrict return returning revoke right rlike row row_number rows schema schemas \
    second_microsecond select sensitive separator set show signal slow smallint spatial specific sql sqlexception sqlstate \
    sqlwarning sql_big_result sql_calc_found_rows sql_small_result ssl starting stats_auto_recalc stats_persistent \
    stats_sample_pages stored straight_join system table tablesample terminated then tinyblob tinyint tinytext to \
    trailing trigger true undo union unique unlock unsigned update usage use using utc_date utc_time utc_timestamp values \
    varbinary varchar varcharacter varying vector virtual when where while window with write xor year_month zerofill";

#[test]
fn no_name_of_the_schema_is_a_word_of_the_servers() {
    let reserved: BTreeSet<&str> = RESERVED.split_whitespace().collect();
    for migration in MIGRATIONS.iter().chain(crate::conformance::MIGRATIONS) {
        for created in migration.steps.iter().filter_map(|sql| Created::of(sql)) {
            for name in created.columns().chain([created.table]) {
                assert!(!reserved.contains(name), "{name} of {}", created.table);
            }
        }
    }
}
