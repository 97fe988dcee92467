//! Cost of a record.
//!
//! `cargo bench -p apus-trace` prints nanoseconds per call: median, minimum and maximum of 31
//! rounds of 200,000 calls each. `record` includes the cost of the clock; the goal is 15 ns in all.
//! A round writes each slot of the ring a dozen times, so that the ring is in the cache as far as
//! the cache holds 512 KiB. The first lap, in which the system allocates the pages, is printed
//! separately.

use apus_trace::{Event, PeerIndex, Rpc, Sampling, Side, clock, recorder};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 31;
const CALLS: u32 = 200_000;

/// Returns the nanoseconds per call in one round.
fn round(calls: u32, body: &mut impl FnMut(u32)) -> f64 {
    let before = Instant::now();
    for i in 0..calls {
        body(black_box(i));
    }
    before.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn measure(name: &str, mut body: impl FnMut(u32)) {
    round(CALLS, &mut body);
    let mut all: Vec<f64> = (0..ROUNDS).map(|_| round(CALLS, &mut body)).collect();
    all.sort_by(f64::total_cmp);
    let [median, least, most] = [all[ROUNDS / 2], all[0], all[ROUNDS - 1]];
    println!("{name:<34} {median:>7.2} {least:>7.2} {most:>7.2}");
}

fn main() {
    let rpc = Rpc::new(12, Side::Client, PeerIndex::NONE);
    println!("ticks are counted by {:?}\n", clock::source());
    println!("{:<34} {:>7} {:>7} {:>7}", "ns per call", "median", "minimum", "maximum");

    recorder::set_sampling(Sampling::All);
    let first = round(16_384, &mut |i| recorder::record_at(0, Event::Look, i, 0));
    println!("{:<34} {first:>7.2}", "first lap of the ring");
    measure("clock", |_| {
        black_box(clock::ticks());
    });
    measure("record", |i| recorder::record(Event::Look, i, 2));
    measure("record of an RPC", |i| recorder::record_rpc(rpc, Event::Parsed, i, 2));
    measure("record, time known", |i| recorder::record_at(u64::from(i), Event::Look, i, 2));

    recorder::set_sampling(Sampling::default());
    measure("is this RPC traced? (mostly not)", |i| {
        black_box(recorder::is_traced(u64::from(i) << 1));
    });
    recorder::set_sampling(Sampling::Off);
    measure("record while it is off", |i| recorder::record(Event::Look, i, 2));
}
