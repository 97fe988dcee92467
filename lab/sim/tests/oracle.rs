//! Scenario: a user compares a transport with the oracle, in the paper's fabric at 80 % load. The
//! oracle must be the paper's, and get the same messages as the transport.

use apus_sim::experiment::{Carrier, Load, Pattern};
use apus_sim::fabric::Settings;
use apus_sim::host::Answer;
use apus_sim::published::{self, Scheme};
use apus_sim::{Experiment, Message, Network, Oracle, Outcome, preset};
use apus_workload::Nanos;
use apus_workload::time::SECOND;
use apus_workload::{PacketOverhead, Workload};

const LOAD: f64 = 0.8;
const PACKETS: PacketOverhead = PacketOverhead::UDP_OVER_ETHERNET;

/// Runs this number of messages of a published workload over apus.
fn experiment(workload: u32, messages: u32) -> Experiment {
    let workload = Workload::published(workload);
    let config = preset::sigcomm18_config(&workload).unwrap();
    Experiment {
        processes: None,
        fabric: Settings::new(preset::sigcomm18(), 1),
        carrier: Carrier::Apus(config.clone()),
        load_config: config,
        workload,
        load: LOAD,
        pattern: Pattern::Uniform,
        answer: Answer::Nothing,
        packets: PACKETS,
        messages,
        warm_up: messages / 5,
        first_contact: true,
        processor: None,
        stall: 0,
        seed: 1,
    }
}

/// Short messages preempt all others in the oracle, and no message waits for a packet on the link.
/// This number of messages is too small for conclusions about long messages.
#[test]
fn short_messages_are_faster_than_with_apus() {
    for (workload, messages) in [(2, 10_000), (4, 1_000)] {
        let apus = experiment(workload, messages);
        let oracle = Experiment { carrier: Carrier::Oracle, ..apus.clone() };
        let [apus, oracle] =
            [apus, oracle].map(|each| each.run(each.allowed_growth(), &mut |_| {}).slowdown);
        assert!(oracle.small_half_p99_max < apus.small_half_p99_max, "W{workload}");
        assert!(oracle.mean_by_messages < apus.mean_by_messages, "W{workload}");
        let short = apus.by_size.iter().zip(&oracle.by_size).take(5);
        for (apus, oracle) in short {
            assert!(apus.percentile <= 50.0, "the smaller half");
            assert!(oracle.p50 <= apus.p50, "W{workload}: {oracle:?}, {apus:?}");
            assert!(oracle.p99 <= apus.p99, "W{workload}: {oracle:?}, {apus:?}");
        }
    }
}

/// Returns size and slowdown of messages in the oracle; their packets use 80 % of the capacity of
/// the hosts' links.
fn slowdowns(workload: &Workload, messages: usize) -> Vec<(u32, f64)> {
    let topology = preset::sigcomm18();
    let hosts = topology.shape.hosts();
    let bytes_per_second = topology.host_rate.bytes(SECOND) as f64 * f64::from(hosts);
    let sizes = workload.sizes().clone();
    let per_second = LOAD * bytes_per_second / PACKETS.mean_wire_bytes(&sizes);
    let load = Load::new(sizes, hosts, Pattern::Uniform, per_second, 0, 0, 1);
    let messages: Vec<Message> = load.take(messages).collect();
    let mut slowdowns = Vec::new();
    let mut tell = |at: Nanos, outcome| {
        if let Outcome::Delivered(number) = outcome {
            let Message { from, to, bytes, at: begin, .. } = messages[number as usize];
            let ideal = topology.ideal(from, to, bytes, &PACKETS);
            slowdowns.push((bytes, (at - begin) as f64 / ideal as f64));
        }
    };
    let mut oracle = Oracle::new(&topology, PACKETS, Answer::Nothing);
    for message in &messages {
        oracle.advance(message.at, &mut tell);
        oracle.submit(message);
    }
    oracle.advance(Nanos::MAX, &mut tell);
    assert_eq!(slowdowns.len(), messages.len());
    slowdowns
}

/// Returns the p99 of the messages with sizes above `above`, up to `upto`.
fn p99(slowdowns: &[(u32, f64)], above: u32, upto: u32) -> f64 {
    let between = slowdowns.iter().filter(|(bytes, _)| (above + 1..=upto).contains(bytes));
    let mut values: Vec<f64> = between.map(|(_, slowdown)| *slowdown).collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() * 99 / 100]
}

/// The paper's points of neighbouring percentiles, and the values here for the sizes between them.
/// Messages up to the 95th percentile complete so soon that few of them suffice. The tolerance
/// covers chance, and the longer headers of apus, which make short messages of W2 wait longer for
/// each other.
#[test]
fn tails_are_between_the_published_points() {
    for number in [2, 4] {
        let workload = Workload::published(number);
        let ours = slowdowns(&workload, 60_000);
        assert!(ours.iter().all(|(_, slowdown)| *slowdown >= 1.0), "W{number}");
        let row = published::slowdown(&workload.to_string(), LOAD, Scheme::SrptOracle).unwrap();
        for pair in row.points().collect::<Vec<_>>()[1..10].windows(2) {
            let [above, upto] = [pair[0], pair[1]]
                .map(|point| workload.sizes().quantile(f64::from(point.percent) / 100.0));
            let p99 = p99(&ours, above, upto);
            let allowed = pair[0].p99 * 0.85..=pair[1].p99 * 1.2;
            assert!(allowed.contains(&p99), "W{number}, {above} to {upto} B: {p99}, {allowed:?}");
        }
    }
}
