//! Whether a member of MySQL's Group Replication may be written to: it and most of its group have to see each other.
//!
//! One that is cut off from the others stays in its group, unless it was told otherwise
//! (`group_replication_unreachable_majority_timeout`). It takes connections and transactions, and keeps every COMMIT waiting, for
//! ever; meanwhile the others have another primary. Nothing of that shows in `read_only`.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

/// Who is in the group, as the server that is asked sees it. One that has left its group shows itself alone.
const MEMBERS: &str = "SELECT member_id, member_state FROM performance_schema.replication_group_members";

/// Error numbers: an account that may not read a table, or a column of it.
const DENIED: [u16; 3] = [1142, 1143, 1044];

/// A group that cannot be looked at.
pub(super) const HIDDEN: &str = "who is in the server's group (Group Replication) is hidden: a server that is cut off from its group is not \
     known for one, and not left. GRANT SELECT ON performance_schema.replication_group_members TO the account of store.url";

/// A group in which every member may be written to: what one of them has locked, another changes all the same, as on Galera, and nothing
/// leads all nodes of Portiere to the same one.
pub(super) const SEVERAL: &str = "its group (Group Replication) has several members that may be written to: \
     group_replication_single_primary_mode has to be ON, or facts that others change meanwhile would not be seen";

/// A group whose next primary may answer too early.
pub(super) const HASTY: &str = "a member of the server's group (Group Replication) that takes over may answer before it has all that was \
     acknowledged (group_replication_consistency = EVENTUAL): set BEFORE_ON_PRIMARY_FAILOVER";

/// Members: their ids, and their states.
pub(super) type Members = Vec<(String, String)>;

/// Asks a server for its group; nothing where that is not told.
pub(super) async fn members(conn: &mut Conn) -> Result<Option<Members>, Error> {
    match conn.query::<(String, String), _>(MEMBERS).await {
        // The table has one line at least, also without a performance schema.
        Ok(members) => Ok(Some(members).filter(|members| !members.is_empty())),
        Err(Error::Server(server)) if DENIED.contains(&server.code) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Why a member of this id may not be written to, by the members of its group.
pub(super) fn judge(id: &str, members: &Members) -> Result<(), String> {
    let state = members.iter().find(|(of, _)| of == id).map_or("OFFLINE", |(_, state)| state.as_str());
    if state != "ONLINE" {
        return Err(format!(
            "it is no member of its group (Group Replication) that works: {state}, not ONLINE; START GROUP_REPLICATION there"
        ));
    }
    let (all, gone) = (members.len(), members.iter().filter(|(_, state)| state == "UNREACHABLE").count());
    // As many as are there cannot decide anything, either.
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
            // What comes back sees the others, and so does what is broken.
            &["ONLINE", "RECOVERING", "UNREACHABLE"],
            &["ONLINE", "ERROR", "ONLINE"],
            &["ONLINE", "ONLINE", "ONLINE", "UNREACHABLE", "UNREACHABLE"],
        ] {
            assert_eq!(judged(states), Ok(()), "{states:?}");
        }
    }

    #[test]
    fn a_member_that_is_cut_off_from_most_of_its_group_is_not_fit() {
        // red without the comparison in `judge`, or with one that lets half of a group through.
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
        // red without the comparison with ONLINE.
        for state in ["OFFLINE", "RECOVERING", "ERROR", "UNREACHABLE"] {
            for states in [&[state][..], &[state, "ONLINE", "ONLINE"]] {
                assert!(judged(states).is_err_and(|why| why.contains(state)), "{states:?}");
            }
        }
        // One that has left its group may not even say its own name.
        let alone = vec![(String::new(), "OFFLINE".to_owned())];
        assert!(judge("id-0", &alone).is_err_and(|why| why.contains("OFFLINE")));
    }
}
