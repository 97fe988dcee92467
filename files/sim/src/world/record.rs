//! Records: the result of an intent in the terms of the checkers.

use apus_fs_core::client::Reply;
use apus_fs_core::wire::{Errno, Ino, Name};

use super::intent::Intent;
use super::recorder::Recorder;
use crate::history::{FileAction, Moment, MountId, NameAction};

/// An operation that was started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    pub(super) mount: MountId,
    pub(super) invoked: Moment,
    /// Time of return; `None`: it did not return.
    pub(super) returned: Option<Moment>,
}

/// Errors that reveal nothing about the file system: an operation that ends with one may or may not
/// be in effect.
fn is_trouble(errno: Errno) -> bool {
    // EINTR, EIO, ENOSPC, ETIMEDOUT
    matches!(errno.0, 4 | 5 | 28 | 110)
}

/// Returns the node that a reply names.
pub(super) fn node(reply: &Reply) -> Option<Ino> {
    match reply {
        Reply::Entry(entry) | Reply::Created(entry) => Some(entry.node),
        _ => None,
    }
}

/// Records an operation. `result` is absent if it did not return.
pub(super) fn record(
    recorder: &mut Recorder,
    begun: Begun,
    intent: &Intent,
    result: Option<&Result<Reply, Errno>>,
) {
    let Begun { mount, invoked, mut returned } = begun;
    let mut result = result.cloned();
    if let Some(Err(errno)) = result
        && is_trouble(errno)
    {
        recorder.trouble(mount, &format!("{intent:?}"), errno);
        (result, returned) = (None, None);
    }
    let done = result.as_ref().map(|result| result.as_ref().map(drop).map_err(|errno| *errno));
    if record_file(recorder, Begun { mount, invoked, returned }, intent, result.as_ref()) {
        return;
    }
    let action = match intent {
        Intent::LookUp(at) => {
            let result = result.map(|found| found.map(|reply| node(&reply)));
            NameAction::LookUp { at: at.clone(), result }
        }
        Intent::Create { at, is_directory } => NameAction::Create {
            at: at.clone(),
            is_directory: *is_directory,
            result: result.map(|made| made.map(|reply| node(&reply).unwrap_or(Ino::ROOT))),
        },
        Intent::Link { node, at } => NameAction::Link { node: *node, at: at.clone(), result: done },
        Intent::Remove { at, is_directory } => {
            NameAction::Remove { at: at.clone(), is_directory: *is_directory, result: done }
        }
        Intent::Rename { from, to, mode } => {
            NameAction::Rename { from: from.clone(), to: to.clone(), mode: *mode, result: done }
        }
        Intent::ReadDirectory { directory, .. } => {
            let Some(Ok(Reply::Entries(entries))) = result else { return };
            let mut names: Vec<(Name, Ino)> = entries
                .into_iter()
                .filter_map(|entry| Some((Name::new(entry.name).ok()?, entry.node)))
                .collect();
            names.sort();
            NameAction::List { directory: *directory, result: Some(Ok(names)) }
        }
        _ => return,
    };
    if returned.is_some() || intent.is_change() {
        recorder.name(mount, invoked, returned, action);
    }
}

/// Writes an operation on a file down; returns whether it is one.
fn record_file(
    recorder: &mut Recorder,
    begun: Begun,
    intent: &Intent,
    result: Option<&Result<Reply, Errno>>,
) -> bool {
    let is_done = matches!(result, Some(Ok(_)));
    let (file, action) = match intent {
        Intent::Write { file, offset, data } => {
            (*file, FileAction::Write { offset: *offset, data: data.clone(), is_done })
        }
        Intent::Append { file, data } => {
            (*file, FileAction::Append { data: data.clone(), is_done })
        }
        Intent::Truncate { file, size } => (*file, FileAction::Truncate { size: *size, is_done }),
        Intent::Read { file, offset, length } => match result {
            Some(Ok(Reply::Data(pieces))) => (
                *file,
                FileAction::Read {
                    offset: *offset,
                    length: u64::from(*length),
                    result: Some(pieces.concat().into()),
                },
            ),
            _ => return true,
        },
        Intent::Size(file) => match result {
            Some(Ok(Reply::Attributes(_, attributes, _))) => {
                (*file, FileAction::Size { result: Some(attributes.size) })
            }
            _ => return true,
        },
        _ => return false,
    };
    // A change that failed is not in effect: the file was stale, or the like.
    if matches!(result, Some(Err(_))) {
        return true;
    }
    recorder.file(file, begun.mount, begun.invoked, begun.returned, action);
    true
}
