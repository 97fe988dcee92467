//! Hostile writes into shared memory. The body is in `crates/local/tests/scribble`.

#![no_main]

#[path = "../../crates/local/tests/scribble/body.rs"]
mod body;
#[path = "../../crates/local/tests/scribble/peer.rs"]
mod peer;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
