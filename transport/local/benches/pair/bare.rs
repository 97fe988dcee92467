//! Lower bound of a round trip between cores.
//!
//! One word travels to the other core and one back, without further work: the processor's own cost
//! of moving one cache line each way, and of moving two. No message passing between cores is
//! faster.

use std::array;
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use crate::Table;

const ROUND_TRIPS: u64 = 1_000_000;

pub(crate) fn measure(table: &Table) {
    table.line("bare: one cache line each way, µs", || microseconds(false));
    table.line("bare: two cache lines each way, µs", || microseconds(true));
}

/// Cache lines that one side writes and the other reads.
#[repr(align(128))]
struct Lines {
    round: AtomicU64,
    _apart: [u64; 15],
    /// In a line that the processor does not fetch together with the first.
    payload: AtomicU64,
}

impl Lines {
    fn write(&self, round: u64, both: bool) {
        if both {
            self.payload.store(round, Ordering::Relaxed);
        }
        self.round.store(round, Ordering::Release);
    }

    fn await_round(&self, round: u64, both: bool) {
        while self.round.load(Ordering::Acquire) != round {
            spin_loop();
        }
        if both {
            black_box(self.payload.load(Ordering::Relaxed));
        }
    }
}

fn microseconds(both: bool) -> f64 {
    let zero = || AtomicU64::new(0);
    let lines: [Lines; 2] =
        array::from_fn(|_| Lines { round: zero(), _apart: [0; 15], payload: zero() });
    let [there, back] = &lines;
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUND_TRIPS {
                there.await_round(round, both);
                back.write(round, both);
            }
        });
        let begin = Instant::now();
        for round in 1..=ROUND_TRIPS {
            there.write(round, both);
            back.await_round(round, both);
        }
        begin.elapsed().as_secs_f64() * 1e6 / ROUND_TRIPS as f64
    })
}
