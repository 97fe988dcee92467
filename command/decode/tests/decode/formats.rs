//! Capture formats and link types.

use std::io::{self, Read};
use std::time::Duration;

use apus_decode::{CapturedPacket, Decoder};
use apus_wire::{Profile, Role};
use etherparse::PacketBuilder;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use pcap_file::{DataLink, Endianness, TsResolution};

use crate::builders::{
    CLIENT, SERVER, call, decode, decode_with, ends, ethernet, ip, ip_call, pcap, raw_pcap,
};

/// Asserts that both packets of a call are decoded and linked, with the right addresses.
fn assert_is_a_call(packets: &[CapturedPacket], profile: Profile) {
    let (client, server) = ends();
    assert_eq!(packets.len(), 2);
    assert_eq!((packets[0].from, packets[0].to), (client, server));
    assert_eq!((packets[1].from, packets[1].to), (server, client));
    assert!(packets.iter().all(|packet| packet.profile == profile));
    let note = packets[1].note.unwrap();
    assert_eq!((note.response_time, note.completes), (Some(10_000), true));
}

#[test]
fn packets_are_found_behind_every_link_type() {
    let links: [(u32, Vec<u8>); 9] = [
        (1, [&[2; 12], &[8, 0][..]].concat()),
        (1, [&[2; 12], &[0x81, 0, 0, 5, 8, 0][..]].concat()),
        (101, vec![]),
        (12, vec![]),
        (228, vec![]),
        (0, vec![2, 0, 0, 0]),
        (108, vec![0, 0, 0, 2]),
        (113, [&[0; 14], &[8, 0][..]].concat()),
        (276, [&[8, 0][..], &[0; 18]].concat()),
    ];
    for profile in [Profile::Udp, Profile::Kernel] {
        for (link, header) in &links {
            let link = *link;
            let behind = |ip: Vec<u8>| [&header[..], &ip].concat();
            let records: Vec<_> = ip_call(profile, 2).into_iter().map(behind).collect();
            let (packets, error) = decode(&pcap(DataLink::from(link), &records));
            assert!(error.is_none(), "link type {link}: {error:?}");
            assert_is_a_call(&packets, profile);
        }
    }
}

#[test]
fn pcap_timestamps_are_read_in_both_byte_orders_and_resolutions() {
    for endianness in [Endianness::Little, Endianness::Big] {
        for ts_resolution in [TsResolution::MicroSecond, TsResolution::NanoSecond] {
            let datalink = DataLink::RAW;
            let header =
                PcapHeader { datalink, endianness, ts_resolution, ..PcapHeader::default() };
            let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
            for (index, record) in ip_call(Profile::Udp, 2).iter().enumerate() {
                let time = Duration::from_micros(1_000_000 + 10 * index as u64);
                let len = record.len() as u32;
                writer.write_packet(&PcapPacket::new(time, len, record)).unwrap();
            }
            let (packets, error) = decode(&writer.into_writer());
            assert!(error.is_none(), "{error:?}");
            assert_is_a_call(&packets, Profile::Udp);
            assert_eq!(packets[1].time, 1_000_010_000);
        }
    }
}

/// Builds a pcapng file with one interface for each link type, and one packet of a call on each.
pub(crate) fn pcapng(endianness: Endianness, links: &[u32]) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).unwrap();
    for link in links {
        let linktype = DataLink::from(*link);
        let interface = InterfaceDescriptionBlock { linktype, snaplen: 0, options: vec![] };
        writer.write_pcapng_block(interface).unwrap();
    }
    for (index, packet) in ip_call(Profile::Udp, 2).iter().enumerate() {
        let interface = index % links.len();
        let data = if links[interface] == 1 { ethernet(packet) } else { packet.clone() };
        let block = EnhancedPacketBlock {
            interface_id: interface as u32,
            // This library expects ticks of the file's clock: microseconds here.
            timestamp: Duration::from_nanos(1_000_000 + 10 * index as u64),
            original_len: data.len() as u32,
            data: data.into(),
            options: vec![],
        };
        writer.write_pcapng_block(block).unwrap();
    }
    writer.into_inner()
}

#[test]
fn pcapng_has_several_interfaces_and_both_byte_orders() {
    for endianness in [Endianness::Little, Endianness::Big] {
        let (packets, error) = decode(&pcapng(endianness, &[1, 101]));
        assert!(error.is_none(), "{error:?}");
        assert_is_a_call(&packets, Profile::Udp);
    }
}

#[test]
fn sections_of_pcapng_have_interfaces_of_their_own() {
    let both = [pcapng(Endianness::Little, &[1]), pcapng(Endianness::Big, &[101, 1])].concat();
    let (packets, error) = decode(&both);
    assert!(error.is_none(), "{error:?}");
    assert_is_a_call(&packets[..2], Profile::Udp);
    assert_eq!(packets.len(), 4);
    assert_eq!(packets[3].number, 4);
}

#[test]
fn ipv6_is_read() {
    let mut records = Vec::new();
    for (role, bytes) in call(Profile::Udp, 2) {
        let (from, to) = if role == Role::Client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let mut record = Vec::new();
        let builder = PacketBuilder::ipv6([0xfd; 16], [0xfe; 16], 64).udp(from, to);
        builder.write(&mut record, &bytes).unwrap();
        records.push(record);
    }
    let (packets, _) = decode(&raw_pcap(&records));
    assert_eq!(packets.len(), 2);
    assert!(packets.iter().all(|packet| packet.from.is_ipv6() && packet.sender_id().is_some()));
}

#[test]
fn an_unknown_link_type_is_counted() {
    let file = pcap(DataLink::from(147), &ip_call(Profile::Udp, 2));
    let mut decoder = Decoder::open(io::Cursor::new(file), &[]).unwrap();
    assert!(decoder.next().is_none());
    assert_eq!(decoder.skipped().unknown_links.get(&147), Some(&2));
}

/// A pipe that returns one byte per read.
struct OneBytePipe(io::Cursor<Vec<u8>>);

impl Read for OneBytePipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(1);
        self.0.read(&mut buffer[..room])
    }
}

#[test]
fn a_pipe_may_return_one_byte_per_read() {
    for file in [raw_pcap(&ip_call(Profile::Udp, 2)), pcapng(Endianness::Big, &[1])] {
        let decoder = Decoder::open(OneBytePipe(io::Cursor::new(file)), &[]).unwrap();
        let packets: Vec<_> = decoder.map(Result::unwrap).collect();
        assert_is_a_call(&packets, Profile::Udp);
    }
}

#[test]
fn other_datagrams_are_ignored_unless_their_port_is_given() {
    let mut dns =
        ip(Profile::Udp, Role::Client, b"this is something quite different from a packet");
    let records = [vec![dns.clone()], ip_call(Profile::Udp, 2)].concat();
    let (packets, _) = decode(&raw_pcap(&records));
    assert_eq!(packets.iter().map(|packet| packet.number).collect::<Vec<_>>(), [2, 3]);
    let (packets, _) = decode_with(&raw_pcap(&records), &[SERVER]);
    assert!(packets[0].is_malformed(), "{:?}", packets[0]);
    // After a valid packet between the same addresses, the same bytes are a malformed packet.
    let records = [ip_call(Profile::Udp, 2), vec![dns.clone()]].concat();
    let (packets, _) = decode(&raw_pcap(&records));
    assert!(packets[2].is_malformed());
    // Fragments are ignored: neither profile sends them.
    dns[6] |= 0x20;
    assert!(decode_with(&raw_pcap(&[dns]), &[SERVER]).0.is_empty());
}
