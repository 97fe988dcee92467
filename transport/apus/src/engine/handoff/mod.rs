//! Handoff: how threads wait for messages, and how the leader hands messages to them.
//!
//! A [`Waiter`] is notified under the core lock and woken after its release ([`WakeList`]). The
//! [`queue`] reserves a message for one waiter, the [`poll_role`] passes from a leader to a waiter,
//! and [`siblings`] lets shards steal each other's messages. [`task_place`] decides whether a
//! packet is left to the task that runs the loop. The whole folder is model-checked with loom
//! (`model`): [`sync`] exchanges its primitives.

#[cfg(all(test, apus_loom))]
mod model;
mod poll_role;
mod queue;
mod siblings;
mod sync;
#[cfg(feature = "tokio")]
mod task_place;
mod token;
mod waiter;
mod wake_list;

pub(crate) use poll_role::{PollRole, RoleState};
pub(crate) use queue::{Delivered, Handoff, StealRequest};
#[cfg(feature = "tokio")]
pub(crate) use siblings::Idle;
pub(crate) use siblings::{ByKind, MessageKind, Sibling, Siblings};
#[cfg(feature = "tokio")]
pub(crate) use task_place::TaskPlace;
pub(crate) use token::ThreadToken;
pub(crate) use waiter::{Notice, SLEEPS_ON_NETWORK, Waiter};
pub(crate) use wake_list::WakeList;
