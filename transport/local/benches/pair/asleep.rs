//! Round trips between sides that sleep in the kernel while they wait.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use apus_local::{Local, Pair, PairEvent, PollEvent, PollSet, ReceiveQuota};
use bytes::Bytes;

use crate::idle::Fixture;
use crate::{Table, pair};

const ROUND_TRIPS: usize = 20_000;

pub(crate) fn measure(table: &Table) {
    table.times("asleep: 100 B, futex", futex);
    table.times("asleep: 100 B, epoll set", || epoll(1));
    table.times("asleep: 100 B, epoll set, one pair of 64", || epoll(64));
    table.times("asleep:   unix stream", unix);
}

/// Returns the nanoseconds of each call.
fn times(mut call: impl FnMut(u64)) -> Vec<u64> {
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for id in 0..ROUND_TRIPS as u64 {
        let begin = Instant::now();
        call(id);
        times.push(begin.elapsed().as_nanos() as u64);
    }
    times.split_off(ROUND_TRIPS / 10)
}

/// Each side sleeps on its word.
fn futex() -> Vec<u64> {
    fn next(pair: &Pair, events: &mut Vec<PairEvent>) -> Option<PairEvent> {
        loop {
            pair.receive(ReceiveQuota::default(), events).ok()?;
            if let Some(event) = events.pop() {
                return Some(event);
            }
            pair.wait(Some(Duration::ZERO), None);
        }
    }
    let (client, server) = pair();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut events = Vec::new();
            while let Some(PairEvent::Request { id, payload }) = next(&server, &mut events) {
                server.send(id, &[payload]).unwrap();
            }
        });
        let (payload, mut events) = (Bytes::from(vec![7; 100]), Vec::new());
        let times = times(|id| {
            client.send(id, std::slice::from_ref(&payload)).unwrap();
            next(&client, &mut events).unwrap();
        });
        client.close();
        times
    })
}

/// Each side sleeps on all of its pairs. One of the `count` clients calls.
fn epoll(count: usize) -> Vec<u64> {
    /// Sleeps until something was received; returns whether the pair is still open.
    fn poll(
        local: &Local,
        poll_set: &mut PollSet,
        sink: &mut dyn FnMut(&Arc<Pair>, PairEvent),
    ) -> bool {
        let mut alive = true;
        loop {
            let records =
                local.receive(poll_set, ReceiveQuota::default(), |pair, event| match event {
                    PollEvent::Event(event) => sink(pair, event),
                    PollEvent::Disconnected(_) => alive = false,
                });
            if records > 0 || !alive {
                return alive;
            }
            if local.prepare_to_sleep(poll_set) {
                local.poll_sockets(poll_set, None).unwrap();
            }
            local.finish_sleep(poll_set);
        }
    }
    let Fixture { server, clients } = Fixture::new(count);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut poll_set = PollSet::default();
            let mut serve = |pair: &Arc<Pair>, event: PairEvent| {
                let PairEvent::Request { id, payload } = event else { return };
                pair.send(id, &[payload]).unwrap();
            };
            while poll(&server, &mut poll_set, &mut serve) {}
        });
        let (local, pair) = &clients[0];
        let payload = Bytes::from(vec![7; 100]);
        let mut poll_set = PollSet::default();
        let times = times(|id| {
            pair.send(id, std::slice::from_ref(&payload)).unwrap();
            poll(local, &mut poll_set, &mut |_, _| {});
        });
        pair.close();
        times
    })
}

/// Each side sleeps in `read`.
fn unix() -> Vec<u64> {
    let (mut mine, mut other) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut bytes = [0; 100];
            while other.read_exact(&mut bytes).is_ok() {
                other.write_all(&bytes).unwrap();
            }
        });
        let mut bytes = [7; 100];
        let times = times(|_| {
            mine.write_all(&bytes).unwrap();
            mine.read_exact(&mut bytes).unwrap();
        });
        drop(mine);
        times
    })
}
