//! The packet parser. The body is in `transport/wire/tests/corpus`.

#![no_main]

#[path = "../../transport/wire/tests/corpus/parse.rs"]
mod parse;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parse::run(bytes));
