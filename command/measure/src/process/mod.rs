//! Agents: the sides of an experiment, each in its own process.
//!
//! An *agent* is a process started by the experiment, here or on another host; in tests it is a
//! thread. The program starts another instance of itself with a hidden argument ([`AGENT`]). Parent
//! and agent communicate through the agent's standard input and output, one JSON object per line.
//! An experiment handles its agents individually ([`Agent`]) or together ([`Crew`]).
//!
//! ```text
//!   parent                                agent
//!     │ ── {"task": {…}} ──────────────────▶ │ pins itself to its core and starts
//!     │ ◀── {"ready": {"address": "…"}} ──── │ (agents that others connect to)
//!     │ ── {"prepare": {…}} ───────────────▶ │ \
//!     │ ◀── "prepared" ───────────────────── │ / if the start waits for connections, for example
//!     │ ── {"clock": {"asked": T}} ────────▶ │ \
//!     │ ◀── {"clock": {"asked": T, …}} ───── │ / several times, if the start is synchronized
//!     │ ── {"begin": {"at": T, …}} ────────▶ │ (agents that need all addresses first)
//!     │ ── "stop" ─────────────────────────▶ │ (agents that do not exit unprompted)
//!     │ ◀── {"done": {…}} ────────────────── │ or {"failed": "why"}
//! ```
//!
//! # Invariants
//!
//! - **AGENT-1**: An agent never outlives its parent: it exits at the end of its standard input,
//!   and an agent that may be paused calls [`Control::end_with_parent`] first.
//! - **AGENT-2**: The parent's error contains the failure of an agent: its report, or else its exit
//!   status and standard error output.
//! - **AGENT-3**: While agents measure, their parent sleeps.
//! - **AGENT-4**: An agent answers a request for its clock immediately, independently of its work.
//! - **AGENT-5**: The first failure in a crew is the crew's error; the crew waits only briefly for
//!   the other agents.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

mod agent;
mod clock_offset;
mod control;
mod crew;
mod handle;
mod member;
mod protocol;
mod relay;
mod spawner;
mod stop;

pub use agent::Agent;
pub use clock_offset::ClockOffset;
pub use control::{Begin, Control, Job, Runner, run_job};
pub use crew::{Crew, Results};
pub use handle::{Remedy, RunningAgent, no_remedy};
pub use protocol::{AGENT, Task};
pub use protocol::{MAX_LINE, read_line, write_line};
pub use relay::relay;
pub use spawner::{Spawner, agent_main};
pub use stop::{Stop, wake, wake_on_stop};

/// Placeholder for agents without an internet address.
pub const NO_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
