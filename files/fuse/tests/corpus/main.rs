//! Replay of the fuzzer's findings, and bytes that a property test draws.
//!
//! The body of the fuzz target is here, so that plain `cargo test` runs it; `fuzz/` at the root of
//! the repository feeds it with new inputs.

mod fuse;
#[path = "../../../../fuzz/mutate.rs"]
mod mutate;
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use apus_fuse::codec::Opcode;
use proptest::prelude::*;

#[test]
fn fuse() {
    replay::replay("fuse", fuse::run);
}

#[test]
fn mutated_requests_do_no_harm() {
    mutate::mutate("fuse", fuse::run);
}

/// Every operation, with a body of any bytes or of text, and the right length.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let text = proptest::collection::vec(
        prop_oneof![Just(0_u8), Just(b'/'), Just(b'.'), Just(b'a')],
        0..40,
    );
    let bytes = proptest::collection::vec(any::<u8>(), 0..200);
    let opcode =
        prop_oneof![proptest::sample::select(Opcode::ALL).prop_map(Opcode::number), any::<u32>()];
    (opcode, prop_oneof![Just(0_u16), any::<u16>()], bytes, text).prop_map(
        |(opcode, extensions, bytes, text)| {
            let mut request = vec![0; 40];
            request[4..8].copy_from_slice(&opcode.to_ne_bytes());
            request[36..38].copy_from_slice(&extensions.to_ne_bytes());
            request.extend(bytes.into_iter().chain(text));
            request
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn no_request_panics(request in requests()) {
        fuse::run(&request);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        fuse::run(&bytes);
    }
}
