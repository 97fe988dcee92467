//! The example capture of the documentation and of the command's tests; contains most events that
//! can occur.

use std::path::{Path, PathBuf};

use apus_wire::{Ack, Body, Data, Flags, Grant, Profile, Refusal, Resend, Role};
use pcap_file::DataLink;

use crate::builders::{
    BYTES, SERVER, data, decode, ethernet, ip, ip_call, packet, packet_with, pcap, port_unreachable,
};

/// Builds the records: a first call with a session challenge; a long request, merged by offload,
/// with grants, a loss and a retransmission; a refusal; a closed port; a call of the kernel module;
/// a datagram of another protocol; an invalid packet.
fn records() -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    let session = Flags::SESSION;
    let mut push = |from, id, body: Body<'_>, flags, sequence| {
        let bytes = packet_with(Profile::Udp, from, id, body, flags, sequence);
        records.push(ip(Profile::Udp, from, &bytes));
    };
    let whole = |length: usize| Body::Data(data(length as u32, 0), &BYTES[..length]);
    push(Role::Client, 100, whole(64), Flags::NONE, 0);
    push(Role::Server, 100, Body::NeedAck, session.with(Flags::CONFIRM), 0);
    push(Role::Client, 100, Body::Busy, session.with(Flags::CONFIRM), 0);
    push(Role::Server, 100, whole(200), session, 0);
    // A request of 4000 bytes, 1000 of them unscheduled. The third packet is lost before the
    // capture.
    let part = |offset, change: &dyn Fn(&mut Data)| {
        let mut fields = Data { incoming: 1000, ..data(4000, offset) };
        change(&mut fields);
        fields
    };
    let acking = |fields: &mut Data| {
        fields.ack = Some(Ack { client_id: 100, server_port: SERVER });
    };
    let piece = &BYTES[..500];
    let offload = |parts: [Data; 2]| {
        let bytes = parts.map(|fields| {
            packet_with(Profile::Udp, Role::Client, 102, Body::Data(fields, piece), session, 0)
        });
        ip(Profile::Udp, Role::Client, &bytes.concat())
    };
    let first = offload([part(0, &acking), part(500, &|_| ())]);
    records.push(first);
    let mut push = |from, id, body: Body<'_>, flags, sequence| {
        let bytes = packet_with(Profile::Udp, from, id, body, flags, sequence);
        records.push(ip(Profile::Udp, from, &bytes));
    };
    push(Role::Server, 102, Body::Grant(Grant { offset: 3000, priority: 1 }), session, 0);
    for offset in [1000, 2000, 2500] {
        push(Role::Client, 102, Body::Data(part(offset, &|_| ()), piece), session, 0);
    }
    push(Role::Server, 102, Body::Grant(Grant { offset: 4000, priority: 1 }), session, 0);
    for offset in [3000, 3500] {
        push(Role::Client, 102, Body::Data(part(offset, &|_| ()), piece), session, 0);
    }
    let resend = Resend { offset: 1500, length: 500, priority: 7, brief: false };
    push(Role::Server, 102, Body::Resend(resend), session, 0);
    let again = |fields: &mut Data| fields.retransmit = true;
    push(Role::Client, 102, Body::Data(part(1500, &again), piece), session, 0);
    push(Role::Server, 102, whole(10), session, 0);
    // A request that the server refuses as overloaded.
    push(Role::Client, 104, whole(64), session, 0);
    let refused = session.with(Flags::REFUSED);
    push(Role::Server, 104, Body::RpcUnknown, refused, Refusal::Overloaded as u32);
    // A request to a closed port.
    push(Role::Client, 106, whole(64), session, 0);
    let closed = records.last().map(|request| port_unreachable(request));
    records.extend(closed);
    // The kernel module, a foreign datagram, and an invalid packet.
    records.extend(ip_call(Profile::Kernel, 8));
    records.push(ip(Profile::Udp, Role::Client, b"between the same two ports, and yet no packet"));
    let mut wrong = packet(Profile::Kernel, Role::Client, 10, Body::Busy);
    wrong[11] = 0x77;
    records.push(ip(Profile::Kernel, Role::Client, &wrong));
    records
}

/// Returns the capture as a pcap file with Ethernet headers.
pub(crate) fn capture() -> Vec<u8> {
    let frames: Vec<_> = records().iter().map(|packet| ethernet(packet)).collect();
    pcap(DataLink::ETHERNET, &frames)
}

/// Path of the file in the tests of the command; `None` outside the repository.
fn stored_path() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apus/tests/cli/cmd/decode.in");
    if folder.exists() {
        return Some(folder.join("story.pcap"));
    }
    eprintln!("SKIPPED: {} is not there: this is not the repository", folder.display());
    None
}

#[test]
fn the_command_is_tested_with_this_capture() {
    assert!(decode(&capture()).1.is_none());
    let Some(path) = stored_path() else { return };
    if std::env::var_os("APUS_WRITE_CORPUS").is_some() {
        std::fs::write(&path, capture()).unwrap();
    } else {
        let same = std::fs::read(&path).unwrap_or_default() == capture();
        assert!(same, "{}: write it anew with APUS_WRITE_CORPUS=1", path.display());
    }
}
