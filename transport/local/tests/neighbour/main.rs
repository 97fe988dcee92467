//! Attacks of other users of the host (docs/attacks.md): what they learn, for whom they pass, and
//! what they use up.
//!
//! The attackers are processes of another user, some in a user namespace of their own. Starting them needs root; without
//! it the tests say that they were skipped.

mod child;
mod flood;
mod refused;
mod user_namespace;

/// Not a test: the entry point of the other process, which runs this program.
#[test]
fn the_other_process() {
    child::run_if_wanted();
}
