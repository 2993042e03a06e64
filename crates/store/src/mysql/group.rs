//! Whether a member of MySQL's Group Replication may be written to: it has to see most of its group.
//!
//! A member that is cut off from the others stays in its group, unless it is configured otherwise
//! (`group_replication_unreachable_majority_timeout`). It accepts connections and transactions, and keeps every COMMIT
//! waiting for ever; meanwhile the others elect another primary. None of that shows in `read_only`.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

/// Lists the members of the group, as the server sees it. A server that has left its group shows only itself.
const MEMBERS: &str = "SELECT member_id, member_state FROM performance_schema.replication_group_members";

/// Error numbers for an account that may not read a table or one of its columns.
const DENIED: [u16; 3] = [1142, 1143, 1044];

/// The advice about a group whose members are hidden from us.
pub(super) const HIDDEN: &str = "the members of the server's group (Group Replication) are hidden: a server that is \
                                 cut off from its group is not noticed, and stays in use. GRANT SELECT ON \
                                 performance_schema.replication_group_members TO the account of store.url";

/// The error for a group in which every member may be written to: as on Galera, one member can change what another has
/// locked, and nothing leads all Portiere nodes to the same member.
pub(super) const SEVERAL: &str = "its group (Group Replication) has several writable members: \
                                  group_replication_single_primary_mode has to be ON, because concurrent changes on \
                                  other members would go unnoticed";

/// The advice about a group whose next primary may answer too early.
pub(super) const HASTY: &str = "after a failover, the new primary of the server's group (Group Replication) may answer \
                                before it has all acknowledged writes (group_replication_consistency = EVENTUAL): set \
                                BEFORE_ON_PRIMARY_FAILOVER";

/// The ids of the members, and their states.
pub(super) type Members = Vec<(String, String)>;

/// Asks a server for its group; `None` if the account may not see it.
pub(super) async fn members(conn: &mut Conn) -> Result<Option<Members>, Error> {
    match conn.query::<(String, String), _>(MEMBERS).await {
        // The table has at least one row, even without a performance schema.
        Ok(members) => Ok(Some(members).filter(|members| !members.is_empty())),
        Err(Error::Server(server)) if DENIED.contains(&server.code) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns why the member with this id may not be written to, judging by the members of its group.
pub(super) fn judge(id: &str, members: &Members) -> Result<(), String> {
    let state = members.iter().find(|(of, _)| of == id).map_or("OFFLINE", |(_, state)| state.as_str());
    if state != "ONLINE" {
        return Err(format!(
            "it is not a working member of its group (Group Replication): {state}, not ONLINE; run START \
             GROUP_REPLICATION there"
        ));
    }
    let (all, gone) = (members.len(), members.iter().filter(|(_, state)| state == "UNREACHABLE").count());
    // Exactly half of the group cannot decide anything, either.
    match 2 * gone >= all {
        true => {
            Err(format!("it is cut off from its group (Group Replication): {gone} of {all} members are unreachable"))
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(states: &[&str]) -> Result<(), String> {
        let of = |(at, state): (usize, &&str)| (format!("id-{at}"), (*state).to_owned());
        judge("id-0", &states.iter().enumerate().map(of).collect())
    }

    #[test]
    fn a_member_is_fit_while_it_sees_most_of_its_group() {
        for states in [
            &["ONLINE"][..],
            &["ONLINE", "ONLINE", "ONLINE"],
            &["ONLINE", "ONLINE", "UNREACHABLE"],
            // A recovering member sees the others, and so does a broken one.
            &["ONLINE", "RECOVERING", "UNREACHABLE"],
            &["ONLINE", "ERROR", "ONLINE"],
            &["ONLINE", "ONLINE", "ONLINE", "UNREACHABLE", "UNREACHABLE"],
        ] {
            assert_eq!(judged(states), Ok(()), "{states:?}");
        }
    }

    #[test]
    fn a_member_that_is_cut_off_from_most_of_its_group_is_not_fit() {
        // Red without the comparison in `judge`, or with one that accepts half of a group.
        for states in [
            &["ONLINE", "UNREACHABLE"][..],
            &["ONLINE", "UNREACHABLE", "UNREACHABLE"],
            &["ONLINE", "ONLINE", "UNREACHABLE", "UNREACHABLE"],
            &["ONLINE", "ONLINE", "UNREACHABLE", "UNREACHABLE", "UNREACHABLE"],
        ] {
            assert!(judged(states).is_err_and(|why| why.contains("cut off from its group")), "{states:?}");
        }
    }

    #[test]
    fn a_member_that_does_not_work_is_not_fit_however_the_others_are() {
        // Red without the comparison with ONLINE.
        for state in ["OFFLINE", "RECOVERING", "ERROR", "UNREACHABLE"] {
            for states in [&[state][..], &[state, "ONLINE", "ONLINE"]] {
                assert!(judged(states).is_err_and(|why| why.contains(state)), "{states:?}");
            }
        }
        // A member that has left its group may not even report its own id.
        let alone = vec![(String::new(), "OFFLINE".to_owned())];
        assert!(judge("id-0", &alone).is_err_and(|why| why.contains("OFFLINE")));
    }
}
