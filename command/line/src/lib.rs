//! Shared parts of the command lines `apus` and `apus-lab`.
//!
//! ```text
//!   definitions           parsing, version, and the examples at the end of each help text
//!   generated             completions and man pages, made from the definitions
//!   exit                  prints failures on standard error, and returns the exit status
//!   experiment            a command that runs an experiment and shows its findings
//!   configuration, driver, files
//!                         arguments shared by commands of both programs
//!   output, destination   standard output, and files for results
//!   program               starts a program of the other package
//!   signals               interruption of commands that otherwise run forever
//!   failure               reasons for a command to end without a result
//!   testing               helpers for the tests of both programs
//! ```
//!
//! People read tables, programs read `--json`: one object on standard output. Everything else goes
//! to standard error. The exit status is 0 if the command succeeded, 1 if it failed, and 2 if the
//! arguments are wrong.

#![forbid(unsafe_code)]

pub mod configuration;
pub mod definitions;
pub mod destination;
pub mod driver;
pub mod exit;
pub mod experiment;
pub mod failure;
pub mod files;
pub mod generated;
pub mod output;
pub mod program;
pub mod signals;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
