//! Can control messages do any harm? The body is in `crates/apus-udp/tests/corpus`.

#![no_main]

#[path = "../../crates/apus-udp/src/address.rs"]
#[allow(dead_code, reason = "only what reads is fuzzed")]
mod address;
#[path = "../../crates/apus-udp/src/cmsg.rs"]
#[allow(dead_code, reason = "only what reads is fuzzed")]
mod cmsg;
#[path = "../../crates/apus-udp/tests/corpus/control.rs"]
mod control;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| control::run(bytes));
