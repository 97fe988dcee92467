//! Phases of a run.

use std::cell::RefCell;
use std::rc::Rc;

use apus_wire::Role;

use super::divided_host::DividedHost;
use super::host::{ObservedHost, SimulatedHost, overhead};
use super::hostile_host::{HostileHost, Resident};
use super::neighbours::Place;
use super::probes::Probes;
use super::stack::{Stack, host_of};
use crate::attack::Attack;
use crate::attacker::{Public, attacker};
use crate::call::PlannedCall;
use crate::checker::memory;
use crate::checker::undisturbed::Outcomes;
use crate::ends::{Division, Ends};
use crate::event_log::EventLog;
use crate::observation::CallId;
use crate::observer::Observer;
use crate::scenario::{Processors, Scenario};
use crate::violation::Violation;
use apus_sim::fabric::{Buffers, Fabric};
use apus_sim::fault::{self, Outages};
use apus_sim::kernel::{Module, ModuleRpcKey};
use apus_sim::message::{HostId, Message};
use apus_sim::network::Network;
use apus_sim::processor::ProcessorHost;
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

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

/// Number of packets after which faults end early. Chosen by us: ten times the average of a run.
const MAX_FAULTY_PACKETS: u64 = 1_000_000;

/// Number of packets after which what is waited for will not happen, in addition to those about which modules ask. (The first phase may have more of
/// them: calls of Linux modules cost each other RESENDs every 5 ms, for as long as calls are made.)
const MAX_PACKETS: u64 = 5 * MAX_FAULTY_PACKETS;

/// Time from the start of a host with the Linux module to its first call, at least.
const REBOOT: Nanos = 2 * SECOND;

/// Runs a scenario; records its events in `trace` if it is given.
pub(crate) fn run(scenario: Scenario, trace: Option<Rc<RefCell<EventLog>>>) -> End {
    run_with(scenario, trace, MAX_PACKETS)
}

/// Runs a scenario. What is waited for is given up after `max_packets`.
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

/// Creates a host with several ends, which may publish what they do.
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

/// Creates the hostile host. Its attacker gets what its position may know, from the taps of the observer.
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

/// What a fabric tells at the end of a run.
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
    let mut world = Simulation {
        scenario,
        fabric,
        observer,
        surviving,
        ends,
        probes,
        restarted: 0,
        max_packets,
    };
    world.run();
    let Simulation { fabric, .. } = world;
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

struct Simulation<H: SimulatedHost> {
    scenario: Scenario,
    fabric: Fabric<H>,
    observer: Rc<RefCell<Observer>>,
    /// Ends of hosts that are up at the end.
    surviving: Vec<HostId>,
    ends: Ends,
    probes: Probes,
    /// Restarts of single processes that have happened.
    restarted: usize,
    /// [`MAX_PACKETS`], or fewer in tests.
    max_packets: u64,
}

impl<H: SimulatedHost> Simulation<H> {
    fn run(&mut self) {
        if let Some(attack) = self.scenario.attack {
            // No message and no packet makes it begin.
            self.fabric.attend(attack.host, |_| {});
        }
        self.load();
        self.advance_with_restarts(self.scenario.heal_at);
        self.heal();
        self.expect_calls_to_end();
        self.drain();
        self.observer.borrow_mut().check_resends();
        self.restart_modules();
        self.probe(0);
        self.probe(1);
        self.drain();
        self.expect_no_state(false);
        self.expect_peers_dropped();
        self.probe(2);
        self.depart();
    }

    /// Makes the probes of a round, and waits until they have ended.
    fn probe(&mut self, round: CallId) {
        let Probes { first, of_a_round } = self.probes;
        for call in 0..of_a_round {
            self.submit(first + round * of_a_round + call);
        }
        self.expect_calls_to_end();
    }

    /// Starts the hosts anew that run the Linux module: they count their calls from 2, and their servers, which live on,
    /// execute them nevertheless (AMO-10): the probes that follow succeed. Modules ask each other for acks until then, and a slow processor has
    /// a socket full of that, which ends with the host.
    fn restart_modules(&mut self) {
        if self.scenario.kernel_hosts.is_empty() {
            return;
        }
        for module in self.survivors(true) {
            self.restart(module);
        }
        self.advance_to(self.fabric.now() + REBOOT);
    }

    /// Ends the endpoints of apus as soon as their last calls have: they leave nothing behind in the modules, which would
    /// ask them for acks forever (RPC-18). Where their packets may be lost, no endpoint is left to send them again.
    fn depart(&mut self) {
        let buffers = self.scenario.fabric.buffers == Buffers::PerPort(u64::MAX);
        if self.scenario.kernel_hosts.is_empty() || !buffers || self.scenario.processors.is_some() {
            return;
        }
        let now = self.fabric.now();
        for host in self.survivors(false) {
            self.attend(host, |end| end.depart(now));
        }
        self.drain();
        self.expect_no_state(false);
    }

