//! Benchmarks: apus beside other transports, on the same machine, in the same run.
//!
//! ```text
//!   contenders    transports under test, and the load that drives them
//!   contest       one figure (round trip, throughput, rate, handoffs) of contenders that take turns
//!   local         messages between processes of one host
//!   demo          short messages among long ones: on shaped links, in the simulator, or over loopback
//!   load          a workload with the processors as the bottleneck: capacity, collapse, recovery
//!   loopback      client and server of `load`
//!   endpoints     what an endpoint costs: memory, threads, the time to create it and to call
//!   overload      a server that is offered more than it can serve
//!   cluster       a workload between hosts on shaped links, for any value of any setting
//!   slowdown      how much longer messages took than on an idle path
//!   options       options that several of them share
//! ```
//!
//! A program that runs experiments starts itself again for each side. Its `main` calls [`agent::main`] when
//! its first argument is [`AGENT`](apus_testbed::process::AGENT).
//!
//! # What is absent
//!
//! No experiment judges its result: there is no threshold here, and no test asserts a time.

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
