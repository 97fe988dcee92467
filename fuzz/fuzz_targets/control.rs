//! Can control messages do any harm? The body is in `crates/apus-udp/src/corpus.rs`.

#![no_main]

#[path = "../../crates/apus-udp/src/address.rs"]
mod address;
#[path = "../../crates/apus-udp/src/cmsg.rs"]
mod cmsg;
#[path = "../../crates/apus-udp/src/corpus.rs"]
mod control;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| control::run(bytes));