    /// Returns the ends that are up at the end and run the Linux module, or those that run apus.
    fn survivors(&self, run_module: bool) -> Vec<HostId> {
        let modules = &self.scenario.kernel_hosts;
        let is_wanted = |host: &HostId| modules.contains(host) == run_module;
        self.surviving.iter().copied().filter(is_wanted).collect()
    }

    /// Makes all planned calls, with faults.
    fn load(&mut self) {
        for call in 0..self.probes.first {
            let at = self.scenario.calls[call as usize].at;
            self.advance_with_restarts(at);
            if self.is_over() {
                return;
            }
            self.submit(call);
        }
    }

    /// Returns the protocol of an end.
    fn stack(&self, end: HostId) -> &Stack {
        self.fabric.host(self.ends.host_of(end)).observed(end).stack()
    }

    /// Runs `something` on an end.
    fn attend(&mut self, end: HostId, something: impl FnOnce(&mut ObservedHost)) {
        self.fabric.attend(self.ends.host_of(end), |host| host.attend(end, something));
    }

    /// Starts an end anew.
    fn restart(&mut self, end: HostId) {
        let now = self.fabric.now();
        self.fabric.attend(self.ends.host_of(end), |host| host.restart(end, now));
    }

    fn submit(&mut self, number: CallId) {
        let PlannedCall { from, to, request, .. } = self.scenario.calls[number as usize];
        let (from, to) = (self.ends.host_of(from), self.ends.host_of(to));
        let at = self.fabric.now();
        self.fabric.submit(&Message { number, from, to, bytes: request, at });
    }

    fn advance_to(&mut self, until: Nanos) {
        if !self.is_over() {
            let until = until.max(self.fabric.now());
            self.fabric.advance(until, &mut |_, _| {});
        }
    }

    /// Ends all faults.
    fn heal(&mut self) {
        self.fabric.heal();
        if let Some(host) = &mut self.observer.borrow_mut().on_path {
            host.leave();
        }
    }

    /// Advances with faults, and starts the processes anew whose time comes.
    fn advance_with_restarts(&mut self, until: Nanos) {
        while let Some((at, end)) = self.scenario.restarts.get(self.restarted).copied()
            && at <= until
        {
            self.advance_with_faults(at);
            self.restarted += 1;
            self.restart(end);
        }
        self.advance_with_faults(until);
    }

    /// Advances like `advance_to`, but ends the faults early after [`MAX_FAULTY_PACKETS`].
    fn advance_with_faults(&mut self, until: Nanos) {
        while self.fabric.now() < until && !self.is_over() {
            if self.observer.borrow().packets > MAX_FAULTY_PACKETS {
                self.heal();
            }
            self.advance_to((self.fabric.now() + MILLISECOND).min(until));
        }
    }

    fn is_over(&self) -> bool {
        self.observer.borrow().is_over()
    }

    /// Returns the number of packets at which what is waited for from now on is given up. In each tick until then, modules ask about each of
    /// their RPCs, and are answered, whatever apus does: a request that waits for grants costs a RESEND and a BUSY every 5 ms
    /// (HM `homa_timer.c` `homa_timer_check_rpc`).
    fn most_packets(&self) -> u64 {
        let modules = self.surviving.iter().filter_map(|host| self.stack(*host).kernel());
        let asked_about: usize = modules.map(|module| module.live().count()).sum();
        let asked = 2 * asked_about as u64 * (self.time_limit() / MILLISECOND);
        self.observer.borrow().packets + self.max_packets + asked
    }

    /// Advances until `done`, or until `bound` has passed, or `most` packets were sent.
    fn wait(&mut self, bound: Nanos, most: u64, done: impl Fn(&Self) -> bool) {
        let end = self.fabric.now() + bound;
        let mut step = MILLISECOND;
        while !self.is_over() && !done(self) && self.fabric.now() < end {
            if self.observer.borrow().packets > most {
                // The open calls will not end; the caller reports them.
                return;
            }
            self.advance_to((self.fabric.now() + step).min(end));
            step = (step * 2).min(100 * MILLISECOND);
        }
    }

    /// Second phase: every call ends. After unnoticed corruption a peer may delay a call forever; then it must be
    /// possible to cancel it.
    fn expect_calls_to_end(&mut self) {
        // A loss may delay many calls in sequence, so wait as long as calls end. Requests that a module has given up are granted, too, and end
        // when they are asked about, so that a thousand calls may take as many resend intervals.
        loop {
            let (before, most) = (self.open(), self.most_packets());
            self.wait(self.time_limit(), most, |world| world.open() == 0 || world.open() < before);
            if self.open() == 0 || self.open() == before {
                break;
            }
        }
        let now = self.fabric.now();
        if self.scenario.has_unnoticed_corruption() {
            for host in self.surviving.clone() {
                self.attend(host, |end| end.cancel_all(now));
            }
        }
        let result = {
            let observer = self.observer.borrow();
            observer.liveness.check_ends(&observer.directory, now)
        };
        let result = result.map_err(|violation| self.describe_open_call(violation));
        self.observer.borrow_mut().record(result);
    }

