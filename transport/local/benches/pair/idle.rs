//! Cost of idle pairs for a receiver from all of them.

use std::cell::LazyCell;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use apus_local::{
    Local, LocalConfig, Lookup, Pair, PairEvent, PeerName, PollEvent, PollSet, ReceiveQuota,
};
use bytes::Bytes;

use crate::{Table, pair};

const POLLS: u32 = 1_000_000;

pub(crate) fn measure(table: &Table) {
    table.line("idle: a poll of one pair, ns", || {
        let (client, _server) = pair();
        let mut events = Vec::new();
        nanoseconds(POLLS, || {
            black_box(&client).receive(ReceiveQuota::default(), &mut events).unwrap();
        })
    });
    for count in [1, 8, 64, 512] {
        let fixture = LazyCell::new(|| Fixture::new(count));
        table.line(&format!("idle: a pass over {count}, ns"), || fixture.pass());
        let name = format!("idle: a round trip, one of {count}, one thread, ns");
        table.line(&name, || fixture.round_trip());
    }
}

fn nanoseconds(times: u32, mut what: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..times).for_each(|_| what());
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(times)
}

/// A server with `count` clients.
pub(crate) struct Fixture {
    pub(crate) server: Local,
    pub(crate) clients: Vec<(Local, Arc<Pair>)>,
}

impl Fixture {
    pub(crate) fn new(count: usize) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = PeerName::new(&format!("bench/fixture/{}/{next}", std::process::id()));
        let server = Local::new(Some(&name), LocalConfig::default()).unwrap();
        let mut poll_set = PollSet::default();
        let clients = (0..count)
            .map(|_| {
                let client = Local::new(None, LocalConfig::default()).unwrap();
                let Ok(Lookup::Started(mut attempt)) = client.find(&name) else {
                    panic!("a handshake starts")
                };
                let pair = loop {
                    server.poll_sockets(&mut poll_set, Some(Duration::ZERO)).unwrap();
                    match client.advance(attempt).unwrap() {
                        Lookup::Pair(pair) => break pair,
                        Lookup::Started(again) => attempt = again,
                        other => panic!("{other:?}"),
                    }
                };
                (client, pair)
            })
            .collect();
        Self { server, clients }
    }

    fn pass(&self) -> f64 {
        let mut poll_set = PollSet::default();
        let rounds = (POLLS / self.clients.len() as u32).max(2_000);
        nanoseconds(rounds, || {
            self.server.receive(&mut poll_set, ReceiveQuota::default(), |_, _| {});
        })
    }

    /// The first client calls, and the same thread serves.
    fn round_trip(&self) -> f64 {
        let mut poll_set = PollSet::default();
        let (_, client) = &self.clients[0];
        let payload = Bytes::from(vec![7; 100]);
        let mut events = Vec::new();
        let rounds = (POLLS / self.clients.len() as u32).clamp(2_000, 100_000);
        nanoseconds(rounds, || {
            client.send(1, std::slice::from_ref(&payload)).unwrap();
            self.server.receive(&mut poll_set, ReceiveQuota::default(), |pair, event| {
                if let PollEvent::Event(PairEvent::Request { id, payload }) = event {
                    pair.send(id, &[payload]).unwrap();
                }
            });
            client.receive(ReceiveQuota::default(), &mut events).unwrap();
            assert_eq!(events.drain(..).count(), 1);
        })
    }
}
