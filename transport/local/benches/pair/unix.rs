//! Cost of a unix socket in the same uses.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crate::Table;
use crate::spinning::{LONG, LONG_CALLS, ROUND_TRIPS};

pub(crate) fn measure(table: &Table) {
    table.times("  unix stream, 100 B, spinning", round_trips);
    table.line("  unix stream, 500 kB, Gbit/s", throughput);
}

/// Sends 100 bytes there and back, both sides spinning; returns the nanoseconds of each round trip.
fn round_trips() -> Vec<u64> {
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

/// Sends messages of 500 kB, blocking, and one byte back at the end; returns Gbit/s.
fn throughput() -> f64 {
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
