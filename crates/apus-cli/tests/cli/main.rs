//! The `apus` command, as a shell starts it.

mod cluster;
mod contract;
mod decode;
mod experiments;
mod fabric;
mod generated;
mod invocations;
mod lab;
mod metrics;
mod ranks;
mod service;
mod simulations;
mod sweep;
mod top;
mod two_processes;
