//! How do the two sides of an experiment run apart from each other?
//!
//! Each side is an *agent*: a process that the experiment starts, or in tests a thread. The program
//! starts itself again with a hidden argument ([`AGENT`]); parent and agent talk through the agent's
//! standard input and output, one JSON object per line.
//!
//! ```text
//!   parent                                agent
//!     │ ── {"task": {…}} ──────────────────▶ │ pins itself to its core and begins
//!     │ ◀── {"ready": {"address": "…"}} ──── │ (servers)
//!     │ ── "stop" ─────────────────────────▶ │ (servers; clients know when they are done)
//!     │ ◀── {"done": {…}} ────────────────── │ or {"failed": "why"}
//! ```
//!
//! # Invariants
//!
//! - **A1** An agent never outlives its parent: the end of its standard input ends it.
//! - **A2** What goes wrong in an agent is in the parent's error: what it reported, or else how it
//!   ended and what it wrote to standard error.
//! - **A3** While two agents measure, their parent sleeps.

mod agent;
mod body;
mod control;
mod host;
mod lines;
mod stop;

pub use agent::Agent;
pub use control::Control;
pub use host::{AGENT, Host, Runner, agent_main};
pub use lines::Task;
pub use stop::Stop;
