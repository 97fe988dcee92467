//! Bytes as arguments and results of typed services. The body is `rpc/rpc/tests/codec/check.rs`.

#![no_main]

#[path = "../../rpc/rpc/tests/codec/check.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| check::check(data));
