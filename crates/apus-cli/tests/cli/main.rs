//! The `apus` command, as a shell starts it.

mod contract;
mod experiments;
mod fabric;
mod generated;
mod invocations;
mod service;
mod simulations;
mod two_processes;
