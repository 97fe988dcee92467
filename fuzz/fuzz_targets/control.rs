//! Control messages and socket addresses. The body is in `transport/socket/src/corpus.rs`.

#![no_main]

#[path = "../../transport/socket/src/address.rs"]
mod address;
#[path = "../../transport/socket/src/cmsg.rs"]
mod cmsg;
#[path = "../../transport/socket/src/corpus.rs"]
mod control;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| control::run(bytes));
