//! Cost of a pair, compared with a unix socket.
//!
//! `cargo bench -p apus-local --bench pair` prints everything, `-- spinning unix` only the lines
//! that contain one of these words. Prints median, minimum and maximum of five runs. The machine
//! must be quiet and have two cores. No harness is needed, as each figure is one loop.

mod asleep;
mod bare;
mod idle;
mod spinning;
mod unix;

use std::sync::atomic::{AtomicU32, Ordering};

use apus_local::{Connecting, Listener, LocalConfig, Pair, PeerName};

const RUNS: usize = 5;

/// Selects lines and prints them.
struct Table {
    words: Vec<String>,
}

impl Table {
    fn wants(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }

    /// Prints a line of one figure per run.
    fn line(&self, name: &str, mut run: impl FnMut() -> f64) {
        if self.wants(name) {
            self.print(name, (0..RUNS).map(|_| run()).collect());
        }
    }

    /// Prints the percentiles, in microseconds, of round trips given in nanoseconds.
    fn times(&self, name: &str, mut run: impl FnMut() -> Vec<u64>) {
        if !self.wants(name) {
            return;
        }
        let mut runs: Vec<_> = (0..RUNS).map(|_| run()).collect();
        runs.iter_mut().for_each(|times| times.sort_unstable());
        for (title, share) in [("p50", 0.5), ("p99", 0.99)] {
            let at = |times: &Vec<u64>| times[((times.len() - 1) as f64 * share) as usize];
            let figures = runs.iter().map(|times| at(times) as f64 / 1_000.0).collect();
            self.print(&format!("{name}, {title}, µs"), figures);
        }
    }

    fn print(&self, name: &str, mut figures: Vec<f64>) {
        figures.sort_by(f64::total_cmp);
        let [least, median, most] = [0, figures.len() / 2, figures.len() - 1].map(|i| figures[i]);
        println!("{name:<48}{median:>9.3}   ({least:.3} to {most:.3})");
    }
}

/// Returns both sides of a pair.
fn pair() -> (Pair, Pair) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = PeerName::new(&format!("bench/{}/{next}", std::process::id()));
    let config = LocalConfig::default();
    let listener = Listener::bind(&name, &config).unwrap();
    let mut client = Connecting::start(&name, &config).unwrap();
    let server = listener.accept().unwrap().unwrap().advance().unwrap().unwrap();
    (client.advance().unwrap().unwrap(), server)
}

fn main() {
    // Arguments with a leading dash come from cargo.
    let words = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let table = Table { words };
    println!("{:<48}{:>9}   minimum and maximum of {RUNS} runs", "", "median");
    bare::measure(&table);
    spinning::measure(&table);
    unix::measure(&table);
    idle::measure(&table);
    asleep::measure(&table);
}
