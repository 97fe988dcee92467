//! The `apus-lab` command, run as a shell runs it.

mod busy;
mod cluster;
mod configuration;
mod contract;
mod demo;
mod demo_end;
mod experiments;
mod fabric;
mod file_bench;
mod file_checks;
mod harness;
mod hostile;
mod invocations;
mod lab;
mod ranks;
mod raw_ip;
mod shell;
mod simulations;
mod soak;
mod sweep;
