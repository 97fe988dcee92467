//! Hostile captures: no panic, no endless loop.
//!
//! [`check`] is the body of the fuzz target `decode`. The fuzzer in `fuzz/` runs it on generated
//! inputs; the tests here run it on random inputs and on the inputs stored in `fuzz/corpus`.

use std::path::{Path, PathBuf};

use apus_wire::{Body, Profile, Role};
use pcap_file::{DataLink, Endianness};
use proptest::prelude::*;

use crate::builders::{
    call, data, decode, ethernet, ip, ip_call, one_of_each, packet, pcap, raw_pcap, shared_datagram,
};
use crate::formats::pcapng;
use crate::invariants::check;
use crate::replay::replay;

/// Returns the records of a valid capture with packets of all types in both profiles.
pub(crate) fn sound() -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    for profile in [Profile::Udp, Profile::Kernel] {
        records.extend(ip_call(profile, 10));
        records.extend(one_of_each(profile).iter().map(|(role, bytes)| ip(profile, *role, bytes)));
    }
    // An empty request and an empty response.
    for role in [Role::Client, Role::Server] {
        let empty = packet(Profile::Udp, role, 12, Body::Data(data(0, 0), &[]));
        records.push(ip(Profile::Udp, role, &empty));
    }
    records
}

/// Folder of the stored inputs; `None` outside the repository.
fn corpus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/decode");
    if folder.exists() {
        return Some(folder);
    }
    eprintln!("SKIPPED: {} is not there: this is not the repository", folder.display());
    None
}

/// The seed inputs of the fuzzer: a capture of each format.
#[test]
fn the_fuzzer_begins_with_sound_captures() {
    let Some(folder) = corpus() else { return };
    let frames: Vec<_> = sound().iter().map(|packet| ethernet(packet)).collect();
    let offload: Vec<u8> =
        [2, 4, 6].iter().flat_map(|&id| call(Profile::Udp, id)[0].1.clone()).collect();
    let offload = ip(Profile::Udp, Role::Client, &offload);
    let shared = ip(Profile::Udp, Role::Client, &shared_datagram());
    let captures = [
        ("raw.pcap", raw_pcap(&sound())),
        ("ethernet.pcap", pcap(DataLink::ETHERNET, &frames)),
        ("merged.pcap", raw_pcap(&[offload])),
        ("shared.pcap", raw_pcap(&[shared])),
        ("little.pcapng", pcapng(Endianness::Little, &[1, 101])),
        ("big.pcapng", pcapng(Endianness::Big, &[101])),
    ];
    for (name, capture) in captures {
        assert!(decode(&capture).1.is_none(), "{name}");
        let kept = std::fs::read(folder.join(name)).unwrap_or_default();
        if std::env::var_os("APUS_WRITE_CORPUS").is_some() {
            std::fs::write(folder.join(name), capture).unwrap();
        } else {
            assert!(kept == capture, "{name}: write it anew with APUS_WRITE_CORPUS=1");
        }
    }
}

#[test]
fn the_findings_of_the_fuzzer_still_hold() {
    replay("decode", check);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_capture_with_wrong_bytes_is_decoded_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut file = raw_pcap(&sound());
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        file.truncate(cut.index(file.len()) + 1);
        check(&file);
    }

    #[test]
    fn packets_with_wrong_bytes_are_decoded_or_malformed(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..120, any::<u8>()), 1..20),
    ) {
        let mut records = sound();
        for (record, at, byte) in changes {
            let record = record.index(records.len());
            if let Some(place) = records[record].get_mut(at) {
                *place = byte;
            }
        }
        check(&raw_pcap(&records));
    }

    #[test]
    fn bytes_are_no_capture(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes);
    }
}
