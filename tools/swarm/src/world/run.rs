//! How does a run go from its first call to nothing?

use std::cell::RefCell;
use std::rc::Rc;

use apus_wire::Role;

use super::host::WatchedHost;
use super::stack::{Stack, host_of};
use crate::call::{Answer, Call};
use crate::checker::memory;
use crate::scenario::Scenario;
use crate::seen::CallId;
use crate::trace::Trace;
use crate::violation::Violation;
use crate::watch::Watch;
use apus_sim::fabric::{Buffers, Fabric};
use apus_sim::fault::{self, Outages};
use apus_sim::host::host_at;
use apus_sim::kernel::{Module, ModuleRpcKey};
use apus_sim::message::{HostId, Message};
use apus_sim::network::Network;
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// How a run has ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) violation: Option<Violation>,
    pub(crate) packets: u64,
    pub(crate) rpcs: u64,
    pub(crate) faults: fault::Counters,
    pub(crate) hash: u64,
    pub(crate) simulated: Nanos,
}

/// Packets after which a network that does nothing but lose them has shown all it can. Ours: ten times what runs
/// have on average.
const ENOUGH: u64 = 1_000_000;

/// Packets after which a run that does not end is not going to.
const TOO_MANY: u64 = 5 * ENOUGH;

/// Bytes of the probes' requests: one that leaves at once, and one that needs permission.
const PROBES: [u32; 2] = [100, 300_000];

/// Runs a scenario, and writes down what concerns a call, or everything, if it is asked to.
pub(crate) fn run(mut scenario: Scenario, trace: Option<Rc<RefCell<Trace>>>) -> End {
    let probes = scenario.calls.len() as CallId;
    let living = living(&scenario);
    for length in PROBES {
        let length = length.min(scenario.config.max_message() as u32);
        scenario.calls.extend(living.iter().enumerate().map(|(index, from)| {
            let to = living[(index + 1) % living.len()];
            probe(*from, to, length)
        }));
    }
    let watch = Rc::new(RefCell::new(Watch::new(scenario.clone(), probes, trace)));
    let fabric = Fabric::new(&scenario.fabric, |id| WatchedHost::new(id, Rc::clone(&watch)))
        .with_faults(scenario.faults, scenario.outages.clone(), scenario.seed);
    let mut world = World { scenario, fabric, watch, living, probes };
    world.run();
    let World { fabric, watch, .. } = world;
    let (faults, simulated) = (fabric.faults(), fabric.now());
    drop(fabric);
    let watch = Rc::into_inner(watch).expect("the hosts are gone").into_inner();
    End {
        packets: watch.packets,
        rpcs: watch.rpcs,
        hash: watch.hash_of_all(),
        faults,
        simulated,
        violation: watch.violation,
    }
}

/// Hosts that are there at the end.
fn living(scenario: &Scenario) -> Vec<HostId> {
    let is_dead = |host: &HostId| {
        scenario
            .outages
            .crashes
            .iter()
            .any(|crash| crash.host == *host && crash.until == Nanos::MAX)
    };
    (0..scenario.hosts()).filter(|host| !is_dead(host)).collect()
}

const fn probe(from: HostId, to: HostId, request: u32) -> Call {
    Call {
        from,
        to,
        at: 0,
        request,
        response: request,
        service: 0,
        answer: Answer::Reply,
        cancel: None,
        deadline: None,
        // It goes on if its server has been restarted and does not know its client any more (AMO-3).
        idempotent: true,
    }
}

struct World {
    scenario: Scenario,
    fabric: Fabric<WatchedHost>,
    watch: Rc<RefCell<Watch>>,
    living: Vec<HostId>,
    /// The first call that is a probe.
    probes: CallId,
}

impl World {
    fn run(&mut self) {
        self.load();
        self.advance_through_trouble(self.scenario.heal_at);
        self.fabric.heal();
        self.expect_ends();
        self.drain();
        for round in 0..PROBES.len() as CallId {
            let count = self.living.len() as CallId;
            for call in 0..count {
                self.submit(self.probes + round * count + call);
            }
            self.expect_ends();
        }
        self.drain();
        self.expect_nothing(false);
        self.expect_oblivion();
    }

    /// Faults, and everything that was planned.
    fn load(&mut self) {
        for call in 0..self.probes {
            let at = self.scenario.calls[call as usize].at;
            self.advance_through_trouble(at);
            if self.is_over() {
                return;
            }
            self.submit(call);
        }
    }

    fn submit(&mut self, number: CallId) {
        let Call { from, to, request, .. } = self.scenario.calls[number as usize];
        let at = self.fabric.now();
        self.fabric.submit(&Message { number, from, to, bytes: request, at });
    }

    fn advance_to(&mut self, until: Nanos) {
        if !self.is_over() {
            let until = until.max(self.fabric.now());
            self.fabric.advance(until, &mut |_, _| {});
        }
    }

    /// The same; but enough is enough, and then the network heals before its time.
    fn advance_through_trouble(&mut self, until: Nanos) {
        while self.fabric.now() < until && !self.is_over() {
            if self.watch.borrow().packets > ENOUGH {
                self.fabric.heal();
            }
            self.advance_to((self.fabric.now() + MILLISECOND).min(until));
        }
    }

    fn is_over(&self) -> bool {
        self.watch.borrow().is_over()
    }

    /// Goes on until `done`, or until `bound` has passed.
    fn wait(&mut self, bound: Nanos, done: impl Fn(&Self) -> bool) {
        let end = self.fabric.now() + bound;
        let mut step = MILLISECOND;
        while !self.is_over() && !done(self) && self.fabric.now() < end {
            if self.watch.borrow().packets > TOO_MANY {
                // What is open is looked at now: it will not end.
                return;
            }
            self.advance_to((self.fabric.now() + step).min(end));
            step = (step * 2).min(100 * MILLISECOND);
        }
    }

