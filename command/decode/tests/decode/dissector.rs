//! The Wireshark plug-in and the decoder agree.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use apus_decode::{Decoder, PacketType, json};
use apus_wire::{Body, Data, Features, Grant, Profile, Role, Waiting};
use pcap_file::DataLink;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use crate::builders::{
    BYTES, data, ethernet, in_session, ip, ip_from, packet, pcap, raw_pcap, shared_datagram,
    snapped_pcap, sprayed,
};
use crate::hostile::sound;
use crate::kernel_captures::{captures, expected};
use crate::{example_capture, traffic};

/// Path of the plug-in; `None` outside the repository, or if tshark cannot run it.
fn plug_in() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dissector/apus.lua");
    if !path.exists() {
        eprintln!("SKIPPED: {} is not there: this is not the repository", path.display());
        return None;
    }
    match Command::new("tshark").arg("--version").stderr(Stdio::null()).output() {
        Ok(version) if String::from_utf8_lossy(&version.stdout).contains("with Lua") => Some(path),
        Ok(_) => {
            eprintln!("SKIPPED: this tshark has no Lua");
            None
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("SKIPPED: tshark is not installed (Debian: apt-get install tshark)");
            None
        }
        Err(error) => panic!("tshark: {error}"),
    }
}

/// Fields that tshark prints for each frame, as columns.
const FIELDS: [&str; 25] = [
    "frame.number",
    "icmp.type",
    "apus.profile",
    "apus.words",
    "_ws.expert.message",
    "apus.type",
    "apus.rpc",
    "apus.features",
    "apus.offset",
    "apus.length",
    "apus.data.len",
    "apus.seen",
    "apus.repeated",
    "apus.gap",
    "apus.grant.new",
    "apus.request_in",
    "apus.response_in",
    "apus.complete_in",
    "apus.acked_in",
    "apus.refused_in",
    "apus.resend_in",
    "apus.response_time",
    "apus.completion_time",
    "apus.malformed",
    "apus.merged",
];

/// A frame printed by tshark: values by field, with several values if the frame contains several
/// packets.
type Frame = BTreeMap<&'static str, Vec<String>>;

/// Runs tshark with the plug-in on a capture. Returns the frames with a packet found by the
/// plug-in.
fn tshark(plug_in: &Path, file: &Path, more: &[&str]) -> Vec<Frame> {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new("tshark");
    // Ignore the configuration of the calling user, and resolve no names.
    command.env("HOME", home.path()).env("XDG_CONFIG_HOME", home.path()).arg("-n");
    command.arg("-X").arg(format!("lua_script:{}", plug_in.display()));
    command.args(["-2", "-r"]).arg(file).args(["-T", "fields", "-E", "separator=/t"]);
    command.args(["-E", "occurrence=a", "-E", "aggregator=;"]).args(more);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !stderr.contains("Lua"), "{stderr}");
    let text = String::from_utf8(output.stdout).unwrap();
    let frame = |line: &str| -> Frame {
        let values = line.split('\t').map(|value| match value {
            "" => Vec::new(),
            value => value.split(';').map(str::to_owned).collect(),
        });
        FIELDS.into_iter().zip(values).collect()
    };
    let frames: Vec<Frame> = text.lines().map(frame).collect();
    for frame in &frames {
        let experts = frame["_ws.expert.message"].join(" ");
        assert!(!experts.contains("Lua Error"), "{frame:?}");
    }
    // Packets quoted by ICMP errors were not sent at that time.
    let is_homa = |frame: &Frame| !frame["apus.words"].is_empty() && frame["icmp.type"].is_empty();
    frames.into_iter().filter(is_homa).collect()
}

/// Decodes a capture; returns the packets by frame, without ICMP errors.
fn decoded(file: &Path) -> BTreeMap<u64, Vec<Value>> {
    let open = || Decoder::open(fs::File::open(file).unwrap(), &[]).unwrap();
    let rpcs = open().into_rpcs();
    let mut frames: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for packet in
        open().filter_map(Result::ok).filter(|packet| PacketType::of(packet) != PacketType::Icmp)
    {
        let links =
            packet.note.map(|note| rpcs[note.rpc.0].links(note.message_kind, packet.number));
        let object = json::packet(&packet, links.unwrap_or_default());
        frames.entry(packet.number).or_default().push(object);
    }
    frames
}

/// Returns the values of a field as text, for the packets of a frame that have the field.
fn values(packets: &[Value], name: &str) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    packets.iter().filter_map(|packet| packet.get(name)).map(text).collect()
}

