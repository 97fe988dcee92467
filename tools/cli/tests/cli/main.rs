//! The `apus` command, run as a shell runs it.

mod busy;
mod cluster;
mod configuration;
mod contract;
mod decode;
mod demo;
mod demo_end;
mod doctor;
mod echo;
mod experiments;
mod fabric;
mod file_bench;
mod file_checks;
mod harness;
mod invocations;
mod lab;
mod metrics;
mod ranks;
mod raw_ip;
mod shell;
mod simulations;
mod soak;
mod sweep;
mod top;
mod trace_control;
mod traces;
