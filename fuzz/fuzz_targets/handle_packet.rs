//! Hostile packets. The body is in `transport/proto/tests/network`.

#![no_main]

#[path = "../../transport/proto/tests/network/handle_packet.rs"]
mod handle_packet;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| handle_packet::run(bytes));
