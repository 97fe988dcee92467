//! Sequences of operations on several endpoints. The body is in `transport/proto/tests/network`.

#![no_main]

#[path = "../../transport/proto/tests/network/dice.rs"]
mod dice;
#[path = "../../transport/proto/tests/network/operations.rs"]
mod operations;
#[path = "../../transport/proto/tests/network/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| operations::run(bytes));
