//! A server and mounts in separate processes, with the kernel between them and the tests.
//!
//! The tests need root and FUSE, and print a line if they are missing.

mod counters;
mod crashes;
mod endings;
mod harness;
mod loss;
mod programs;
mod rights;
mod sharing;
mod traces;

/// The process that [`harness`] starts; has no effect in a run of all tests.
#[test]
fn child_process() {
    harness::run_as_child();
}
