//! The livelock lab: the output of a router while its input grows.
//!
//! The experiment of J. Mogul and K. Ramakrishnan ("Eliminating Receive Livelock in an
//! Interrupt-Driven Kernel", USENIX 1996) on this machine, with real packets:
//!
//! ```text
//!   one core                           the other core
//!   generator ── gen0 ════ in0 ──▶ router (│ filter, application, monitor) ──▶ out0 ════ far0
//!                                                                                       counted here
//! ```
//!
//! The router is a program that forwards IPv4; its [`Mode`] decides when it receives. Each point of
//! a curve is the number of packets that the kernel counts at the far interface while packets are
//! offered at one rate to fresh processes.
//!
//! | file | content |
//! |---|---|
//! | `options`, `mode` | the options; when the router receives |
//! | `frame`, `routes`, `tap`, `link` | packets, their routes, interfaces and queues |
//! | `priority` | priorities of threads on the router's core |
//! | `router`, `filter`, `generator`, `application`, `process` | the processes |
//! | `point`, `curve`, `published` | one rate; all rates of a mode; the curves of the paper |
//! | `declaration`, `sentences`, `plots` | the report |
//! | `sweep` | all modes at all rates, and the search for the first loss |
//!
//! `lab/adr/0003-reproduce-livelock-with-real-packets.md` lists what is held fixed, and why.
//!
//! # Invariants
//!
//! - **LIVELOCK-1** Modes differ only in *when* they act: all of them take, route and send a packet
//!   by the same code, with one system call to take it and one to send it.
//! - **LIVELOCK-2** There are no artificial delays and no idle loops.
//! - **LIVELOCK-3** The machine is left as it was: the namespaces belong to the experiment and end
//!   with it, and priorities belong to its own threads.

mod application;
mod curve;
mod declaration;
mod filter;
mod frame;
mod generator;
mod link;
mod mode;
mod options;
mod plots;
mod point;
mod priority;
mod process;
mod published;
mod router;
mod routes;
mod sentences;
mod sweep;
mod tap;

pub use mode::Mode;
pub use options::{Filter, LivelockOptions, Rates};
pub use sweep::run;

pub(crate) use process::{JOB, agent};
