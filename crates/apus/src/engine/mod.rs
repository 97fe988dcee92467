//! Who turns the loop, and who may touch what?
//!
//! ```text
//!          application threads                     the thread with the turn
//!   call, send, reply ──▶ command, transmit      receive ─▶ handle packets ─▶ timers
//!                               │                      ─▶ transmit ─▶ deliver ─▶ assign
//!                               ▼                                  │
//!                     ┌────────────────── core lock ───────────────▼──────────────┐
//!                     │ Transport · Transmit · calls · requests · completions     │
//!                     └───────────────────────────────────────────────────────────┘
//! ```
//!
//! An endpoint has one [`Shard`](shard::Shard): a socket, an instance of the protocol, memory that it shares with
//! peers of its host ([`local`]), and a loop. The
//! loop ([`poll_loop`]) is turned by whoever waits ([`blocking`]), by a thread of its own ([`dedicated`]), by a task of a
//! tokio runtime ([`asynchronous`]), and while nobody else does, by the [`background_poller`].
//!
//! # Synchronisation, all of it
//!
//! - **Two locks.** `Shard::receive` is held by whoever has the turn, and by nobody else; it is never
//!   contended. The *core lock* guards everything else: the protocol, the driver's sending half, the
//!   queues, the lists of waiters, the turn itself. Lock order: `receive`, then core. No thread
//!   sleeps under the core lock, the only system calls under it are those that send and that set the
//!   keeper's [`alarm`], and nothing of the
//!   application's runs under it but the drop of a payload's owner (`Bytes::from_owner`) and of a task's
//!   waker: these must not call the endpoint.
//! - **The turn** ([`poll_role`]) is a flag under the core lock, not a lock: it can be passed to a certain
//!   thread.
//! - **Visibility.** A message is put into its queue under the core lock when it is complete; under the
//!   same lock a waiter is told ([`handoff`]). Whoever is told takes the core lock again to fetch the
//!   message. So the lock alone orders the message's bytes before their reading.
//! - **Telling** ([`waiter`]) is one atomic swap by the teller, under the core lock (release), seen by
//!   the waiter's loads without it (acquire): SYNC POINT 1. Unparking happens after the lock was
//!   released ([`wake_list`]), and only if the waiter had announced that it parks.
//! - **The next timer** is published in `Shard::due` when the core lock is released (relaxed): the
//!   thread with the turn reads it while nothing arrives, and looks under the lock if it has passed. A
//!   stale value costs one round. SYNC POINT 2 (no data is passed through it). Until when receiving stops
//!   (`Shard::stopped_until`, [`backlog`]) is published and read in the same way, by the thread with the turn.
//! - **A sleeper** states under the core lock until when it sleeps (`Core::sleeping_until`) and then
//!   sleeps on the driver's descriptor and the [`signal`]. Whoever changes the next timer to an earlier
//!   one sees that statement under the same lock and raises the signal. A raise between the statement
//!   and the sleep is not lost, as the signal stays readable: SYNC POINT 3.
//!
//! # Invariants
//!
//! - **E1** At most one thread has the turn (N1 in [`poll_role`]), and if somebody waits, somebody has it
//!   (N2).
//! - **E2** A message is visible only when it is complete and queued; whoever is told finds it (H1 in
//!   [`handoff`]).
//! - **E3** `spurious_wakeups` stays 0.
//! - **E4** (SEND-10) A command's packets leave before the command returns, or are held back by a cork or, replies
//!   under overload, until the next look (B3 in [`backlog`]). What is held back leaves before the endpoint is closed.
//!
//! E1 to E3 are model-checked with loom (`model`).

mod alarm;
#[cfg(feature = "tokio")]
pub(crate) mod asynchronous;
pub(crate) mod background_poller;
pub(crate) mod backlog;
mod blocking;
pub(crate) mod calls;
mod clock;
pub(crate) mod core;
mod cpu;
pub(crate) mod dedicated;
#[cfg(feature = "tokio")]
mod descriptor;
pub(crate) mod handoff;
pub(crate) mod local;
pub(crate) mod medium;
pub(crate) mod metrics;
#[cfg(all(test, apus_loom))]
mod model;
mod paths;
pub(crate) mod poll_loop;
pub(crate) mod poll_mode;
pub(crate) mod poll_role;
pub(crate) mod shard;
pub(crate) mod signal;
mod sync;
mod token;
pub(crate) mod tracer;
pub(crate) mod wait_target;
pub(crate) mod waiter;
pub(crate) mod wake_list;
