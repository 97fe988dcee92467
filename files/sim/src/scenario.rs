//! Scenarios: everything that a seed draws before a run begins.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A disturbance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The server crashes; its store survives as far as it has promised to.
    ServerCrash {
        /// Downtime.
        down: Duration,
    },
    /// A client's machine crashes, and mounts again later.
    ClientCrash {
        /// The client.
        host: usize,
        /// Downtime.
        down: Duration,
    },
    /// No message passes between a client and the server.
    Partition {
        /// The client.
        host: usize,
        /// For how long.
        length: Duration,
    },
    /// A client is suspended, while its clock runs.
    Pause {
        /// The client.
        host: usize,
        /// For how long.
        length: Duration,
    },
    /// The store has no room for one record.
    Full {
        /// Records that it still takes.
        records: u64,
    },
}

/// A world and its disturbances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Seed of everything that is drawn during the run.
    pub seed: u64,
    /// Number of clients.
    pub clients: usize,
    /// Number of applications of each client that work on shared names.
    pub threads: usize,
    /// Term of leases.
    pub term: Duration,
    /// Period of application activity.
    pub duration: Duration,
    /// Mean time between two operations of an application.
    pub think: Duration,
    /// Largest delay of a message.
    pub delay: Duration,
    /// Messages of a thousand that are lost.
    pub lost_per_mille: u32,
    /// Largest deviation of a clock's rate, in parts per million.
    pub drift: i64,
    /// Whether applications also attempt operations that most kernels refuse without a request:
    /// moving directories into themselves, linking files that have lost their last name, creating
    /// files in removed directories.
    pub is_harsh: bool,
    /// Whether a client's machine crashes right after some of its syncs.
    pub crashes_after_syncs: bool,
    /// A client that only reads. Unlike a client that has made changes, it never has an exclusive
    /// lease, and the server has no other sign that it must not get its leases again.
    pub spectator: Option<usize>,
    /// Whether signals arrive during operations.
    pub interrupts: bool,
    /// Disturbances, with their times.
    pub faults: Vec<(Duration, Fault)>,
}

impl Scenario {
    /// Draws a scenario.
    pub fn generate(seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let clients = random.random_range(2..=4);
        let term = Duration::from_secs([1, 2, 10][random.random_range(0..3)]);
        let duration = term * random.random_range(3..6);
        if random.random_ratio(1, 6) {
            return Self::crowd(seed, random, term);
        }
        let mut faults = Vec::new();
        let mean = term.as_secs_f64() / f64::from(random.random_range(1..4));
        let end = if random.random_ratio(1, 6) { 0.0 } else { duration.as_secs_f64() };
        let mut at = 0.2 * term.as_secs_f64();
        while at < end {
            let host = random.random_range(0..clients);
            let length = term.mul_f64(if random.random_ratio(1, 2) {
                random.random_range(0.01..0.6)
            } else {
                random.random_range(0.6..2.5)
            });
            let fault = match random.random_range(0..8) {
                0..=1 => Fault::ServerCrash { down: length },
                2..=3 => Fault::ClientCrash { host, down: length },
                4..=5 => Fault::Partition { host, length },
                _ => Fault::Pause { host, length },
            };
            faults.push((Duration::from_secs_f64(at), fault));
            at += mean * 2.0 * random.random::<f64>();
        }
        let mut spectator = None;
        if end > 0.0 && random.random_ratio(1, 3) {
            let host = random.random_range(0..clients);
            spectator = random.random_ratio(1, 2).then_some(host);
            faults.extend(outlive(&mut random, term, duration, host));
        }
        if end > 0.0 && random.random_ratio(1, 4) {
            let at = duration.mul_f64(random.random_range(0.1..0.8));
            faults.push((at, Fault::Full { records: random.random_range(0..40) }));
        }
        Self {
            seed,
            clients,
            threads: random.random_range(1..=2),
            term,
            duration,
            think: term.mul_f64(random.random_range(0.005..0.05)),
            delay: Duration::from_micros(random.random_range(20..20_000)),
            lost_per_mille: [0, 0, 10, 50][random.random_range(0..4)],
            drift: 10_000,
            is_harsh: random.random_ratio(1, 3),
            spectator,
            interrupts: random.random_ratio(1, 2),
            crashes_after_syncs: end > 0.0 && random.random_ratio(1, 2),
            faults,
        }
    }

    /// Draws a scenario without faults and with hardly any pauses, so that calls, batches and
    /// recalls of one client overtake each other.
    fn crowd(seed: u64, mut random: Pcg64Mcg, term: Duration) -> Self {
        let delay = Duration::from_micros(random.random_range(2_000..20_000));
        let think = delay.mul_f64(random.random_range(0.2..1.0));
        Self {
            seed,
            clients: random.random_range(2..=3),
            threads: random.random_range(1..=2),
            term,
            duration: think * random.random_range(150..400),
            think,
            delay,
            lost_per_mille: 0,
            drift: 10_000,
            is_harsh: random.random_ratio(1, 3),
            spectator: None,
            interrupts: random.random_ratio(1, 4),
            crashes_after_syncs: false,
            faults: Vec::new(),
        }
    }
}

/// Draws a disturbance that a lease must not outlive: a client is cut off for longer than its term,
/// and returns about when a server that was restarted meanwhile does.
fn outlive(
    random: &mut Pcg64Mcg,
    term: Duration,
    duration: Duration,
    host: usize,
) -> [(Duration, Fault); 2] {
    let at = duration.mul_f64(random.random_range(0.05..0.5));
    let length = term.mul_f64(random.random_range(1.6..2.5));
    let crash = at + length - term.mul_f64(random.random_range(0.05..0.5));
    let back = at + length + term.mul_f64(random.random_range(0.0..0.1));
    [(at, Fault::Partition { host, length }), (crash, Fault::ServerCrash { down: back - crash })]
}
