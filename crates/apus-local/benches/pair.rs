//! What does a pair cost, beside a unix socket?
//!
//! Two threads that spin, each with its own mapping, as two processes have: `cargo bench -p apus-local` prints the
//! round trip of 100 bytes, the rate with 64 calls outstanding, and the throughput of 500 kB. Medians and best of five
//! runs; the machine must be quiet and have two cores. Needs no harness: each figure is one loop.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use apus_local::{Config, Connecting, Event, Listener, Name, Pair, Quota, SendError};
use bytes::Bytes;

const RUNS: usize = 5;
const ROUND_TRIPS: usize = 200_000;
const CALLS: u64 = 2_000_000;
const OUTSTANDING: u64 = 64;
const LONG: usize = 500_000;
const LONG_CALLS: u64 = 4_000;

fn pair(run: usize) -> (Pair, Pair) {
    let name = Name::new(&format!("bench/{}/{run}", std::process::id()));
    let config = Config::default();
    let listener = Listener::bind(&name, &config).unwrap();
    let mut client = Connecting::start(&name, &config).unwrap();
    let server = listener.accept().unwrap().unwrap().advance().unwrap().unwrap();
    (client.advance().unwrap().unwrap(), server)
}

/// Answers each request with `answer`, or with itself, until the client goes.
fn serve(server: &Pair, answer: Option<&Bytes>) {
    let mut events = Vec::new();
    let mut rounds = 0_u32;
    loop {
        match server.receive(Quota::default(), &mut events) {
            Ok(0) if events.is_empty() => {
                rounds = rounds.wrapping_add(1);
                if rounds.is_multiple_of(4096) {
                    server.heed();
                }
                std::hint::spin_loop();
                continue;
            }
            Ok(_) => {}
            Err(_) => return,
        }
        let Ok(mut batch) = server.batch() else { return };
        for event in events.drain(..) {
            let Event::Request { id, payload } = event else { continue };
            batch.send(id, &[answer.cloned().unwrap_or(payload)]).expect("as many as fit");
        }
        if batch.finish().is_err() {
            return;
        }
    }
}

/// One call after the other; nanoseconds of each.
fn round_trips(client: &Pair) -> Vec<u64> {
    let payload = Bytes::from(vec![7; 100]);
    let mut events = Vec::new();
    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for id in 0..ROUND_TRIPS as u64 {
        let begin = Instant::now();
        client.send(id, std::slice::from_ref(&payload)).unwrap();
        while client.receive(Quota::default(), &mut events).unwrap() == 0 {
            std::hint::spin_loop();
        }
        times.push(begin.elapsed().as_nanos() as u64);
        events.clear();
    }
    times.split_off(ROUND_TRIPS / 10)
}

/// Both sides in turn by one thread: what the instructions cost, without a cache line that travels. Microseconds.
fn alone(run: usize) -> f64 {
    let (client, server) = pair(run);
    let payload = Bytes::from(vec![7; 100]);
    let mut events = Vec::new();
    let begin = Instant::now();
    for id in 0..ROUND_TRIPS as u64 {
        client.send(id, std::slice::from_ref(&payload)).unwrap();
        server.receive(Quota::default(), &mut events).unwrap();
        let Some(Event::Request { id, payload }) = events.pop() else { panic!("a request") };
        server.send(id, &[payload]).unwrap();
        client.receive(Quota::default(), &mut events).unwrap();
        events.clear();
    }
    begin.elapsed().as_secs_f64() * 1e6 / ROUND_TRIPS as f64
}

/// `calls` calls of `payload`, so many outstanding; how long they took.
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
        client.receive(Quota::default(), &mut events).unwrap();
        done += events.drain(..).filter(|it| matches!(it, Event::Response { .. })).count() as u64;
    }
    begin.elapsed()
}

/// A figure of each run.
fn figures(mut run: impl FnMut(usize) -> f64) -> String {
    let mut all: Vec<f64> = (0..RUNS).map(&mut run).collect();
    all.sort_by(f64::total_cmp);
    format!("{:>10.3}   ({:.3} to {:.3})", all[RUNS / 2], all[0], all[RUNS - 1])
}

