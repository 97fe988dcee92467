//! Corks: hold messages back so that those of a busy thread leave together.

use crate::engine::shard::Shard;

/// Holds messages back until it is dropped; see [`EndpointHandle::cork`](crate::EndpointHandle::cork).
#[must_use = "messages are held back only until the cork is dropped"]
pub struct Cork<'a> {
    shard: &'a Shard,
}

impl<'a> Cork<'a> {
    pub(crate) fn hold(shard: &'a Shard) -> Self {
        shard.lock().cork();
        Self { shard }
    }
}

impl std::fmt::Debug for Cork<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cork").finish_non_exhaustive()
    }
}

impl Drop for Cork<'_> {
    fn drop(&mut self) {
        self.shard.lock().uncork();
    }
}
