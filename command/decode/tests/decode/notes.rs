//! Notes: facts that the decoder derives from earlier packets.

use apus_decode::{PacketFilter, PacketType, Summary, json};
use apus_wire::{
    Ack, Body, Data, Features, Flags, Grant, Kind, Profile, Refusal, Resend, Role, Waiting,
};

use crate::builders::{
    BYTES, SERVER, call, data, decode, in_session, ip, ip_call, ip_from, one_of_each, packet,
    packet_with, port_unreachable, raw_pcap, shared_datagram, sprayed, words,
};

/// Builds a DATA packet of the request of RPC 2.
fn part(length: u32, offset: u32, bytes: usize, change: impl Fn(&mut Data)) -> Vec<u8> {
    let mut fields = data(length, offset);
    change(&mut fields);
    let body = Body::Data(fields, &BYTES[..bytes]);
    ip(Profile::Udp, Role::Client, &packet(Profile::Udp, Role::Client, 2, body))
}

fn control(from: Role, body: Body<'_>) -> Vec<u8> {
    ip(Profile::Udp, from, &packet(Profile::Udp, from, 2, body))
}

#[test]
fn each_type_has_a_description_in_both_profiles() {
    let mut expected = [
        "DATA rpc 2 request 0..900 of 1000",
        "GRANT rpc 2 request to 1000 of 1000 (nothing new), level 3",
        "RESEND rpc 2 request 900..1000, level 7",
        "RPC_UNKNOWN rpc 2",
        "BUSY rpc 2",
        "CUTOFFS rpc 2 version 1: up to 200 level 7, 2800 level 6, 15000 level 5, 1000000 level 4, \
         any length level 0",
        "FREEZE rpc 2",
        "NEED_ACK rpc 2",
        "ACK rpc 2, and rpc 4, 6",
    ];
    let with_room = format!("{}, room for 500000 unscheduled bytes", expected[5]);
    for profile in [Profile::Kernel, Profile::Udp] {
        if profile == Profile::Udp {
            expected[5] = &with_room;
        }
        let records: Vec<_> =
            one_of_each(profile).iter().map(|(role, bytes)| ip(profile, *role, bytes)).collect();
        assert_eq!(words(&records), expected, "{profile}");
    }
}

/// WIRE-34: senders report the number of granted bytes still queued. In the kernel profile these
/// bytes are padding.
#[test]
fn what_waits_at_a_sender_is_described() {
    let said = |bytes| part(100_000, 0, 900, |data| data.waiting = Waiting::of_bytes(bytes));
    let expected = [
        "DATA rpc 2 request 0..900 of 100000 [30720 bytes wait at its sender]",
        "DATA rpc 2 request 0..900 of 100000 [900 bytes seen before]",
    ];
    assert_eq!(words(&[said(30_720), said(0)]), expected);
}

/// WIRE-35: clients announce the number of response bytes that may be sent without a GRANT.
#[test]
fn what_a_response_may_begin_with_is_described() {
    let said = |bytes| part(100_000, 0, 900, |data| data.response_limit = Waiting::of_bytes(bytes));
    let expected = [
        "DATA rpc 2 request 0..900 of 100000 [its response may begin with 128 bytes]",
        "DATA rpc 2 request 0..900 of 100000 [900 bytes seen before]",
    ];
    assert_eq!(words(&[said(128), said(0)]), expected);
}

/// WIRE-36: sprayed packets are attributed to their sender regardless of their source port. A
/// packet from such a port without the mark is not decoded.
#[test]
fn sprayed_packets_are_those_of_their_sender() {
    let grant = Body::Grant(Grant { offset: 100_000, priority: 3 });
    let first = ip(Profile::Udp, Role::Server, &in_session(2, grant, Features::SPRAYABLE));
    let marked = |offset| sprayed(2, data(100_000, offset), &BYTES[..1_000]);
    let unmarked = in_session(2, Body::Data(data(100_000, 9_000), &BYTES[..10]), Features::NONE);
    let records = [
        first,
        ip_from(50_001, &marked(0)),
        ip_from(50_002, &marked(1_000)),
        ip_from(50_003, &unmarked),
    ];
    let expected = [
        "GRANT rpc 2 request to 100000 (+100000), level 3",
        "DATA rpc 2 response 0..1000 of 100000 [sprayed]",
        "DATA rpc 2 response 1000..2000 of 100000 [sprayed]",
    ];
    assert_eq!(words(&records), expected);
}

