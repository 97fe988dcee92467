//! Replay of the fuzzer's findings, and of inputs derived from them.
//!
//! The body of the fuzz target is here, so that plain `cargo test` runs it; `fuzz/` at the root of
//! the repository supplies new inputs.

mod fs_messages;
#[path = "../../../../fuzz/mutate.rs"]
mod mutate;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn stored_inputs_do_no_harm() {
    replay::replay("fs_messages", fs_messages::run);
}

#[test]
fn mutated_inputs_do_no_harm() {
    mutate::mutate("fs_messages", fs_messages::run);
}
