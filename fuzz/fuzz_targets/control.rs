//! Can control messages do any harm? The body is in `crates/apus-socket/src/corpus.rs`.

#![no_main]

#[path = "../../crates/apus-socket/src/address.rs"]
mod address;
#[path = "../../crates/apus-socket/src/cmsg.rs"]
mod cmsg;
#[path = "../../crates/apus-socket/src/corpus.rs"]
mod control;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| control::run(bytes));
