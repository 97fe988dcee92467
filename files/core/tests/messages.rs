//! Messages survive the way through their bytes, and no bytes do harm.

use apus_fs_core::wire::frame::{Addressee, decode, encode};
use apus_fs_core::wire::limits::{MAX_NODES, MAX_PATH_COMPONENTS, MAX_RECORDS};
use apus_fs_core::wire::{
    AllocateMode, Batch, Callback, CallbackResponse, Data, Handle, Hello, Ino, InoRange, LeaseKind,
    Lie, LookUp, Message, Name, NewNode, NodeKind, NodeRange, RecalledNode, Record, Request,
    Response, SessionRequest, SetAttributes, Time, WireError, WireVersion,
};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt::Debug;

/// Payload behind the batches of these tests.
const PAYLOAD: usize = 1_000;

fn handle() -> impl Strategy<Value = Handle> {
    (any::<u64>(), any::<u64>()).prop_map(|(ino, proof)| Handle { ino: Ino(ino), proof })
}

fn name() -> impl Strategy<Value = Name> {
    vec(any::<u8>(), 1..=255).prop_filter_map("a name", |bytes| Name::new(bytes).ok())
}

fn bytes(most: usize) -> impl Strategy<Value = Bytes> {
    vec(1u8..=255, 1..most).prop_map(Bytes::from)
}

fn time() -> impl Strategy<Value = Time> {
    (any::<i64>(), 0u32..1_000_000_000)
        .prop_map(|(seconds, nanoseconds)| Time { seconds, nanoseconds })
}

fn data() -> impl Strategy<Value = Data> {
    (0..500u32, 0..500u32).prop_map(|(start, length)| Data { start, length })
}

fn new_node() -> impl Strategy<Value = NewNode> {
    prop_oneof![
        Just(NewNode::File),
        Just(NewNode::Directory),
        bytes(4_095).prop_map(|target| NewNode::Symlink { target }),
        any::<u64>().prop_map(|device| NewNode::Special { kind: NodeKind::BlockDevice, device }),
    ]
}

fn set_attributes() -> impl Strategy<Value = SetAttributes> {
    use proptest::option::of;
    let position = 0..=i64::MAX as u64;
    (of(0u16..=0o7777), of(any::<u32>()), of(any::<u32>()), of(position), of(time()), of(time()))
        .prop_map(|(mode, uid, gid, size, atime, mtime)| SetAttributes {
            mode,
            uid,
            gid,
            size,
            atime,
            mtime,
        })
}

