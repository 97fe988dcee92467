//! The state under the core lock, in groups with one owner each.
//!
//! [`Core`](super::core::Core) consists of these groups. Their fields are private to their files. A
//! handler takes the groups that it may change, or a context that borrows them ([`Delivery`]): its
//! signature is its permission.
//!
//! | group | owns |
//! |---|---|
//! | [`Network`] | the protocol and the driver's transmit half |
//! | [`Calls`] | calls whose completion the application has not received |
//! | [`ClientWatches`] | clients whose departure the application wants to know |
//! | [`Inbox`] | requests and completions for the application, and the backlog's bound ([`backlog`]) |
//! | [`RoomWaiters`], [`DrainWaiters`] | waiters for room to send and for acknowledgements |
//! | [`Polling`] | the poll role, the leader's sleep, the background poller's alarm |
//! | [`CallTimeout`] | the intervals of calls without a deadline |
//! | [`CorkState`] | corks, and the number of messages that are held back |
//! | [`PassQuota`] | remaining work of the current pass, and deferred work of the last one |
//! | [`Observation`] | counters, histograms, the tracer |
//! | [`Time`] | the clock and its last reading |

mod backlog;
mod call_timeout;
mod calls;
mod client_watches;
mod cork;
mod delivery;
mod drain;
mod inbox;
mod message;
mod network;
mod observation;
mod polling;
mod quota;
mod room;
mod time;

pub(crate) use backlog::{Backlog, FULL_PASSES};
pub(crate) use call_timeout::CallTimeout;
pub(crate) use calls::{Abandoned, Calls, Key, LocalCall, LocalTimer, OverdueCall, Response};
pub(crate) use client_watches::{ClientState, ClientWatches};
pub(crate) use cork::CorkState;
pub(crate) use delivery::Delivery;
pub(crate) use drain::DrainWaiters;
pub(crate) use inbox::Inbox;
pub(crate) use message::{EndedCall, IncomingRequest, Origin, Taken};
pub(crate) use network::Network;
pub(crate) use observation::{Observation, WaitKind};
pub(crate) use polling::Polling;
pub(crate) use quota::PassQuota;
pub(crate) use room::RoomWaiters;
pub(crate) use time::Time;
