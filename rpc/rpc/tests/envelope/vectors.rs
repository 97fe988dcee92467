//! The test vectors of the specification, in both directions.

use apus_rpc::envelope::{CallHead, RequestEnvelope, ResponseHead, StreamCommand, StreamHead};
use apus_rpc::{Code, Metadata, Status, TraceContext};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The vectors by description.
fn vectors() -> BTreeMap<String, Bytes> {
    let text = include_str!("../../../../docs/rpc/vectors.txt");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, hex) = line.split_once("  ").unwrap();
            let digits: String = hex.split_whitespace().collect();
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            (name.to_owned(), (0..digits.len()).step_by(2).map(byte).collect())
        })
        .collect()
}

fn a_is_b() -> Metadata {
    let mut metadata = Metadata::new();
    metadata.append("a", "b").unwrap();
    metadata
}

#[test]
fn requests_have_the_bytes_of_the_vectors() {
    let call = CallHead { method: "m".into(), ..CallHead::default() };
    let trace = Some(TraceContext::new([1; 16], [2; 8], true));
    let calls = [
        ("call m", call.clone()),
        ("call m, signature 0x01020304", CallHead { signature: 0x0102_0304, ..call.clone() }),
        ("call m, 1000000 us left", CallHead { time_left: Some(1_000_000), ..call.clone() }),
        ("call m, traced", CallHead { trace, ..call.clone() }),
        ("call m, metadata a=b", CallHead { metadata: a_is_b(), ..call.clone() }),
        ("call m, idempotent", CallHead { idempotent: true, ..call.clone() }),
        ("call m, open", CallHead { open: true, ..call }),
    ];
    let mut vectors = vectors();
    for (name, head) in calls {
        let vector = vectors.remove(name).expect(name);
        assert_eq!(head.encode().unwrap(), vector, "{name}");
        let parsed = RequestEnvelope::parse(vector).unwrap();
        assert_eq!(parsed, RequestEnvelope::Call(head, Bytes::new()), "{name}");
    }
    let steps = [
        ("push 2", StreamCommand::Push { number: 2, end: false }),
        ("push 2, end", StreamCommand::Push { number: 2, end: true }),
        ("pull 3", StreamCommand::Pull { number: 3 }),
        ("cancel", StreamCommand::Cancel),
    ];
    for (name, command) in steps {
        let vector = vectors.remove(name).expect(name);
        let head = StreamHead { stream: 9, command };
        assert_eq!(head.encode(), vector, "{name}");
        let parsed = RequestEnvelope::parse(vector).unwrap();
        assert_eq!(parsed, RequestEnvelope::Stream(head, Bytes::new()), "{name}");
    }
    assert!(vectors.keys().all(|name| name.starts_with("response")), "{vectors:?}");
}

#[test]
fn responses_have_the_bytes_of_the_vectors() {
    let none = ResponseHead::default;
    let begins = Some(Metadata::new());
    let status = Status::new(Code::NotFound, "no").with_details(vec![1]);
    let refused = Status::not_executed(Code::Unavailable, "");
    let responses = [
        ("response to 7", ResponseHead { echo: 7, ..none() }),
        ("response begins", ResponseHead { head: begins.clone(), ..none() }),
        ("response begins, metadata a=b", ResponseHead { head: Some(a_is_b()), ..none() }),
        (
            "response begins, stream 9 goes on",
            ResponseHead { head: begins, more: Some(9), ..none() },
        ),
        ("response, trailers a=b", ResponseHead { trailers: a_is_b(), ..none() }),
        ("response NOT_FOUND \"no\", details 01", ResponseHead { status: Some(status), ..none() }),
        ("response UNAVAILABLE, not executed", ResponseHead { status: Some(refused), ..none() }),
        ("response, error of the method", ResponseHead { method_error: true, ..none() }),
    ];
    let vectors = vectors();
    let count = vectors.keys().filter(|name| name.starts_with("response")).count();
    assert_eq!(count, responses.len());
    for (name, head) in responses {
        let vector = &vectors[name];
        assert_eq!(head.encode(), vector, "{name}");
        let (parsed, payload) = ResponseHead::parse(vector.clone()).unwrap();
        assert!(payload.is_empty(), "{name}");
        assert_eq!(parsed.encode(), vector, "{name}");
    }
}
