//! Packets recorded from the Linux kernel's Homa module decode, and re-encode byte for byte.
//!
//! The recordings are not part of the project. They are looked for in `$APUS_CAPTURES`, then in
//! `../shared/reference/captures` beside the workspace; without them the test says so and passes.

use apus_wire::{Body, HeaderBuffer, Kind, MAX_HEADER_LEN, Packet, Profile};
use etherparse::{NetSlice, SlicedPacket};
use pcap_file::pcap::PcapReader;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

const HOMA: u8 = 146;

fn captures() -> Vec<PathBuf> {
    let dir = std::env::var_os("APUS_CAPTURES").map_or_else(
        || {
            PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../shared/reference/captures"
            ))
        },
        PathBuf::from,
    );
    let Ok(entries) = std::fs::read_dir(&dir) else {
        eprintln!("SKIPPED: no recordings of the kernel module in {}", dir.display());
        return Vec::new();
    };
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "pcap"));
    files.sort();
    files
}

/// The Homa packets in a recording, without Ethernet and IP headers.
fn homa_packets(path: &PathBuf) -> Vec<Vec<u8>> {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(record) = reader.next_packet() {
        let record = record.unwrap();
        let sliced = SlicedPacket::from_ethernet(&record.data).unwrap();
        if let Some(NetSlice::Ipv4(ip)) = sliced.net
            && ip.header().protocol().0 == HOMA
        {
            packets.push(ip.payload().payload.to_vec());
        }
    }
    packets
}

fn re_emit(packet: &Packet<'_>) -> Vec<u8> {
    let mut buffer: HeaderBuffer = [0; MAX_HEADER_LEN];
    let len = packet.emit_header(&mut buffer);
    let payload = if let Body::Data(_, payload) = packet.body { payload } else { &[] };
    [&buffer[..len], payload].concat()
}

/// The content of each file according to the captures' README; the ICMP packets of `closed-port`
/// are not Homa.
fn expected(name: &str) -> Option<&'static [(Kind, usize)]> {
    use Kind::{Ack, Busy, Cutoffs, Data, Grant, NeedAck, Resend, RpcUnknown};
    Some(match name {
        "small-100" => &[(Data, 198), (Cutoffs, 2)],
        "mid-10000" => &[(Data, 200)],
        "large-500000" => &[(Data, 849), (Grant, 51)],
        "w4" => &[(Data, 860), (Grant, 40)],
        "loss-100" => {
            &[(Data, 1359), (Resend, 47), (RpcUnknown, 23), (Cutoffs, 2), (NeedAck, 46), (Ack, 23)]
        }
        "loss-20000" => &[(Data, 857), (Resend, 27), (Busy, 7), (NeedAck, 8), (Ack, 1)],
        "closed-port" => &[(Data, 15), (Resend, 164)],
        _ => return None,
    })
}

/// Requirement WIRE-7.
#[test]
fn every_recorded_packet_decodes_and_re_encodes_byte_for_byte() {
    for path in captures() {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut counts = BTreeMap::new();
        for (i, bytes) in homa_packets(&path).iter().enumerate() {
            let packet = Packet::parse(Profile::Kernel, bytes)
                .unwrap_or_else(|error| panic!("{name}, Homa packet {i}: {error}"));
            assert_eq!(&re_emit(&packet), bytes, "{name}, Homa packet {i}");
            *counts.entry(packet.body.kind()).or_insert(0) += 1;
        }
        if let Some(expected) = expected(&name) {
            let counts: Vec<_> = counts.into_iter().collect();
            assert_eq!(counts, expected, "{name}");
        }
    }
}