    /// Adds to a violation what both ends of an open call know about it.
    fn describe_open_call(&self, mut violation: Violation) -> Violation {
        let Some(call) = violation.calls.first() else { return violation };
        let PlannedCall { from, to, .. } = self.scenario.calls[*call as usize];
        for (host, other) in [(from, to), (to, from)] {
            let stack = self.stack(host);
            let Stack::Apus(transport, view) = stack else {
                let description =
                    stack.kernel().map(|module| self.describe_module(module, host, other, *call));
                violation.observed += &format!("\n             host {host}: {description:?}");
                continue;
            };
            let observer = self.observer.borrow();
            let mine = transport.info().into_iter().find(|info| {
                let ends = if info.role == Role::Client { (host, other) } else { (other, host) };
                view.at(info.peer) == other
                    && observer.directory.find(ends.0, ends.1, info.id) == Some(*call)
            });
            let live = transport.metrics().live;
            violation.observed += &format!("\n             host {host}: {mine:?}, {live:?}");
        }
        violation
    }

    /// Returns whether every packet arrives.
    fn is_lossless(&self) -> bool {
        let Scenario { faults, outages, fabric, .. } = &self.scenario;
        *faults == fault::Settings::default()
            && *outages == Outages::default()
            && fabric.buffers == Buffers::PerPort(u64::MAX)
            && self.scenario.processors.is_none()
    }

    /// Describes the state of a call with `other` in the module of `host`.
    fn describe_module(
        &self,
        module: &Module,
        host: HostId,
        other: HostId,
        call: CallId,
    ) -> String {
        let observer = self.observer.borrow();
        let is_match = |name: &ModuleRpcKey| {
            let ends = if name.role == Role::Client { (host, other) } else { (other, host) };
            observer.directory.find(ends.0, ends.1, name.id) == Some(call)
        };
        let mine = module.live().find(is_match).map(|name| module.describe(name));
        format!("Linux module, {} RPCs, {}", module.live().count(), mine.unwrap_or_default())
    }

    /// Returns the number of calls that have been submitted and have not ended.
    fn open(&self) -> usize {
        let waiting: usize = self.fabric.hosts().map(H::waiting_calls).sum();
        self.observer.borrow().liveness.open() as usize + waiting
    }

    /// Waits until no packet is in flight, however late, and no host waits for an acknowledgment.
    fn drain(&mut self) {
        let late = self.scenario.faults.late_by + self.scenario.faults.spike_of;
        self.wait(late + self.time_limit(), self.most_packets(), |world| {
            let is_clear = |host: &HostId| match world.stack(*host) {
                Stack::Apus(transport, _) => memory::is_clear(&transport.live()),
                Stack::Kernel(module) => world.retained_rpcs(module).is_empty(),
            };
            world.fabric.under_way() == 0 && world.surviving.iter().all(is_clear)
        });
    }

    /// Returns the time within which some call ends without faults: silent peers time out, lost bytes are requested
    /// again, and all bytes of the run pass one link several times.
    fn time_limit(&self) -> Nanos {
        let config = &self.scenario.config;
        let bytes: u64 =
            self.scenario.calls.iter().map(|call| u64::from(call.request + call.response)).sum();
        let processing: Nanos = self
            .scenario
            .calls
            .iter()
            .map(|call| 2 * self.scenario.processing_time(call, call.to))
            .sum();
        let transfer = self.scenario.fabric.topology.host_rate.time(bytes).max(processing);
        let acks = config.need_ack_limit() * 100 * MILLISECOND;
        4 * config.timeout_usecs() * MICROSECOND + 20 * transfer + acks + 2 * SECOND
    }

    fn expect_no_state(&mut self, peers_too: bool) {
        for host in &self.surviving {
            let result = match self.stack(*host) {
                Stack::Apus(transport, _) => memory::check(*host, &transport.live(), peers_too),
                Stack::Kernel(module) => {
                    let retained = self.retained_rpcs(module);
                    let description =
                        retained.iter().map(|name| format!("{name:?}: {}", module.describe(*name)));
                    memory::check_module(*host, &description.collect::<Vec<_>>())
                }
            };
            self.observer.borrow_mut().record(result);
        }
    }

    /// Returns the RPCs that a module keeps on behalf of hosts that are up and run apus. With other hosts they never
    /// end (HM `homa_timer.c` `homa_timer_check_rpc`), nor do those that wait for grants of a client whose notice of
    /// cancellation was lost.
    fn retained_rpcs(&self, module: &Module) -> Vec<ModuleRpcKey> {
        let ends = |name: &ModuleRpcKey| {
            let peer = host_of(name.peer);
            let runs_apus = !self.scenario.kernel_hosts.contains(&peer);
            let excused = !self.is_lossless() && module.waits_for_grants(*name);
            runs_apus && self.surviving.contains(&peer) && !excused
        };
        module.live().filter(ends).collect()
    }

    /// Checks that peers are dropped, if that happens within a minute.
    fn expect_peers_dropped(&mut self) {
        let idle = self.scenario.config.peer_idle_secs_max();
        if idle <= 60 {
            self.advance_to(self.fabric.now() + (idle + 5) * SECOND);
            self.expect_no_state(true);
        }
    }
}
