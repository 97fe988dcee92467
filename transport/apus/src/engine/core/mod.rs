//! Everything under the core lock, and the operations on it.
//!
//! [`Core`] owns the groups of [`state`](super::state), the table of calls and the state of shared
//! memory. Its methods lend each handler the groups that it needs, and order the steps:
//! [`commands`] of the application, the [`messages`] that waiting threads take, the steps of a
//! [`pass`] of the loop, [`transmission`], [`timeout`] of calls, [`stealing`] between shards,
//! [`neighbours`] that share the host's link, and [`shutdown`].

mod commands;
mod messages;
mod neighbours;
mod pass;
mod root;
mod shutdown;
mod stealing;
mod timeout;
mod transmission;

pub(crate) use commands::{Deadline, NewCall, finish};
pub(in crate::engine) use pass::ReceiveStamps;
pub(crate) use root::{Core, CoreParts};
pub(crate) use stealing::StealAsks;
pub(crate) use transmission::UnlockActions;
