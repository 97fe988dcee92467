//! Cached nodes: attributes, names and bytes under leases, and the rules that fill and empty the
//! cache.
//!
//! Knows the link to the server, and no operation.

pub(super) mod cache;
pub(super) mod cancellation;
pub(super) mod contents;
pub(super) mod directories;
pub(super) mod eviction;
pub(super) mod extents;
pub(super) mod install;
pub(super) mod node;
pub(super) mod prefetch;
pub(super) mod read_ahead;
pub(super) mod renames;
