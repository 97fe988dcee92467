//! Bytes as envelopes of `apus-rpc`. The body is `rpc/rpc/tests/envelope/check.rs`.

#![no_main]

#[path = "../../rpc/rpc/tests/envelope/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
