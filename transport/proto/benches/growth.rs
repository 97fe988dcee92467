//! Benchmark of the tables that raw clients can fill: the cost of a step beside a table, and beside one
//! of twice, four times and eight times the size (CORE-5).
//!
//! `cargo bench -p apus-proto --bench growth` prints the time of a step. Figures of one group should
//! differ by cache misses and the logarithm of the size. Instructions without noise:
//! `valgrind --tool=callgrind --toggle-collect='growth::step*' growth --bench 'TABLE/SIZE'`.

use apus_proto::{Config, Datagram, Event, Instant, Transport};
use apus_wire::{
    AckList, Body, Data, Dialect, Features, Flags, Header, HeaderBuffer, MAX_HEADER_LEN, Packet,
    Profile, Resend, Role, SenderId, UdpFields,
};
use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::net::SocketAddr;
use std::time::Duration;

const PORT: u16 = 1;

/// A server, and clients that write their packets by hand.
struct World {
    server: Transport,
    now: Instant,
    /// Length of replies; `None` if the application does not reply.
    reply: Option<usize>,
}

/// A client in a session.
#[derive(Clone, Copy)]
struct Client {
    address: SocketAddr,
    fields: UdpFields,
    next_id: u64,
}

impl World {
    fn new(reply: Option<usize>) -> Self {
        let config = Config::builder().max_peers(100_000).max_peers_per_host(100_000);
        let server = Transport::new(config.build().unwrap(), PORT, 1);
        Self { server, now: Instant::from_nanos(1_000_000_000), reply }
    }

    fn receive(&mut self, client: &Client, id: u64, body: Body<'_>) -> Option<UdpFields> {
        let sender = SenderId::new(id, Role::Client);
        let dialect = Dialect::Udp(client.fields);
        let header = Header::new(body.kind(), client.address.port(), PORT, sender, dialect);
        let payload = if let Body::Data(_, payload) = &body { payload } else { &[][..] };
        let mut bytes: HeaderBuffer = [0; MAX_HEADER_LEN];
        let length = Packet { header, body }.emit_header(&mut bytes);
        let datagram = [&bytes[..length], payload].concat();
        step(self, client.address, &datagram)
    }

    /// A client at a host and port gets a session.
    fn enter(&mut self, host: u32, port: u16) -> Client {
        let address = SocketAddr::from(((0x0a00_0000 + host).to_be_bytes(), port));
        let fields = UdpFields {
            flags: Flags::NONE,
            incarnation: 7,
            low_water: UdpFields::LOW_WATER_UNKNOWN,
            features: Features::OURS,
        };
        let mut client = Client { address, fields, next_id: 4 };
        let first = Body::Data(Data::first(1, 1), &[7]);
        let offer = self.receive(&client, 2, first).expect("an offer");
        client.fields.incarnation = offer.incarnation;
        client.fields.low_water = offer.low_water;
        client.fields.flags = Flags::SESSION.with(Flags::CONFIRM);
        self.receive(&client, 2, first);
        client.fields.flags = Flags::SESSION;
        client.fields.low_water = UdpFields::LOW_WATER_UNKNOWN;
        client
    }

    fn request(&mut self, client: &mut Client, ids: u64) -> u64 {
        client.next_id += 2 * ids;
        self.receive(client, client.next_id, Body::Data(Data::first(1, 1), &[7]));
        client.next_id
    }
}

/// A datagram arrives, the application replies, packets leave. Returns the fields of the last one.
#[inline(never)]
fn step(world: &mut World, from: SocketAddr, datagram: &[u8]) -> Option<UdpFields> {
    let World { server, now, reply } = world;
    *now += Duration::from_micros(1);
    server.handle_datagram(*now, Datagram::new(from, datagram));
    while let Some(event) = server.poll_event() {
        if let Event::Request { rpc, payload, .. } = event {
            server.payload_consumed(payload.len());
            if let Some(length) = reply {
                let _ = server.reply(*now, rpc, Bytes::from(vec![7; *length]).into());
            }
        }
    }
    if server.next_timeout().is_some_and(|(at, _)| at <= *now) {
        server.handle_timeout(*now);
    }
    let mut fields = None;
    while let Some(transmit) = server.poll_transmit(*now) {
        if let Ok(packet) = Packet::parse(Profile::Udp, transmit.headers()) {
            fields = packet.header.udp().copied();
        }
    }
    fields
}

const SIZES: [u32; 4] = [1_000, 2_000, 4_000, 8_000];

/// One step of a world beside a table of each size: `fill` fills it, `next` does the step.
fn growth<S>(
    c: &mut Criterion,
    table: &str,
    fill: impl Fn(u32) -> (World, S),
    next: impl Fn(&mut World, &mut S),
) {
    let mut group = c.benchmark_group(table);
    for size in SIZES {
        let (mut world, mut state) = fill(size);
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter(|| next(black_box(&mut world), black_box(&mut state)));
        });
    }
    group.finish();
}

fn call(world: &mut World, client: &mut Client) {
    let id = world.request(client, 1);
    world.receive(client, id, Body::Ack(AckList::EMPTY));
}

fn tables(c: &mut Criterion) {
    growth(
        c,
        "peers",
        |size| {
            let mut world = World::new(Some(4));
            let last = (0..size).map(|n| world.enter(n / 8, n as u16 % 8 + 1)).last();
            (world, last.expect("some"))
        },
        call,
    );
    growth(
        c,
        "requests in service",
        |size| {
            let mut world = World::new(None);
            let mut client = world.enter(1, 1);
            (0..size).for_each(|_| _ = world.request(&mut client, 1));
            world.reply = Some(4);
            (world, client)
        },
        call,
    );
    growth(
        c,
        "kept responses of the host",
        |size| {
            let mut world = World::new(Some(2_000));
            let mut client = world.enter(1, 1);
            (0..size).for_each(|_| _ = world.request(&mut client, 1));
            (world, client)
        },
        call,
    );
    growth(
        c,
        "gaps between finished ids",
        |size| {
            let mut world = World::new(Some(4));
            let mut client = world.enter(1, 1);
            for _ in 0..size.min(4_000) {
                let id = world.request(&mut client, 2);
                world.receive(&client, id, Body::Ack(AckList::EMPTY));
            }
            (world, client)
        },
        |world, client| {
            let id = world.request(client, 2);
            world.receive(client, id, Body::Ack(AckList::EMPTY));
        },
    );
    growth(
        c,
        "hosts with requests that wait for room",
        |size| {
            let mut world = World::new(None);
            for host in 0..size {
                let client = world.enter(host, 1);
                let data = Data { message_length: 60_000_000, ..Data::first(60_000_000, 1) };
                world.receive(&client, 4, Body::Data(data, &[7; 1_400]));
            }
            let client = world.enter(size, 1);
            world.reply = Some(4);
            (world, client)
        },
        call,
    );
    growth(
        c,
        "ranges of a response that are requested",
        |size| {
            let mut world = World::new(Some(60_000_000));
            let mut client = world.enter(1, 1);
            let id = world.request(&mut client, 1);
            let grant = apus_wire::Grant { offset: 60_000_000, priority: 0 };
            world.receive(&client, id, Body::Grant(grant));
            (world, (client, id, size))
        },
        |world, (client, id, at)| {
            *at += 7;
            let offset = *at % 10_000 * 2_900;
            let resend = Resend { offset, length: 1, priority: 7, brief: false };
            world.receive(client, *id, Body::Resend(resend));
        },
    );
}

criterion_group!(benches, tables);
criterion_main!(benches);
