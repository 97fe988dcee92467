//! Builders for packets and captures.

use std::io::Cursor;
use std::net::SocketAddr;
use std::time::Duration;

use apus_decode::{CapturedPacket, Decoder, Error};
use apus_wire::{
    Body, Data, Dialect, Features, Flags, Grant, HeaderBuffer, KernelFields, Kind, MAX_HEADER_LEN,
    Packet as WirePacket, Profile, Role, SenderId, UdpFields,
};
use etherparse::{Icmpv4Type, IpNumber, PacketBuilder};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};

/// Ports of the client and the server in all test captures.
pub(crate) const CLIENT: u16 = 40_000;
pub(crate) const SERVER: u16 = 4_000;

/// Builds a packet of RPC `id`.
pub(crate) fn packet(profile: Profile, from: Role, id: u64, body: Body<'_>) -> Vec<u8> {
    packet_with(profile, from, id, body, Flags::NONE, 0)
}

/// Builds four packets of a client that share a datagram.
pub(crate) fn shared_datagram() -> Vec<u8> {
    let grant = Body::Grant(Grant { offset: 5000, priority: 3 });
    let bodies = [
        Body::Data(data(100, 0), &BYTES[..100]),
        grant,
        Body::Busy,
        Body::Data(data(10, 0), &BYTES[..10]),
    ];
    (1..)
        .zip(bodies)
        .flat_map(|(n, body)| packet(Profile::Udp, Role::Client, 2 * n, body))
        .collect()
}

/// Builds a packet of RPC `id` with flags of the udp profile and a value for `sequence`.
pub(crate) fn packet_with(
    profile: Profile,
    from: Role,
    id: u64,
    body: Body<'_>,
    flags: Flags,
    sequence: u32,
) -> Vec<u8> {
    let (sport, dport) = ports(from);
    let dialect = match profile {
        Profile::Kernel => Dialect::Kernel(KernelFields::OURS),
        Profile::Udp => {
            let features = Features::OURS;
            Dialect::Udp(UdpFields { flags, incarnation: 7, low_water: 0, features })
        }
    };
    let sender_id = SenderId::new(id, from);
    let mut header = apus_wire::Header::new(body.kind(), sport, dport, sender_id, dialect);
    header.sequence = sequence;
    let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
    let len = WirePacket { header, body }.emit_header(&mut buffer);
    let data = if let Body::Data(_, data) = body { data } else { &[] };
    [&buffer[..len], data].concat()
}

pub(crate) fn ports(from: Role) -> (u16, u16) {
    match from {
        Role::Client => (CLIENT, SERVER),
        Role::Server => (SERVER, CLIENT),
    }
}

/// Returns the fields of a DATA packet at an offset of a message that is entirely unscheduled.
pub(crate) fn data(length: u32, offset: u32) -> Data {
    Data { offset, ..Data::first(length, length) }
}

/// Payload; its content does not matter.
pub(crate) const BYTES: &[u8; 2000] = &[b'x'; 2000];

/// Builds DATA of the server in a session, marked as sprayed.
pub(crate) fn sprayed(id: u64, data: Data, bytes: &[u8]) -> Vec<u8> {
    in_session(id, Body::Data(data, bytes), Features::SPRAYED)
}

/// Builds a packet of the server in a session, with these additional features or marks.
pub(crate) fn in_session(id: u64, body: Body<'_>, features: Features) -> Vec<u8> {
    let (flags, role) = (Flags::SESSION, Role::Server);
    let mut packet = packet_with(Profile::Udp, role, id, body, flags, 0);
    packet[12] |= features.bits() as u8;
    packet
}

/// Wraps a packet of the udp profile in an IP packet that leaves from port `from`.
pub(crate) fn ip_from(from: u16, bytes: &[u8]) -> Vec<u8> {
    let mut out = ip(Profile::Udp, Role::Server, bytes);
    out[20..22].copy_from_slice(&from.to_be_bytes());
    // No checksum.
    out[26..28].fill(0);
    out
}

/// Wraps a Homa packet in an IP packet, without a link layer.
pub(crate) fn ip(profile: Profile, from: Role, bytes: &[u8]) -> Vec<u8> {
    let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (source, destination) = match from {
        Role::Client => (client, server),
        Role::Server => (server, client),
    };
    let (sport, dport) = ports(from);
    let builder = PacketBuilder::ipv4(source, destination, 64);
    let mut out = Vec::new();
    match profile {
        Profile::Udp => builder.udp(sport, dport).write(&mut out, bytes).unwrap(),
        Profile::Kernel => builder.write(&mut out, IpNumber(146), bytes).unwrap(),
    }
    out
}

