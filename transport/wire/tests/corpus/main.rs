//! Replay of the fuzzer's findings.
//!
//! The body of the fuzz target is here, so that plain `cargo test` runs it; `fuzz/` at the root of
//! the repository feeds it with new inputs, and this test with those that are kept in
//! `fuzz/corpus`.

mod parse;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[test]
fn parse() {
    replay::replay("parse", parse::run);
}
