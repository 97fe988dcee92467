//! The digest of a run: a hash of all effects, with their times.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use apus_fs_core::client::ClientEffect;
use apus_fs_core::server::ServerEffect;

use crate::history::MountId;

/// Hash of the effects of clients and servers, in their order.
#[derive(Debug, Default)]
pub(super) struct Digest {
    // With fixed keys, so that runs of two builds can be compared.
    hasher: DefaultHasher,
}

impl Digest {
    /// Adds an effect of a client.
    pub(super) fn add_client(&mut self, now: Duration, mount: MountId, effect: &ClientEffect) {
        (now, mount).hash(&mut self.hasher);
        if let ClientEffect::Invalidate { notification, items } = effect {
            // A client lists its nodes in the order of a hash table with random keys.
            let mut items: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            items.sort_unstable();
            (notification, items).hash(&mut self.hasher);
        } else {
            format!("{effect:?}").hash(&mut self.hasher);
        }
    }

    /// Adds an effect of the server.
    pub(super) fn add_server(&mut self, now: Duration, effect: &ServerEffect) {
        now.hash(&mut self.hasher);
        format!("{effect:?}").hash(&mut self.hasher);
    }

    /// Returns the hash of the effects that were added.
    pub(super) fn finish(&self) -> u64 {
        self.hasher.finish()
    }
}
