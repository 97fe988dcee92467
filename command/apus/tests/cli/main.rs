//! The `apus` command, run as a shell runs it.

mod configuration;
mod decode;
mod doctor;
mod echo;
mod environments;
mod file_exports;
mod file_mount_helper;
mod forward;
mod harness;
mod invocations;
mod metrics;
mod raw_ip;
mod sealed_calls;
mod shell;
mod top;
mod trace_control;
mod traces;
