//! What do idle pairs cost whoever receives from all?

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

const LOOKS: u32 = 1_000_000;

pub(crate) fn measure(table: &Table) {
    table.line("idle: a look at one pair, ns", || {
        let (client, _server) = pair();
        let mut events = Vec::new();
        nanoseconds(LOOKS, || {
            black_box(&client).receive(ReceiveQuota::default(), &mut events).unwrap();
        })
    });
    for count in [1, 8, 64, 512] {
        let house = LazyCell::new(|| House::new(count));
        table.line(&format!("idle: a pass over {count}, ns"), || house.pass());
        let name = format!("idle: a round trip, one of {count}, one thread, ns");
        table.line(&name, || house.round_trip());
    }
}

fn nanoseconds(times: u32, mut what: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..times).for_each(|_| what());
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(times)
}

/// A server with so many clients.
pub(crate) struct House {
    pub(crate) server: Local,
    pub(crate) clients: Vec<(Local, Arc<Pair>)>,
}

impl House {
    pub(crate) fn new(count: usize) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = PeerName::new(&format!("bench/house/{}/{next}", std::process::id()));
        let server = Local::new(Some(&name), LocalConfig::default()).unwrap();
        let mut sweep = PollSet::default();
        let clients = (0..count)
            .map(|_| {
                let client = Local::new(None, LocalConfig::default()).unwrap();
                let Ok(Lookup::Greeted(mut attempt)) = client.find(&name) else { panic!("nobody") };
                let pair = loop {
                    server.poll_sockets(&mut sweep, Some(Duration::ZERO)).unwrap();
                    match client.advance(attempt).unwrap() {
                        Lookup::Pair(pair) => break pair,
                        Lookup::Greeted(again) => attempt = again,
                        other => panic!("{other:?}"),
                    }
                };
                (client, pair)
            })
            .collect();
        Self { server, clients }
    }

    fn pass(&self) -> f64 {
        let mut sweep = PollSet::default();
        let rounds = (LOOKS / self.clients.len() as u32).max(2_000);
        nanoseconds(rounds, || {
            self.server.receive(&mut sweep, ReceiveQuota::default(), |_, _| {});
        })
    }

    /// The first client calls; the same thread serves.
    fn round_trip(&self) -> f64 {
        let mut sweep = PollSet::default();
        let (_, client) = &self.clients[0];
        let payload = Bytes::from(vec![7; 100]);
        let mut events = Vec::new();
        let rounds = (LOOKS / self.clients.len() as u32).clamp(2_000, 100_000);
        nanoseconds(rounds, || {
            client.send(1, std::slice::from_ref(&payload)).unwrap();
            self.server.receive(&mut sweep, ReceiveQuota::default(), |pair, arrival| {
                if let PollEvent::Event(PairEvent::Request { id, payload }) = arrival {
                    pair.send(id, &[payload]).unwrap();
                }
            });
            client.receive(ReceiveQuota::default(), &mut events).unwrap();
            assert_eq!(events.drain(..).count(), 1);
        })
    }
}
