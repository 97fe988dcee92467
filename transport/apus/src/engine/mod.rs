//! The engine: runs the protocol over a driver and shared memory, and hands messages to threads and
//! tasks.
//!
//! ```text
//!          application threads                     the leader: the thread with the poll role
//!   call, send, reply ──▶ command, transmit      receive ─▶ handle packets ─▶ timers
//!                               │                      ─▶ transmit ─▶ deliver ─▶ assign
//!                               ▼                                  │
//!                     ┌────────────────── core lock ───────────────▼──────────────┐
//!                     │ Network · Calls · LocalState · Inbox · Polling · …        │
//!                     └───────────────────────────────────────────────────────────┘
//! ```
//!
//! | street | holds |
//! |---|---|
//! | [`waiting`] | spinning, and the kernel objects that a sleeper waits on |
//! | [`tracer`] | records of the time trace |
//! | [`handoff`] | waiters, the poll role, the queues that pass messages to threads; the loom models |
//! | [`state`] | the state under the core lock, in groups |
//! | [`paths`] | receiving, and calls through shared memory |
//! | [`core`] | the core lock's owner: commands, steps of a pass, transmission |
//! | [`poll`] | the poll loop, the targets of a wait, the background poller |
//! | [`runners`] | waiting threads, a dedicated thread, a task: each runs the loop |
//!
//! An endpoint has one or several [`shards`]. A [`Shard`](shard::Shard) is a socket, an instance of
//! the protocol, shared memory with peers on its host, and a poll loop. The rest of this page
//! describes one shard; [`handoff::Siblings`] is the state that several share.
//!
//! # Synchronisation
//!
//! - **Two locks.** The leader holds the lock of the receive path (`Shard::receiver`); no other
//!   thread takes it, so it is never contended. The *core lock* guards everything else: the
//!   protocol, the driver's transmit half, the queues, the lists of waiters, the poll role itself.
//!   Lock order: receive path, then core. No thread sleeps under the core lock. The only system
//!   calls under it send packets or set the background poller's alarm. The only code of the
//!   application under it is the drop of a payload's owner (`Bytes::from_owner`) and of a task's
//!   waker: these must not call the endpoint.
//! - **The poll role** (`poll_role`) is a flag under the core lock, not a lock: it can be passed
//!   to a chosen thread.
//! - **Visibility.** A message is queued under the core lock when it is complete, and a waiter is
//!   notified under the same lock ([`handoff`]). The notified thread takes the core lock again to
//!   fetch the message. So the lock alone orders the writes of the message's bytes before their
//!   reads.
//! - **Notification** (`waiter`) is one atomic swap under the core lock (release), which the
//!   waiter's loads without the lock see (acquire): SYNC POINT 1. Threads are woken after the lock
//!   is released (`wake_list`), and only if they had announced that they sleep.
//! - **The next timer** is published when the core lock is released (`Shard::published`, relaxed).
//!   The leader reads it while no packet arrives, and takes the lock if it has passed. A stale
//!   value costs one round. SYNC POINT 2: no data is passed through it. The end of a stop of
//!   receiving (`backlog`) is published in the same way.
//! - **A sleeping leader** announces under the core lock until when it sleeps, and then sleeps on
//!   the driver's descriptor and the `signal`. A thread that makes the next timer earlier sees
//!   the announcement under the same lock and raises the signal. A raise between the announcement
//!   and the sleep is not lost, as the signal stays readable: SYNC POINT 3.
//! - **Shards** share counts and no data: SYNC POINT 4 is the pair of fences in `siblings`
//!   (STEAL-1).
//!
//! # Invariants
//!
//! - **ENGINE-1** At most one thread has the poll role (ROLE-1 in `poll_role`), and if a thread
//!   waits, one has it (ROLE-2).
//! - **ENGINE-2** A message is visible only when it is complete and queued, and a notified thread
//!   finds it (HANDOFF-1 in `queue`).
//! - **ENGINE-3** `spurious_wakeups` stays 0.
//! - **ENGINE-4** (SEND-10) The packets of a command leave before the command returns, or are held
//!   back by a cork or, replies under overload, until the next poll (BACKLOG-3 in `backlog`), or
//!   left to the task that runs the loop, if the runtime of the calling task runs it on the same
//!   thread soon (`task_place`). They leave before the endpoint is closed.
//!
//! ENGINE-1 to ENGINE-3 and STEAL-1 are model-checked with loom (`handoff::model`). The streets
//! form layers: a file imports only from lower ones (`layers.txt` of `lab/architecture` has the
//! order).

mod clock;
pub(crate) mod core;
mod cpu;
pub(crate) mod handoff;
mod paths;
pub(crate) mod poll;
pub(crate) mod runners;
pub(crate) mod shard;
pub(crate) mod shards;
pub(crate) mod state;
pub(crate) mod tracer;
pub(crate) mod waiting;
