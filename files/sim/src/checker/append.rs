//! Appends: no append is lost, torn or doubled, and the appends of one mount are in order.

use bytes::Bytes;

use crate::Violation;
use crate::history::MountId;

const PROMISE: &str = "appends are neither lost nor torn";

/// An append to a file that is only appended to. All pieces of such a file differ, and no piece
/// shares bytes with the start of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The mount that appended.
    pub mount: MountId,
    /// The bytes.
    pub data: Bytes,
    /// Whether the file must contain it: it returned, and its mount did not crash before it was
    /// synced.
    pub is_owed: bool,
}

/// Checks the final contents of a file. The appends of each mount are given in the order of their
/// invocation, without overlap.
///
/// # Errors
///
/// The bytes that belong to no append, or the append that is absent, doubled or out of order.
pub fn check(contents: &[u8], appends: &[Append]) -> Result<(), Violation> {
    let mut rest = contents;
    let mut found = vec![false; appends.len()];
    let mut last: Vec<(MountId, usize)> = Vec::new();
    while !rest.is_empty() {
        let at = contents.len() - rest.len();
        let here = |append: &Append| !append.data.is_empty() && rest.starts_with(&append.data);
        let Some(index) = appends.iter().position(here) else {
            return Err(Violation::new(PROMISE, format!("bytes at {at} are no whole append")));
        };
        let Append { mount, data, .. } = &appends[index];
        if std::mem::replace(&mut found[index], true) {
            return Err(Violation::new(PROMISE, format!("{data:?} is there again at {at}")));
        }
        match last.iter_mut().find(|(other, _)| other == mount) {
            Some((_, before)) if *before > index => {
                return Err(Violation::new(
                    PROMISE,
                    format!("{data:?} of {mount} is out of order"),
                ));
            }
            Some((_, before)) => *before = index,
            None => last.push((*mount, index)),
        }
        rest = &rest[data.len()..];
    }
    match appends.iter().zip(found).find(|(append, found)| append.is_owed && !found) {
        Some((Append { mount, data, .. }, _)) => {
            Err(Violation::new(PROMISE, format!("{data:?} of {mount} is lost")))
        }
        None => Ok(()),
    }
}
