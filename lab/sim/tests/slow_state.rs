//! Overload of processors: retransmissions must not feed themselves.
//!
//! Two hosts echo messages of W4, as `apus-lab bench load` does over loopback. Where receivers
//! mistake the queueing of a busy peer for loss, the retransmissions that they request make the
//! queue longer: the fabric then stays slow although no packet is lost, or takes long to recover
//! after a stall.

use apus_proto::{Config, Profile};
use apus_sim::experiment::{Carrier, Experiment, ExperimentReport};
use apus_sim::fabric::{HostCounters, Settings};
use apus_sim::host::{Answer, ApusHost, Shared};
use apus_sim::processor::{Costs, Processor, ProcessorHost};
use apus_sim::{Fabric, Message, Network, Outcome, Topology, preset};
use apus_workload::time::{MILLISECOND, Nanos, Rate, SECOND};
use apus_workload::{PacketOverhead, Stream, Workload, rng};
use rand::distr::Distribution;

const PACKETS: PacketOverhead = PacketOverhead::UDP_OVER_ETHERNET;
/// Longest message of the workload, as in `apus-lab bench load`.
const LONGEST: u32 = 1_000_000;

fn rate(mbps: u64) -> Rate {
    Rate::from_mbps(mbps).unwrap()
}

/// Full-size packets at 5 Gbit/s each way, about the W4 throughput of half a core over loopback. A
/// full socket then takes longer to read than a resend interval.
fn processor() -> Processor {
    let full = PACKETS.wire_bytes(PACKETS.payload) as u32;
    let costs = Costs::at_rate(rate(5_000), full);
    Processor { costs, socket_buffer: Processor::SOCKET_BUFFER }
}

/// Two hosts whose links are faster than their processors.
fn topology() -> Topology {
    let shape = "1x2x0".parse().unwrap();
    Topology { shape, host_rate: rate(100_000), ..preset::sigcomm18() }
}

fn workload() -> Workload {
    Workload::published(4).truncated(LONGEST)
}

/// A client that keeps a number of calls outstanding, and its server.
struct ClosedLoop {
    fabric: Fabric<ProcessorHost<ApusHost>>,
    sizes: Box<dyn Iterator<Item = u32>>,
    next: u32,
}

impl ClosedLoop {
    fn new(outstanding: u32) -> Self {
        let shared = Shared::new(Config::default(), Answer::Echo, rate(100_000), PACKETS, LONGEST);
        let fabric = Fabric::new(&Settings::new(topology(), 1), |id| {
            let host = ApusHost::new(id, shared.clone(), u64::from(id));
            ProcessorHost::new(host, processor(), Vec::new())
        });
        let (sizes, mut random) = (workload().sizes().clone(), rng(1, Stream::Sizes));
        let sizes = std::iter::repeat_with(move || sizes.sample(&mut random));
        let mut world = Self { fabric, sizes: Box::new(sizes), next: 0 };
        (0..outstanding).for_each(|_| world.call());
        world
    }

    fn call(&mut self) {
        let bytes = self.sizes.next().unwrap().max(Message::SHORTEST);
        let (number, at) = (self.next, self.fabric.now());
        self.fabric.submit(&Message { number, from: 0, to: 1, bytes, at });
        self.next += 1;
    }

