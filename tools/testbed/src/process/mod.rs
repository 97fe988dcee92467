//! How do the sides of an experiment run apart from each other?
//!
//! Each side is an *agent*: a process that the experiment starts, here or on another host, or in tests a
//! thread. The program starts itself again with a hidden argument ([`AGENT`]); parent and agent talk
//! through the agent's standard input and output, one JSON object per line. An experiment holds its
//! agents one by one ([`Agent`]) or all together ([`Crew`]).
//!
//! ```text
//!   parent                                agent
//!     │ ── {"task": {…}} ──────────────────▶ │ pins itself to its core and begins
//!     │ ◀── {"ready": {"address": "…"}} ──── │ (those that others come to)
//!     │ ── {"clock": {"asked": T}} ────────▶ │ \
//!     │ ◀── {"clock": {"asked": T, …}} ───── │ / several times, where a common start is wanted
//!     │ ── {"begin": {"at": T, …}} ────────▶ │ (those that need to know of all others first)
//!     │ ── "stop" ─────────────────────────▶ │ (those that do not know when they are done)
//!     │ ◀── {"done": {…}} ────────────────── │ or {"failed": "why"}
//! ```
//!
//! # Invariants
//!
//! - **A1** An agent never outlives its parent: the end of its standard input ends it.
//! - **A2** What goes wrong in an agent is in the parent's error: what it reported, or else how it
//!   ended and what it wrote to standard error.
//! - **A3** While agents measure, their parent sleeps.
//! - **A4** An agent tells the time at once, whatever its work is doing.
//! - **A5** The first failure in a crew is the crew's; nobody waits for the others for long.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

mod agent;
mod body;
mod control;
mod crew;
mod host;
mod lines;
mod member;
mod offset;
mod relay;
mod stop;

pub use agent::Agent;
pub use control::{Begin, Control};
pub use crew::{Crew, Results};
pub use host::{AGENT, Host, Job, Runner, agent_main, run_job};
pub use lines::Task;
pub use offset::ClockOffset;
pub use stop::Stop;

pub(crate) use body::Embodied;
pub(crate) use host::no_remedy;
pub(crate) use lines::{LONGEST, read_line, write_line};
pub(crate) use relay::relay;

/// Where an agent is to which nobody comes by an internet address.
pub const NOWHERE: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
