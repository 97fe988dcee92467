//! The poll loop of a shard: its passes, the targets that its leader waits for, and the background
//! poller that runs it while no thread leads.

pub(crate) mod background_poller;
mod poll_loop;
mod wait_target;
mod watch_set;

pub(crate) use background_poller::Served;
pub(crate) use poll_loop::{LoopState, Pass};
pub(crate) use wait_target::{
    AllAcknowledged, AnyArrival, AnyCompletion, AnyRequest, Arrived, EndOf, Room, UntilClosed,
    WaitTarget,
};
