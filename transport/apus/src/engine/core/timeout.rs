//! Timeout of calls without a deadline.

use super::root::Core;
use crate::engine::state::OverdueCall;
use apus_proto::Instant;

impl Core {
    /// Sets the deadline of calls whose timeout has passed to `now`, so that the timers end them.
    pub(super) fn handle_call_timeout(&mut self, now: Instant) {
        if !self.call_timeout.end_interval(now, !self.calls.is_empty()) {
            return;
        }
        let timeout = self.call_timeout;
        for call in self.calls.overdue(|made| timeout.is_overdue(made)) {
            match call {
                OverdueCall::Network(rpc) => {
                    // Fails if the call has ended.
                    let _ = self.network.transport_mut().set_deadline(rpc, now);
                }
                OverdueCall::Local(key) => {
                    if let Some(local) = &mut self.local {
                        local.set_deadline(key, now, &mut self.calls);
                    }
                }
            }
        }
    }
}
