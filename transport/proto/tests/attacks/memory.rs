//! Memory: what is allocated, compared with what the budgets count. Each test fills a table in the
//! worst way that was found. Requirements CAP-10, CAP-13, CAP-21, CAP-22.

use crate::service::{RawClient, Service};
use allocation_counter::measure;
use apus_proto::Config;
use apus_wire::{Body, Data, Resend};
use std::time::Duration;

/// The table of `docs/spec/caps.md`.
const RPC: u64 = 1 << 10;
const PEER: u64 = 2 << 10;
const DORMANT_SESSION: u64 = 512;
const CONTROL_PACKET: u64 = 192;

/// Bytes of an allocator for each block. Source: glibc, 8 bytes and alignment to 16.
const BLOCK: u64 = 16;

/// Runs `fill`, and returns the bytes that are allocated more afterwards.
fn allocated(fill: impl FnOnce()) -> u64 {
    let info = measure(fill);
    let signed = info.bytes_current + info.count_current * BLOCK as i64;
    u64::try_from(signed).unwrap_or(0)
}

/// What the budgets count of a service.
fn counted(service: &Service) -> u64 {
    let live = service.server.live();
    live.receive_bytes + live.server_rpcs * RPC + live.peers * PEER
}

/// The bytes are at most one and a half times the budget.
fn check(what: &str, bytes: u64, budget: u64) {
    println!("{what}: {bytes} bytes allocated, {budget} counted");
    assert!(bytes <= budget * 3 / 2, "{what}: {bytes} bytes for {budget}");
}

/// Sends the byte at each of these offsets of a message of `length` bytes.
fn single_bytes(
    service: &mut Service,
    raw: &mut RawClient,
    length: u32,
    offsets: impl Iterator<Item = u32>,
) {
    let id = raw.next_id();
    for offset in offsets {
        let data = Data { message_length: length, offset, ..Data::first(length, length) };
        raw.send(service, id, Body::Data(data, &[7]));
    }
}

/// 400 messages of 2,050 bytes took 107 kB each.
#[test]
fn every_second_byte() {
    for length in [2_050, 60_000, 1_000_000] {
        let mut service = Service::new(Config::default(), |_| None);
        let mut raw = RawClient::enter(&mut service, 1, 1);
        let bytes = allocated(|| {
            for _ in 0..400 {
                single_bytes(&mut service, &mut raw, length, (1..2_050).step_by(2));
            }
        });
        check("every second byte", bytes, counted(&service));
        let bytes = allocated(|| service.run(Duration::from_millis(200)));
        check("after they have stalled", bytes, counted(&service));
    }
}

/// A message grows in steps.
#[test]
fn growing_messages() {
    let mut service = Service::new(Config::default(), |_| None);
    let mut raw = RawClient::enter(&mut service, 1, 1);
    let bytes = allocated(|| {
        for _ in 0..8 {
            let id = raw.next_id();
            let length = 60_000_000;
            let piece = vec![7; 60_000];
            for offset in (0..1_020_000).step_by(60_000) {
                let data = Data { message_length: length, offset, ..Data::first(length, length) };
                raw.send(&mut service, id, Body::Data(data, &piece));
            }
        }
    });
    check("messages that grow", bytes, counted(&service));
}

/// Memory of long messages serves shorter ones.
#[test]
fn memory_that_is_used_again() {
    let mut service = Service::new(Config::default(), |_| None);
    let mut raw = RawClient::enter(&mut service, 1, 1);
    let piece = vec![7; 60_000];
    let bytes = allocated(|| {
        for _ in 0..40 {
            for (length, upto) in [(1_000_000, 1_000_000), (540_000, 480_000)] {
                let id = raw.next_id();
                for offset in (0..upto).step_by(60_000) {
                    let data =
                        Data { message_length: length, offset, ..Data::first(length, length) };
                    let rest = piece.len().min((length - offset) as usize);
                    raw.send(&mut service, id, Body::Data(data, &piece[..rest]));
                }
            }
        }
    });
    // CAP-14.
    check("memory that is used again", bytes, counted(&service) + (8 << 20));
}

