//! Capture files. The body is in `tools/decode/tests/decode`.

#![no_main]

#[path = "../../tools/decode/tests/decode/invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::check(bytes));
