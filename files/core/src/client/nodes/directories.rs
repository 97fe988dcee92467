//! Open directories: the names that each opening lists.

use std::collections::HashMap;

use crate::wire::Ino;
use bytes::Bytes;

/// Names and nodes that an opening lists, in order; the first two are `.` and `..`.
pub(in crate::client) type Names = Vec<(Bytes, Ino)>;

/// Open directories by handle. The names are those at the time when the directory was opened or
/// rewound; `None` until the first read.
#[derive(Debug, Default)]
pub(in crate::client) struct Directories {
    open: HashMap<u64, Option<Names>>,
    last_handle: u64,
}

impl Directories {
    /// Adds an opening and returns its handle.
    pub(in crate::client) fn open(&mut self) -> u64 {
        self.last_handle += 1;
        self.open.insert(self.last_handle, None);
        self.last_handle
    }

    pub(in crate::client) fn close(&mut self, handle: u64) {
        self.open.remove(&handle);
    }

    /// Returns the names of an opening; `None` before the first read and for an unknown handle.
    pub(in crate::client) fn names(&self, handle: u64) -> Option<&Names> {
        self.open.get(&handle)?.as_ref()
    }

    /// Replaces the names of an opening. Returns false for an unknown handle.
    pub(in crate::client) fn set_names(&mut self, handle: u64, names: Names) -> bool {
        let Some(open) = self.open.get_mut(&handle) else { return false };
        *open = Some(names);
        true
    }
}
