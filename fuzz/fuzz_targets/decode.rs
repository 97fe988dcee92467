//! Can a capture do any harm to its reader? The body is in `crates/apus-decode/tests/decode`.

#![no_main]

#[path = "../../crates/apus-decode/tests/decode/fuzzed.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzed::run(bytes));
