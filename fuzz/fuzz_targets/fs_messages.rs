//! The decoders of the file service's messages. The body is in `files/core/tests/corpus`.

#![no_main]

#[path = "../../files/core/tests/corpus/fs_messages.rs"]
mod fs_messages;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fs_messages::run(bytes));
