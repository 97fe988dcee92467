//! The world of the store in memory.

use apus_fs_store::memory::MemoryStore;

use crate::world::World;

/// A store in memory.
pub(crate) struct MemoryWorld(MemoryStore);

impl World for MemoryWorld {
    type Store = MemoryStore;

    fn new() -> Self {
        Self(MemoryStore::default())
    }

    fn store(&mut self) -> &mut MemoryStore {
        &mut self.0
    }

    fn crash(&mut self, kept: usize) {
        self.0.crash(kept);
    }

    fn owner() -> (u32, u32) {
        (1000, 1000)
    }
}
