//! The envelope: test vectors, round trips, and arbitrary bytes. `check` is the body of the fuzz
//! target `rpc_envelope`.

mod check;
#[path = "../../../../fuzz/mutate.rs"]
mod mutate;
#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod vectors;

use apus_rpc::envelope::{CallHead, RequestEnvelope, ResponseHead};
use apus_rpc::{ByteStr, Metadata, TraceContext};
use bytes::Bytes;
use proptest::prelude::*;

#[test]
fn stored_inputs_of_the_fuzzer_still_pass() {
    replay::replay("rpc_envelope", check::check);
}

#[test]
fn mutated_inputs_pass() {
    mutate::mutate("rpc_envelope", check::check);
}

fn metadata() -> impl Strategy<Value = Metadata> {
    let entry = ("[a-z0-9._-]{1,40}", proptest::collection::vec(any::<u8>(), 0..300));
    proptest::collection::vec(entry, 0..20).prop_map(|entries| {
        let mut metadata = Metadata::new();
        for (name, value) in entries {
            metadata.append(name, value).unwrap();
        }
        metadata
    })
}

fn call() -> impl Strategy<Value = CallHead> {
    let trace = proptest::option::of(any::<([u8; 16], [u8; 8], bool)>());
    let fixed = (any::<u32>(), proptest::option::of(any::<u64>()), any::<bool>(), any::<bool>());
    ("[\\PC]{1,60}", fixed, trace, metadata()).prop_map(
        |(method, (signature, time_left, idempotent, open), trace, metadata)| CallHead {
            method: ByteStr::from(method),
            signature,
            time_left,
            trace: trace.map(|(trace, span, sampled)| TraceContext::new(trace, span, sampled)),
            metadata,
            idempotent,
            open,
        },
    )
}

proptest! {
    #[test]
    fn a_call_survives_its_bytes(
        head in call(), payload in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let Ok(bytes) = head.encode() else {
            prop_assert!(head.method.len() > 255);
            return Ok(());
        };
        let options = head.time_left.map_or(0, |_| 8) + head.trace.map_or(0, |_| 26);
        if head.metadata.is_empty() {
            prop_assert_eq!(bytes.len(), 8 + head.method.len() + options);
        }
        let message: Bytes = [&bytes[..], &payload].concat().into();
        let parsed = RequestEnvelope::parse(message).unwrap();
        prop_assert_eq!(parsed, RequestEnvelope::Call(head, payload.into()));
    }

    #[test]
    fn an_envelope_that_is_cut_off_is_refused(head in call(), at in any::<prop::sample::Index>()) {
        let Ok(bytes) = head.encode() else { return Ok(()) };
        let cut = bytes.slice(..at.index(bytes.len()));
        prop_assert!(RequestEnvelope::parse(cut).is_err());
    }

    #[test]
    fn any_bytes_are_an_envelope_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), valid in any::<bool>(),
        kind in 0_u8..7,
    ) {
        let mut bytes = bytes;
        if valid && bytes.len() > 1 {
            bytes[0] = apus_rpc::envelope::MAGIC;
            bytes[1] = kind;
        }
        check::check(&bytes);
    }

    #[test]
    fn metadata_of_a_response_survives_its_bytes(
        head in proptest::option::of(metadata()), trailers in metadata(), echo in any::<u32>(),
    ) {
        let sent = ResponseHead { echo, head, trailers, ..ResponseHead::default() };
        let (received, payload) = ResponseHead::parse(sent.encode()).unwrap();
        prop_assert!(payload.is_empty());
        prop_assert_eq!(received.echo, sent.echo);
        prop_assert_eq!(received.head, sent.head);
        prop_assert_eq!(received.trailers, sent.trailers);
    }
}
