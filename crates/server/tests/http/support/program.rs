//! The program under test.

use std::process::Command;

/// Where it is.
pub const BINARY: &str = env!("CARGO_BIN_EXE_portiere");

/// Variables for the tests. The program would look for options that they may be meant to be, at each of its starts.
const OF_TESTS: [&str; 5] = [
    "PORTIERE_TEST_MYSQL",
    "PORTIERE_TEST_NODES",
    "PORTIERE_TEST_POSTGRES",
    "PORTIERE_TEST_SCALE",
    "PORTIERE_TEST_STORE",
];

/// Returns a command that runs it.
pub fn program() -> Command {
    apart(Command::new(BINARY))
}

/// Returns the command without the variables for the tests.
pub fn apart(mut command: Command) -> Command {
    for name in OF_TESTS {
        command.env_remove(name);
    }
    command
}
