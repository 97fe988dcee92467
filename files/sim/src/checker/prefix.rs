//! Prefixes: a mount leaves the result of its first operations, up to some number that covers all
//! synced operations.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::Violation;

/// An operation in a directory that only one mount uses; operations do not overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrivateAction {
    /// Creates an empty file with a name that is free.
    Create {
        /// The name.
        name: String,
    },
    /// Writes into a file.
    Write {
        /// Its name.
        name: String,
        /// Position of the first byte.
        offset: usize,
        /// The bytes.
        data: Bytes,
    },
    /// Cuts a file off, or extends it.
    Truncate {
        /// Its name.
        name: String,
        /// Number of bytes.
        size: usize,
    },
    /// Moves a file, and removes the node that had the new name.
    Rename {
        /// Name before.
        from: String,
        /// Name afterwards.
        to: String,
    },
    /// Removes a file.
    Remove {
        /// The name.
        name: String,
    },
}

/// Names and contents of a directory.
pub type Snapshot = BTreeMap<String, Vec<u8>>;

fn apply(files: &mut Snapshot, action: &PrivateAction) {
    match action {
        PrivateAction::Create { name } => {
            files.insert(name.clone(), Vec::new());
        }
        PrivateAction::Write { name, offset, data } => {
            if let Some(contents) = files.get_mut(name) {
                contents.resize(contents.len().max(offset + data.len()), 0);
                contents[*offset..offset + data.len()].copy_from_slice(data);
            }
        }
        PrivateAction::Truncate { name, size } => {
            if let Some(contents) = files.get_mut(name) {
                contents.resize(*size, 0);
            }
        }
        PrivateAction::Rename { from, to } => {
            if from != to
                && let Some(contents) = files.remove(from)
            {
                files.insert(to.clone(), contents);
            }
        }
        PrivateAction::Remove { name } => {
            files.remove(name);
        }
    }
}

/// Checks the contents of a mount's directory. `actions` were applied to `before`, in this order;
/// the first `synced` of them must be in effect. Returns the number of actions in effect; the
/// largest one, if several explain the directory.
///
/// # Errors
///
/// No number explains the directory.
pub fn check(
    before: &Snapshot,
    actions: &[PrivateAction],
    synced: usize,
    found: &Snapshot,
) -> Result<usize, Violation> {
    let mut files = before.clone();
    let mut explained = None;
    let mut too_few = None;
    for count in 0..=actions.len() {
        if files == *found {
            if count >= synced {
                explained = Some(count);
            } else {
                too_few = Some(count);
            }
        }
        if let Some(action) = actions.get(count) {
            apply(&mut files, action);
        }
    }
    explained.ok_or_else(|| {
        let what = match too_few {
            Some(count) => format!("{count} actions are in effect, and {synced} were synced"),
            None => {
                let sizes: Vec<_> = found.iter().map(|(name, bytes)| (name, bytes.len())).collect();
                format!("no prefix of {} actions leaves {sizes:?}", actions.len())
            }
        };
        Violation::new("a mount leaves a prefix of its operations", what)
    })
}