/// WIRE-30: an empty message is complete with its packet. In the kernel profile that is malformed.
#[test]
fn empty_messages_are_described() {
    let empty = |profile, from, retransmit| {
        let fields = Data { retransmit, ..data(0, 0) };
        ip(profile, from, &packet(profile, from, 2, Body::Data(fields, &[])))
    };
    let records = [
        empty(Profile::Udp, Role::Client, false),
        empty(Profile::Udp, Role::Server, false),
        empty(Profile::Udp, Role::Server, true),
    ];
    let expected = [
        "DATA rpc 2 request 0..0 of 0 [complete]",
        "DATA rpc 2 response 0..0 of 0 [complete]",
        "DATA rpc 2 response 0..0 of 0 [retransmitted]",
    ];
    assert_eq!(words(&records), expected);
    let (packets, _) = decode(&raw_pcap(&records));
    assert_eq!(packets[1].note.as_ref().unwrap().completion_time, Some(10_000), "nanoseconds");
    let kernel = words(&[empty(Profile::Kernel, Role::Client, false)]);
    assert_eq!(kernel, ["DATA rpc 2 [malformed: message length is zero in the kernel profile]"]);
}

#[test]
fn flags_of_the_udp_profile_are_described() {
    let with = |from, body: Body<'_>, flags, sequence| {
        ip(Profile::Udp, from, &packet_with(Profile::Udp, from, 2, body, flags, sequence))
    };
    let refused = Flags::SESSION.with(Flags::REFUSED);
    let too_large = Refusal::TooLarge as u32;
    let records = [
        with(Role::Server, Body::NeedAck, Flags::SESSION.with(Flags::CONFIRM), 0),
        with(Role::Client, Body::Busy, Flags::SESSION.with(Flags::CONFIRM), 0),
        with(Role::Server, Body::RpcUnknown, Flags::SESSION.with(Flags::FINISHED), 0),
        with(Role::Server, Body::RpcUnknown, refused, too_large),
    ];
    let expected = [
        "NEED_ACK rpc 2 (session challenge)",
        "BUSY rpc 2 (session confirmed)",
        "RPC_UNKNOWN rpc 2 finished",
        "RPC_UNKNOWN rpc 2 refused: too large",
    ];
    assert_eq!(words(&records), expected);
}

#[test]
fn gaps_repetitions_and_retransmissions_are_flagged() {
    let again = |fields: &mut Data| fields.retransmit = true;
    let records = [
        part(400, 0, 100, |_| ()),
        part(400, 200, 100, |_| ()),
        control(
            Role::Server,
            Body::Resend(Resend { offset: 100, length: 100, priority: 7, brief: false }),
        ),
        part(400, 100, 100, again),
        part(400, 250, 100, |_| ()),
        part(400, 350, 50, |_| ()),
        part(400, 350, 50, again),
    ];
    let expected = [
        "DATA rpc 2 request 0..100 of 400",
        "DATA rpc 2 request 200..300 of 400 [gap of 100 before it]",
        "RESEND rpc 2 request 100..200, level 7",
        "DATA rpc 2 request 100..200 of 400 [retransmitted] (RESEND in 3, 10.0 µs before)",
        "DATA rpc 2 request 250..350 of 400 [50 bytes seen before]",
        "DATA rpc 2 request 350..400 of 400 [complete]",
        "DATA rpc 2 request 350..400 of 400 [retransmitted] (RESEND in 3, 40.0 µs before)",
    ];
    assert_eq!(words(&records), expected);
    let note = decode(&raw_pcap(&records)).0[6].note.unwrap();
    assert_eq!((note.seen, note.repeated, note.completes), (400, 50, false));
}

#[test]
fn a_changed_message_length_is_flagged() {
    let records = [part(400, 0, 100, |_| ()), part(500, 100, 100, |_| ())];
    let expected =
        ["DATA rpc 2 request 0..100 of 400", "DATA rpc 2 request 100..200 of 500 [length was 400]"];
    assert_eq!(words(&records), expected);
}

