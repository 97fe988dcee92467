//! Bytes as envelopes of `apus-rpc`. The body is `crates/rpc/tests/envelope/check.rs`.

#![no_main]

#[path = "../../crates/rpc/tests/envelope/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