fn record() -> impl Strategy<Value = Record> {
    let place = || (handle(), name());
    let half = 0..i64::MAX as u64 / 2;
    prop_oneof![
        (
            proptest::option::of(place()),
            any::<u64>(),
            new_node(),
            0u16..=0o7777,
            any::<(u32, u32)>(),
            time()
        )
            .prop_map(|(parent, ino, node, mode, (uid, gid), time)| Record::Create {
                parent,
                ino: Ino(ino),
                node,
                mode,
                uid,
                gid,
                time
            }),
        (handle(), place()).prop_map(|(node, (parent, name))| Record::Link { node, parent, name }),
        (handle(), place()).prop_map(|(node, (parent, name))| Record::Unlink {
            parent,
            name,
            node
        }),
        (handle(), place()).prop_map(|(node, (parent, name))| Record::RemoveDirectory {
            parent,
            name,
            node
        }),
        (place(), place(), handle(), proptest::option::of(handle()), any::<bool>()).prop_map(
            |(from, to, node, replaced, exchange)| Record::Rename {
                from,
                to,
                node,
                replaced,
                exchange
            }
        ),
        (handle(), half.clone(), data(), time())
            .prop_map(|(file, offset, data, time)| Record::Write { file, offset, data, time }),
        (handle(), set_attributes()).prop_map(|(node, set)| Record::SetAttributes { node, set }),
        (handle(), half.clone(), half.clone()).prop_map(|(file, offset, length)| {
            Record::Allocate { file, mode: AllocateMode::PunchHole, offset, length }
        }),
        (handle(), half.clone(), handle(), half.clone(), half).prop_map(
            |(from, from_offset, to, to_offset, length)| Record::CopyRange {
                from,
                from_offset,
                to,
                to_offset,
                length
            }
        ),
        (handle(), bytes(255), bytes(1_000)).prop_map(|(node, name, value)| Record::SetXattr {
            node,
            name,
            value
        }),
        (handle(), bytes(255)).prop_map(|(node, name)| Record::RemoveXattr { node, name }),
        handle().prop_map(|node| Record::Close { node }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let of = (any::<u64>(), any::<u64>(), vec(record(), 0..20));
    of.prop_map(|(session, number, records)| Request::Of {
        session,
        request: SessionRequest::Batch(Batch { number, records, returns: vec![] }),
    })
}

fn with_payload(message: &impl Message, payload: usize) -> Bytes {
    let mut bytes = encode(message).to_vec();
    bytes.resize(bytes.len() + payload, 7);
    bytes.into()
}

/// Decodes bytes as each type of message: none may panic.
fn decode_as_all(bytes: &Bytes) {
    let _ = decode::<Request>(bytes.clone());
    let _ = decode::<Response>(bytes.clone());
    let _ = decode::<Callback>(bytes.clone());
    let _ = decode::<CallbackResponse>(bytes.clone());
}

proptest! {
    /// FSWIRE-2, FSWIRE-4: contents within the limits arrive unchanged, and the payload is the
    /// bytes after them.
    #[test]
    fn batches_arrive_unchanged(request in request()) {
        let decoded = decode::<Request>(with_payload(&request, PAYLOAD)).unwrap();
        prop_assert_eq!(decoded.message, request);
        prop_assert_eq!(decoded.payload, vec![7; PAYLOAD]);
    }

    /// FSWIRE-1.
    #[test]
    fn random_bytes_do_no_harm(bytes in vec(any::<u8>(), 0..2_000)) {
        decode_as_all(&bytes.clone().into());
        let mut framed = (bytes.len() as u32).to_le_bytes().to_vec();
        framed.extend(bytes);
        decode_as_all(&framed.into());
    }

    /// FSWIRE-1: bytes that are almost a message.
    #[test]
    fn changed_bytes_do_no_harm(request in request(), changes in vec(any::<(prop::sample::Index, u8)>(), 1..4)) {
        let mut bytes = with_payload(&request, PAYLOAD).to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        decode_as_all(&bytes.into());
    }

    /// FSWIRE-1: a message that is cut off is no other message.
    #[test]
    fn a_message_that_is_cut_off_is_refused(request in request(), at in any::<prop::sample::Index>()) {
        let whole = encode(&request);
        let cut = whole.slice(..at.index(whole.len()));
        prop_assert_eq!(decode::<Request>(cut), Err(WireError::Truncated));
    }
}

#[track_caller]
fn round<M: Message + PartialEq + Debug>(message: &M) {
    assert_eq!(&decode::<M>(encode(message)).unwrap().message, message);
}

fn of(request: SessionRequest) -> Request {
    Request::Of { session: 1, request }
}

#[track_caller]
fn refused(request: SessionRequest, why: Lie) {
    assert_eq!(decode::<Request>(encode(&of(request))), Err(WireError::Lie(why)));
}

const NODE: Handle = Handle::created(Ino(9));

/// FSWIRE-2.
#[test]
fn the_addressee_is_read_without_the_rest() {
    let hello = Hello {
        oldest: WireVersion::OLDEST,
        newest: WireVersion::CURRENT,
        client: [3; 16],
        name: "host:/mnt".into(),
        session: None,
        ranges: Vec::new(),
        read_only: false,
        export: "music".into(),
        greeting: 0,
    };
    let message = encode(&Request::Hello(hello));
    assert_eq!(Addressee::of(&message), Some(Addressee::Export("music".into())));
    for request in [SessionRequest::Renew, SessionRequest::Goodbye, SessionRequest::StatFs] {
        let message = encode(&Request::Of { session: u64::MAX, request });
        assert_eq!(Addressee::of(&message), Some(Addressee::Session(u64::MAX)));
    }
    let message = encode(&Request::Of { session: u64::MAX, request: SessionRequest::Renew });
    for end in 0..message.len() - 1 {
        assert_eq!(Addressee::of(&message[..end]), None, "{end} bytes");
    }
}

/// FSWIRE-2.
#[test]
fn other_messages_arrive_unchanged() {
    round(&Request::Hello(Hello {
        oldest: WireVersion::OLDEST,
        newest: WireVersion::CURRENT,
        client: [3; 16],
        name: "host:/mnt".into(),
        session: Some(4),
        ranges: vec![InoRange { first: 1 << 40, count: 1 << 20, proof: 5 }],
        read_only: true,
        export: "music".into(),
        greeting: u64::MAX,
    }));
    round(&Callback::Recall {
        session: 1,
        nodes: vec![RecalledNode { node: NODE, keep: LeaseKind::Shared, is_removed: true }],
    });
    round(&Callback::Fence { session: 1 });
    round(&CallbackResponse::Recalled { open: vec![NODE] });
    round(&Response::Locked(None));
    round(&Response::Position(7));
}

/// FSWIRE-4: a header speaks only of bytes that are there.
#[test]
fn ranges_outside_of_the_payload_are_refused() {
    let time = Time::default();
    let data = Data { start: 1, length: u32::MAX };
    let records = vec![Record::Write { file: NODE, offset: 0, data, time }];
    refused(
        SessionRequest::Batch(Batch { number: 1, records, returns: vec![] }),
        Lie::ImpossibleRange,
    );
    let far = NodeRange { file: NODE, offset: u64::MAX, length: 1 };
    refused(SessionRequest::Read { ranges: vec![far] }, Lie::ImpossibleRange);
    let all = NodeRange { file: NODE, offset: 0, length: 20 << 20 };
    refused(SessionRequest::Read { ranges: vec![all, all] }, Lie::ImpossibleRange);
    let promised = Response::ReadDone(vec![(1, apus_fs_core::wire::Version::default())]);
    assert_eq!(decode::<Response>(encode(&promised)), Err(WireError::Lie(Lie::ImpossibleRange)));
}

#[test]
fn lists_beyond_their_limits_are_refused() {
    let records = vec![Record::Close { node: NODE }; MAX_RECORDS + 1];
    let path = vec![Name::new("x").unwrap(); MAX_PATH_COMPONENTS + 1];
    for request in [
        SessionRequest::Batch(Batch { number: 1, records, returns: vec![] }),
        SessionRequest::LookUp(LookUp { start: NODE, path, lease: LeaseKind::None, inline: 0 }),
        SessionRequest::Release { leases: vec![(NODE, LeaseKind::None); MAX_NODES + 1] },
        SessionRequest::Read {
            ranges: vec![NodeRange { file: NODE, offset: 0, length: 0 }; MAX_NODES + 1],
        },
    ] {
        // Refused while it is decoded: the rest of the list is not read.
        assert_eq!(decode::<Request>(encode(&of(request))), Err(WireError::Malformed));
    }
}

#[test]
fn attributes_that_cannot_be_are_refused() {
    for set in [
        SetAttributes { mode: Some(0o10000), ..SetAttributes::default() },
        SetAttributes {
            mtime: Some(Time { seconds: 0, nanoseconds: 1_000_000_000 }),
            ..SetAttributes::default()
        },
    ] {
        let records = vec![Record::SetAttributes { node: NODE, set }];
        refused(
            SessionRequest::Batch(Batch { number: 1, records, returns: vec![] }),
            Lie::ImpossibleAttribute,
        );
    }
    let target = Bytes::from_static(b"a\0b");
    let records = vec![Record::Create {
        parent: None,
        ino: Ino(5),
        node: NewNode::Symlink { target },
        mode: 0o777,
        uid: 0,
        gid: 0,
        time: Time::default(),
    }];
    refused(
        SessionRequest::Batch(Batch { number: 1, records, returns: vec![] }),
        Lie::ImpossibleString,
    );
}

/// FSWIRE-3: a name that is none is no message.
#[test]
fn bytes_behind_the_header_of_a_name_are_checked() {
    let path = vec![Name::new("ab").unwrap()];
    let look_up = LookUp { start: NODE, path, lease: LeaseKind::None, inline: 0 };
    let bytes = encode(&of(SessionRequest::LookUp(look_up))).to_vec();
    let at = bytes.windows(2).position(|pair| pair == b"ab").unwrap();
    for wrong in [*b"..", *b"a/", *b"a\0"] {
        let mut bytes = bytes.clone();
        bytes[at..at + 2].copy_from_slice(&wrong);
        assert_eq!(decode::<Request>(bytes.into()), Err(WireError::Malformed));
    }
}
