//! Compares both ends of a move, row by row.

use futures_util::future::try_join;
use rules::secret::hexadecimal;
use sha2::{Digest, Sha256};

use super::catalogue::Table;
use super::page::{self, Walk};
use super::{Move, Step, Trouble};
use crate::engine::{Row, Value};

/// A summary of a table, which is the same for the same rows on every engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The table.
    pub table: String,
    /// The number of rows in it.
    pub rows: u64,
    /// SHA-256 over all of them in the order of their keys, in hexadecimal.
    pub sha256: String,
}

/// Reads a table at both ends; fails at the first row that differs.
pub(super) async fn table(of: &Move<'_>, table: &Table) -> Result<Sum, Trouble> {
    let (mut source, mut target) = (Walk::new(of.from, table, None), Walk::new(of.to, table, None));
    let (mut sums, mut rows, mut asked) = ([Sha256::new(), Sha256::new()], 0, of.page);
    loop {
        let (theirs, ours) = try_join(source.page(asked), target.page(asked)).await?;
        theirs.iter().for_each(|row| feed(&mut sums[0], row));
        ours.iter().for_each(|row| feed(&mut sums[1], row));
        if theirs != ours {
            let same = theirs.iter().zip(&ours).take_while(|(one, other)| one == other).count();
            return Err(Trouble::new(format!(
                "the table {} differs between source and target from row {} on: give the move up with --abort, and \
                 start over with an empty target",
                table.name,
                rows + same as u64 + 1
            )));
        }
        rows += theirs.len() as u64;
        (of.tell)(Step::Compared(theirs.len() as u64));
        if theirs.len() < asked {
            break;
        }
        asked = page::next(&theirs, of.page);
    }
    let [theirs, ours] = sums.map(|sum| hexadecimal(&sum.finalize()));
    match theirs == ours {
        true => Ok(Sum { table: table.name.clone(), rows, sha256: ours }),
        false => Err(Trouble::new(format!("the table {} has a different checksum at the target", table.name))),
    }
}

/// Feeds every value with its type and its length, so that no two rows feed the same bytes.
fn feed(sum: &mut Sha256, row: &Row) {
    for value in row {
        let (kind, bytes): (u8, &[u8]) = match value {
            Value::Null => (0, &[]),
            Value::Int(number) => (1, &number.to_be_bytes()),
            Value::Text(text) => (2, text.as_bytes()),
            Value::Blob(bytes) => (3, bytes),
        };
        sum.update([kind]);
        sum.update((bytes.len() as u64).to_be_bytes());
        sum.update(bytes);
    }
}
