//! What an error of the server or of the connection means for a batch.

use std::io::ErrorKind;

use mysql_async::{DriverError, Error, IoError};

use crate::dialect::moving::REFUSAL;
use crate::engine::Broken;
use crate::remote::is_of_tls;

/// What went wrong before COMMIT was sent: nothing of the batch took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A unique key existed already, or a foreign key did not exist.
    Key(Broken),
    /// It lost against another transaction and may be retried.
    Rival(String),
    /// Another transaction held a row for longer than the batch may wait.
    Held(String),
    /// The connection is unusable.
    Lost(String),
    /// The server cannot be written to, for an unknown time: another server may be fit.
    Unfit(String),
    /// Anything else: the statement, its values, a full disk.
    Other(String),
}

/// A duplicate key, including a key without a name and a duplicate that a foreign key's action would create.
const DUPLICATE: [u16; 5] = [1022, 1062, 1557, 1586, 1859];
/// A parent row that does not exist or still has children; the older numbers are for accounts that may not see names.
const FOREIGN: [u16; 4] = [1216, 1217, 1451, 1452];
/// A deadlock, or a certification failure (Galera); a row that changed since it was read (MariaDB 11.6.2 and later); a
/// table that changed since the transaction began, or since the statement was prepared, which has to be done again; a
/// certification failure (Group Replication).
const RIVAL: [u16; 5] = [1213, 1020, 1412, 1615, 3101];
/// A lock wait that timed out, or a lock that was not to be waited for (MySQL 8).
const HELD: [u16; 2] = [1205, 3572];
/// The server is stopping or has ended this connection; it does not know a prepared statement, so the connection leads
/// elsewhere by now; a proxy lost its server (these are client error numbers). Or all connections together have
/// prepared more statements than the server allows (1461): closing the connection drops its statements.
const LOST: [u16; 14] = [1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1243, 1461, 1927, 2006, 2013, 4031];
/// The server is read-only or not part of its cluster; or it is offline, as a member that left its Group Replication
/// group is: MySQL 9 says why (6400) or who requested it (6401, in some versions).
const UNFIT: [u16; 7] = [1047, 1290, 1792, 1836, 3032, 6400, 6401];
/// The server has no free connection.
const CROWDED: [u16; 3] = [1040, 1203, 1226];

/// The account may not use the database, which may not exist; the account's password; the client's host. The account is
/// locked, or its password has expired; no method to sign in is common to both; the server requires TLS.
const DENIED: [u16; 12] = [1044, 1045, 1049, 1130, 1142, 1251, 1524, 1698, 1820, 1862, 3118, 3159];

/// The server ended this connection because somebody asked it to.
const KILLED: u16 = 1927;

/// Error numbers of a deadlock, as which Galera reports a certification failure, and of a certification failure in
/// Group Replication: the only errors at COMMIT that say that nothing was committed.
const UNDONE: [u16; 2] = [1213, 3101];

impl Fault {
    /// Interprets an error before COMMIT.
    pub(super) fn of(error: &Error) -> Self {
        let Error::Server(server) = error else { return Fault::Lost(sentence(error)) };
        let why = sentence(error);
        match server.code {
            code if DUPLICATE.contains(&code) => Fault::Key(Broken::Unique),
            code if FOREIGN.contains(&code) => Fault::Key(Broken::Foreign),
            code if RIVAL.contains(&code) => Fault::Rival(why),
            code if HELD.contains(&code) => Fault::Held(why),
            code if LOST.contains(&code) => Fault::Lost(why),
            code if UNFIT.contains(&code) => Fault::Unfit(why),
            _ => Fault::Other(why),
        }
    }

    /// The sentence for the caller.
    pub(super) fn why(self) -> String {
        match self {
            Fault::Key(_) => "a key already exists or is missing".to_owned(),
            Fault::Rival(why) | Fault::Held(why) | Fault::Lost(why) | Fault::Unfit(why) | Fault::Other(why) => why,
        }
    }
}

/// Whether an error at COMMIT says that nothing was committed. After any other error the outcome is unknown.
pub(super) fn not_committed(error: &Error) -> bool {
    matches!(error, Error::Server(server) if UNDONE.contains(&server.code))
}

/// Whether a server that refused a connection is well but has no room.
pub(super) fn is_crowded(error: &Error) -> bool {
    matches!(error, Error::Server(server) if CROWDED.contains(&server.code))
}

/// Whether a server that refused a connection accepts no writes from anyone.
pub(super) fn is_unfit(error: &Error) -> bool {
    matches!(error, Error::Server(server) if UNFIT.contains(&server.code))
}

/// Whether a server that refused a connection would refuse the same again, or this side would refuse the server again.
pub(super) fn is_denied(error: &Error) -> bool {
    match error {
        Error::Server(server) => DENIED.contains(&server.code),
        Error::Io(IoError::Io(error)) => is_of_tls(error),
        Error::Io(IoError::Tls(_)) => true,
        Error::Driver(error) => {
            matches!(error, DriverError::UnknownAuthPlugin { .. } | DriverError::NoClientSslFlagFromServer)
        }
        _ => false,
    }
}

