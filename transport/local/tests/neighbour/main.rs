//! Attacks of other users of the host (docs/attacks.md): their information gain, impersonation and
//! use of resources.
//!
//! The attackers are processes of another user, some in a separate user namespace. Starting them
//! needs root; without it the tests report that they were skipped.

mod child;
mod flood;
mod refused;
mod user_namespace;

/// Not a test: the entry point of the other process, which runs this program.
#[test]
fn the_other_process() {
    child::run_if_wanted();
}
