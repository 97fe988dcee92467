//! Capture files. The body is in `command/decode/tests/decode`.

#![no_main]

#[path = "../../command/decode/tests/decode/invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::check(bytes));
