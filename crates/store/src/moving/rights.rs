//! The rights that a move's account lacks at a server, as far as they can be queried. The others are assumed to exist.

use super::Trouble;
use crate::dialect::Dialect;
use crate::engine::{Engine, Read, Row, Sql, Value};

/// What the move does at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// It closes a source to writes.
    Fence,
    /// It fills a target.
    Fill {
        /// Whether tables are created there first.
        makes: bool,
    },
}

/// The number of missing rights that an error lists.
const TOLD: usize = 3;

/// Fails with a list of the missing rights, if any.
pub(super) async fn suffice(engine: &dyn Engine, deed: Deed) -> Result<(), Trouble> {
    let missing = match engine.dialect() {
        Dialect::Sqlite => Vec::new(),
        Dialect::Postgres => of_postgres(engine, deed).await?,
        Dialect::Mysql => of_mysql(engine, deed).await?,
    };
    if missing.is_empty() {
        return Ok(());
    }
    let told = missing[..missing.len().min(TOLD)].join(", ");
    let more = match missing.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(Trouble::new(format!("its user lacks {told}{more}")))
}

const OURS: &str = " FROM pg_class AS t WHERE t.relkind IN ('r', 'p') AND t.relname <> 'moves' \
     AND t.relnamespace = CAST(quote_ident(current_schema()) AS regnamespace) AND NOT EXISTS (SELECT 1 FROM pg_depend AS d \
     WHERE d.classid = CAST('pg_class' AS regclass) AND d.objid = t.oid AND d.deptype = 'e') AND NOT ";

const CREATE: &str = "SELECT CAST(concat('CREATE on the schema ', current_schema()) AS text) \
     WHERE NOT has_schema_privilege(current_schema(), 'CREATE')";

async fn of_postgres(engine: &dyn Engine, deed: Deed) -> Result<Vec<String>, Trouble> {
    let fence =
        ["SELECT CAST(concat('TRIGGER on ', t.relname) AS text)", OURS, "has_table_privilege(t.oid, 'TRIGGER')"];
    let fill = [
        "SELECT CAST(concat('SELECT or INSERT on ', t.relname) AS text)",
        OURS,
        "(has_table_privilege(t.oid, 'SELECT') AND has_table_privilege(t.oid, 'INSERT'))",
    ];
    let (tables, makes) = match deed {
        // The triggers need a function.
        Deed::Fence => (fence, true),
        Deed::Fill { makes } => (fill, makes),
    };
    let read = |sql| Read { sql, args: vec![] };
    let reads = [Some(read(Sql::joined(&tables))), makes.then(|| read(Sql::fixed(CREATE)))];
    let reads: Vec<Read> = reads.into_iter().flatten().collect();
    Ok(engine.fetch(&reads).await?.concat().into_iter().filter_map(first).collect())
}

fn first(row: Row) -> Option<String> {
    match row.into_iter().next() {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

/// The account's rights on the whole server, and on this database, whose name a grant may give as a pattern.
const ANYWHERE: Sql =
    Sql::fixed("SELECT CURRENT_USER(), p.grantee, p.privilege_type FROM information_schema.user_privileges AS p");
const HERE: Sql = Sql::fixed(
    "SELECT CURRENT_USER(), p.grantee, p.privilege_type FROM information_schema.schema_privileges AS p \
     WHERE DATABASE() LIKE p.table_schema",
);
/// Other sources of rights, which are not in these lists.
const TABLES: Sql = Sql::fixed(
    "SELECT CURRENT_USER(), p.grantee, p.table_name FROM information_schema.table_privileges AS p \
     WHERE p.table_schema = DATABASE()",
);
const ROLES: Sql = Sql::fixed("SELECT r.role_name FROM information_schema.applicable_roles AS r");

const TRIGGERS: Sql = Sql::fixed(
    "SELECT @@log_bin, @@log_bin_trust_function_creators FROM information_schema.schemata AS s \
     WHERE s.schema_name = DATABASE()",
);
/// Only MariaDB has this table, and it may belong to a Galera cluster.
const CLUSTER: Sql = Sql::fixed(
    "SELECT v.variable_value FROM information_schema.global_variables AS v WHERE v.variable_name = 'WSREP_ON'",
);

async fn of_mysql(engine: &dyn Engine, deed: Deed) -> Result<Vec<String>, Trouble> {
    let read = |sql| Read { sql, args: vec![] };
    // An account that may not query this is let through: the database itself will report the missing right.
    let Ok(answers) = engine.fetch(&[ANYWHERE, HERE, TABLES, ROLES].map(read)).await else { return Ok(Vec::new()) };
    let [anywhere, here, tables, roles] = &answers[..] else { return Ok(Vec::new()) };
    let mine = |rows: &[Row]| rows.iter().filter_map(granted).collect::<Vec<_>>();
    let (has, unknown) = ([mine(anywhere), mine(here)].concat(), !mine(tables).is_empty() || !roles.is_empty());
    if unknown {
        return Ok(Vec::new());
    }
    let wanted: &[&str] = match deed {
        Deed::Fence => &["TRIGGER"],
        Deed::Fill { makes: false } => &["SELECT", "INSERT"],
        Deed::Fill { makes: true } => &["SELECT", "INSERT", "CREATE", "ALTER", "INDEX", "DROP"],
    };
    let missing = wanted.iter().filter(|right| !has.iter().any(|one| one == *right));
    let mut missing: Vec<String> = missing.map(|right| format!("{right} on the database")).collect();
    let is_trusted = ["SUPER", "BINLOG ADMIN"].iter().any(|right| has.iter().any(|one| one == right));
    if deed == Deed::Fence && !is_trusted && is_distrustful(engine).await {
        missing.push(
            "permission to create triggers on this server: an administrator has to run SET GLOBAL \
             log_bin_trust_function_creators = 1 first, on every member of a cluster"
                .to_owned(),
        );
    }
    Ok(missing)
}

/// Returns the right that a row grants to the current account.
fn granted(row: &Row) -> Option<String> {
    let [Value::Text(asker), Value::Text(grantee), Value::Text(right)] = row.as_slice() else { return None };
    let (user, host) = asker.rsplit_once('@')?;
    (*grantee == format!("'{user}'@'{host}'")).then(|| right.clone())
}

/// Whether a server lets only all-powerful accounts create triggers, because it writes a log that other servers replay.
async fn is_distrustful(engine: &dyn Engine) -> bool {
    let read = |sql| Read { sql, args: vec![] };
    let set = engine.fetch(&[read(TRIGGERS)]).await.unwrap_or_default().concat().concat();
    let [Value::Int(log), Value::Int(trusts)] = set.as_slice() else { return false };
    let cluster = engine.fetch(&[read(CLUSTER)]).await.unwrap_or_default().concat().concat();
    *trusts == 0 && (*log != 0 || cluster == [Value::Text("ON".to_owned())])
}
