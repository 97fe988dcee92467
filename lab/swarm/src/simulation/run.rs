//! A run: creates the hosts of a scenario, takes them through the phases, and returns the result.

use std::cell::RefCell;
use std::rc::Rc;

use super::divided_host::DividedHost;
use super::host::{ObservedHost, SimulatedHost, overhead};
use super::hostile_host::{HostileHost, Resident};
use super::neighbours::Place;
use super::probes::Probes;
use super::world::{MAX_FAULTY_PACKETS, World};
use crate::attack::Attack;
use crate::attacker::{Public, attacker};
use crate::checker::undisturbed::Outcomes;
use crate::ends::{Division, Ends};
use crate::event_log::EventLog;
use crate::observer::Observer;
use crate::scenario::{Processors, Scenario};
use crate::violation::Violation;
use apus_sim::fabric::Fabric;
use apus_sim::fault;
use apus_sim::message::HostId;
use apus_sim::network::Network;
use apus_sim::processor::ProcessorHost;
use apus_workload::time::Nanos;

/// Result of a run.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) violation: Option<Violation>,
    pub(crate) outcomes: Outcomes,
    pub(crate) packets: u64,
    pub(crate) datagrams: u64,
    pub(crate) rpcs: u64,
    pub(crate) hostile_packets: u64,
    pub(crate) faults: fault::Counters,
    pub(crate) socket_overflows: u64,
    pub(crate) hash: u64,
    pub(crate) simulated: Nanos,
}

/// Maximum number of packets of a wait, in addition to the packets that modules cause by RESENDs.
/// (The first phase may have more: calls of Linux modules cost each other RESENDs every 5 ms, for
/// as long as calls are made.)
const MAX_PACKETS: u64 = 5 * MAX_FAULTY_PACKETS;

/// Runs a scenario; records its events in `trace` if it is given.
pub(crate) fn run(scenario: Scenario, trace: Option<Rc<RefCell<EventLog>>>) -> End {
    run_with(scenario, trace, MAX_PACKETS)
}

/// Runs a scenario. A wait gives up after `max_packets` packets.
pub(super) fn run_with(
    mut scenario: Scenario,
    trace: Option<Rc<RefCell<EventLog>>>,
    max_packets: u64,
) -> End {
    let surviving = surviving(&scenario);
    let ends = scenario.ends();
    let probes = Probes::plan(&mut scenario, &surviving);
    let observer = Rc::new(RefCell::new(Observer::new(scenario.clone(), probes.first, trace)));
    let end = |id, place| ObservedHost::new(id, Rc::clone(&observer), place);
    let host = |id| end(id, None);
    let is_divided = scenario.division != Division::Whole;
    let publishes = scenario.has_neighbours();
    let RunEnd { faults, socket_overflows, simulated } =
        match (scenario.processors.clone(), scenario.attack) {
            (_, Some(attack)) => {
                let plan = scenario.clone();
                let host = |id| match id == attack.host {
                    true => Resident::Hostile(hostile_host(&plan, attack, &observer)),
                    false => Resident::Honest(host(id)),
                };
                run_on(host, scenario, &observer, surviving, probes, max_packets)
            }
            (None, None) if is_divided => {
                let host = |id| divided_host(id, ends, publishes, end);
                run_on(host, scenario.clone(), &observer, surviving, probes, max_packets)
            }
            (None, None) => run_on(host, scenario, &observer, surviving, probes, max_packets),
            (Some(Processors { processor, .. }), None) => {
                let plan = scenario.clone();
                let end =
                    |id, place| ProcessorHost::new(end(id, place), processor, plan.stalls_of(id));
                if is_divided {
                    let host = |id| divided_host(id, ends, publishes, end);
                    run_on(host, scenario, &observer, surviving, probes, max_packets)
                } else {
                    run_on(|id| end(id, None), scenario, &observer, surviving, probes, max_packets)
                }
            }
        };
    let observer = Rc::into_inner(observer).expect("the hosts have been dropped").into_inner();
    let on_path = observer.on_path.as_ref().map_or(0, |host| host.hostile);
    End {
        packets: observer.packets,
        datagrams: observer.datagrams,
        rpcs: observer.rpcs,
        hostile_packets: observer.hostile_packets + on_path,
        hash: observer.observation_hash(),
        faults,
        socket_overflows,
        simulated,
        outcomes: observer.outcomes,
        violation: observer.violation,
    }
}

/// Creates a host with several ends, which may publish their state.
fn divided_host<H: SimulatedHost>(
    id: HostId,
    ends: Ends,
    publishes: bool,
    end: impl Fn(HostId, Option<Place>) -> H,
) -> DividedHost<H> {
    let count = if publishes { ends.of_each_host() as usize } else { 0 };
    let mut places = Place::among(count).into_iter();
    DividedHost::new(id, ends, ends.on(id).map(|id| end(id, places.next())).collect())
}

/// Creates the hostile host. Its attacker gets the information of its position from the taps of the
/// observer.
fn hostile_host(
    scenario: &Scenario,
    attack: Attack,
    observer: &RefCell<Observer>,
) -> Box<HostileHost> {
    let public = Public {
        hosts: attack.host,
        own: attack.host,
        target: attack.target,
        packet_limit: scenario.packet_limit,
        config: scenario.config.clone(),
    };
    let attacker = attacker(&attack, public, &observer.borrow().taps);
    let (rate, packets) = (scenario.fabric.topology.host_rate, overhead(scenario.packet_limit));
    Box::new(HostileHost::new(attack, attacker, rate, packets, scenario.seed))
}

/// Data of a fabric at the end of a run.
struct RunEnd {
    faults: fault::Counters,
    socket_overflows: u64,
    simulated: Nanos,
}

/// Runs a scenario on these hosts.
fn run_on<H: SimulatedHost>(
    host: impl Fn(HostId) -> H,
    scenario: Scenario,
    observer: &Rc<RefCell<Observer>>,
    surviving: Vec<HostId>,
    probes: Probes,
    max_packets: u64,
) -> RunEnd {
    let fabric = Fabric::new(&scenario.fabric, host).with_faults(
        scenario.faults,
        scenario.outages.clone(),
        scenario.seed,
    );
    let observer = Rc::clone(observer);
    let ends = scenario.ends();
    let surviving = surviving.into_iter().flat_map(|host| ends.on(host)).collect();
    let mut world =
        World { scenario, fabric, observer, surviving, ends, probes, restarted: 0, max_packets };
    world.run();
    let World { fabric, .. } = world;
    RunEnd {
        faults: fabric.faults(),
        socket_overflows: fabric.counters().hosts.socket_overflows,
        simulated: fabric.now(),
    }
}

/// Returns the hosts that are up at the end.
fn surviving(scenario: &Scenario) -> Vec<HostId> {
    let is_dead = |host: &HostId| {
        scenario
            .outages
            .crashes
            .iter()
            .any(|crash| crash.host == *host && crash.until == Nanos::MAX)
    };
    (0..scenario.hosts()).filter(|host| scenario.is_honest(*host) && !is_dead(host)).collect()
}
