//! Captures of the Linux kernel's Homa module.
//!
//! They are not part of the repository. The tests read them from `$APUS_CAPTURES`, or else from
//! `../shared/reference/captures` next to the workspace. Without captures the tests print a message
//! and pass.

use std::fs::File;
use std::path::PathBuf;

use apus_decode::{CapturedRpc, Content, Decoder, Summary};

/// Returns names and paths of the captures.
pub(crate) fn captures() -> Vec<(String, PathBuf)> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/captures");
    let folder = std::env::var_os("APUS_CAPTURES").map_or_else(|| beside.into(), PathBuf::from);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: no recordings of the kernel module in {}", folder.display());
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "pcap"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    found.sort();
    found
}

/// Returns the content of a capture according to its documentation: packets by type, and the number
/// of retransmitted DATA packets.
pub(crate) fn expected(name: &str) -> Option<(&'static [(&'static str, u64)], u64)> {
    Some(match name {
        "small-100" => (&[("DATA", 198), ("CUTOFFS", 2)], 0),
        "mid-10000" => (&[("DATA", 200)], 0),
        "large-500000" => (&[("DATA", 849), ("GRANT", 51)], 0),
        "w4" => (&[("DATA", 860), ("GRANT", 40)], 0),
        "loss-100" => (
            &[
                ("DATA", 1359),
                ("RESEND", 47),
                ("RPC_UNKNOWN", 23),
                ("CUTOFFS", 2),
                ("NEED_ACK", 46),
                ("ACK", 23),
            ],
            44,
        ),
        "loss-20000" => {
            (&[("DATA", 857), ("RESEND", 27), ("BUSY", 7), ("NEED_ACK", 8), ("ACK", 1)], 20)
        }
        "closed-port" => (&[("DATA", 15), ("RESEND", 164), ("ICMP", 6)], 0),
        _ => return None,
    })
}

#[test]
fn every_captured_packet_is_decoded() {
    for (name, path) in captures() {
        let mut decoder = Decoder::open(File::open(&path).unwrap(), &[]).unwrap();
        let mut summary = Summary::default();
        for packet in decoder.by_ref() {
            let packet = packet.unwrap();
            let understood =
                matches!(packet.content, Content::Whole { .. } | Content::Unreachable { .. });
            assert!(understood, "{name}: {packet:?}");
            assert!(packet.note.unwrap().beyond.is_none(), "{name}: {packet:?}");
            summary.add(&packet);
        }
        let Some((types, retransmitted)) = expected(&name) else { continue };
        let found: Vec<_> =
            summary.types().map(|(each, of_type)| (each.to_string(), of_type)).collect();
        let counts: Vec<_> =
            found.iter().map(|(each, of_type)| (each.as_str(), of_type.packets)).collect();
        assert_eq!(counts, types, "{name}");
        let again: u64 = found.iter().map(|(_, of_type)| of_type.retransmitted).sum();
        assert_eq!(again, retransmitted, "{name}");
        let unanswered =
            |rpc: &&CapturedRpc| rpc.request.complete.is_some() && rpc.response.first.is_none();
        let unanswered = decoder.rpcs().iter().filter(unanswered).count();
        assert_eq!(unanswered == 15, name == "closed-port", "{name}: {unanswered}");
    }
}