/// Converts times to nanoseconds.
fn times(texts: &[String], per_unit: f64) -> Vec<i64> {
    texts.iter().map(|text| (text.parse::<f64>().unwrap() * per_unit).round() as i64).collect()
}

/// Asserts that plug-in and decoder agree on every frame.
fn assert_same(plug_in: &Path, file: &Path) -> Vec<Frame> {
    let (shown, decoded) = (tshark(plug_in, file, &[]), decoded(file));
    let numbers: Vec<u64> =
        shown.iter().map(|frame| frame["frame.number"][0].parse().unwrap()).collect();
    let only_one = |number: &u64| numbers.contains(number) != decoded.contains_key(number);
    let all = numbers.iter().chain(decoded.keys()).copied();
    assert_eq!(all.filter(only_one).collect::<Vec<u64>>(), [0_u64; 0], "{}", file.display());
    for (frame, packets) in shown.iter().zip(decoded.values()) {
        let place = format!("{}: {frame:?}\n{packets:?}", file.display());
        let words = values(packets, "words");
        assert_eq!(frame["apus.words"].len(), words.len(), "{place}");
        for (shown, words) in frame["apus.words"].iter().zip(words) {
            // The decoder's description continues with the linked packets.
            let rest = words.strip_prefix(&**shown).unwrap_or_else(|| panic!("{words}\n{place}"));
            assert!(rest.is_empty() || rest.starts_with(" ("), "{place}");
        }
        let malformed = packets.iter().filter(|packet| packet["type"] == "malformed").count();
        assert_eq!(frame["apus.malformed"].len(), malformed, "{place}");
        if malformed > 0 {
            // The plug-in shows the fields of a malformed packet up to the violation.
            continue;
        }
        let same = [
            ("apus.rpc", "rpc"),
            ("apus.offset", "offset"),
            ("apus.length", "length"),
            ("apus.data.len", "data"),
            ("apus.seen", "seen"),
            ("apus.repeated", "repeated"),
            ("apus.gap", "gap"),
            ("apus.grant.new", "granted_new"),
            ("apus.request_in", "request_in"),
            ("apus.response_in", "response_in"),
            ("apus.complete_in", "complete_in"),
            ("apus.acked_in", "acked_in"),
            ("apus.refused_in", "refused_in"),
            ("apus.resend_in", "resend_in"),
        ];
        for (field, name) in same {
            assert_eq!(frame[field], values(packets, name), "{field}, {place}");
        }
        let features = frame["apus.features"].iter().map(|text| {
            let digits = text.strip_prefix("0x").unwrap();
            u16::from_str_radix(digits, 16).unwrap().to_string()
        });
        // The plug-in also shows the features of malformed and truncated packets.
        let is_whole = |packet: &Value| packet["type"] != "malformed" && packet["type"] != "cut";
        if packets.iter().all(is_whole) {
            assert_eq!(features.collect::<Vec<_>>(), values(packets, "features"), "{place}");
        }
        for (field, name) in
            [("apus.response_time", "response_us"), ("apus.completion_time", "completion_us")]
        {
            let (shown, expected) = (times(&frame[field], 1e9), times(&values(packets, name), 1e3));
            assert_eq!(shown, expected, "{field}, {place}");
        }
    }
    shown
}

