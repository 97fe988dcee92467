//! Kinds of leases.

use serde::{Deserialize, Serialize};

/// Permission of a client to use a node without asking, until its session's term ends.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum LeaseKind {
    /// None: each operation asks the server.
    #[default]
    None,
    /// Use attributes, contents, and the names in a directory, including absent ones. Other clients
    /// may have this lease as well.
    Shared,
    /// Change all of these. No other client has a lease. Nodes that are created in such a directory
    /// get the same lease.
    Exclusive,
}
