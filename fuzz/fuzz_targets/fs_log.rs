//! The log of the file service's store. The body is in `files/store/src/directory/corpus.rs`.

#![no_main]

#[path = "../../files/store/src/directory"]
mod directory {
    #[path = "corpus.rs"]
    pub(crate) mod corpus;
    #[path = "frame.rs"]
    mod frame;
    #[path = "identity.rs"]
    mod identity;
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| directory::corpus::run(bytes));
