//! Files from strangers: no panic, no hang.
//!
//! The body of the fuzz target `decode` is [`run`]; `fuzz/` at the root of the repository feeds it with new inputs, the
//! tests here with random ones and with those that are kept in `fuzz/corpus`.

use std::path::{Path, PathBuf};

use apus_wire::{Profile, Role};
use pcap_file::{DataLink, Endianness};
use proptest::prelude::*;

use crate::formats::pcapng;
use crate::fuzzed::run;
use crate::making::{call, decode, ethernet, ip, ip_call, one_of_each, pcap, raw_pcap};

/// A sound capture with packets of all types in both profiles.
pub(crate) fn sound() -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    for profile in [Profile::Udp, Profile::Kernel] {
        records.extend(ip_call(profile, 10));
        records.extend(one_of_each(profile).iter().map(|(role, bytes)| ip(profile, *role, bytes)));
    }
    records
}

/// Where inputs are kept; `None` outside of the repository.
fn corpus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/decode");
    if folder.exists() {
        return Some(folder);
    }
    eprintln!("SKIPPED: {} is not there: this is not the repository", folder.display());
    None
}

/// What the fuzzer begins with: a capture of each kind.
#[test]
fn the_fuzzer_begins_with_sound_captures() {
    let Some(folder) = corpus() else { return };
    let frames: Vec<_> = sound().iter().map(|packet| ethernet(packet)).collect();
    let merged: Vec<u8> =
        [2, 4, 6].iter().flat_map(|&id| call(Profile::Udp, id)[0].1.clone()).collect();
    let merged = ip(Profile::Udp, Role::Client, &merged);
    let captures = [
        ("raw.pcap", raw_pcap(&sound())),
        ("ethernet.pcap", pcap(DataLink::ETHERNET, &frames)),
        ("merged.pcap", raw_pcap(&[merged])),
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
    let Some(folder) = corpus() else { return };
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        run(&std::fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{} holds no inputs", folder.display());
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
        run(&file);
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
        run(&raw_pcap(&records));
    }

    #[test]
    fn bytes_are_no_capture(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        run(&bytes);
    }
}
