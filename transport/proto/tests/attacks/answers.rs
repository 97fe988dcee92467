//! Questions whose answers cost more than they do. Requirements TIME-17 and WIRE-29.

use crate::service::{RawClient, Service};
use apus_proto::Config;
use apus_wire::{Body, Resend};
use std::time::Duration;

/// A datagram of 64 RESENDs was answered with 64 datagrams. Its sender reads several packets of a
/// datagram, since it sends them.
#[test]
fn answers_to_a_datagram_share_one() {
    let mut service = Service::new(Config::default(), |_| None);
    let mut raw = RawClient::enter(&mut service, 1, 1);
    let known: Vec<u64> = (0..32).map(|_| raw.request(&mut service, 1)).collect();
    service.to_raw_clients.clear();
    let unknown = (0..32).map(|n| 1_000 + 2 * n);
    let resend = Body::Resend(Resend::everything(7));
    let packets = known.into_iter().chain(unknown).map(|id| raw.packet(id, resend));
    let datagram = packets.collect::<Vec<_>>().concat();
    service.receive(raw.address, &datagram);

    let answers: Vec<_> = service.to_raw_clients.drain(..).collect();
    assert_eq!(answers.len(), 64);
    assert!(answers.iter().all(|(_, shared, _)| *shared == datagram.len()), "WIRE-29");
    let bytes: usize = answers.iter().map(|(_, _, packet)| packet.len()).sum();
    assert!(bytes <= datagram.len(), "they fit into one: {bytes} bytes");

    // A single packet says nothing about what its sender reads.
    raw.send(&mut service, 2_000, resend);
    assert_eq!(service.to_raw_clients.pop_back().map(|(_, shared, _)| shared), Some(0));
}

/// RESENDs for a response of 60 kB brought 40 kB each, at 1.5 Mbit/s.
#[test]
fn a_response_is_not_sent_again_for_each_resend() {
    let mut service = Service::new(Config::default(), |_| Some(60_000));
    let mut raw = RawClient::enter(&mut service, 1, 1);
    let id = raw.request(&mut service, 1);
    service.run(Duration::from_millis(10));
    let resend =
        |offset, length| Body::Resend(Resend { offset, length, priority: 7, brief: false });
    let mut sent = || {
        let datagrams = std::mem::take(&mut service.to_raw_clients);
        let sent: usize = datagrams.iter().map(|(_, _, packet)| packet.len()).sum();
        for body in [resend(0, 60_000), resend(20_000, 40_000), resend(1_000, 59_000)] {
            raw.send(&mut service, id, body);
            service.run(Duration::from_millis(1));
        }
        sent
    };
    sent();
    let bytes: usize = (0..1_000).map(|_| sent()).sum();
    // Twice in full, twice for what seems to have arrived, and a packet for each RESEND.
    assert!(bytes < 4 * 62_000 + 3_000 * 1_500, "{bytes} bytes for 3,000 RESENDs");
}
