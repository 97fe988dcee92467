//! Kinds of leases.

use serde::{Deserialize, Serialize};

/// What a client may do with a node without asking, until its session's term ends.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum LeaseKind {
    /// Nothing: each operation asks the server.
    #[default]
    None,
    /// Use attributes, contents, and the names in a directory, absent ones included. Others may do so, too.
    Shared,
    /// Change all of these. No other client has a lease. What is created in such a directory is leased likewise.
    Exclusive,
}
