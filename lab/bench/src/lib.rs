//! Benchmarks: apus compared with other transports, on the same machine, in the same run.
//!
//! ```text
//!   contenders    transports under test, and their load generators
//!   contest       one figure (round trip, throughput, rate, handoffs) of interleaved contenders
//!   local         messages between processes of one host
//!   demo          short messages among long ones: shaped links, simulator, or loopback
//!   load          a workload with the processors as the bottleneck: capacity, collapse, recovery
//!   loopback      client and server of `load`
//!   endpoints     cost of an endpoint: memory, threads, time to create it and to call
//!   overload      a server with more requests than it can serve
//!   cluster       a workload between hosts on shaped links, for any value of any setting
//!   slowdown      duration of messages relative to an idle path
//!   options       options shared by several experiments
//! ```
//!
//! A program that runs experiments starts another instance of itself for each side. Its `main`
//! calls [`agent::main`] when its first argument is [`AGENT`](apus_testbed::process::AGENT).
//!
//! # Out of scope
//!
//! No experiment judges its result: the package has no thresholds, and no test asserts a time.

#![deny(unsafe_code)]

pub mod agent;
pub mod cluster;
pub mod contenders;
pub mod contest;
pub mod demo;
pub mod endpoints;
pub mod load;
pub mod local;
mod loopback;
pub mod options;
pub mod overload;
pub mod slowdown;
