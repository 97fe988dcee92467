//! Parsing of any bytes ends in a packet or in an error that states their defect.
//!
//! Invariants CODEC-1 to CODEC-3; HM `homa_plumbing.c` `homa_softirq`; requirement WIRE-6.

use apus_wire::{
    Body, DATA_HEADER_LEN, HEADER_LEN, HeaderBuffer, Kind, MAX_HEADER_LEN, OlderLayout, Packet,
    ParseError, Profile,
};
use proptest::prelude::*;

/// A well-formed header of `kind` in `profile`, as long as the kind requires, without payload.
fn header_of(kind: Kind, profile: Profile) -> Vec<u8> {
    let mut bytes = vec![0; kind.header_len()];
    bytes[11] = kind as u8;
    bytes[13] = 0x10;
    if kind == Kind::Data {
        bytes[31] = 100;
    }
    if profile == Profile::Udp && kind == Kind::Ack {
        bytes.truncate(kind.min_len(profile));
    }
    bytes
}

/// Requirement WIRE-3.
#[test]
fn every_length_too_short_is_named() {
    for profile in [Profile::Kernel, Profile::Udp] {
        for kind in Kind::ALL {
            let mut bytes = header_of(kind, profile);
            if kind == Kind::Data {
                bytes.push(1);
            }
            assert!(Packet::parse(profile, &bytes).is_ok(), "{profile} {kind}");
            for have in 0..kind.min_len(profile) {
                let expected = ParseError::TooShort {
                    kind: (have >= HEADER_LEN).then_some(kind),
                    need: if have < HEADER_LEN { HEADER_LEN } else { kind.min_len(profile) },
                    have,
                };
                assert_eq!(Packet::parse(profile, &bytes[..have]), Err(expected));
            }
        }
    }
}

/// Changes one DATA packet of 10 data bytes and gives the outcome of parsing it.
fn with_data(change: impl FnOnce(&mut Vec<u8>)) -> Result<(), ParseError> {
    let mut bytes = header_of(Kind::Data, Profile::Kernel);
    bytes.extend([7; 10]);
    change(&mut bytes);
    Packet::parse(Profile::Kernel, &bytes).map(|_| ())
}

/// Requirements WIRE-3, BAD-2.
#[test]
fn lengths_that_lie_are_named() {
    assert_eq!(with_data(|_| ()), Ok(()));
    assert_eq!(with_data(|b| b[31] = 0), Err(ParseError::EmptyMessage));
    assert_eq!(with_data(|b| b.truncate(DATA_HEADER_LEN)), Err(ParseError::EmptyData));
    assert_eq!(with_data(|b| b[55] = 90), Ok(()), "ends exactly at the message's end");
    let beyond = |end| Err(ParseError::DataBeyondEnd { end, message_length: 100 });
    assert_eq!(with_data(|b| b[55] = 91), beyond(101));
    let far = with_data(|b| b[52..56].copy_from_slice(&[0xff, 0xff, 0xff, 0xfe]));
    assert_eq!(far, beyond(u64::from(u32::MAX) - 1 + 10), "no overflow");
}

/// Requirements WIRE-3 and WIRE-30: an empty message is one packet without data at offset 0, in the
/// udp profile alone.
#[test]
fn only_an_empty_message_of_the_udp_profile_has_a_packet_without_data() {
    let parse = |profile, length: u8, offset: u8, payload: &[u8]| {
        let mut bytes = header_of(Kind::Data, profile);
        (bytes[31], bytes[55]) = (length, offset);
        bytes.extend(payload);
        Packet::parse(profile, &bytes).map(|_| ())
    };
    assert_eq!(parse(Profile::Udp, 0, 0, b""), Ok(()));
    assert_eq!(parse(Profile::Kernel, 0, 0, b""), Err(ParseError::EmptyMessage));
    let beyond = |end| Err(ParseError::DataBeyondEnd { end, message_length: 0 });
    assert_eq!(parse(Profile::Udp, 0, 0, b"x"), beyond(1));
    assert_eq!(parse(Profile::Udp, 0, 3, b""), beyond(3));
    assert_eq!(parse(Profile::Udp, 1, 0, b""), Err(ParseError::EmptyData));
    assert_eq!(parse(Profile::Udp, 1, 1, b""), Err(ParseError::EmptyData));
}