fn write_file(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Returns the number of frames with an expert info that contains `what`.
fn count_experts(frames: &[Frame], what: &str) -> usize {
    frames.iter().filter(|frame| frame["_ws.expert.message"].join(";").contains(what)).count()
}

#[test]
fn apus_traffic_is_dissected_as_the_decoder_does() {
    let Some(plug_in) = plug_in() else { return };
    let folder = tempfile::tempdir().unwrap();
    let lossy = folder.path().join("lossy.pcap");
    traffic::over_a_bad_network(&lossy, 40);
    let frames = assert_same(&plug_in, &lossy);
    for flagged in
        ["Retransmitted DATA, RESEND in packet", "RESEND: ", "Gap: bytes", "Grant: ", "is complete"]
    {
        assert!(count_experts(&frames, flagged) > 0, "{flagged}");
    }
    assert!(frames.iter().all(|frame| frame["apus.profile"].iter().all(|name| name == "udp")));
    let udp = folder.path().join("udp.pcap");
    traffic::over_udp(&udp, 40);
    let frames = assert_same(&plug_in, &udp);
    assert!(frames.iter().any(|frame| !frame["apus.response_time"].is_empty()));
}

#[test]
fn kernel_module_traffic_is_dissected_as_the_decoder_does() {
    let Some(plug_in) = plug_in() else { return };
    for (name, path) in captures() {
        let frames = assert_same(&plug_in, &path);
        let Some((types, retransmitted)) = expected(&name) else { continue };
        for &(kind, count) in types.iter().filter(|(kind, _)| *kind != "ICMP") {
            let of_kind = frames
                .iter()
                .filter(|frame| frame["apus.words"][0].split(' ').next() == Some(kind));
            assert_eq!(of_kind.count() as u64, count, "{name}: {kind}");
        }
        assert_eq!(count_experts(&frames, "Retransmitted DATA") as u64, retransmitted, "{name}");
    }
}

#[test]
fn every_type_of_both_profiles_and_every_flag_is_shown() {
    let Some(plug_in) = plug_in() else { return };
    let folder = tempfile::tempdir().unwrap();
    let frames: Vec<_> = sound().iter().map(|packet| ethernet(packet)).collect();
    let file = write_file(folder.path(), "types.pcap", &pcap(DataLink::ETHERNET, &frames));
    let shown = assert_same(&plug_in, &file);
    assert_eq!(shown.len(), frames.len());
    let file = write_file(folder.path(), "story.pcap", &example_capture::capture());
    let shown = assert_same(&plug_in, &file);
    assert_eq!(count_experts(&shown, "The request is refused: overloaded"), 1);
}

/// WIRE-34.
#[test]
fn what_waits_at_a_sender_is_dissected_as_the_decoder_does() {
    let Some(plug_in) = plug_in() else { return };
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<_> = [0, 63, 64, 1_000, 1_024, 20_000, 1 << 20, u32::MAX]
        .into_iter()
        .map(|bytes| {
            let fields = Data { waiting: Waiting::of_bytes(bytes), ..data(1_000_000, 0) };
            let body = Body::Data(fields, &BYTES[..100]);
            ip(Profile::Udp, Role::Client, &packet(Profile::Udp, Role::Client, 2, body))
        })
        .collect();
    assert_same(&plug_in, &write_file(folder.path(), "waiting.pcap", &raw_pcap(&records)));
}

/// WIRE-36.
#[test]
fn sprayed_packets_are_dissected_as_the_decoder_does() {
    let Some(plug_in) = plug_in() else { return };
    let folder = tempfile::tempdir().unwrap();
    let grant = Body::Grant(Grant { offset: 100_000, priority: 3 });
    let records: Vec<_> = [
        ip(Profile::Udp, Role::Server, &in_session(2, grant, Features::SPRAYABLE)),
        ip_from(50_001, &sprayed(2, data(100_000, 0), &BYTES[..1_000])),
        ip_from(
            50_002,
            &[
                sprayed(2, data(100_000, 1_000), &BYTES[..1_000]),
                sprayed(2, data(100_000, 2_000), &BYTES[..1_000]),
            ]
            .concat(),
        ),
        ip(Profile::Udp, Role::Server, &sprayed(2, data(100_000, 3_000), &BYTES[..1_000])),
    ]
    .into();
    let shown =
        assert_same(&plug_in, &write_file(folder.path(), "sprayed.pcap", &raw_pcap(&records)));
    assert_eq!(shown.len(), records.len());
}

/// WIRE-35, alone and together with WIRE-34.
#[test]
fn what_a_response_may_begin_with_is_dissected_as_the_decoder_does() {
    let Some(plug_in) = plug_in() else { return };
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<_> = [(0, 128), (20_000, 128), (20_000, 0), (0, 1 << 20)]
        .into_iter()
        .map(|(waiting, limit)| {
            let [waiting, response_limit] = [waiting, limit].map(Waiting::of_bytes);
            let fields = Data { waiting, response_limit, ..data(1_000_000, 0) };
            let body = Body::Data(fields, &BYTES[..100]);
            ip(Profile::Udp, Role::Client, &packet(Profile::Udp, Role::Client, 2, body))
        })
        .collect();
    assert_same(&plug_in, &write_file(folder.path(), "limit.pcap", &raw_pcap(&records)));
}

#[test]
fn plug_in_version_is_the_workspace_version() {
    let Some(plug_in) = plug_in() else { return };
    let text = fs::read_to_string(plug_in).unwrap();
    assert!(text.contains(concat!("local VERSION = \"", env!("CARGO_PKG_VERSION"), "\"")));
}

#[test]
fn merged_packets_are_split() {
    let Some(plug_in) = plug_in() else { return };
    let folder = tempfile::tempdir().unwrap();
    let parts = [0, 300, 600, 900].map(|offset| {
        let bytes = &BYTES[..300.min(1000 - offset as usize)];
        packet(Profile::Udp, Role::Client, 2, Body::Data(data(1000, offset), bytes))
    });
    let record = ip(Profile::Udp, Role::Client, &parts.concat());
    // Truncated by the capture, within the payload and within the header of the last packet.
    let kept = [0, 20, 120, 150].map(|cut| (&record[..record.len() - cut], record.len()));
    let file = write_file(folder.path(), "merged.pcap", &snapped_pcap(DataLink::RAW, kept));
    let shown = assert_same(&plug_in, &file);
    assert!(shown.iter().all(|frame| frame["apus.merged"] == ["4"]), "{shown:?}");
}

/// Requirement WIRE-29.
#[test]
fn packets_that_share_a_datagram_are_split() {
    let Some(plug_in) = plug_in() else { return };
    let folder = tempfile::tempdir().unwrap();
    let record = ip(Profile::Udp, Role::Client, &shared_datagram());
    // Truncated by the capture, within the payload and within the header of the last packet.
    let kept = [0, 4, 20].map(|cut| (&record[..record.len() - cut], record.len()));
    let file = write_file(folder.path(), "shared.pcap", &snapped_pcap(DataLink::RAW, kept));
    let shown = assert_same(&plug_in, &file);
    assert!(shown.iter().all(|frame| frame["apus.merged"] == ["4"]), "{shown:?}");
}

/// Invariant DISSECTOR-1.
#[test]
fn wrong_bytes_are_malformed_packets_and_never_a_script_error() {
    let Some(plug_in) = plug_in() else { return };
    let folder = tempfile::tempdir().unwrap();
    let sound = sound();
    let mut runner = TestRunner::deterministic();
    let changes = prop::collection::vec((20_usize..90, any::<u8>()), 1..4);
    let wrong = (0..sound.len(), changes, 0_usize..60);
    let mut records = Vec::new();
    for _ in 0..1500 {
        let (record, changes, cut) = wrong.new_tree(&mut runner).unwrap().current();
        let mut bytes = sound[record].clone();
        let length = bytes.len();
        // UDP ports and lengths stay intact, since the plug-in ignores other datagrams.
        let first = if bytes[9] == 17 { 28 } else { 20 };
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at.max(first)) {
                *place = byte;
            }
        }
        // tshark does not call plug-ins for a datagram with only one captured byte.
        let kept = length - if cut > 50 { cut.min(length - first) } else { 0 };
        bytes.truncate(if kept == first + 1 { first } else { kept });
        records.push((bytes, length));
    }
    let records = records.iter().map(|(bytes, length)| (&bytes[..], *length));
    let file = write_file(folder.path(), "wrong.pcap", &snapped_pcap(DataLink::RAW, records));
    let shown = assert_same(&plug_in, &file);
    let malformed = shown.iter().filter(|frame| !frame["apus.malformed"].is_empty()).count();
    assert!(malformed > 50, "{malformed} of {}", shown.len());
}

