//! Guarantees of a pair. Both sides are in one process, each with its own mapping.

mod hostile;
mod local;
#[path = "../scribble/peer.rs"]
mod peer;
mod peers;
mod rpc;
mod sleep;
