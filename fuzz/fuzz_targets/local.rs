//! Hostile writes into shared memory. The body is in `transport/local/tests/scribble`.

#![no_main]

#[path = "../../transport/local/tests/scribble/body.rs"]
mod body;
#[path = "../../transport/local/tests/scribble/peer.rs"]
mod peer;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::run(bytes));
