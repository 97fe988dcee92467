//! The packet parser. The body is in `crates/wire/tests/corpus`.

#![no_main]

#[path = "../../crates/wire/tests/corpus/parse.rs"]
mod parse;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parse::run(bytes));
