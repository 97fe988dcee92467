//! Agents: the sides of an experiment, each in its own process.
//!
//! An *agent* is a process that the experiment starts, here or on another host; in tests it is a
//! thread. The program starts itself again with a hidden argument ([`AGENT`]). Parent and agent
//! talk through the agent's standard input and output, one JSON object per line. An experiment
//! holds its agents one by one ([`Agent`]) or together ([`Crew`]).
//!
//! ```text
//!   parent                                agent
//!     │ ── {"task": {…}} ──────────────────▶ │ pins itself to its core and begins
//!     │ ◀── {"ready": {"address": "…"}} ──── │ (agents that others connect to)
//!     │ ── {"prepare": {…}} ───────────────▶ │ \
//!     │ ◀── "prepared" ───────────────────── │ / where a start waits for connections, for example
//!     │ ── {"clock": {"asked": T}} ────────▶ │ \
//!     │ ◀── {"clock": {"asked": T, …}} ───── │ / several times, for a common start
//!     │ ── {"begin": {"at": T, …}} ────────▶ │ (agents that need to know all others first)
//!     │ ── "stop" ─────────────────────────▶ │ (agents that do not end on their own)
//!     │ ◀── {"done": {…}} ────────────────── │ or {"failed": "why"}
//! ```
//!
//! # Invariants
//!
//! - **AGENT-1**: An agent never outlives its parent: the end of its standard input ends it, and a paused one asks for
//!   [`Control::end_with_parent`] before.
//! - **AGENT-2**: The parent's error contains the failure of an agent: its report, or else its exit
//!   status and what it wrote to standard error.
//! - **AGENT-3**: While agents measure, their parent sleeps.
//! - **AGENT-4**: An agent answers a request for its clock at once, whatever its work is doing.
//! - **AGENT-5**: The first failure in a crew is the crew's error; the crew waits only briefly for the
//!   other agents.

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
