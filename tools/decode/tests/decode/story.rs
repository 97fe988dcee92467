//! A small capture in which most of what can happen does: what the documentation and the tests of the command show.

use std::path::{Path, PathBuf};

use apus_wire::{Ack, Body, Data, Flags, Grant, Profile, Refusal, Resend, Role};
use pcap_file::DataLink;

use crate::making::{
    BYTES, SERVER, data, decode, ethernet, ip, ip_call, packet, packet_with, pcap, port_unreachable,
};

/// A first call with the question whether it lives; a long request with grants, a loss and a retransmission, merged
/// by offload; a refusal; a closed port; the same with the kernel module; something else; and a packet that is wrong.
fn story() -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    let session = Flags::SESSION;
    let mut say = |from, id, body: Body<'_>, flags, sequence| {
        let bytes = packet_with(Profile::Udp, from, id, body, flags, sequence);
        records.push(ip(Profile::Udp, from, &bytes));
    };
    let whole = |length: usize| Body::Data(data(length as u32, 0), &BYTES[..length]);
    say(Role::Client, 100, whole(64), Flags::NONE, 0);
    say(Role::Server, 100, Body::NeedAck, session.with(Flags::CONFIRM), 0);
    say(Role::Client, 100, Body::Busy, session.with(Flags::CONFIRM), 0);
    say(Role::Server, 100, whole(200), session, 0);
    // A request of 4000 bytes, 1000 of them unscheduled; the third packet is lost before the capture.
    let part = |offset, change: &dyn Fn(&mut Data)| {
        let mut fields = Data { incoming: 1000, ..data(4000, offset) };
        change(&mut fields);
        fields
    };
    let acking = |fields: &mut Data| {
        fields.ack = Some(Ack { client_id: 100, server_port: SERVER });
    };
    let piece = &BYTES[..500];
    let merged = |parts: [Data; 2]| {
        let bytes = parts.map(|fields| {
            packet_with(Profile::Udp, Role::Client, 102, Body::Data(fields, piece), session, 0)
        });
        ip(Profile::Udp, Role::Client, &bytes.concat())
    };
    let first = merged([part(0, &acking), part(500, &|_| ())]);
    records.push(first);
    let mut say = |from, id, body: Body<'_>, flags, sequence| {
        let bytes = packet_with(Profile::Udp, from, id, body, flags, sequence);
        records.push(ip(Profile::Udp, from, &bytes));
    };
    say(Role::Server, 102, Body::Grant(Grant { offset: 3000, priority: 1 }), session, 0);
    for offset in [1000, 2000, 2500] {
        say(Role::Client, 102, Body::Data(part(offset, &|_| ()), piece), session, 0);
    }
    say(Role::Server, 102, Body::Grant(Grant { offset: 4000, priority: 1 }), session, 0);
    for offset in [3000, 3500] {
        say(Role::Client, 102, Body::Data(part(offset, &|_| ()), piece), session, 0);
    }
    let resend = Resend { offset: 1500, length: 500, priority: 7, brief: false };
    say(Role::Server, 102, Body::Resend(resend), session, 0);
    let again = |fields: &mut Data| fields.retransmit = true;
    say(Role::Client, 102, Body::Data(part(1500, &again), piece), session, 0);
    say(Role::Server, 102, whole(10), session, 0);
    // One that the server has no room for.
    say(Role::Client, 104, whole(64), session, 0);
    let refused = session.with(Flags::REFUSED);
    say(Role::Server, 104, Body::RpcUnknown, refused, Refusal::Overloaded as u32);
    // One that comes too late.
    say(Role::Client, 106, whole(64), session, 0);
    let closed = records.last().map(|request| port_unreachable(request));
    records.extend(closed);
    // The kernel module, a name server, and bytes that are no packet.
    records.extend(ip_call(Profile::Kernel, 8));
    records.push(ip(Profile::Udp, Role::Client, b"between the same two ports, and yet no packet"));
    let mut wrong = packet(Profile::Kernel, Role::Client, 10, Body::Busy);
    wrong[11] = 0x77;
    records.push(ip(Profile::Kernel, Role::Client, &wrong));
    records
}

/// The capture, as a file behind Ethernet headers.
pub(crate) fn capture() -> Vec<u8> {
    let frames: Vec<_> = story().iter().map(|packet| ethernet(packet)).collect();
    pcap(DataLink::ETHERNET, &frames)
}

/// Where the tests of the command have it; `None` if this is not the repository.
fn kept() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/cli/cmd/decode.in");
    if folder.exists() {
        return Some(folder.join("story.pcap"));
    }
    eprintln!("SKIPPED: {} is not there: this is not the repository", folder.display());
    None
}

#[test]
fn the_command_is_tested_with_this_capture() {
    assert!(decode(&capture()).1.is_none());
    let Some(path) = kept() else { return };
    if std::env::var_os("APUS_WRITE_CORPUS").is_some() {
        std::fs::write(&path, capture()).unwrap();
    } else {
        let same = std::fs::read(&path).unwrap_or_default() == capture();
        assert!(same, "{}: write it anew with APUS_WRITE_CORPUS=1", path.display());
    }
}
