//! Cost of a pair whose sides both spin.
//!
//! Two threads, each with its own mapping, as two processes have.

use std::thread;
use std::time::{Duration, Instant};

use apus_local::{Pair, PairEvent, ReceiveQuota, SendError};
use bytes::Bytes;

use crate::{Table, pair};

pub(crate) const ROUND_TRIPS: usize = 200_000;
const CALLS: u64 = 2_000_000;
const OUTSTANDING: u64 = 64;
pub(crate) const LONG: usize = 500_000;
pub(crate) const LONG_CALLS: u64 = 4_000;

pub(crate) fn measure(table: &Table) {
    table.line("100 B round trip, one thread, µs", alone);
    for len in [16, 100, 1000] {
        let name = format!("{len} B round trip, spinning");
        table.times(&name, || with_server(None, |client| round_trips(client, len)));
    }
    let small = Bytes::from(vec![7; 100]);
    table.line("100 B, 64 outstanding, M RPC/s", || {
        let time = with_server(None, |it| stream(it, &small, CALLS, OUTSTANDING));
        CALLS as f64 / time.as_secs_f64() / 1e6
    });
    let (long, ack) = (Bytes::from(vec![7; LONG]), Bytes::from_static(b"x"));
    table.line("500 kB, 4 outstanding, Gbit/s", || {
        let time = with_server(Some(&ack), |it| stream(it, &long, LONG_CALLS, 4));
        (LONG_CALLS as usize * LONG * 8) as f64 / time.as_secs_f64() / 1e9
    });
}

fn with_server<T>(answer: Option<&Bytes>, client: impl FnOnce(&Pair) -> T) -> T {
    let (mine, server) = pair();
    thread::scope(|scope| {
        scope.spawn(|| serve(&server, answer));
        let figure = client(&mine);
        mine.close();
        figure
    })
}

/// Answers each request with `answer`, or with its own payload, until the client closes the pair.
fn serve(server: &Pair, answer: Option<&Bytes>) {
    let mut events = Vec::new();
    let mut rounds = 0_u32;
    loop {
        match server.receive(ReceiveQuota::default(), &mut events) {
            Ok(0) if events.is_empty() => {
                rounds = rounds.wrapping_add(1);
                if rounds.is_multiple_of(4096) {
                    server.handle_signal();
                }
                std::hint::spin_loop();
                continue;
            }
            Ok(_) => {}
            Err(_) => return,
        }
        let Ok(mut batch) = server.batch() else { return };
        for event in events.drain(..) {
            let PairEvent::Request { id, payload } = event else { continue };
            batch.send(id, &[answer.cloned().unwrap_or(payload)]).expect("as many as fit");
        }
        if batch.finish().is_err() {
            return;
        }
    }
}

/// Makes one call after the other; returns the nanoseconds of each.
fn round_trips(client: &Pair, len: usize) -> Vec<u64> {
    let payload = Bytes::from(vec![7; len]);
    let mut events = Vec::new();
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for id in 0..ROUND_TRIPS as u64 {
        let begin = Instant::now();
        client.send(id, std::slice::from_ref(&payload)).unwrap();
        while client.receive(ReceiveQuota::default(), &mut events).unwrap() == 0 {
            std::hint::spin_loop();
        }
        times.push(begin.elapsed().as_nanos() as u64);
        events.clear();
    }
    times.split_off(ROUND_TRIPS / 10)
}

/// One thread runs both sides in turn; returns microseconds: the cost of the instructions, and of
/// demoting each record to a cache for another core that does not read it.
fn alone() -> f64 {
    let (client, server) = pair();
    let payload = Bytes::from(vec![7; 100]);
    let mut events = Vec::new();
    let begin = Instant::now();
    for id in 0..ROUND_TRIPS as u64 {
        client.send(id, std::slice::from_ref(&payload)).unwrap();
        server.receive(ReceiveQuota::default(), &mut events).unwrap();
        let Some(PairEvent::Request { id, payload }) = events.pop() else { panic!("a request") };
        server.send(id, &[payload]).unwrap();
        client.receive(ReceiveQuota::default(), &mut events).unwrap();
        events.clear();
    }
    begin.elapsed().as_secs_f64() * 1e6 / ROUND_TRIPS as f64
}

/// Makes `calls` calls of `payload`, with `outstanding` at a time; returns how long they took.
fn stream(client: &Pair, payload: &Bytes, calls: u64, outstanding: u64) -> Duration {
    let mut events = Vec::new();
    let (mut sent, mut done) = (0, 0);
    let begin = Instant::now();
    while done < calls {
        if sent < calls && sent - done < outstanding {
            let mut batch = client.batch().unwrap();
            while sent < calls && sent - done < outstanding {
                match batch.send(sent, std::slice::from_ref(payload)) {
                    Ok(_) => sent += 1,
                    Err(SendError::Full) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            batch.finish().unwrap();
        }
        client.receive(ReceiveQuota::default(), &mut events).unwrap();
        done +=
            events.drain(..).filter(|it| matches!(it, PairEvent::Response { .. })).count() as u64;
    }
    begin.elapsed()
}
