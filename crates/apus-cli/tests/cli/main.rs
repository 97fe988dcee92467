//! The `apus` command, as a shell starts it.

mod cluster;
mod configured;
mod contract;
mod decode;
mod doctor;
mod experiments;
mod fabric;
mod generated;
mod invocations;
mod lab;
mod live_traces;
mod metrics;
mod ranks;
mod raw;
mod service;
mod simulations;
mod sweep;
mod top;
mod traces;
mod two_processes;