/// Whether the server refused the name or the password.
pub(super) fn is_of_password(error: &Error) -> bool {
    matches!(error, Error::Server(server) if server.code == 1045)
}

/// Whether a server that was reached hung up.
pub(super) fn hung_up(error: &Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match error {
        Error::Io(IoError::Io(error)) => {
            matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
        }
        Error::Driver(DriverError::ConnectionClosed) => true,
        Error::Server(server) => server.code == KILLED,
        _ => false,
    }
}

/// The error in words for people, without the values that some servers repeat in their messages.
pub(super) fn sentence(error: &Error) -> String {
    match error {
        Error::Server(server) if DUPLICATE.contains(&server.code) => format!("error {}: duplicate key", server.code),
        // The message is our own already.
        Error::Server(server) if server.message == REFUSAL => server.message.clone(),
        Error::Server(server) => format!("error {}: {}", server.code, server.message),
        // MySQL picks one or the other at random for an account that does not exist, so as not to reveal that.
        Error::Driver(DriverError::UnknownAuthPlugin { name }) => {
            format!(
                "the server asks for the authentication method {name}, which is not supported here; MySQL may also do \
                 so for an account that does not exist"
            )
        }
        Error::Io(IoError::Io(error)) if error.kind() == ErrorKind::UnexpectedEof => {
            "the server closed the connection".to_owned()
        }
        Error::Io(IoError::Io(error)) => error.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mysql_async::ServerError;

    fn error(code: u16) -> Error {
        Error::Server(ServerError { code, message: "as it says".to_owned(), state: "HY000".to_owned() })
    }

    #[test]
    fn each_number_has_its_meaning() {
        let of = |code| Fault::of(&error(code));
        for code in [1062, 1586] {
            assert_eq!(of(code), Fault::Key(Broken::Unique), "{code}");
        }
        for code in [1451, 1452, 1216, 1217] {
            assert_eq!(of(code), Fault::Key(Broken::Foreign), "{code}");
        }
        for code in [1213, 1020, 1412, 1615, 3101] {
            assert!(matches!(of(code), Fault::Rival(_)), "{code}");
        }
        // Red without any of them in DENIED: a command would be told to try again.
        assert!([1044, 1045, 1049, 1130, 3159].iter().all(|code| is_denied(&error(*code))));
        assert!([1040, 1053, 1290].iter().all(|code| !is_denied(&error(*code))));
        let of_tls = |error: rustls::Error| Error::from(std::io::Error::new(ErrorKind::InvalidData, error));
        assert!(is_denied(&of_tls(rustls::Error::HandshakeNotComplete)));
        for code in [1205, 3572] {
            assert!(matches!(of(code), Fault::Held(_)), "{code}");
        }
        for code in [1053, 1243, 1461, 1927, 2006, 2013, 4031] {
            assert!(matches!(of(code), Fault::Lost(_)), "{code}");
        }
        for code in [1290, 1836, 1047, 3032, 6400, 6401] {
            assert!(matches!(of(code), Fault::Unfit(_)), "{code}");
        }
        for code in [1064, 1146, 1366, 1406, 1114, 1969] {
            assert!(matches!(of(code), Fault::Other(_)), "{code}");
        }
        assert!(matches!(Fault::of(&DriverError::ConnectionClosed.into()), Fault::Lost(_)));
        assert!(matches!(Fault::of(&std::io::Error::other("reset").into()), Fault::Lost(_)));
    }

    #[test]
    fn only_a_transaction_that_lost_says_at_commit_that_nothing_was_committed() {
        assert!(not_committed(&error(1213)) && not_committed(&error(3101)));
        for code in [3100, 1205, 1020, 3572, 1180, 1047, 1290, 1836, 1053, 1317, 1927, 1969, 2006, 2013] {
            assert!(!not_committed(&error(code)), "{code}");
        }
        assert!(!not_committed(&DriverError::ConnectionClosed.into()));
        assert!(!not_committed(&std::io::Error::other("reset").into()));
    }

    #[test]
    fn who_is_not_there_has_not_hung_up() {
        let kind = |kind: ErrorKind| hung_up(&std::io::Error::from(kind).into());
        assert!(kind(ErrorKind::UnexpectedEof) && kind(ErrorKind::ConnectionReset) && hung_up(&error(KILLED)));
        assert!(!kind(ErrorKind::ConnectionRefused) && !kind(ErrorKind::TimedOut) && !hung_up(&error(1045)));
    }

    #[test]
    fn a_server_without_room_is_not_left() {
        assert!(is_crowded(&error(1040)));
        assert!(!is_crowded(&error(1045)) && !is_crowded(&error(1053)));
    }

    #[test]
    fn a_server_that_is_offline_is_left() {
        // Red without 3032 in UNFIT: the server would be asked once more before another one is.
        assert!([3032, 6400, 6401].iter().all(|&code| is_unfit(&error(code))));
        assert!(!is_unfit(&error(1045)) && !is_unfit(&error(1040)));
    }
}
