//! A server and mounts in processes of their own, with the kernel between them and the tests.
//!
//! The tests need root and FUSE, and say so if they are missing.

mod counters;
mod crashes;
mod endings;
mod harness;
mod loss;
mod programs;
mod sharing;
mod traces;

/// The process that [`harness`] starts; does nothing in a run of all tests.
#[test]
fn child_process() {
    harness::run_as_child();
}
