//! Which schema of the search path contains the tables. Statements name no schema: a role whose path has another schema
//! before that of the tables would find other tables there, or create them.

use crate::engine::{Read, Row, Sql, Value};

/// What a session finds when it uses a name without a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The role that signed in, whose setting the search path may be.
    role: String,
    /// Where a table would be created; `None` if no schema of the path exists. All these names are quoted for SQL.
    schema: Option<String>,
    /// Whether the role may create a table there.
    makes: bool,
    /// Which tables of [`OURS`](crate::schema::OURS) exist there.
    ours: [bool; 2],
    /// The first later schema that has tables of ours.
    elsewhere: Option<String>,
}

/// The query for [`Found`].
pub(super) fn found() -> Read {
    let sql = Sql::fixed(
        "SELECT CAST(quote_ident(session_user) AS text), CAST(quote_ident(current_schema()) AS text), \
         COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false), \
         EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'schema_steps'), \
         EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'schema_versions'), \
         (SELECT CAST(quote_ident(schemaname) AS text) FROM pg_tables WHERE tablename = 'schema_steps' \
         AND schemaname = ANY (current_schemas(false)) AND schemaname <> current_schema() \
         ORDER BY array_position(current_schemas(false), schemaname) LIMIT 1)",
    );
    Read { sql, args: vec![] }
}

impl Found {
    pub(super) fn of(rows: &[Row]) -> Option<Self> {
        let [Value::Text(role), schema, Value::Int(makes), Value::Int(steps), Value::Int(versions), elsewhere] =
            rows.first()?.as_slice()
        else {
            return None;
        };
        let name = |value: &Value| match value {
            Value::Text(name) => Some(name.clone()),
            _ => None,
        };
        Some(Found {
            role: role.clone(),
            schema: name(schema),
            makes: *makes != 0,
            ours: [*steps != 0, *versions != 0],
            elsewhere: name(elsewhere),
        })
    }

    /// Checks that the tables are where this role would create them, or do not exist yet.
    pub(super) fn fit(&self) -> Result<(), String> {
        let Found { role, schema: Some(here), elsewhere: Some(there), .. } = self else { return Ok(()) };
        Err(match self.ours[0] {
            true => format!(
                "Portiere's tables are in schema {here}, and in schema {there}, which comes after it in the search_path of this \
                 role: ALTER ROLE {role} SET search_path = {here}, or {there} only if the accounts are there"
            ),
            false => format!(
                "Portiere's tables are in schema {there}, and this role would make others in schema {here}, which comes before it \
                 in its search_path: ALTER ROLE {role} SET search_path = {there}, or drop schema {here} if it is empty"
            ),
        })
    }

    /// Whether this table of [`OURS`](crate::schema::OURS) exists.
    pub(super) fn has(&self, at: usize) -> bool {
        self.ours.get(at) == Some(&true)
    }

    /// Adds the right that the role lacks to the reason why a statement failed.
    pub(super) fn lacks(&self, sql: &str, why: String) -> String {
        match &self.schema {
            // SQLSTATE 42501: insufficient_privilege
            Some(schema) if !self.makes && sql.starts_with("CREATE") && why.ends_with("(42501)") => {
                format!("{why}: the role needs CREATE on schema {schema}")
            }
            _ => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(schema: Option<&str>, ours: bool, elsewhere: Option<&str>) -> Found {
        let name = |name: Option<&str>| name.map_or(Value::Null, |name| Value::Text(name.to_owned()));
        let has = Value::Int(ours.into());
        let row = vec![name(Some("portiere")), name(schema), Value::Int(0), has.clone(), has, name(elsewhere)];
        Found::of(&[row]).unwrap()
    }

    #[test]
    fn tables_in_a_schema_that_comes_later_are_told_with_what_to_do() {
        for fit in [found(None, false, None), found(Some("public"), false, None), found(Some("public"), true, None)] {
            assert_eq!(fit.fit(), Ok(()), "{fit:?}");
        }
        let why = |ours| found(Some("\"My-S\""), ours, Some("public")).fit().unwrap_err();
        assert!(why(false).contains("in schema public, and this role would make others in schema \"My-S\""));
        assert!(why(false).ends_with("SET search_path = public, or drop schema \"My-S\" if it is empty"));
        // Must never suggest a drop: newer rows may be there.
        assert!(why(true).contains("in schema \"My-S\", and in schema public") && !why(true).contains("drop"));
    }

    #[test]
    fn a_right_that_is_lacking_is_named_where_it_was_needed() {
        let of =
            |makes, sql, why: &str| Found { makes, ..found(Some("public"), true, None) }.lacks(sql, why.to_owned());
        let denied = "permission denied (42501)";
        assert!(of(false, "CREATE TABLE a (b bigint)", denied).ends_with("needs CREATE on schema public"));
        assert_eq!(of(true, "CREATE TABLE a (b bigint)", denied), denied);
        assert_eq!(of(false, "ALTER TABLE a ADD b bigint", denied), denied);
        assert_eq!(of(false, "CREATE TABLE a (b bigint)", "is there (42P07)"), "is there (42P07)");
    }
}