    /// Phase two: every call ends. A peer whose lies nobody caught may keep one waiting for ever: then it must
    /// be possible to let it go.
    fn expect_ends(&mut self) {
        // Whatever was lost may hold up everything else behind it, many times over: as long as calls end, there
        // is hope.
        loop {
            let before = self.open();
            self.wait(self.patience(), |world| world.open() == 0 || world.open() < before);
            if self.open() == 0 || self.open() == before {
                break;
            }
        }
        let now = self.fabric.now();
        if self.scenario.lets_corruption_through() {
            for host in self.living.clone() {
                self.fabric.attend(host, |host| host.cancel_all(now));
            }
        }
        let result = {
            let watch = self.watch.borrow();
            watch.liveness.check_ends(&watch.directory, now)
        };
        let result = result.map_err(|violation| self.look_at(violation));
        self.watch.borrow_mut().note(result);
    }

    /// What both ends of a call that does not end know about it, and what else they have to do.
    fn look_at(&self, mut violation: Violation) -> Violation {
        let Some(call) = violation.calls.first() else { return violation };
        let Call { from, to, .. } = self.scenario.calls[*call as usize];
        for (host, other) in [(from, to), (to, from)] {
            let stack = self.fabric.host(host).stack();
            let Some(transport) = stack.apus() else {
                let words = stack.kernel().map(|module| self.words_of(module, host, other, *call));
                violation.seen += &format!("\n             host {host}: {words:?}");
                continue;
            };
            let watch = self.watch.borrow();
            let mine = transport.info().into_iter().find(|info| {
                let ends = if info.role == Role::Client { (host, other) } else { (other, host) };
                host_at(info.peer) == other
                    && watch.directory.find(ends.0, ends.1, info.id) == Some(*call)
            });
            let live = transport.metrics().live;
            violation.seen += &format!("\n             host {host}: {mine:?}, {live:?}");
        }
        violation
    }

    /// Whether every packet arrives.
    fn is_lossless(&self) -> bool {
        let Scenario { faults, outages, fabric, .. } = &self.scenario;
        *faults == fault::Settings::default()
            && *outages == Outages::default()
            && fabric.buffers == Buffers::PerPort(u64::MAX)
    }

    /// What the module of `host` knows about a call with `other`.
    fn words_of(&self, module: &Module, host: HostId, other: HostId, call: CallId) -> String {
        let watch = self.watch.borrow();
        let is_it = |name: &ModuleRpcKey| {
            let ends = if name.role == Role::Client { (host, other) } else { (other, host) };
            watch.directory.find(ends.0, ends.1, name.id) == Some(call)
        };
        let mine = module.live().find(is_it).map(|name| module.describe(name));
        format!("Linux module, {} RPCs, {}", module.live().count(), mine.unwrap_or_default())
    }

    /// Calls that have not ended.
    fn open(&self) -> u32 {
        self.watch.borrow().liveness.open()
    }

    /// Until nothing is under way, however late, and nobody waits for an acknowledgment any more.
    fn drain(&mut self) {
        let late = self.scenario.faults.late_by + self.scenario.faults.spike_of;
        self.wait(late + self.patience(), |world| {
            let is_clear = |host: &HostId| match world.fabric.host(*host).stack() {
                Stack::Apus(transport) => memory::is_clear(&transport.live()),
                Stack::Kernel(module) => world.held_by(module).is_empty(),
            };
            world.fabric.under_way() == 0 && world.living.iter().all(is_clear)
        });
    }

    /// Within this time something ends when nothing goes wrong: whoever is silent is given up, whatever was
    /// lost before has been asked for, and all bytes of the run have passed one link several times.
    fn patience(&self) -> Nanos {
        let config = &self.scenario.config;
        let bytes: u64 =
            self.scenario.calls.iter().map(|call| u64::from(call.request + call.response)).sum();
        let transfer = self.scenario.fabric.topology.host_rate.time(bytes);
        let acks = config.need_ack_limit() * 100 * MILLISECOND;
        4 * config.timeout_usecs() * MICROSECOND + 20 * transfer + acks + 2 * SECOND
    }

    fn expect_nothing(&mut self, peers_too: bool) {
        for host in &self.living {
            let result = match self.fabric.host(*host).stack() {
                Stack::Apus(transport) => memory::check(*host, &transport.live(), peers_too),
                Stack::Kernel(module) => {
                    let held = self.held_by(module);
                    let words =
                        held.iter().map(|name| format!("{name:?}: {}", module.describe(*name)));
                    memory::check_module(*host, &words.collect::<Vec<_>>())
                }
            };
            self.watch.borrow_mut().note(result);
        }
    }

    /// What a module holds on behalf of hosts that live and run apus: with others it never ends (row K-3), and
    /// neither does what waits for the grants of a client whose word that it is gone was lost.
    fn held_by(&self, module: &Module) -> Vec<ModuleRpcKey> {
        let ends = |name: &ModuleRpcKey| {
            let peer = host_of(name.peer);
            let runs_apus = !self.scenario.kernel_hosts.contains(&peer);
            let excused = !self.is_lossless() && module.waits_for_grants(*name);
            runs_apus && self.living.contains(&peer) && !excused
        };
        module.live().filter(ends).collect()
    }

    /// Peers are forgotten, if that happens within a minute.
    fn expect_oblivion(&mut self) {
        let idle = self.scenario.config.peer_idle_secs_max();
        if idle <= 60 {
            self.advance_to(self.fabric.now() + (idle + 5) * SECOND);
            self.expect_nothing(true);
        }
    }
}
