//! The receive path: where the leader takes packets from the driver and messages from shared
//! memory.
//!
//! A poll of the network costs a system call, a peek into shared memory about ten nanoseconds.
//! While messages arrive through shared memory, the network is polled rarely enough to be cheap,
//! and often enough that no peer there waits for long ([`PollBalance`](apus_local::PollBalance)).
//!
//! # Invariants
//!
//! - **RECEIVE-1** Packets that are known to be in the socket are received in the next pass,
//!   however busy the shared memory is: after the driver has woken a sleeper, and after a receive
//!   that left packets in the socket. Otherwise a thread would sleep and be woken at once,
//!   repeatedly, and a task, which its runtime wakes once, would leave the packets in the socket.
//! - **RECEIVE-2** A poll that a thread requests explicitly polls both.

mod local;
mod receiver;

pub(crate) use receiver::Receiver;
