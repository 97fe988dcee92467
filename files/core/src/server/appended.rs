//! Batches that are appended and not applied.

use std::collections::BTreeMap;

use crate::store::ClientId;
use crate::wire::Handle;

use super::effect::CallToken;
use super::records::Changes;

/// A batch that is appended and not applied.
#[derive(Debug)]
pub(super) struct AppendedBatch {
    pub(super) session: u64,
    pub(super) number: u64,
    /// What it is worth as [progress](super::session::Session::progress).
    pub(super) progress: u64,
    pub(super) calls: Vec<CallToken>,
    pub(super) changes: Changes,
    pub(super) returns: Vec<Handle>,
}

/// Batches that are appended and not applied: at most one of each client, because its next batch
/// must not be applied if this one fails.
#[derive(Debug, Default)]
pub(super) struct Appended {
    pub(super) batches: BTreeMap<ClientId, AppendedBatch>,
    pub(super) bytes: usize,
}

impl Appended {
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }
}
