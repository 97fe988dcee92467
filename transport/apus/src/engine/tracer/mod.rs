//! The tracer: turns events of RPCs into records of the time trace.
//!
//! The protocol reports probe events ([`apus_proto::probe`]): all events of traced RPCs, rare
//! events of all RPCs. The tracer fetches them after each call into the protocol and records them
//! with the time ([`probe_events`]). It adds information that the protocol does not have: the times
//! at which packets arrived from the kernel and left, the waiter that was notified of a message,
//! and the time of its receipt by the application. Every message carries its RPC, an `Option<Rpc>`
//! that is `None` if it is not traced.

mod probe_events;
mod records;
mod stages;

pub(crate) use records::{SlowWatch, Tracer};
pub(crate) use stages::{Traced, record_handoff, record_taken, record_woken, stage};
