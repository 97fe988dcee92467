//! The handoff lab: how a thread is woken twice for one message, and the cure.
//!
//! The Linux kernel's Homa module announced an RPC to a waiting thread before its packet was
//! queued, and then released the RPC's lock to handle the acks in the same packet. A quick thread
//! found nothing, waited again, and was handed the RPC once more: 1.148 handoffs per request
//! (docs/reference/papers.md, *Double handoff*). This lab reproduces that over a UDP socket,
//! together with the cure:
//!
//! - `publish-first`: the flaw ([`Order::PublishFirst`]);
//! - `enqueue-first`: the same code with the two steps swapped, as in today's module;
//! - `apus`: with a dedicated engine, and with a receiver that polls the network itself.
//!
//! Each trial has a fresh process, so that no state remains from the previous trial (figures drift
//! otherwise; docs/reference/papers.md, *Double handoff*). One request is outstanding at a time;
//! with more, the ratio has no meaning.
//!
//! | file | content |
//! |---|---|
//! | `options` | the options |
//! | `sync`, `socket` | the lab's receive path, with the flaw and without |
//! | `product`, `trial` | the receive path of apus; a trial of either path |
//! | `sweep`, `declaration` | all trials; the report |
//!
//! loom checks `socket` in both orders (`model`): it finds the flaw in one and no violation in the
//! other.

mod declaration;
#[cfg(all(test, apus_loom))]
mod model;
mod options;
mod product;
mod socket;
mod sweep;
mod sync;
mod trial;

pub use options::HandoffOptions;
pub use socket::Order;
pub use sweep::run;

pub(crate) use trial::{JOB, agent};
