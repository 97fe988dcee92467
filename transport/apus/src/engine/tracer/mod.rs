//! The tracer: turns what happens to RPCs into records of the time trace.
//!
//! The protocol reports probe events ([`apus_proto::probe`]): all of RPCs that are traced, rare
//! ones of all RPCs. The tracer fetches them after each call into the protocol and records them
//! with the time ([`probe_events`]). It adds what the protocol cannot know: when packets came from
//! the kernel and when they left, which waiter was notified of a message, and when the application
//! received it. Every message carries its RPC, an `Option<Rpc>` that is `None` if it is not traced.

mod probe_events;
mod records;
mod stages;

pub(crate) use records::{SlowWatch, Tracer};
pub(crate) use stages::{Traced, record_handoff, record_taken, record_woken, stage};