#[test]
fn columns_show_protocol_and_description() {
    let Some(plug_in) = plug_in() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = write_file(folder.path(), "story.pcap", &example_capture::capture());
    let output = Command::new("tshark")
        .env("HOME", folder.path())
        .env("XDG_CONFIG_HOME", folder.path())
        .arg("-X")
        .arg(format!("lua_script:{}", plug_in.display()))
        .args(["-n", "-r"])
        .arg(file)
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let line = |number: usize| lines.lines().nth(number - 1).unwrap();
    let first = "DATA rpc 100 request 0..64 of 64 [complete]";
    assert!(line(1).contains(" apus ") && line(1).ends_with(first), "{lines}");
    let offload = "DATA rpc 102 request 0..500 of 4000 | DATA rpc 102 request 500..1000 of 4000";
    assert!(line(5).ends_with(offload), "{lines}");
    assert!(line(19).contains(" ICMP ") && line(20).contains(" Homa "), "{lines}");
}

#[test]
fn ports_can_be_configured() {
    let Some(plug_in) = plug_in() else { return };
    let folder = tempfile::tempdir().unwrap();
    let strange = ip(Profile::Udp, Role::Client, b"not a packet of apus, whatever its ports say");
    let file = write_file(folder.path(), "strange.pcap", &raw_pcap(&[strange]));
    assert_eq!(tshark(&plug_in, &file, &[]).len(), 0);
    for named in [["-o", "apus.ports:4000"], ["-d", "udp.port==4000,apus"]] {
        let shown = tshark(&plug_in, &file, &named);
        assert_eq!(shown.len(), 1, "{named:?}");
        assert_eq!(shown[0]["apus.malformed"].len(), 1, "{named:?}");
    }
}