#[test]
fn grants_show_new_bytes_and_data_beyond_them_is_flagged() {
    let little = |fields: &mut Data| fields.incoming = 100;
    let grant = |offset| control(Role::Server, Body::Grant(Grant { offset, priority: 2 }));
    let records = [
        part(900, 0, 100, little),
        grant(300),
        part(900, 100, 200, little),
        part(900, 300, 200, little),
        grant(250),
        grant(5000),
        part(900, 500, 400, little),
    ];
    let expected = [
        "DATA rpc 2 request 0..100 of 900",
        "GRANT rpc 2 request to 300 of 900 (+200), level 2",
        "DATA rpc 2 request 100..300 of 900",
        "DATA rpc 2 request 300..500 of 900 [beyond what was granted]",
        "GRANT rpc 2 request to 250 of 900 (nothing new), level 2",
        "GRANT rpc 2 request to 5000 of 900 (+600), level 2",
        "DATA rpc 2 request 500..900 of 900 [complete]",
    ];
    assert_eq!(words(&records), expected);
}

#[test]
fn merged_packets_are_split() {
    let parts = |bytes: &[usize]| -> Vec<u8> {
        let mut offset = 0;
        let mut datagram = Vec::new();
        for &len in bytes {
            let body = Body::Data(data(1000, offset), &BYTES[..len]);
            datagram.extend(packet(Profile::Udp, Role::Client, 2, body));
            offset += len as u32;
        }
        datagram
    };
    let datagram = parts(&[300, 300, 300, 100]);
    let record = ip(Profile::Udp, Role::Client, &datagram);
    let expected = [
        "DATA rpc 2 request 0..300 of 1000",
        "DATA rpc 2 request 300..600 of 1000",
        "DATA rpc 2 request 600..900 of 1000",
        "DATA rpc 2 request 900..1000 of 1000 [complete]",
    ];
    assert_eq!(words(std::slice::from_ref(&record)), expected);
    let (packets, _) = decode(&raw_pcap(&[record]));
    assert!(packets.iter().all(|packet| packet.number == 1 && packet.part.1 == 4));
    // Packets of different RPCs are merged too, and the capture may end within the last packet.
    let calls: Vec<u8> =
        [2, 4, 6].iter().flat_map(|&id| call(Profile::Udp, id)[0].1.clone()).collect();
    let whole = ip(Profile::Udp, Role::Client, &calls);
    for cut in 0..156 {
        let (packets, _) = decode(&raw_pcap(&[whole[..whole.len() - cut].to_vec()]));
        let last = packets.last().unwrap();
        assert!(!packets.iter().any(apus_decode::CapturedPacket::is_malformed), "{cut} cut off");
        assert_eq!((packets.len(), last.len), (3, 156), "{cut} cut off");
    }
}

/// Requirement WIRE-29.
#[test]
fn packets_that_share_a_datagram_are_split() {
    let expected = [
        "DATA rpc 2 request 0..100 of 100 [complete]",
        "GRANT rpc 4 response to 5000 (+5000), level 3",
        "BUSY rpc 6",
        "DATA rpc 8 request 0..10 of 10 [complete]",
    ];
    let datagram = ip(Profile::Udp, Role::Client, &shared_datagram());
    assert_eq!(words(&[datagram]), expected);
}

#[test]
fn acks_in_data_and_ack_packets_are_linked() {
    let acking = |id, acked| {
        let mut fields = data(10, 0);
        fields.ack = Some(Ack { client_id: acked, server_port: SERVER });
        let body = Body::Data(fields, &BYTES[..10]);
        let bytes = packet(Profile::Udp, Role::Client, id, body);
        ip(Profile::Udp, Role::Client, &bytes)
    };
    let records = [ip_call(Profile::Udp, 2), vec![acking(4, 2)]].concat();
    let file = raw_pcap(&records);
    let mut decoder = apus_decode::Decoder::open(std::io::Cursor::new(file), &[]).unwrap();
    let packets: Vec<_> = decoder.by_ref().map(Result::unwrap).collect();
    let rpc = &decoder.rpcs()[0];
    assert_eq!((rpc.id, rpc.acked.unwrap().0), (2, 3));
    let message_kind = packets[1].note.unwrap().message_kind;
    let links = rpc.links(message_kind, 2);
    assert_eq!((links.request, links.response, links.acked), (Some(1), None, Some(3)));
    let mentions = PacketFilter { rpcs: vec![3], ..PacketFilter::default() };
    assert_eq!(packets.iter().filter(|packet| mentions.matches(packet)).count(), 3, "the ack too");
}