    /// Runs for `time`; returns the calls that ended.
    fn run(&mut self, time: Nanos) -> u32 {
        let (end, mut ended) = (self.fabric.now() + time, 0);
        while self.fabric.now() < end {
            let mut done = 0;
            // Short enough that a call is followed by the next one at once.
            self.fabric.advance(self.fabric.now() + 10_000, &mut |_, outcome| {
                assert!(!matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
                done += u32::from(matches!(outcome, Outcome::Done(_)));
            });
            (0..done).for_each(|_| self.call());
            ended += done;
        }
        ended
    }

    fn hosts(&self) -> HostCounters {
        self.fabric.counters().hosts
    }
}

/// With 200 outstanding calls, 12 MB of unscheduled bytes wait for a socket of 4 MB.
#[test]
fn with_200_outstanding_calls_no_second_is_slow() {
    let mut world = ClosedLoop::new(200);
    world.run(SECOND / 2);
    world.fabric.reset_counters();
    let windows: Vec<u32> = (0..8).map(|_| world.run(SECOND / 4)).collect();
    let hosts = world.hosts();
    let mut sorted = windows.clone();
    sorted.sort_unstable();
    println!("calls per quarter of a second: {windows:?}; {hosts:?}");
    assert!(f64::from(sorted[0]) >= 0.8 * f64::from(sorted[4]), "{windows:?}");
    assert_few_resends(hosts);
}

/// Returns the report of an open loop at `load` whose server stalls for `stall`.
fn stalled(load: f64, stall: Nanos, messages: u32) -> ExperimentReport {
    stalled_between(Carrier::Apus(Config::default()), load, stall, messages)
}

fn stalled_between(carrier: Carrier, load: f64, stall: Nanos, messages: u32) -> ExperimentReport {
    let mut experiment = preset::sigcomm18_experiment(workload(), load, 1).unwrap();
    experiment.fabric = Settings::new(topology(), 1);
    experiment.carrier = carrier;
    experiment.load_config = Config::default();
    experiment.answer = Answer::Echo;
    experiment.processor = Some(processor());
    experiment.stall = stall;
    (experiment.messages, experiment.warm_up) = (messages, 2_000);
    let experiment: Experiment = experiment;
    experiment.run(experiment.allowed_growth(), &mut |_| {})
}

/// The bound after a stall: the queue drains in S·L/(1-L).
fn bound(load: f64, stall: Nanos) -> Nanos {
    100 * MILLISECOND + (1.5 * stall as f64 * load / (1.0 - load)) as Nanos
}

/// Retransmissions permitted in addition to the replacements of dropped packets. Chosen by us: the
/// contents of two hosts' socket buffers, a hundredth of the retransmissions per second in the slow
/// state.
const FEW: u64 = 2_000;

fn assert_few_resends(hosts: HostCounters) {
    assert!(hosts.resent_packets <= 2 * hosts.dropped_data + FEW, "{hosts:?}");
}

/// Bursts of the workload queue for longer than a resend interval, and no packet is lost.
#[test]
fn queueing_in_a_busy_host_is_not_taken_for_loss() {
    let report = stalled(0.8, 0, 10_000);
    println!("goodput {:.0} MB/s, {:?}", report.goodput / 1e6, report.counters.hosts);
    assert!(report.is_steady(), "the backlog grew by {}", report.growth);
    assert_few_resends(report.counters.hosts);
}

/// The kernel module neither reports nor receives socket room, and requests retransmissions by its
/// own rules.
#[test]
fn a_peer_that_runs_the_kernel_module_does_not_cause_a_collapse() {
    let config = Config::builder().profile(Profile::Kernel).build().unwrap();
    let report = stalled_between(Carrier::Mixed(config), 0.8, 0, 10_000);
    println!("goodput {:.0} MB/s, {:?}", report.goodput / 1e6, report.counters.hosts);
    assert!(report.is_steady(), "the backlog grew by {}", report.growth);
    assert_few_resends(report.counters.hosts);
}

fn recovers(load: f64, stall: Nanos, messages: u32) {
    let report = stalled(load, stall, messages);
    println!("load {load}: recovery {:?}, {:?}", report.recovery, report.counters.hosts);
    assert_few_resends(report.counters.hosts);
    let within = bound(load, stall);
    assert!(report.recovery.is_some_and(|time| time <= within), "{:?}", report.recovery);
}

#[test]
fn a_server_at_two_fifths_of_its_capacity_recovers_from_a_stall() {
    recovers(0.4, 200 * MILLISECOND, 10_000);
}

#[test]
fn a_server_at_half_of_its_capacity_recovers_from_a_stall() {
    recovers(0.5, 200 * MILLISECOND, 10_000);
}

#[test]
fn a_busy_server_recovers_from_a_stall() {
    recovers(0.8, 50 * MILLISECOND, 10_000);
}
