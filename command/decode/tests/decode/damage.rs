//! Damaged captures: the error contains the offset of the damage, and all packets before it are
//! decoded.

use std::io::{self, Cursor, Read};

use apus_decode::{Content, Decoder, Error};
use apus_wire::{Body, ParseError, Profile, Role};

use crate::builders::{BYTES, data, decode, ip, ip_call, packet, raw_pcap};

#[test]
fn a_cut_off_capture_names_the_offset() {
    let file = raw_pcap(&[ip_call(Profile::Udp, 2), ip_call(Profile::Udp, 4)].concat());
    let record = (file.len() - 24) / 4;
    for cut in 0..file.len() {
        let (packets, error) = decode(&file[..cut]);
        let whole = cut.saturating_sub(24) / record;
        assert_eq!(packets.len(), whole, "{cut} bytes");
        match error {
            None => assert!(cut == 24 + whole * record, "{cut} bytes"),
            Some(Error::Empty) => assert_eq!(cut, 0),
            Some(Error::CutOff { at: 0, records: 0 }) => assert!(cut < 24),
            Some(Error::CutOff { at, records }) => {
                assert_eq!((at, records), ((24 + whole * record) as u64, whole as u64));
            }
            Some(other) => panic!("{cut} bytes: {other}"),
        }
    }
}

#[test]
fn other_files_are_rejected() {
    for file in [&b"PK\x03\x04 and so on, which is an archive and not a capture"[..], &[0; 100]] {
        assert!(matches!(decode(file).1, Some(Error::NotACapture)));
    }
    let error = decode(b"").1.unwrap().to_string();
    assert_eq!(error, "the file is empty, and a capture begins with a header");
}

#[test]
fn a_record_that_claims_too_much_is_damage() {
    let mut file = raw_pcap(&ip_call(Profile::Udp, 2));
    file[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    // The file is long enough that only the limit can end the read.
    file.resize(20 << 20, 0);
    let (packets, error) = decode(&file);
    let Some(Error::Damaged { at: 24, records: 0, problem }) = error else { panic!("{error:?}") };
    assert_eq!((packets.len(), problem.as_str()), (0, "a record of more than 8388608 bytes"));
}

#[test]
fn a_read_error_is_returned_with_its_offset() {
    struct Failing(Cursor<Vec<u8>>);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::ErrorKind::StaleNetworkFileHandle.into()),
                read => Ok(read),
            }
        }
    }
    let file = raw_pcap(&ip_call(Profile::Udp, 2));
    let end = file.len() as u64;
    let mut decoder = Decoder::open(Failing(Cursor::new(file)), &[]).unwrap();
    assert!(decoder.next().unwrap().is_ok() && decoder.next().unwrap().is_ok());
    let error = decoder.next().unwrap().unwrap_err();
    let Error::Io { at, error } = error else { panic!("{error}") };
    assert_eq!((at, error.kind()), (end, io::ErrorKind::StaleNetworkFileHandle));
    assert!(decoder.next().is_none());
}

/// Decodes a capture that contains only `bytes` bytes of a packet, as `tcpdump -s` writes it.
fn decode_truncated(packet: &[u8], bytes: usize) -> Content {
    let kept = packet[..bytes.min(packet.len())].to_vec();
    let (mut packets, error) = decode(&raw_pcap(&[kept]));
    assert!(error.is_none() && packets.len() == 1, "{bytes}: {error:?}");
    packets.remove(0).content
}

#[test]
fn truncated_packets_are_decoded_if_their_header_is_whole() {
    let body = Body::Data(data(1000, 0), &BYTES[..1000]);
    for profile in [Profile::Udp, Profile::Kernel] {
        let bytes = packet(profile, Role::Client, 2, body);
        let packet = ip(profile, Role::Client, &bytes);
        let headers = packet.len() - bytes.len();
        for kept in headers + 28..packet.len() {
            let content = decode_truncated(&packet, kept);
            if kept < headers + 56 {
                assert!(
                    matches!(content, Content::Truncated { header: Some((0x10, _)) }),
                    "{kept}"
                );
            } else {
                let Content::Whole { data_len: 1000, .. } = content else {
                    panic!("{kept}: {content:?}")
                };
            }
        }
    }
}

#[test]
fn a_packet_too_short_on_the_network_is_malformed() {
    let mut bytes = packet(Profile::Kernel, Role::Client, 2, Body::Busy);
    // A GRANT packet is five bytes longer.
    bytes[11] = 0x11;
    let (packets, _) = decode(&raw_pcap(&[ip(Profile::Kernel, Role::Client, &bytes)]));
    let Content::Malformed { error, header } = &packets[0].content else { panic!("{packets:?}") };
    assert!(matches!(error, ParseError::TooShort { need: 33, have: 28, .. }));
    assert_eq!(header.unwrap().0, 0x11);
    let shortest = ip(Profile::Kernel, Role::Client, &bytes[..9]);
    let words = crate::builders::words(&[shortest]);
    assert_eq!(words, ["[malformed: 9 bytes, but a header has 28]"]);
}