#[test]
fn values_out_of_range_are_named() {
    let parse = |profile, bytes: &[u8]| Packet::parse(profile, bytes).map(|_| ());

    let mut bytes = header_of(Kind::Busy, Profile::Udp);
    bytes[11] = 0x19;
    assert_eq!(parse(Profile::Udp, &bytes), Err(ParseError::UnknownKind(0x19)));
    bytes[13] = 0x20;
    assert_eq!(parse(Profile::Udp, &bytes), Err(ParseError::UnknownVersion(2)));
    assert_eq!(parse(Profile::Kernel, &bytes), Err(ParseError::UnknownKind(0x19)));

    let mut bytes = header_of(Kind::Grant, Profile::Kernel);
    bytes[32] = 8;
    assert_eq!(parse(Profile::Kernel, &bytes), Err(ParseError::PriorityOutOfRange(8)));
    let mut bytes = header_of(Kind::Resend, Profile::Kernel);
    bytes[36] = 255;
    assert_eq!(parse(Profile::Kernel, &bytes), Err(ParseError::PriorityOutOfRange(255)));

    let mut bytes = header_of(Kind::Ack, Profile::Kernel);
    bytes[29] = 6;
    assert_eq!(parse(Profile::Kernel, &bytes), Err(ParseError::TooManyAcks(6)));
    let mut bytes = header_of(Kind::Ack, Profile::Udp);
    bytes[29] = 1;
    let short = ParseError::TooShort { kind: Some(Kind::Ack), need: 40, have: 30 };
    assert_eq!(parse(Profile::Udp, &bytes), Err(short), "an entry that is not there");
}

/// Requirement WIRE-27.
#[test]
fn packets_of_modules_that_are_too_old_are_named() {
    let parse = |bytes: &[u8]| Packet::parse(Profile::Kernel, bytes).map(|_| ());
    let older = |layout| Err(ParseError::OlderLayout(layout));

    // v2.0: type in byte 13, and a DATA header of 60 bytes.
    let mut bytes = vec![0; 60];
    (bytes[12], bytes[13]) = (15 << 4, Kind::Data as u8);
    assert_eq!(parse(&bytes), older(OlderLayout::TypeInByte13));
    let text = parse(&bytes).unwrap_err().to_string();
    assert!(text.contains("July 2024") && text.contains("renewed"), "{text}");
    bytes[13] = 6;
    assert_eq!(parse(&bytes), Err(ParseError::UnknownKind(0)), "no type");

    // October 2024: acks of 12 bytes.
    let mut bytes = header_of(Kind::Ack, Profile::Kernel);
    assert_eq!(parse(&bytes), Ok(()));
    bytes.resize(90, 0);
    assert_eq!(parse(&bytes), older(OlderLayout::AcksOf12Bytes));
    // Version 1 of the cutoffs, where today's module leaves a byte empty.
    assert_eq!(with_data(|b| b[49] = 1), older(OlderLayout::AcksOf12Bytes));
    assert_eq!(with_data(|b| b[48] = 1), Ok(()), "today's retransmission");
}

/// Requirement WIRE-27: the udp profile has its own version, and gives none of these bytes a
/// meaning.
#[test]
fn the_udp_profile_knows_no_older_layouts() {
    let mut bytes = header_of(Kind::Ack, Profile::Udp);
    bytes.resize(90, 0);
    assert!(Packet::parse(Profile::Udp, &bytes).is_ok());
    let mut bytes = vec![0; 60];
    bytes[13] = 0x10;
    assert_eq!(Packet::parse(Profile::Udp, &bytes).unwrap_err(), ParseError::UnknownKind(0));
}

proptest! {
    #[test]
    fn parsing_never_panics_and_data_lies_inside_its_message(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        kind in 0x0eu8..0x1b,
        udp: bool,
    ) {
        let profile = if udp { Profile::Udp } else { Profile::Kernel };
        if bytes.len() > 13 {
            bytes[11] = kind;
            bytes[13] &= 0x3f; // version 1 in one of four cases
        }
        if let Ok(packet) = Packet::parse(profile, &bytes) {
            if let Body::Data(data, payload) = packet.body {
                let is_empty = data.message_length == 0;
                prop_assert_eq!(payload.is_empty(), is_empty);
                prop_assert!(!is_empty || udp, "the kernel profile has no empty messages");
                let end = u64::from(data.offset) + payload.len() as u64;
                prop_assert!(end <= u64::from(data.message_length));
            }
            // A parsed packet can be written, and parses as the same again.
            let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
            let len = packet.emit_header(&mut buffer);
            let payload = if let Body::Data(_, payload) = packet.body { payload } else { &[] };
            let again = [&buffer[..len], payload].concat();
            prop_assert_eq!(Packet::parse(profile, &again), Ok(packet));
        }
    }
}
