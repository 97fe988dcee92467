//! Agents: the sides of an experiment, each in its own process.
//!
//! An *agent* is a process started by the experiment, here or on another host; in tests it is a
//! thread. The program starts itself again with a hidden argument ([`AGENT`]). Parent and agent
//! communicate through the agent's standard input and output, one JSON object per line. An
//! experiment manages its agents individually ([`Agent`]) or together ([`Crew`]).
//!
//! ```text
//!   parent                                agent
//!     │ ── {"task": {…}} ──────────────────▶ │ pins itself to its core and starts
//!     │ ◀── {"ready": {"address": "…"}} ──── │ (agents that others connect to)
//!     │ ── {"prepare": {…}} ───────────────▶ │ \
//!     │ ◀── "prepared" ───────────────────── │ / if a start waits for connections, for example
//!     │ ── {"clock": {"asked": T}} ────────▶ │ \
//!     │ ◀── {"clock": {"asked": T, …}} ───── │ / several times, for a common start
//!     │ ── {"begin": {"at": T, …}} ────────▶ │ (agents that need the addresses of all others)
//!     │ ── "stop" ─────────────────────────▶ │ (agents that do not end on their own)
//!     │ ◀── {"done": {…}} ────────────────── │ or {"failed": "why"}
//! ```
//!
//! # Invariants
//!
//! - **AGENT-1**: An agent never outlives its parent: the end of its standard input ends it, and an
//!   agent that may be paused calls [`Control::end_with_parent`] first.
//! - **AGENT-2**: The parent's error contains the failure of an agent: its report, or else its exit
//!   status and standard error.
//! - **AGENT-3**: While agents measure, their parent sleeps.
//! - **AGENT-4**: An agent answers a clock request at once, regardless of the state of its work.
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

/// Address of an agent that is not reached by an internet address.
pub const NO_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
