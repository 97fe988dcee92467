//! The generator of the load.
//!
//! A program on the other core sends minimum-size packets at a rate, regardless of losses (an open
//! loop). Its system calls do the work of the wire and the card: they copy packets into the buffer
//! of the router's socket, or drop them if it is full.

use apus_workload::{Stream, rng};
use rand::distr::{Distribution, Uniform};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::frame::{MIN, shortest};
use super::mode::HARDWARE;
use super::priority::Priority;
use super::routes::NETWORKS;
use super::tap::{Burst, Tap, Use};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::fabric::RouterPath;
use apus_testbed::process::{Control, NO_ADDRESS};

/// The load.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Load {
    /// Packets per second; `None` for as many as possible.
    pub(super) rate: Option<f64>,
    /// Nanoseconds of the load.
    pub(super) time: u64,
    /// Packets of a train; between trains the router has time to empty its queues. `None` for no
    /// pauses.
    pub(super) train: Option<u64>,
}

/// The packets that were sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) packets: u64,
    /// Nanoseconds in which packets were due, without pauses.
    pub(super) time: u64,
}

/// Arrears in packets beyond which a delayed generator skips packets: a wire does not catch up.
const BEHIND: u64 = 2 * BURST as u64;

/// Most packets in one system call. Chosen by us: few enough for the buffer of the router's socket,
/// which holds about 270.
const BURST: usize = 32;

/// Nanoseconds between two trains. Chosen by us: ten times the time in which a router empties its
/// queues.
const PAUSE: u64 = 10_000_000;

/// Sends a load when the start order arrives.
pub(super) fn agent(seed: u64, control: &mut Control) -> Result<Value, Error> {
    let tap = Tap::open(RouterPath::SOURCE, Use::Send)?;
    // A wire does not wait. Without real-time priority the load is less steady.
    let _ = Priority::RealTime(HARDWARE).take();
    control.ready(NO_ADDRESS)?;
    let begin = control.begin::<Load>()?;
    let packets = packets(seed);
    let mut bursts: Vec<_> =
        packets.chunks(BURST).map(|packets| Burst::new(&tap, packets)).collect();
    let sent = send(&begin.details, begin.at, control, &mut bursts)?;
    control.report(json!(sent))?;
    control.stop().wait();
    Ok(Value::Null)
}

/// Number of different packets. They are sent repeatedly; consecutive bursts have different
/// packets.
const PACKETS: usize = 8 * BURST;

/// Returns packets to hosts drawn from the seed, in all networks.
fn packets(seed: u64) -> Vec<[u8; MIN]> {
    let networks = Uniform::new(0, NETWORKS).expect("a range of networks");
    let hosts = Uniform::new_inclusive(1, 254).expect("a range of hosts");
    let mut chance = rng(seed, Stream::Destinations);
    let mut packet = || {
        let destination = [10, 2, networks.sample(&mut chance), hosts.sample(&mut chance)];
        shortest(RouterPath::IN_ADDRESS, [10, 1, 0, 1], destination)
    };
    std::iter::repeat_with(&mut packet).take(PACKETS).collect()
}

impl Sent {
    /// Returns the offered packets per second, and the output for `forwarded` packets. `None` if no
    /// packet was due.
    pub(super) fn rates(self, forwarded: u64) -> Option<(f64, f64)> {
        let seconds = self.time as f64 / 1e9;
        (self.time > 0).then(|| (self.packets as f64 / seconds, forwarded as f64 / seconds))
    }
}

fn send(load: &Load, at: u64, control: &Control, bursts: &mut [Burst<'_>]) -> Result<Sent, Error> {
    while clock::now() < at {
        std::hint::spin_loop();
    }
    let ends = at + load.time;
    let mut all = Sent { packets: 0, time: 0 };
    while clock::now() < ends && !control.stop().is_asked() {
        let train = train(load, ends, bursts)?;
        all.packets += train.packets;
        all.time += train.time;
        if load.train.is_some() {
            let resumes = clock::now() + PAUSE;
            while clock::now() < resumes {
                std::hint::spin_loop();
            }
        }
    }
    Ok(all)
}

/// Sends packets without a pause until the time ends, or the train.
fn train(load: &Load, ends: u64, bursts: &mut [Burst<'_>]) -> Result<Sent, Error> {
    let began = clock::now();
    let longest = load.train.unwrap_or(u64::MAX);
    let (mut sent, mut missed, mut next) = (0, 0, 0);
    loop {
        let now = clock::now();
        // A train is sent to its end.
        if sent >= longest || (load.train.is_none() && now >= ends) {
            return Ok(Sent { packets: sent, time: now - began });
        }
        let mut due = due(load.rate, now - began).saturating_sub(sent + missed);
        if load.rate.is_some() && due > BEHIND {
            missed += due - BEHIND;
            due = BEHIND;
        }
        let due = due.min(longest - sent);
        if due == 0 {
            std::hint::spin_loop();
            continue;
        }
        sent += bursts[next].send(usize::try_from(due).unwrap_or(BURST))? as u64;
        next = (next + 1) % bursts.len();
    }
}

/// Returns the number of packets that are due after `nanoseconds`.
fn due(rate: Option<f64>, nanos: u64) -> u64 {
    rate.map_or(u64::MAX, |rate| (rate * nanos as f64 / 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_due_by_the_clock_not_by_earlier_packets() {
        assert_eq!(due(Some(1_000.0), 0), 0);
        assert_eq!(due(Some(1_000.0), 2_500_000), 2);
        assert_eq!(due(None, 0), u64::MAX);
    }

    #[test]
    fn a_generator_that_never_ran_has_no_rate() {
        let sent = Sent { packets: 100, time: 50_000_000 };
        assert_eq!(sent.rates(50), Some((2_000.0, 1_000.0)));
        assert_eq!(Sent { packets: 0, ..sent }.rates(0), Some((0.0, 0.0)));
        assert_eq!(Sent { packets: 0, time: 0 }.rates(0), None);
    }

    #[test]
    fn a_seed_draws_the_same_packets_and_all_of_them_have_a_route() {
        let drawn = packets(7);
        assert_eq!(drawn, packets(7));
        assert_ne!(drawn, packets(8));
        assert!(drawn.iter().all(|packet| packet[30..32] == [10, 2] && packet[32] < NETWORKS));
    }
}