#[test]
fn icmp_messages_are_about_packets() {
    for profile in [Profile::Udp, Profile::Kernel] {
        let request = ip_call(profile, 2).remove(0);
        let record = port_unreachable(&request);
        let expected = [
            "DATA rpc 2 request 0..100 of 100 [complete]",
            "ICMP port unreachable, about DATA rpc 2 from 10.0.0.1:40000 to 10.0.0.2:4000",
        ];
        let records = [request, record];
        assert_eq!(words(&records), expected);
        let (packets, _) = decode(&raw_pcap(&records));
        assert_eq!(PacketType::of(&packets[1]), PacketType::Icmp);
        let port = PacketFilter { ports: vec![SERVER], ..PacketFilter::default() };
        assert!(port.matches(&packets[1]));
    }
}

#[test]
fn filters_and_summaries_select_by_rpc_type_and_port() {
    let records: Vec<_> = one_of_each(Profile::Udp)
        .iter()
        .map(|(role, bytes)| ip(Profile::Udp, *role, bytes))
        .chain(ip_call(Profile::Udp, 8))
        .collect();
    let file = raw_pcap(&records);
    let mut decoder = apus_decode::Decoder::open(std::io::Cursor::new(file), &[]).unwrap();
    let packets: Vec<_> = decoder.by_ref().map(Result::unwrap).collect();
    let count =
        |filter: &PacketFilter| packets.iter().filter(|packet| filter.matches(packet)).count();
    assert_eq!(count(&PacketFilter::default()), 11);
    assert_eq!(
        count(&PacketFilter {
            types: vec![PacketType::Kind(Kind::Data)],
            ..PacketFilter::default()
        }),
        3
    );
    assert_eq!(count(&PacketFilter { rpcs: vec![8], ..PacketFilter::default() }), 2);
    assert_eq!(count(&PacketFilter { rpcs: vec![4], ..PacketFilter::default() }), 1, "the ACK");
    assert_eq!(count(&PacketFilter { ports: vec![1], ..PacketFilter::default() }), 0);
    let mut summary = Summary::default();
    packets.iter().for_each(|packet| summary.add(packet));
    assert_eq!((summary.packets(), summary.of_profile(Profile::Udp)), (11, 11));
    let of_data =
        summary.types().find(|(name, _)| *name == PacketType::Kind(Kind::Data)).unwrap().1;
    assert_eq!((of_data.packets, of_data.bytes), (3, 956 + 2 * 156));
    let times = summary.completion_times(decoder.rpcs()).unwrap();
    assert_eq!((times.rpcs, times.p50, times.max), (1, 10_000, 10_000));
    assert_eq!(summary.rpcs(decoder.rpcs()).count(), 2, "those of the ACK were not seen");
}

#[test]
fn json_has_all_fields() {
    let (packets, _) = decode(&raw_pcap(&ip_call(Profile::Udp, 0x7fff_ffff_ffff_fffe)));
    let links = apus_decode::Links { request: Some(1), ..apus_decode::Links::default() };
    let expected = serde_json::json!({
        "packet": 2, "time_s": 0.00001, "from": "10.0.0.2:4000", "to": "10.0.0.1:40000",
        "profile": "udp", "level": 0, "bytes": 156, "type": "DATA", "rpc": "9223372036854775806",
        "sender": "server", "incarnation": 7, "flags": 0, "features": 3,
        "low_water": 0,
        "offset": 0, "data": 100, "length": 100, "incoming": 100, "cutoff_version": 0,
        "retransmit": false, "message": "response", "seen": 100, "complete": true,
        "response_us": 10.0, "completion_us": 10.0, "request_in": 1,
        "words": "DATA rpc 9223372036854775806 response 0..100 of 100 [complete] \
                  (request in 1, 10.0 µs before)",
    });
    assert_eq!(json::packet(&packets[1], links), expected);
}
