//! Interface of a store under test: a fresh export, and crashes.

use apus_fs_core::Store;

/// A store and its surroundings.
pub(crate) trait World {
    /// The store.
    type Store: Store;

    /// Makes a store that exports an empty directory.
    fn new() -> Self;

    /// Returns the store.
    fn store(&mut self) -> &mut Self::Store;

    /// Crashes the store and opens it again. Of the batches that are not committed, the first
    /// `kept` may survive; a world that cannot choose ignores the number.
    fn crash(&mut self, kept: usize);

    /// Returns a user and a group that nodes may belong to.
    fn owner() -> (u32, u32);
}