fn with_server<T>(run: usize, answer: Option<&Bytes>, client: impl FnOnce(&Pair) -> T) -> T {
    let (mine, server) = pair(run);
    thread::scope(|scope| {
        scope.spawn(|| serve(&server, answer));
        let figure = client(&mine);
        mine.close();
        figure
    })
}

fn percentile(times: &mut [u64], share: f64) -> f64 {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize] as f64 / 1_000.0
}

/// The same round trip over a unix socket, both sides spinning.
fn unix_round_trips() -> Vec<u64> {
    let (mut mine, mut other) = UnixStream::pair().unwrap();
    mine.set_nonblocking(true).unwrap();
    other.set_nonblocking(true).unwrap();
    let stop = AtomicBool::new(false);
    let exchange = |socket: &mut UnixStream, bytes: &mut [u8]| loop {
        match socket.read(bytes) {
            Ok(_) => return true,
            Err(_) if stop.load(Ordering::Relaxed) => return false,
            Err(_) => {}
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 100];
            while exchange(&mut other, &mut bytes) {
                other.write_all(&bytes).unwrap();
            }
        });
        let mut bytes = [7; 100];
        let times = (0..ROUND_TRIPS)
            .map(|_| {
                let begin = Instant::now();
                mine.write_all(&bytes).unwrap();
                exchange(&mut mine, &mut bytes);
                begin.elapsed().as_nanos() as u64
            })
            .collect::<Vec<_>>();
        stop.store(true, Ordering::Relaxed);
        times[ROUND_TRIPS / 10..].to_vec()
    })
}

/// 500 kB after 500 kB over a unix socket, blocking, and a byte back at the end: Gbit/s.
fn unix_throughput() -> f64 {
    let (mut mine, mut other) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut bytes = vec![0; LONG];
            for _ in 0..LONG_CALLS {
                other.read_exact(&mut bytes).unwrap();
            }
            other.write_all(&[1]).unwrap();
        });
        let bytes = vec![7; LONG];
        let begin = Instant::now();
        for _ in 0..LONG_CALLS {
            mine.write_all(&bytes).unwrap();
        }
        mine.read_exact(&mut [0]).unwrap();
        (LONG_CALLS as usize * LONG * 8) as f64 / begin.elapsed().as_secs_f64() / 1e9
    })
}

fn main() {
    println!("{:<34}{:>10}   least and most of {RUNS} runs", "", "median");
    println!("{:<34}{}", "100 B round trip, one thread, µs", figures(|run| alone(30 + run)));
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let mut times = with_server(run, None, round_trips);
        p50.push(percentile(&mut times, 0.5));
        p99.push(percentile(&mut times, 0.99));
    }
    println!("{:<34}{}", "100 B round trip, p50, µs", figures(|run| p50[run]));
    println!("{:<34}{}", "100 B round trip, p99, µs", figures(|run| p99[run]));
    let unix = figures(|_| percentile(&mut unix_round_trips(), 0.5));
    println!("{:<34}{unix}", "  unix stream, p50, µs");
    let small = Bytes::from(vec![7; 100]);
    let rate = figures(|run| {
        let time = with_server(10 + run, None, |it| stream(it, &small, CALLS, OUTSTANDING));
        CALLS as f64 / time.as_secs_f64() / 1e6
    });
    println!("{:<34}{rate}", "100 B, 64 outstanding, M RPC/s");
    let (long, ack) = (Bytes::from(vec![7; LONG]), Bytes::from_static(b"x"));
    let throughput = figures(|run| {
        let time = with_server(20 + run, Some(&ack), |it| stream(it, &long, LONG_CALLS, 4));
        (LONG_CALLS as usize * LONG * 8) as f64 / time.as_secs_f64() / 1e9
    });
    println!("{:<34}{throughput}", "500 kB, 4 outstanding, Gbit/s");
    println!("{:<34}{}", "  unix stream, Gbit/s", figures(|_| unix_throughput()));
}
