//! Control messages and socket addresses. The body is in `crates/socket/src/corpus.rs`.

#![no_main]

#[path = "../../crates/socket/src/address.rs"]
mod address;
#[path = "../../crates/socket/src/cmsg.rs"]
mod cmsg;
#[path = "../../crates/socket/src/corpus.rs"]
mod control;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| control::run(bytes));
