//! Hosts whose processors take time.

use apus_proto::Config;
use apus_sim::experiment::{Carrier, Experiment, ExperimentReport};
use apus_sim::fabric::Settings;
use apus_sim::host::{Answer, ApusHost, Shared};
use apus_sim::processor::{Costs, Processor, ProcessorHost, Stall};
use apus_sim::{Fabric, Message, Network, Outcome, Topology, preset};
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos, Rate};
use apus_workload::{PacketOverhead, Workload};

const PACKETS: PacketOverhead = PacketOverhead::UDP_OVER_ETHERNET;

fn rate(mbps: u64) -> Rate {
    Rate::from_mbps(mbps).unwrap()
}

/// Full-size packets at 10 Gbit/s each way.
fn processor(socket_buffer: u64) -> Processor {
    let full = PACKETS.wire_bytes(PACKETS.payload) as u32;
    Processor { costs: Costs::at_rate(rate(10_000), full), socket_buffer }
}

/// Two hosts on links that are faster than the processors.
fn topology() -> Topology {
    Topology { shape: "1x2x0".parse().unwrap(), host_rate: rate(100_000), ..preset::sigcomm18() }
}

/// The hosts; the second one stalls.
fn fabric(socket_buffer: u64, stalls: &[Stall]) -> Fabric<ProcessorHost<ApusHost>> {
    let shared = Shared::new(Config::default(), Answer::Nothing, rate(100_000), PACKETS, 1_000_000);
    Fabric::new(&Settings::new(topology(), 1), |id| {
        let host = ApusHost::new(id, shared.clone(), u64::from(id));
        let stalls = if id == 1 { stalls.to_vec() } else { Vec::new() };
        ProcessorHost::new(host, processor(socket_buffer), stalls)
    })
}

/// Sends messages of `bytes` bytes at these times to the second host. Returns the times of their
/// delivery.
fn delivered(
    fabric: &mut Fabric<ProcessorHost<ApusHost>>,
    bytes: u32,
    times: &[Nanos],
) -> Vec<Nanos> {
    let mut delivered = Vec::new();
    let mut report = |now, outcome| {
        if matches!(outcome, Outcome::Delivered(_)) {
            delivered.push(now);
        }
    };
    for (number, at) in (0..).zip(times) {
        fabric.advance(*at, &mut report);
        fabric.submit(&Message { number, from: 0, to: 1, bytes, at: *at });
    }
    fabric.advance(times.last().unwrap() + 500 * MILLISECOND, &mut report);
    delivered
}

#[test]
fn an_idle_processor_adds_the_cost_of_sending_and_receiving() {
    let costs = processor(0).costs;
    let wire = PACKETS.wire_bytes(100) as u32;
    let took = delivered(&mut fabric(1_000_000, &[]), 100, &[0, 10_000_000]);
    // The first message establishes contact between the hosts.
    let nanos = |picos: u64| picos.div_ceil(1_000);
    let expected = topology().ideal(0, 1, 100, &PACKETS)
        + nanos(costs.send.picos(wire))
        + nanos(costs.receive.picos(wire));
    // The receiver reports a delivery when it has sent the packets that the message caused.
    let least = 10_000_000 + expected;
    let most = least + MICROSECOND;
    assert!((least..=most).contains(&took[1]), "{} is not in {least} to {most}", took[1]);
}

#[test]
fn a_stalled_host_receives_the_packets_in_its_socket_after_the_stall() {
    let stall = Stall { from: 8 * MILLISECOND, until: 12 * MILLISECOND };
    let mut fabric = fabric(1_000_000, &[stall]);
    let times = delivered(&mut fabric, 1_000, &[0, 9 * MILLISECOND, 10 * MILLISECOND]);
    assert!(times[0] < MILLISECOND);
    assert!(times[1] >= stall.until && times[2] < stall.until + MILLISECOND, "{times:?}");
    assert_eq!(fabric.counters().hosts.socket_overflows, 0);
}

#[test]
fn a_full_socket_drops_and_the_messages_arrive_later() {
    let stall = Stall { from: 8 * MILLISECOND, until: 12 * MILLISECOND };
    let mut fabric = fabric(10_000, &[stall]);
    let submitted: Vec<Nanos> =
        [0].into_iter().chain((0..20).map(|each| 9 * MILLISECOND + each * 1_000)).collect();
    let times = delivered(&mut fabric, 1_000, &submitted);
    assert_eq!(times.len(), submitted.len());
    let hosts = fabric.counters().hosts;
    assert!(hosts.socket_overflows > 5, "{hosts:?}");
    assert!(hosts.resent_packets >= hosts.dropped_data, "{hosts:?}");
}

fn experiment(load: f64) -> Experiment {
    let workload: Workload = "50000".parse().unwrap();
    let mut experiment = preset::sigcomm18_experiment(workload, load, 1).unwrap();
    experiment.fabric = Settings::new(topology(), 1);
    experiment.carrier = Carrier::Apus(Config::default());
    experiment.load_config = Config::default();
    experiment.answer = Answer::Echo;
    experiment.processor = Some(processor(Processor::SOCKET_BUFFER));
    (experiment.messages, experiment.warm_up) = (5_000, 500);
    experiment
}

fn run(experiment: &Experiment) -> ExperimentReport {
    experiment.run(experiment.allowed_growth(), &mut |_| {})
}

/// The load is the processors', as their links are faster.
#[test]
fn processors_are_busy_for_the_load() {
    let report = run(&experiment(0.5));
    let busy = report.processor_load.unwrap();
    assert!((0.48..0.54).contains(&busy), "{busy}");
    assert!(report.is_steady());
    assert_eq!(report.counters.hosts.socket_overflows, 0);
    // Half of 10 Gbit/s, and 50,000 of the 53,836 bytes on the wire.
    let gbps = report.goodput * 8.0 / 1e9;
    assert!((4.4..4.8).contains(&gbps), "{gbps}");
}

#[test]
fn a_backlog_after_a_stall_is_over_sometime() {
    let stalled = Experiment { stall: 20 * MILLISECOND, ..experiment(0.5) };
    let report = run(&stalled);
    assert!(report.recovery.is_some_and(|time| time > 0), "{:?}", report.recovery);
    assert_eq!(run(&experiment(0.5)).recovery, None, "nothing stalls");
    assert_eq!(report, run(&stalled), "a pure function");
}
