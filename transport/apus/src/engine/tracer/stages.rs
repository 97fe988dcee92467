//! Records of a message's stages outside of the protocol. They need no tracer: the message carries
//! its RPC.

use apus_trace::clock::ticks;
use apus_trace::{Event, Rpc, recorder};

/// A message that carries its RPC.
pub(crate) trait Traced {
    /// Returns the RPC, if it is traced.
    fn rpc(&self) -> Option<Rpc>;
}

/// Records that a message is reserved for the waiter with this name.
#[inline]
pub(crate) fn record_handoff(rpc: Option<Rpc>, waiter: u64) {
    if let Some(rpc) = rpc {
        recorder::record_rpc(rpc, Event::HandedOff, 0, waiter);
    }
}

/// Records that the leader takes a message itself: its waiter has the name 0.
#[inline]
pub(crate) fn record_taken(rpc: Option<Rpc>) {
    if let Some(rpc) = rpc {
        let now = ticks();
        recorder::record_rpc_at(now, rpc, Event::HandedOff, 0, 0);
        recorder::record_rpc_at(now, rpc, Event::Woken, 0, 0);
    }
}

/// Records that the waiter of a reserved message runs since `at`, in ticks; 0 stands for now.
#[inline]
pub(crate) fn record_woken(rpc: Option<Rpc>, waiter: u64, at: u64) {
    if let Some(rpc) = rpc {
        let at = if at > 0 { at } else { ticks() };
        recorder::record_rpc_at(at, rpc, Event::Woken, 0, waiter);
    }
}

/// Records a stage of a message of this length.
#[inline]
pub(crate) fn stage(rpc: Option<Rpc>, event: Event, length: usize) {
    if let Some(rpc) = rpc {
        recorder::record_rpc(rpc, event, 0, length as u64);
    }
}
