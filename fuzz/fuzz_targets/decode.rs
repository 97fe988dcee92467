//! Capture files. The body is in `tools/decode/tests/decode`.

#![no_main]

#[path = "../../tools/decode/tests/decode/fuzzed.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzed::run(bytes));
