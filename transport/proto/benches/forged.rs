//! Benchmark of the core: the cost of a forged packet, without any system call.
//!
//! An endpoint is in the middle of a call and of a request, and has 1,000 peers. Each packet is
//! valid, has the address of a peer and the id of a live RPC, and shows a session that is not the
//! RPC's: the most expensive kind to reject. `cargo bench -p apus-proto --bench forged` prints the
//! time per packet for each kind. For comparison, packets of an unknown RPC, of an unknown client,
//! and malformed bytes.

use apus_proto::{Call, Config, Datagram, Instant, Kind, Role, Transport};
use apus_wire::{
    AckList, Body, Cutoffs, Data, Dialect, Features, Flags, Grant, Header, MAX_HEADER_LEN, Packet,
    Resend, SenderId, UdpFields,
};
use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::net::SocketAddr;

/// The port of the endpoint, and of all peers.
const PORT: u16 = 1;
/// Peers of the endpoint.
const PEERS: u32 = 1_000;

fn address(peer: u32) -> SocketAddr {
    SocketAddr::from(((10 << 24 | peer).to_be_bytes(), PORT))
}

fn header(kind: Kind, sender: SenderId, flags: Flags) -> Header {
    let incarnation = 0x0bad_5e55;
    let low_water = UdpFields::LOW_WATER_UNKNOWN;
    let fields = UdpFields { flags, incarnation, low_water, features: Features::OURS };
    Header::new(kind, PORT, PORT, sender, Dialect::Udp(fields))
}

fn body(kind: Kind, payload: &[u8]) -> Body<'_> {
    match kind {
        Kind::Data => {
            let data = Data::first(100_000, 10_000);
            Body::Data(data, payload)
        }
        Kind::Grant => Body::Grant(Grant { offset: 100_000, priority: 7 }),
        Kind::Resend => Body::Resend(Resend::everything(7)),
        Kind::RpcUnknown => Body::RpcUnknown,
        Kind::Busy => Body::Busy,
        Kind::Cutoffs => Body::Cutoffs(Cutoffs { unscheduled: [1; 8], version: 7 }),
        Kind::Freeze => Body::Freeze,
        Kind::NeedAck => Body::NeedAck,
        Kind::Ack => Body::Ack(AckList::EMPTY),
    }
}

/// Returns a packet with a session that is wrong, or without one.
fn packet(kind: Kind, sender: SenderId, flags: Flags) -> Vec<u8> {
    let payload = [7; 1_000];
    let body = body(kind, &payload);
    let mut buffer = [0; MAX_HEADER_LEN];
    let len = Packet { header: header(kind, sender, flags), body }.emit_header(&mut buffer);
    let payload: &[u8] = if kind == Kind::Data { &payload } else { &[] };
    [&buffer[..len], payload].concat()
}

/// An endpoint with a live call to each of [`PEERS`] peers. Returns the id of the call to the first
/// one.
fn endpoint(now: Instant) -> (Transport, u64) {
    let mut endpoint = Transport::new(Config::default(), PORT, 1);
    let payload = Bytes::from(vec![7; 20_000]);
    let mut first = None;
    for peer in 0..PEERS {
        let payload = payload.clone().into();
        let call =
            Call { to: address(peer), payload, cookie: 0, deadline: None, idempotent: false };
        let rpc = endpoint.call(now, call).expect("there is room");
        first.get_or_insert(rpc);
    }
    while endpoint.poll_transmit(now).is_some() {}
    let id = first.and_then(|rpc| endpoint.info_of(rpc)).expect("it lives").id;
    (endpoint, id)
}

fn turned_away(c: &mut Criterion) {
    let now = Instant::from_nanos(1_000_000_000);
    let mut group = c.benchmark_group("turned away");
    let mut measure = |name: &str, peer: u32, bytes: &[u8]| {
        let (mut endpoint, _) = endpoint(now);
        group.bench_function(name, |b| {
            b.iter(|| {
                endpoint.handle_datagram(now, Datagram::new(address(peer), black_box(bytes)));
                // Questions and answers leave: a queue that is full would make packets cheap.
                while endpoint.poll_transmit(now).is_some() {}
            });
        });
    };
    let (_, id) = endpoint(now);
    let live = SenderId::new(id, Role::Server);
    for kind in Kind::ALL {
        measure(kind.name(), 0, &packet(kind, live, Flags::SESSION));
    }
    for kind in [Kind::Data, Kind::Resend, Kind::NeedAck] {
        let unknown = SenderId::new(id ^ 0xffff_0000, Role::Server);
        let name = format!("{} of an unknown call", kind.name());
        measure(&name, 0, &packet(kind, unknown, Flags::SESSION));
    }
    let request = packet(Kind::Data, SenderId::new(40, Role::Client), Flags::NONE);
    measure("DATA of an unknown client", PEERS + 1, &request);
    measure("no packet", 0, &[0xff; 100]);
    group.finish();
}

criterion_group!(benches, turned_away);
criterion_main!(benches);
