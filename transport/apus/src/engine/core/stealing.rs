//! Messages that threads of other shards may steal, and messages that threads of this shard steal
//! elsewhere ([`siblings`](crate::engine::siblings)).

use super::root::Core;
use crate::engine::handoff::{ByKind, MessageKind, Sibling, StealRequest};

/// Numbers of threads of other shards to be asked to steal messages of a kind.
pub(crate) type StealAsks = ByKind<u32>;

impl Core {
    /// Publishes the shard's surplus. Returns how many threads of other shards must be asked to
    /// steal.
    pub(in crate::engine) fn publish_to_siblings<S>(&mut self, sibling: &Sibling<S>) -> StealAsks {
        let left = self.polling.is_left();
        ByKind::new(|kind| {
            let surplus = self.inbox.surplus(kind, left);
            let passed_on = std::mem::take(&mut self.passed_on[kind]);
            sibling.publish_surplus(kind, surplus) + u32::from(passed_on)
        })
    }

    /// Asks a thread of this shard that waits for messages of this kind to steal from other shards.
    /// Returns whether there is such a thread that was not asked before. If not, the next thread
    /// that waits will steal.
    pub(in crate::engine) fn request_steal(&mut self, kind: MessageKind) -> bool {
        let asked = self.inbox.request_steal(kind, &mut self.wakes);
        self.polling.request_check_if(asked == StealRequest::Leader);
        self.observation.counters.steal_requests += u64::from(asked != StealRequest::None);
        asked != StealRequest::None
    }

    /// Returns whether a thread that waits for messages of these kinds is asked to steal.
    pub(in crate::engine) fn is_steal_requested(&self, kinds: &[MessageKind]) -> bool {
        kinds.iter().any(|kind| self.inbox.is_steal_requested(*kind))
    }

    /// Takes a request to steal, which the calling thread complies with.
    pub(in crate::engine) fn take_steal_request(&mut self, kinds: &[MessageKind]) {
        for kind in kinds {
            self.inbox.take_steal_request(*kind);
        }
    }

    /// Passes a request to steal on to a thread of another shard, if there is one: the calling
    /// thread has received a message of its home shard, or does not wait any more.
    pub(in crate::engine) fn pass_steal_request_on(&mut self, kinds: &[MessageKind]) {
        for kind in kinds {
            self.passed_on[*kind] |= self.inbox.take_steal_request(*kind);
        }
    }

    /// Passes on that the calling task, which was notified, does not steal.
    #[cfg_attr(not(feature = "tokio"), expect(dead_code, reason = "tasks need tokio"))]
    pub(in crate::engine) fn decline_to_steal(&mut self, kinds: &[MessageKind]) {
        for kind in kinds {
            self.passed_on[*kind] = true;
        }
    }

    /// Notes whether the leader waits for messages of these kinds.
    pub(in crate::engine) fn set_leader_waits(&mut self, kinds: &[MessageKind], waits: bool) {
        for kind in kinds {
            self.inbox.set_leader_waits(*kind, waits);
        }
    }

    /// Notes that a thread of this shard has received a message.
    pub(in crate::engine) fn note_own_take(&mut self) {
        self.inbox.note_own_take(self.time.now());
    }

    /// Counts a message that a thread of another shard has stolen.
    pub(in crate::engine) const fn count_steal(&mut self) {
        self.observation.counters.steals += 1;
    }
}
