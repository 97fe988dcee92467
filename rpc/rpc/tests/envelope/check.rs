//! Properties of arbitrary bytes received as an envelope.

use apus_rpc::envelope::{RequestEnvelope, ResponseHead};
use bytes::Bytes;

/// Parses bytes as a request and as a response. A valid envelope is written as the same bytes,
/// except for empty parts with an unnecessary flag.
///
/// # Panics
///
/// If parsing panics or a round trip changes something.
pub(crate) fn check(input: &[u8]) {
    let message = Bytes::copy_from_slice(input);
    if let Ok(parsed) = RequestEnvelope::parse(message.clone()) {
        let (head, payload) = match &parsed {
            RequestEnvelope::Call(head, payload) => (head.encode().unwrap(), payload),
            RequestEnvelope::Stream(head, payload) => (head.encode(), payload),
        };
        let again: Bytes = [&head[..], payload].concat().into();
        assert!(again.len() <= input.len());
        assert_eq!(RequestEnvelope::parse(again).unwrap(), parsed);
    }
    if let Ok((head, payload)) = ResponseHead::parse(message) {
        let again: Bytes = [&head.encode()[..], &payload].concat().into();
        let (head_again, payload_again) = ResponseHead::parse(again).unwrap();
        assert_eq!(payload_again, payload);
        assert_eq!(head_again.echo, head.echo);
        assert_eq!(head_again.head, head.head);
        assert_eq!(head_again.more, head.more);
        assert_eq!(head_again.trailers, head.trailers);
        assert_eq!(head_again.method_error, head.method_error);
        match (head_again.status, head.status) {
            (None, None) => {}
            (Some(again), Some(first)) => {
                assert_eq!(again.code(), first.code());
                assert_eq!(again.execution(), first.execution());
            }
            other => panic!("{other:?}"),
        }
    }
}
