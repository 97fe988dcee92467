//! Can packets do any harm? The body is in `crates/apus-proto/tests/corpus`.

#![no_main]

#[path = "../../crates/apus-proto/tests/corpus/handle_packet.rs"]
mod handle_packet;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| handle_packet::run(bytes));
