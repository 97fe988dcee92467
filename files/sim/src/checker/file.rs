//! Contents of one file.

use std::rc::Rc;

use super::linearise::{Model, Verdict, explain, search};
use crate::Violation;
use crate::history::{FileAction, ObjectHistory};

/// Number of pasts at which a search is given up.
const LIMIT: usize = 10_000;

/// A file's bytes.
struct FileModel;

impl Model for FileModel {
    type State = Rc<Vec<u8>>;
    type Action = FileAction;

    fn apply(&self, state: &Rc<Vec<u8>>, action: &FileAction) -> Vec<Rc<Vec<u8>>> {
        let possible = match action {
            FileAction::Write { offset, data, .. } => {
                return vec![write(state, *offset as usize, data)];
            }
            FileAction::Append { data, .. } => return vec![write(state, state.len(), data)],
            FileAction::Truncate { size, .. } => {
                let mut bytes = state.to_vec();
                bytes.resize(*size as usize, 0);
                return vec![Rc::new(bytes)];
            }
            FileAction::Read { offset, length, result } => result.as_ref().is_none_or(|bytes| {
                let start = state.len().min(*offset as usize);
                let end = state.len().min((*offset + *length) as usize);
                state[start..end.max(start)] == bytes[..]
            }),
            FileAction::Size { result } => result.is_none_or(|size| size == state.len() as u64),
        };
        if possible { vec![Rc::clone(state)] } else { Vec::new() }
    }

    fn only_reads(&self, action: &FileAction) -> bool {
        matches!(action, FileAction::Read { .. } | FileAction::Size { .. })
    }
}

fn write(state: &[u8], offset: usize, data: &[u8]) -> Rc<Vec<u8>> {
    let mut bytes = state.to_vec();
    if !data.is_empty() {
        bytes.resize(bytes.len().max(offset + data.len()), 0);
        bytes[offset..offset + data.len()].copy_from_slice(data);
    }
    Rc::new(bytes)
}

/// Checks the history of one file that was empty at the start. Returns whether the search was
/// finished.
///
/// # Errors
///
/// The operation whose result no order explains.
pub fn check(file: &str, history: &ObjectHistory<FileAction>) -> Result<bool, Violation> {
    match search(&FileModel, Rc::default(), history, LIMIT) {
        Verdict::Linearisable => Ok(true),
        Verdict::Undecided => Ok(false),
        Verdict::Impossible { event } => {
            let what = format!("{file}: {}", explain(history, event));
            Err(Violation::new("operations on a file are linearisable", what))
        }
    }
}
