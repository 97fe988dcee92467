//! Does any sequence of operations end well? The body is in `crates/apus-proto/tests/corpus`.

#![no_main]

#[path = "../../crates/apus-proto/tests/network/dice.rs"]
#[allow(dead_code, reason = "the scenarios and the fuzzer use different parts")]
mod dice;
#[path = "../../crates/apus-proto/tests/corpus/operations.rs"]
mod operations;
#[path = "../../crates/apus-proto/tests/network/world.rs"]
#[allow(dead_code, reason = "the scenarios and the fuzzer use different parts")]
mod world;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| operations::run(bytes));
