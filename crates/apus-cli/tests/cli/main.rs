//! The `apus` command, as a shell starts it.

mod contract;
mod experiments;
mod generated;
mod invocations;
mod service;
mod two_processes;
