//! Packets of handshakes and sealed packets. The body is in `transport/seal/tests/corpus`.

#![no_main]

#[path = "../../transport/seal/tests/corpus/seal.rs"]
mod seal;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| seal::run(bytes));
