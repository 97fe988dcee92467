//! The list of a BATCH_FORGET.

use super::layout::input;
use super::layout::structure::Plain;

/// Length of a record in bytes.
const RECORD: usize = size_of::<input::ForgetOne>();

/// Nodes and how many references to each are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgets<'a> {
    /// Whole records.
    records: &'a [u8],
}

impl<'a> Forgets<'a> {
    /// Takes the first `count` records; fewer, if the bytes end.
    pub(crate) fn new(bytes: &'a [u8], count: u32) -> Self {
        let count = (bytes.len() / RECORD).min(count as usize);
        Self { records: &bytes[..count * RECORD] }
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.records.len() / RECORD
    }

    /// Returns whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns pairs of a node and the number of references to it that are dropped.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + 'a {
        self.records.chunks_exact(RECORD).map(|record| {
            let record = input::ForgetOne::read(record);
            (record.nodeid, record.nlookup)
        })
    }
}
