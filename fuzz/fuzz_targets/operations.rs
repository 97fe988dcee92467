//! Sequences of operations on several endpoints. The body is in `crates/proto/tests/network`.

#![no_main]

#[path = "../../crates/proto/tests/network/dice.rs"]
mod dice;
#[path = "../../crates/proto/tests/network/operations.rs"]
mod operations;
#[path = "../../crates/proto/tests/network/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| operations::run(bytes));
