//! The client: a cache of nodes under leases, and an ordered log of changes.

mod effect;
mod operation;

pub use effect::{
    ClientCall, ClientEffect, Clock, Invalidation, NotifyToken, OpToken, ServerCallback,
};
pub use operation::{
    AttributeChange, Caller, DirectoryEntry, NewTime, NodeEntry, Operation, Place, Reply,
};
