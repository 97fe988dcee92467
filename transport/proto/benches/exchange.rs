//! Benchmark of the core: the cost per packet, without any system call.
//!
//! Two transports call each other through function calls. `cargo bench -p apus-proto` prints the
//! time per exchange (a request and a response: two packets sent, two received).

use apus_proto::{Call, Config, Datagram, Event, Instant, Payload, Transport};
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::net::SocketAddr;
use std::time::Duration;

struct Pair {
    client: Transport,
    server: Transport,
    addresses: [SocketAddr; 2],
    now: Instant,
    wire: Vec<u8>,
}

impl Pair {
    /// A client with `requests` long requests in its send queue, because its link is slow.
    fn with_standing(requests: u64) -> Self {
        let mut pair = Self::new();
        let slow = Config::builder().link_mbps(1).max_send_bytes(1 << 40);
        pair.client = Transport::new(slow.build().unwrap(), 1, 1);
        let payload = Bytes::from(vec![7; 10_000]);
        for cookie in 0..requests {
            let payload = Payload::from(payload.clone());
            let to = SocketAddr::from(([10, 0, 0, 3], 3));
            let call = Call { to, payload, cookie, deadline: None, idempotent: false };
            pair.client.call(pair.now, call).unwrap();
        }
        // The first burst leaves and takes the link for a long time.
        while pair.client.poll_transmit(pair.now).is_some() {}
        pair
    }

    fn new() -> Self {
        let addresses =
            [SocketAddr::from(([10, 0, 0, 1], 1)), SocketAddr::from(([10, 0, 0, 2], 2))];
        Self {
            client: Transport::new(Config::default(), 1, 1),
            server: Transport::new(Config::default(), 2, 2),
            addresses,
            now: Instant::from_nanos(1_000_000_000),
            wire: Vec::with_capacity(65_536),
        }
    }

    /// `outstanding` calls of `payload`, all answered with the same bytes.
    fn round(&mut self, payload: &Bytes, outstanding: usize) {
        for cookie in 0..outstanding as u64 {
            let payload = Payload::from(payload.clone());
            let to = self.addresses[1];
            let call = Call { to, payload, cookie, deadline: None, idempotent: false };
            self.client.call(self.now, call).unwrap();
        }
        let mut responses = 0;
        while responses < outstanding {
            self.now += Duration::from_micros(1);
            let Self { client, server, addresses, now, wire } = self;
            carry(client, server, addresses[0], *now, wire);
            while let Some(event) = server.poll_event() {
                if let Event::Request { rpc, payload, .. } = event {
                    server.payload_consumed(payload.len());
                    server.reply(*now, rpc, payload.into()).unwrap();
                }
            }
            carry(server, client, addresses[1], *now, wire);
            while let Some(event) = client.poll_event() {
                if let Event::Response { payload, .. } = event {
                    client.payload_consumed(payload.len());
                    responses += 1;
                }
            }
        }
    }
}

fn carry(
    from: &mut Transport,
    to: &mut Transport,
    address: SocketAddr,
    now: Instant,
    wire: &mut Vec<u8>,
) {
    while let Some(transmit) = from.poll_transmit(now) {
        let (len, segment) = (transmit.header_len(), transmit.segment());
        let payload: Vec<&[u8]> = transmit.payload().collect();
        let payload = payload.first().copied().unwrap_or(&[]);
        for (i, header) in transmit.headers().chunks(len).enumerate() {
            wire.clear();
            wire.extend_from_slice(header);
            let end = ((i + 1) * segment).min(payload.len());
            wire.extend_from_slice(&payload[(i * segment).min(end)..end]);
            to.handle_datagram(now, Datagram::new(address, wire));
        }
    }
}

fn exchange(c: &mut Criterion) {
    let mut group = c.benchmark_group("exchange");
    for (size, outstanding) in [(100, 1), (100, 64), (1_000, 64), (500_000, 8)] {
        let payload = Bytes::from(vec![7; size]);
        group.throughput(Throughput::Elements(outstanding as u64));
        let mut pair = Pair::new();
        group.bench_function(format!("{size}B x{outstanding}"), |b| {
            b.iter(|| pair.round(&payload, outstanding));
        });
    }
    group.finish();
}

/// The kernel module lost a factor of ten to a send queue that was searched from the wrong end. The
/// figures of one group should differ by cache misses alone.
fn standing(c: &mut Criterion) {
    const OUTSTANDING: usize = 64;
    let mut group = c.benchmark_group("exchange beside standing requests");
    let payload = Bytes::from(vec![7; 100]);
    for requests in [0, 100, 10_000] {
        group.throughput(Throughput::Elements(OUTSTANDING as u64));
        let mut pair = Pair::with_standing(requests);
        group.bench_function(format!("{requests}"), |b| {
            b.iter(|| pair.round(&payload, OUTSTANDING));
        });
    }
    group.finish();
}

criterion_group!(benches, exchange, standing);
criterion_main!(benches);