/// Sessions with 4,608 ids and a gap between each two took 70 kB each, and were kept when their
/// clients had gone.
#[test]
fn gaps_between_finished_ids() {
    let mut service = Service::new(Config::default(), |_| Some(4));
    let mut ports = Vec::new();
    let bytes = allocated(|| {
        for port in 1..=20 {
            let mut raw = RawClient::enter(&mut service, (port % 3) as u8, port);
            for _ in 0..600 {
                raw.next_id();
                let id = raw.request(&mut service, 1);
                raw.send(&mut service, id, Body::Ack(apus_wire::AckList::EMPTY));
            }
            raw.send(&mut service, 2, Body::Ack(apus_wire::AckList::EMPTY));
            service.to_raw_clients.clear();
            ports.push(raw);
        }
    });
    // 600 ranges of 16 bytes each. `peer/table.rs` has a test of the limit.
    check("gaps of live sessions", bytes, counted(&service) + 20 * 600 * 16);

    assert_eq!(service.server.live().peers, 20);
    let info = measure(|| {
        for _ in 0..130 {
            service.run(Duration::from_millis(1));
            service.now += Duration::from_secs(1);
        }
    });
    assert_eq!(service.server.live().peers, 0, "they are idle");
    assert!(info.bytes_current < -100_000, "their ids are freed: {}", info.bytes_current);
}

/// Sessions of clients that are idle.
#[test]
fn dormant_sessions() {
    let mut service = Service::new(Config::default(), |_| Some(4));
    let bytes = allocated(|| {
        for port in 1..=2_000 {
            let mut raw = RawClient::enter(&mut service, (port % 250) as u8, port);
            for _ in 0..20 {
                raw.next_id();
                let id = raw.request(&mut service, 1);
                raw.send(&mut service, id, Body::Ack(apus_wire::AckList::EMPTY));
            }
            raw.send(&mut service, 2, Body::Ack(apus_wire::AckList::EMPTY));
            service.to_raw_clients.clear();
        }
        for _ in 0..130 {
            service.run(Duration::from_millis(1));
            service.now += Duration::from_secs(1);
        }
        service.to_raw_clients = std::collections::VecDeque::new();
    });
    assert_eq!(service.server.live().peers, 0);
    // Tables of peers and RPCs keep their slots.
    check("dormant sessions", bytes, 2_000 * (DORMANT_SESSION + PEER));
}

/// Each response remembers what was requested of it.
#[test]
fn ranges_that_are_requested() {
    let mut service = Service::new(Config::default(), |_| Some(200_000));
    let mut raw = RawClient::enter(&mut service, 1, 1);
    let bytes = allocated(|| {
        for _ in 0..100 {
            let id = raw.request(&mut service, 1);
            let grant = apus_wire::Grant { offset: 200_000, priority: 0 };
            raw.send(&mut service, id, Body::Grant(grant));
            service.to_raw_clients.clear();
            for offset in (0..200_000).step_by(2_900) {
                let resend = Resend { offset, length: 1, priority: 7, brief: false };
                raw.send(&mut service, id, Body::Resend(resend));
                service.to_raw_clients.clear();
            }
        }
        service.to_raw_clients = std::collections::VecDeque::new();
    });
    let budget = counted(&service) + service.server.live().send_bytes;
    check("ranges that are requested", bytes, budget);
}

/// Answers that the network does not take.
#[test]
fn answers_that_wait() {
    let mut service = Service::new(Config::default(), |_| None);
    let raw = RawClient::enter(&mut service, 1, 1);
    let packet = raw.packet(4_000, Body::Resend(Resend::everything(7)));
    let bytes = allocated(|| {
        for _ in 0..20_000 {
            let datagram = apus_proto::Datagram::new(raw.address, &packet);
            service.server.handle_datagram(service.now, datagram);
        }
    });
    assert_eq!(service.server.live().control_packets, 8_192, "CAP-9");
    check("answers that wait", bytes, 8_192 * CONTROL_PACKET);
}