/// Prepends an Ethernet header.
pub(crate) fn ethernet(ip: &[u8]) -> Vec<u8> {
    let ether_type: [u8; 2] = if ip[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    [&[2; 12], &ether_type[..], ip].concat()
}

/// Builds a pcap file whose records are ten microseconds apart.
pub(crate) fn pcap(link: DataLink, records: &[Vec<u8>]) -> Vec<u8> {
    snapped_pcap(link, records.iter().map(|record| (&record[..], record.len())))
}

/// Builds a pcap file with truncated records, each with its length on the network.
pub(crate) fn snapped_pcap<'a>(
    link: DataLink,
    records: impl IntoIterator<Item = (&'a [u8], usize)>,
) -> Vec<u8> {
    let header = PcapHeader { datalink: link, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for (index, (record, len)) in records.into_iter().enumerate() {
        let time = Duration::from_micros(1_000_000 + 10 * index as u64);
        writer.write_packet(&PcapPacket::new(time, len as u32, record)).unwrap();
    }
    writer.into_writer()
}

/// Builds a pcap file of raw IP packets.
pub(crate) fn raw_pcap(records: &[Vec<u8>]) -> Vec<u8> {
    pcap(DataLink::RAW, records)
}

/// Decodes a file; returns its packets and the error at its end.
pub(crate) fn decode(file: &[u8]) -> (Vec<CapturedPacket>, Option<Error>) {
    decode_with(file, &[])
}

/// Decodes a file, treating datagrams on `ports` as apus; returns its packets and the final error.
pub(crate) fn decode_with(file: &[u8], ports: &[u16]) -> (Vec<CapturedPacket>, Option<Error>) {
    let decoder = match Decoder::open(Cursor::new(file.to_vec()), ports) {
        Ok(decoder) => decoder,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let mut packets = Vec::new();
    for next in decoder {
        match next {
            Ok(packet) => packets.push(packet),
            Err(error) => return (packets, Some(error)),
        }
    }
    (packets, None)
}

/// Describes the packets of a valid capture of raw IP.
pub(crate) fn words(records: &[Vec<u8>]) -> Vec<String> {
    let (packets, error) = decode(&raw_pcap(records));
    assert!(error.is_none(), "{error:?}");
    packets
        .iter()
        .map(|packet| packet.describe(apus_decode::Links::default()).to_string())
        .collect()
}

/// Builds a request and its response of 100 bytes each, as Homa packets.
pub(crate) fn call(profile: Profile, id: u64) -> [(Role, Vec<u8>); 2] {
    let body = Body::Data(data(100, 0), &BYTES[..100]);
    [Role::Client, Role::Server].map(|role| (role, packet(profile, role, id, body)))
}

/// Builds a request and its response of 100 bytes each, as IP packets.
pub(crate) fn ip_call(profile: Profile, id: u64) -> Vec<Vec<u8>> {
    call(profile, id).iter().map(|(role, bytes)| ip(profile, *role, bytes)).collect()
}

/// Builds one packet of each type, from the end that usually sends it.
pub(crate) fn one_of_each(profile: Profile) -> Vec<(Role, Vec<u8>)> {
    let mut acks = apus_wire::AckList::EMPTY;
    for client_id in [4, 6] {
        acks.push(apus_wire::Ack { client_id, server_port: SERVER }).unwrap();
    }
    let cutoffs = apus_wire::Cutoffs {
        unscheduled: [u32::MAX, 0, 0, 0, 1_000_000, 15_000, 2800, 200],
        version: 1,
    };
    let bodies = [
        (Role::Client, Body::Data(data(1000, 0), &BYTES[..900])),
        (Role::Server, Body::Grant(Grant { offset: 1000, priority: 3 })),
        (
            Role::Server,
            Body::Resend(apus_wire::Resend { offset: 900, length: 100, priority: 7, brief: false }),
        ),
        (Role::Client, Body::RpcUnknown),
        (Role::Server, Body::Busy),
        (Role::Server, Body::Cutoffs(cutoffs)),
        (Role::Client, Body::Freeze),
        (Role::Server, Body::NeedAck),
        (Role::Client, Body::Ack(acks)),
    ];
    assert_eq!(bodies.map(|(_, body)| body.kind()), Kind::ALL);
    let mut packets = bodies.map(|(role, body)| (role, packet(profile, role, 2, body))).to_vec();
    if profile == Profile::Udp {
        // The room for unscheduled bytes (WIRE-28).
        let (_, cutoffs) = &mut packets[Kind::Cutoffs as usize - Kind::Data as usize];
        cutoffs[4..8].copy_from_slice(&500_000_u32.to_be_bytes());
    }
    packets
}

/// Addresses of the client and the server in all test captures.
pub(crate) fn ends() -> (SocketAddr, SocketAddr) {
    (([10, 0, 0, 1], CLIENT).into(), ([10, 0, 0, 2], SERVER).into())
}

/// Builds the ICMP error of a system that has no socket on the destination port.
pub(crate) fn port_unreachable(about: &[u8]) -> Vec<u8> {
    let icmp = Icmpv4Type::DestinationUnreachable(etherparse::icmpv4::DestUnreachableHeader::Port);
    let mut record = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 2], [10, 0, 0, 1], 64).icmpv4(icmp);
    // Most systems quote at most 548 bytes, some only 28.
    builder.write(&mut record, &about[..about.len().min(84)]).unwrap();
    record
}
