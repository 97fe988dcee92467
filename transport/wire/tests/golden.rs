//! Packets written out by hand from the facts of docs/reference/homa-module.md, *Wire format* and
//! *Rules for peers*, one per kind and profile.
//!
//! Each packet is hex with comments. It must parse to the value given and that value must re-emit
//! to the same bytes. Requirements WIRE-1, WIRE-2, WIRE-10 to WIRE-18.

use apus_wire::{
    Ack, AckList, Body, Cutoffs, Data, Dialect, Features, Flags, Grant, Header, HeaderBuffer,
    KernelFields, Kind, MAX_HEADER_LEN, Packet, Profile, Resend, Role, SenderId, UdpFields,
    Waiting,
};

/// Bytes from hex; `#` starts a comment that runs to the end of the line.
fn hex(text: &str) -> Vec<u8> {
    let digits: String = text
        .lines()
        .flat_map(|line| line.split('#').next().unwrap_or("").split_whitespace())
        .collect();
    assert!(digits.len().is_multiple_of(2), "odd number of hex digits");
    (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap())
        .collect()
}

/// Both directions: `text` parses to `packet`, and `packet` is written as `text`.
fn check(profile: Profile, text: &str, packet: Packet<'_>) {
    let bytes = hex(text);
    assert_eq!(Packet::parse(profile, &bytes), Ok(packet));
    let mut buffer: HeaderBuffer = [0xaa; MAX_HEADER_LEN];
    let len = packet.emit_header(&mut buffer);
    let payload = if let Body::Data(_, payload) = packet.body { payload } else { &[] };
    assert_eq!([&buffer[..len], payload].concat(), bytes);
}

