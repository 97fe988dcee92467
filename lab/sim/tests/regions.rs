//! Fabrics in regions.

use std::panic::{self, AssertUnwindSafe};

use apus_sim::experiment::{Carrier, Experiment};
use apus_sim::fabric::{Buffers, Regions, Settings, Spreading};
use apus_sim::host::{Answer, ApusHost, Shared};
use apus_sim::{Fabric, Host, HostId, Message, Network, Outcome, Packet, Topology, preset};
use apus_workload::Workload;
use apus_workload::time::{MILLISECOND, Nanos};

fn topology(shape: &str) -> Topology {
    Topology { shape: shape.parse().unwrap(), ..preset::sigcomm18() }
}

/// Returns an experiment with a hundred messages of a workload.
fn experiment(workload: u32, shape: &str) -> Experiment {
    let workload = Workload::published(workload);
    let mut experiment = preset::sigcomm18_experiment(workload, 0.8, 7).unwrap();
    experiment.fabric.topology = topology(shape);
    (experiment.messages, experiment.warm_up) = (80, 20);
    experiment
}

#[test]
fn the_number_of_threads_does_not_affect_the_result() {
    let mut processes = experiment(3, "4x4x2");
    processes.processes = Some(2);
    let mut mixed = experiment(3, "2x8x2");
    let Carrier::Apus(config) = &mixed.carrier else { panic!("the preset is apus") };
    mixed.carrier = Carrier::Mixed(config.clone());
    mixed.answer = Answer::Echo;
    let experiments = [
        experiment(4, "9x4x2"),
        experiment(2, "1x16x0"),
        experiment(3, "2x12x2"),
        experiment(5, "1x2x0"),
        processes,
        mixed,
    ];
    for experiment in experiments {
        let run = |threads| {
            let mut observed = Vec::new();
            let observe = &mut |completion| observed.push(completion);
            let report = experiment.run_observed(threads, 1.0, &mut |_| {}, observe);
            (report, observed)
        };
        let one = run(1);
        assert!(one.0.messages > 0);
        for threads in [2, 100] {
            assert_eq!(run(threads), one, "{threads} threads");
        }
    }
}

/// Carries messages whose send times differ between hosts, and returns the outcomes in order.
fn carry(mut network: impl Network, hosts: u32) -> Vec<(Nanos, Outcome)> {
    let message = |number| {
        let from = number * 5 % hosts;
        let to = (from + 1 + number % (hosts - 1)) % hosts;
        let at = Nanos::from(number) * 3_977 + 1;
        Message { number, from, to, bytes: 8 + number * number % 7_919 * 11, at }
    };
    let messages: Vec<Message> = (0..200).map(message).collect();
    let mut outcomes = Vec::new();
    for some in messages.chunks(37) {
        let until = some.last().map_or(0, |last| last.at + 500);
        network.carry(some, until, &mut |at, outcome| outcomes.push((at, outcome)));
    }
    network.advance(100 * MILLISECOND, &mut |at, outcome| outcomes.push((at, outcome)));
    assert!(outcomes.is_sorted_by_key(|&(at, _)| at));
    outcomes
}

#[test]
fn a_fabric_in_regions_carries_messages_like_an_undivided_one() {
    // Without random choices, and if no two packets meet in the same nanosecond, both are equal.
    for (shape, hosts) in [("9x4x2", 36), ("2x12x3", 24), ("1x16x0", 16)] {
        let settings = Settings {
            spreading: Spreading::PerFlow,
            sample_every: 50_000,
            ..Settings::new(topology(shape), 1)
        };
        let shared = || {
            let experiment = experiment(4, shape);
            let Carrier::Apus(config) = experiment.carrier else { panic!("the preset is apus") };
            let rate = settings.topology.host_rate;
            Shared::new(config, Answer::Nothing, rate, experiment.packets, 100_000)
        };
        let whole = shared();
        let host = |id| ApusHost::new(id, whole.clone(), u64::from(id));
        let mut expected = carry(Fabric::new(&settings, host), hosts);
        let hosts_of = || {
            let shared = shared();
            move |id| ApusHost::new(id, shared.clone(), u64::from(id))
        };
        let mut found = carry(Regions::new(&settings, 2, hosts_of), hosts);
        let order = |&(at, outcome): &(Nanos, Outcome)| (at, format!("{outcome:?}"));
        expected.sort_by_key(order);
        found.sort_by_key(order);
        assert_eq!(found, expected, "{shape}");
        assert_eq!(found.len(), 400, "delivered and done");
    }
}

/// A host that sends each message as one packet, and panics on a message of one byte.
#[derive(Debug)]
struct Fragile {
    id: HostId,
    waits: Vec<Message>,
}

impl Host for Fragile {
    type Body = u32;

    fn submit(&mut self, _: Nanos, message: &Message) {
        self.waits.push(*message);
    }

    fn receive(&mut self, _: Nanos, packet: &Packet, _: &u32) {
        assert!(packet.payload > 1, "as planned");
    }

    fn transmit(&mut self, _: Nanos, packet: &mut Packet, body: &mut u32) -> bool {
        let Some(message) = self.waits.pop() else { return false };
        let (from, to, bytes) = (message.from, message.to, message.bytes);
        *packet = Packet { from, to, wire_bytes: bytes.max(84), payload: bytes, ..*packet };
        *body = message.number;
        true
    }

    fn next_timeout(&self) -> Option<Nanos> {
        None
    }

    fn handle_timeout(&mut self, _: Nanos) {}

    fn poll_outcome(&mut self) -> Option<Outcome> {
        None
    }

    fn id(&self) -> HostId {
        self.id
    }
}

/// Returns a fragile host.
fn fragile(id: HostId) -> Fragile {
    Fragile { id, waits: Vec::new() }
}

#[test]
fn a_panic_of_a_host_ends_the_run_of_all_threads() {
    let mut network = Regions::new(&Settings::new(topology("9x4x2"), 1), 3, || fragile);
    let message = |number, bytes| Message { number, from: 0, to: 35, bytes, at: 10 };
    network.carry(&[message(0, 100)], MILLISECOND, &mut |_, _| {});
    assert_eq!(network.data_packets(), 1);
    let run = || network.carry(&[message(1, 1)], 2 * MILLISECOND, &mut |_, _| {});
    let panic = panic::catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as planned"));
}

#[test]
fn ports_that_share_a_buffer_share_it_in_regions_as_well() {
    // A packet from each host to each of two hosts of a rack, at the same time: the buffers hold
    // only a few of them.
    let message =
        |number| Message { number, from: number % 34, to: 34 + number / 34, bytes: 1_000, at: 10 };
    let messages: Vec<Message> = (0..68).map(message).collect();
    for buffers in [Buffers::Shared(10_000), Buffers::Shared(20_000)] {
        let settings = Settings { buffers, ..Settings::new(topology("9x4x2"), 1) };
        let carried = |network: &mut dyn Network| {
            network.carry(&messages, MILLISECOND, &mut |_, _| {});
            network.counters()
        };
        let whole = carried(&mut Fabric::new(&settings, fragile));
        assert!(whole.dropped > 0);
        assert_eq!(carried(&mut Regions::new(&settings, 4, || fragile)), whole);
    }
}
