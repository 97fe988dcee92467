//! The parser of FUSE requests. The body is in `files/fuse/tests/corpus`.

#![no_main]

#[path = "../../files/fuse/tests/corpus/fuse.rs"]
mod fuse;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuse::run(bytes));