fn kernel(kind: Kind, from: Role, body: Body<'_>) -> Packet<'_> {
    let (sport, dport) = match from {
        Role::Client => (0x8000, 4100),
        Role::Server => (4100, 0x8000),
    };
    let dialect = Dialect::Kernel(KernelFields::OURS);
    let header = Header::new(kind, sport, dport, SenderId::new(0x1234, from), dialect);
    Packet { header, body }
}

fn udp(kind: Kind, from: Role, fields: UdpFields, body: Body<'_>) -> Packet<'_> {
    let mut packet = kernel(kind, from, body);
    packet.header.dialect = Dialect::Udp(fields);
    packet
}

/// Ports of a packet from the client, port 0x8000, to the server, port 4100.
const KERNEL_CLIENT: &str = "8000 1004";
/// Ports of a packet from the server, port 4100, to the client, port 0x8000.
const KERNEL_SERVER: &str = "1004 8000";

/// Requirement WIRE-10.
#[test]
fn kernel_data_with_the_offset_in_both_places() {
    let text = "
        8000 1004           # from port 0x8000 to port 4100
        00000590            # sequence: offset 1424 (HM `homa_wire.h` `homa_seg_hdr`)
        000000              # ack, unused
        10                  # DATA
        e0                  # 14 header words
        06 0000 0000 b97d   # flags, window, checksum, urgent
        0000000000001234    # RPC 0x1234, the sender is its client
        00002710            # message length 10000
        00002710            # incoming: all of it unscheduled
        0000000000001232    # ack: RPC 0x1232 ...
        1004                # ... of server port 4100 (HM `homa_outgoing.c` `homa_tx_data_pkt_alloc`)
        0001                # cutoff version 1
        01 000000           # retransmitted (HM `homa_outgoing.c` `homa_resend_data`), padding
        00000590            # seg.offset 1424
        6162 63             # data";
    let data = Data {
        message_length: 10_000,
        incoming: 10_000,
        ack: Some(Ack { client_id: 0x1232, server_port: 4100 }),
        cutoff_version: 1,
        retransmit: true,
        offset: 1424,
        offset_in_sequence: false,
        is_stripped: false,
        waiting: Waiting::UNSAID,
        response_limit: Waiting::UNSAID,
    };
    let mut packet = kernel(Kind::Data, Role::Client, Body::Data(data, b"abc"));
    packet.header.sequence = 1424;
    check(Profile::Kernel, text, packet);
}

#[test]
fn kernel_data_with_the_offset_in_sequence_alone() {
    let text = "
        8000 1004 00000590 000000 10 e0 06 0000 0000 b97d 0000000000001234
        00002710 00002710   # lengths
        0000000000000000 0000   # no ack
        0000 00 000000      # no cutoffs known, first transmission
        ffffffff            # seg.offset -1: look into sequence (HM `homa_wire.h` `homa_seg_hdr`)
        61";
    let data = Data {
        message_length: 10_000,
        incoming: 10_000,
        ack: None,
        cutoff_version: 0,
        retransmit: false,
        offset: 1424,
        offset_in_sequence: true,
        is_stripped: false,
        waiting: Waiting::UNSAID,
        response_limit: Waiting::UNSAID,
    };
    let mut packet = kernel(Kind::Data, Role::Client, Body::Data(data, b"a"));
    packet.header.sequence = 1424;
    check(Profile::Kernel, text, packet);
}

/// Requirement WIRE-11.
#[test]
fn kernel_grant() {
    let text = format!(
        "{KERNEL_SERVER} 00000000 000000 11 50 06 0000 0000 b97d
        0000000000001235    # the sender is the server of RPC 0x1234
        00011170            # up to byte 70000
        03                  # at priority 3 (HM `homa_incoming.c` `homa_grant_pkt`)"
    );
    let body = Body::Grant(Grant { offset: 70_000, priority: 3 });
    check(Profile::Kernel, &text, kernel(Kind::Grant, Role::Server, body));
}

/// Requirement WIRE-12.
#[test]
fn kernel_resend_of_everything() {
    let text = format!(
        "{KERNEL_CLIENT} 00000000 000000 12 50 06 0000 0000 b97d 0000000000001234
        00000000            # from byte 0
        ffffffff            # -1: all that has been sent (HM `homa_incoming.c` `homa_request_retrans`)
        07                  # at the highest priority"
    );
    let body = Body::Resend(Resend::everything(7));
    check(Profile::Kernel, &text, kernel(Kind::Resend, Role::Client, body));
}

/// Requirement WIRE-26.
#[test]
fn kernel_resend_of_the_stripped_module() {
    let text = format!(
        "{KERNEL_CLIENT} 00000000 000000 12 50 06 0000 0000 b97d 0000000000001234
        00000590            # from byte 1424
        00000b20            # 2848 bytes; and no level: 36 bytes in all (docs/reference/homa-module.md, *Variants*)"
    );
    let resend = Resend { offset: 1424, length: 2848, priority: 0, brief: true };
    let body = Body::Resend(resend);
    check(Profile::Kernel, &text, kernel(Kind::Resend, Role::Client, body));
}

/// Requirement WIRE-12.
#[test]
fn nothing_and_minus_one_both_ask_for_everything() {
    let resend = |length| Resend { offset: 0, length, priority: 7, brief: false };
    assert!(resend(0).is_everything() && Resend::everything(7).is_everything());
    assert!(!resend(1).is_everything());
    assert!(!Resend { offset: 1, ..resend(0) }.is_everything());
}

/// Requirements WIRE-13, WIRE-14, WIRE-16, WIRE-17.
#[test]
fn kernel_packets_without_a_body() {
    for (kind, body) in [
        (Kind::RpcUnknown, Body::RpcUnknown),
        (Kind::Busy, Body::Busy),
        (Kind::Freeze, Body::Freeze),
        (Kind::NeedAck, Body::NeedAck),
    ] {
        let text = format!(
            "{KERNEL_SERVER} 00000000 000000 {:02x} 50 06 0000 0000 b97d 0000000000001235",
            kind as u8
        );
        check(Profile::Kernel, &text, kernel(kind, Role::Server, body));
    }
}

/// Requirement WIRE-15.
#[test]
fn kernel_cutoffs() {
    let text = format!(
        "{KERNEL_SERVER} 00000000 000000 15 50 06 0000 0000 b97d 0000000000001235
        ffffffff 00000000 00000000 00000000 # levels 0 (unlimited) to 3
        000f4240            # level 4: up to 1000000 bytes
        00003a98            # level 5: up to 15000
        00000af0            # level 6: up to 2800
        000000c8            # level 7: up to 200 (HM `homa_utils.c` `homa_init`)
        0001                # version 1 (HM `homa_incoming.c` `homa_data_pkt`)"
    );
    let unscheduled = [u32::MAX, 0, 0, 0, 1_000_000, 15_000, 2800, 200];
    let body = Body::Cutoffs(Cutoffs { unscheduled, version: 1 });
    check(Profile::Kernel, &text, kernel(Kind::Cutoffs, Role::Server, body));
}

fn two_acks() -> AckList {
    let mut list = AckList::EMPTY;
    list.push(Ack { client_id: 0x1230, server_port: 4100 }).unwrap();
    list.push(Ack { client_id: 0x1232, server_port: 4101 }).unwrap();
    list
}

/// Requirement WIRE-18.
#[test]
fn kernel_ack_is_always_full_size() {
    let text = format!(
        "{KERNEL_CLIENT} 00000000 000000 18 50 06 0000 0000 b97d 0000000000001234
        0002                # two entries
        0000000000001230 1004
        0000000000001232 1005
        0000000000000000 0000
        0000000000000000 0000
        0000000000000000 0000 # 80 bytes in all (Rules for peers, item 21)"
    );
    check(Profile::Kernel, &text, kernel(Kind::Ack, Role::Client, Body::Ack(two_acks())));
}

/// Requirements WIRE-20, WIRE-22, WIRE-24.
#[test]
fn udp_ack_leaves_unused_entries_out() {
    let text = "
        8000 1004 00000000
        000003              # low water: three steps of 2 below this id
        18 50
        10                  # version 1, no flags
        cafef00d            # incarnation of the client
        0000                # no features: an endpoint of before WIRE-31
        0000000000001234
        0002                # two entries, and no more bytes than they need
        0000000000001230 1004
        0000000000001232 1005";
    let fields = UdpFields {
        flags: Flags::NONE,
        incarnation: 0xcafe_f00d,
        low_water: 3,
        features: Features::NONE,
    };
    check(Profile::Udp, text, udp(Kind::Ack, Role::Client, fields, Body::Ack(two_acks())));
}

/// Requirements WIRE-21, WIRE-23, WIRE-33.
#[test]
fn udp_session_of_48_bits_offered_and_shown() {
    let text = "
        1004 8000 00000000
        fef00d              # the claim: what the client has said about itself
        17 53               # NEED_ACK; the features, empty messages and long sessions
        13                  # version 1, SESSION and CONFIRM
        0badcafe 1234       # the session that the server offers, lower part first
        0000000000001235";
    let flags = Flags::SESSION.with(Flags::CONFIRM);
    let (incarnation, low_water) = (0x1234_0bad_cafe, 0x00fe_f00d);
    let fields = UdpFields { flags, incarnation, low_water, features: Features::OURS };
    check(Profile::Udp, text, udp(Kind::NeedAck, Role::Server, fields, Body::NeedAck));

    let text = "
        8000 1004 00000000
        fef00d              # repeated
        13 53               # RPC_UNKNOWN stands for any other kind
        13 0badcafe 1234    # ... and the session
        0000000000001234";
    check(Profile::Udp, text, udp(Kind::RpcUnknown, Role::Client, fields, Body::RpcUnknown));
}

/// Requirement WIRE-36.
#[test]
fn a_sprayed_packet_names_the_port_of_its_sender() {
    let features = Features::OURS.with(Features::SPRAYED);
    let fields = UdpFields {
        flags: Flags::SESSION,
        incarnation: 0x1234_0bad_cafe,
        low_water: UdpFields::LOW_WATER_UNKNOWN,
        features,
    };
    let data = Data::first(3, 3);
    let emit = |fields, kind, body| {
        let mut bytes = [0; MAX_HEADER_LEN];
        let len = udp(kind, Role::Server, fields, body).emit_header(&mut bytes);
        bytes[..len].to_vec()
    };
    let sprayed = emit(fields, Kind::Data, Body::Data(data, b"abc"));
    assert_eq!(sprayed[12], 0xeb);
    assert_eq!(Header::peek_sprayed(&sprayed), Some(0x1004));
    let mut sealed = sprayed.clone();
    for phase in [false, true] {
        apus_wire::SealedHeader::seal(&mut sealed, 7, phase);
        assert_eq!(Header::peek_sprayed(&sealed), Some(0x1004), "which stays readable");
    }
    assert_eq!(Header::peek_sprayed(&sprayed[..27]), None, "too short");
    let others = [
        (UdpFields { features: Features::OURS, ..fields }, Kind::Data, Body::Data(data, b"abc")),
        (UdpFields { flags: Flags::NONE, ..fields }, Kind::Data, Body::Data(data, b"abc")),
        (fields, Kind::Busy, Body::Busy),
    ];
    for (fields, kind, body) in others {
        assert_eq!(Header::peek_sprayed(&emit(fields, kind, body)), None, "{fields:?}, {kind:?}");
    }
}

/// Requirement WIRE-21: what versions before WIRE-33 write.
#[test]
fn udp_confirmation_asked_for_and_given() {
    let text = "
        1004 8000 00000000
        ffffff              # a server states no low-water mark
        17 50               # NEED_ACK
        13                  # version 1, SESSION and CONFIRM
        0badcafe            # the session that the server proposes
        0000
        0000000000001235";
    let flags = Flags::SESSION.with(Flags::CONFIRM);
    let low_water = UdpFields::LOW_WATER_UNKNOWN;
    let features = Features::NONE;
    let fields = UdpFields { flags, incarnation: 0x0bad_cafe, low_water, features };
    check(Profile::Udp, text, udp(Kind::NeedAck, Role::Server, fields, Body::NeedAck));

    let text = "
        8000 1004 00000000
        000000              # this RPC is the oldest that lives
        14 50               # BUSY: it lives
        13 0badcafe 0000    # ... and repeats the session
        0000000000001234";
    let fields = UdpFields { low_water: 0, ..fields };
    check(Profile::Udp, text, udp(Kind::Busy, Role::Client, fields, Body::Busy));
}

/// Requirement WIRE-23.
#[test]
fn udp_refusal_with_its_reason() {
    let text = "
        1004 8000
        00000002            # reason: too large
        ffffff 13 50
        19 0badcafe 0000    # SESSION and REFUSED
        0000000000001235";
    let flags = Flags::SESSION.with(Flags::REFUSED);
    let low_water = UdpFields::LOW_WATER_UNKNOWN;
    let features = Features::NONE;
    let fields = UdpFields { flags, incarnation: 0x0bad_cafe, low_water, features };
    let mut packet = udp(Kind::RpcUnknown, Role::Server, fields, Body::RpcUnknown);
    packet.header.sequence = apus_wire::Refusal::TooLarge as u32;
    check(Profile::Udp, text, packet);
}

/// Requirements WIRE-31 and WIRE-30.
#[test]
fn udp_data_of_an_empty_message() {
    let text = "
        1004 8000 00000000
        ffffff 10 e0
        11 0badcafe         # version 1, SESSION
        0001                # features: the sender takes empty messages
        0000000000001235
        00000000 00000000   # message length 0, incoming 0
        0000000000000000 0000
        0001 00 000000      # cutoffs version 1, first transmission
        00000000            # offset 0, and no data behind it";
    let data = Data {
        message_length: 0,
        incoming: 0,
        ack: None,
        cutoff_version: 1,
        retransmit: false,
        offset: 0,
        offset_in_sequence: false,
        is_stripped: false,
        waiting: Waiting::UNSAID,
        response_limit: Waiting::UNSAID,
    };
    let (flags, low_water) = (Flags::SESSION, UdpFields::LOW_WATER_UNKNOWN);
    let features = Features::EMPTY_MESSAGES;
    let fields = UdpFields { flags, incarnation: 0x0bad_cafe, low_water, features };
    check(Profile::Udp, text, udp(Kind::Data, Role::Server, fields, Body::Data(data, b"")));
}

/// Requirement WIRE-31: features of later versions are kept, and do not affect known ones.
#[test]
fn features_of_a_later_version() {
    let text = "
        1004 8000 00000000 ffffff 14 50 11 0badcafe
        8000                # a feature that is not known here, and no empty messages
        0000000000001235";
    let (flags, low_water) = (Flags::SESSION, UdpFields::LOW_WATER_UNKNOWN);
    let features = Features::from_bits(0x8000);
    assert!(!features.contains(Features::EMPTY_MESSAGES));
    assert!(Features::from_bits(0x8001).contains(Features::EMPTY_MESSAGES));
    let fields = UdpFields { flags, incarnation: 0x0bad_cafe, low_water, features };
    check(Profile::Udp, text, udp(Kind::Busy, Role::Server, fields, Body::Busy));
}

/// Requirement WIRE-19.
#[test]
fn a_burst_reuses_its_first_header() {
    let data = Data {
        message_length: 10_000,
        incoming: 10_000,
        ack: Some(Ack { client_id: 2, server_port: 9 }),
        cutoff_version: 1,
        retransmit: false,
        offset: 0,
        offset_in_sequence: false,
        is_stripped: false,
        waiting: Waiting::UNSAID,
        response_limit: Waiting::UNSAID,
    };
    let packet = kernel(Kind::Data, Role::Client, Body::Data(data, b"abc"));
    let mut buffer = [0; MAX_HEADER_LEN];
    let len = packet.emit_header(&mut buffer);
    Data::set_offset(&mut buffer[..len], 1424);
    Data::clear_ack(&mut buffer[..len]);

    let bytes = [&buffer[..len], b"def"].concat();
    let parsed = Packet::parse(Profile::Kernel, &bytes).unwrap();
    let second = Data { offset: 1424, ack: None, ..data };
    assert_eq!(parsed.body, Body::Data(second, b"def"));
    assert_eq!(parsed.header.sequence, 1424, "the offset is in both places (WIRE-10)");
}
