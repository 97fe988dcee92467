//! The world: a server and clients in simulated time, one event after the other.
//!
//! - **FSWORLD-1** Two runs of one scenario are equal.
//! - **FSWORLD-2** A message is delivered at most once; a lost message is reported to its sender
//!   after a while, whether its receiver has handled it or not.

mod application;
mod clock;
mod digest;
mod event;
mod faults;
mod host;
mod intent;
mod kernel;
mod network;
mod record;
mod recorder;
mod verify;

use std::collections::BTreeMap;
use std::time::Duration;

use apus_fs_core::Store;
use apus_fs_core::client::{Caller, Client, ClientEffect, Clock, OpToken, Reply};
use apus_fs_core::server::{Server, ServerEffect, ServerSettings};
use apus_fs_core::wire::{Errno, Ino, Name, NewNode};
use apus_fs_store::memory::MemoryStore;
use bytes::Bytes;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::Violation;
use crate::history::{Moment, MountId, NameAction};
use crate::scenario::{Fault, Scenario};
use crate::totals::Totals;
use application::Planted;
use clock::LocalClock;
use digest::Digest;
use event::{Call, Callback, Event};
use host::Host;
use intent::Intent;
use record::{Begun, record};
use recorder::Recorder;

/// Number of events after which a run is considered endless.
const MOST_EVENTS: u64 = 3_000_000;

/// Lines of the trace that are kept.
const MOST_LINES: usize = 400;

struct World {
    scenario: Scenario,
    random: Pcg64Mcg,
    now: Duration,
    queue: BTreeMap<(Duration, u64), Event>,
    last: u64,
    server: Option<Server<MemoryStore>>,
    /// The store, while the server is down.
    store: MemoryStore,
    server_clock: LocalClock,
    /// When the server was started last.
    server_started: Duration,
    server_life: u32,
    server_wake: Option<Duration>,
    hosts: Vec<Host>,
    mounts: u32,
    calls: BTreeMap<u64, Call>,
    callbacks: BTreeMap<u64, Callback>,
    recorder: Recorder,
    planted: Planted,
    is_closing: bool,
    fenced: Vec<MountId>,
    totals: Totals,
    digest: Digest,
    trace: Vec<String>,
}

/// Runs a scenario and checks its history.
pub(crate) fn run(scenario: &Scenario, trace: &mut Vec<String>) -> Result<Totals, Violation> {
    let mut world = World::new(scenario);
    let result = world.run().and_then(|()| world.verify());
    std::mem::swap(trace, &mut world.trace);
    world.totals.digest = world.digest.finish();
    result.map(|()| world.totals)
}

impl World {
    fn new(scenario: &Scenario) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(scenario.seed ^ 0x5eed);
        let clock = |random: &mut Pcg64Mcg| {
            let offset = Duration::from_millis(random.random_range(0..100_000));
            LocalClock::new(offset, random.random_range(-scenario.drift..=scenario.drift))
        };
        let server_clock = clock(&mut random);
        let hosts = (0..scenario.clients).map(|_| Host::new(clock(&mut random))).collect();
        let mut store = MemoryStore::default();
        let mut recorder = Recorder::default();
        let mut plant = |text: &'static str| {
            let text = Name::new(text).expect("a good name");
            let file = store
                .plant(Ino::ROOT, &text, NewNode::File, &Bytes::new())
                .expect("the store has no such name");
            let (invoked, returned) = (recorder.moment(), recorder.moment());
            let result = Some(Ok(file));
            let planted = NameAction::Create { at: (Ino::ROOT, text), is_directory: false, result };
            recorder.name(MountId(0), invoked, Some(returned), planted);
            file
        };
        let planted = Planted { log: plant("log"), board: plant("board") };
        Self {
            scenario: scenario.clone(),
            random,
            now: Duration::ZERO,
            queue: BTreeMap::new(),
            last: 0,
            server: None,
            store,
            server_clock,
            server_started: Duration::ZERO,
            server_life: 0,
            server_wake: None,
            hosts,
            mounts: 0,
            calls: BTreeMap::new(),
            callbacks: BTreeMap::new(),
            recorder,
            planted,
            is_closing: false,
            fenced: Vec::new(),
            totals: Totals::default(),
            digest: Digest::default(),
            trace: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), Violation> {
        self.start_server(false);
        for host in 0..self.hosts.len() {
            self.start_client(host);
        }
        for (at, fault) in self.scenario.faults.clone() {
            self.schedule(at, Event::Fault(fault));
        }
        self.schedule(self.scenario.duration, Event::Closing);
        let end = self.scenario.duration + self.scenario.term * 30 + Duration::from_secs(60);
        for _ in 0..MOST_EVENTS {
            let Some(((at, _), event)) = self.queue.pop_first() else { break };
            self.now = at;
            self.totals.milliseconds = at.as_millis() as u64;
            self.handle(event)?;
            self.recorder.check_troubles()?;
            if at > end || (self.is_closing && self.hosts.iter().all(Host::is_done)) {
                return Ok(());
            }
        }
        let what = format!("there is no end of events at {:?}", self.now);
        Err(Violation::new("every operation ends", what))
    }

    fn schedule(&mut self, at: Duration, event: Event) {
        self.last += 1;
        self.queue.insert((at.max(self.now), self.last), event);
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if self.trace.len() == MOST_LINES {
            self.trace.remove(0);
        }
        let line = format!("{:>12.6} {}", self.now.as_secs_f64(), line());
        self.trace.push(line);
    }

    fn handle(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Request { .. }
            | Event::Response { .. }
            | Event::CallFailed { .. }
            | Event::Callback { .. }
            | Event::Answer { .. }
            | Event::CallbackFailed { .. } => self.handle_message(event),
            Event::Notified { host, mount, notification, ref items } => {
                if self.hold(host, mount, &event) {
                    return Ok(());
                }
                self.hosts[host].kernel.invalidate(items);
                self.with_client(host, mount, &event, |client, clock| {
                    client.notified(clock, notification);
                });
            }
            Event::ClientWake { host, mount } => {
                if self.hosts[host].wake_at == Some(self.now) {
                    self.hosts[host].wake_at = None;
                    self.with_client(host, mount, &event, Client::poll);
                }
            }
            Event::ServerWake { life } => {
                if life == self.server_life && self.server.is_some() {
                    if self.server_wake.is_some_and(|at| at <= self.now) {
                        self.server_wake = None;
                    }
                    self.poll_server()?;
                }
            }
            Event::Application { host, mount, thread } => {
                if !self.hold(host, mount, &event) {
                    self.begin(host, thread);
                }
            }
            Event::Interrupt { host, mount, token } => {
                if self.hosts[host].waiting.contains_key(&token) {
                    self.hosts[host].interrupted.insert(token);
                    self.note(|| format!("{mount} is interrupted in an operation"));
                    self.with_client(host, mount, &event, |client, clock| {
                        client.interrupt(clock, token);
                    });
                }
            }
            Event::Fault(_)
            | Event::ServerStart
            | Event::ClientStart { .. }
            | Event::Resume { .. }
            | Event::Closing => self.disturb(&event),
        }
        Ok(())
    }

    /// Returns whether an event does not reach a client now: it is down, or paused, and will get it
    /// later.
    fn hold(&mut self, host: usize, mount: MountId, event: &Event) -> bool {
        let host = &mut self.hosts[host];
        if host.mount != mount || host.client.is_none() {
            return true;
        }
        let is_paused = host.paused_until.is_some();
        if is_paused {
            host.held.push(event.clone());
        }
        is_paused
    }

    /// Calls `act` on a client that is up, and carries out its requests.
    fn with_client(
        &mut self,
        host: usize,
        mount: MountId,
        event: &Event,
        act: impl FnOnce(&mut Client, &Clock),
    ) {
        if self.hold(host, mount, event) {
            return;
        }
        let clock = self.hosts[host].clock.read(self.now);
        if let Some(client) = &mut self.hosts[host].client {
            act(client, &clock);
        }
        self.drain_client(host);
    }

    /// Makes an application start its next operation.
    fn begin(&mut self, host: usize, thread: usize) {
        self.last += 1;
        let token = OpToken(self.last);
        let machine = &mut self.hosts[host];
        let application = &mut machine.applications[thread];
        if application.current.is_some() || application.is_done {
            return;
        }
        application.is_closing = self.is_closing;
        let Some(intent) = application.begin(&mut self.random, &mut self.recorder) else {
            return;
        };
        machine.is_dirty |= intent.is_change();
        let operation = intent.operation();
        let line = format!("{} thread {thread} begins {intent:?}", machine.mount);
        machine.waiting.insert(token, thread);
        let clock = machine.clock.read(self.now);
        if let Some(reply) = machine.kernel.serve(intent, clock.now) {
            self.totals.hits += 1;
            self.note(|| line);
            return self.end(host, token, &Ok(reply));
        }
        if let Some(client) = &mut machine.client {
            client.submit(&clock, token, Caller { uid: 0, gid: 0 }, operation);
        }
        self.note(|| line);
        self.drain_client(host);
        self.interrupt_some(host, token, thread);
    }

    /// Interrupts some of the operations that wait for the server by a signal.
    fn interrupt_some(&mut self, host: usize, token: OpToken, thread: usize) {
        let machine = &self.hosts[host];
        // The operations in the private directory are checked as one complete sequence.
        let is_owner = thread == 0;
        if self.scenario.interrupts
            && !is_owner
            && machine.waiting.contains_key(&token)
            && self.random.random_ratio(1, 20)
        {
            let mount = machine.mount;
            let later = self.scenario.term.mul_f64(0.2 * self.random.random::<f64>().powi(4));
            self.schedule(self.now + later, Event::Interrupt { host, mount, token });
        }
    }

    /// Updates a kernel from a reply of its client.
    fn learn(&mut self, host: usize, token: OpToken, result: &Result<Reply, Errno>) {
        let machine = &mut self.hosts[host];
        let now = machine.clock.local(self.now);
        let thread = machine.waiting.get(&token);
        let application = thread.map(|thread| &machine.applications[*thread]);
        if let Some(current) = application.and_then(|one| one.current.as_ref()) {
            machine.kernel.learn(&current.intent, result, now);
        }
    }

    /// Gives a result to the application that waits for it.
    fn end(&mut self, host: usize, token: OpToken, result: &Result<Reply, Errno>) {
        let machine = &mut self.hosts[host];
        let mount = machine.mount;
        let Some(thread) = machine.waiting.remove(&token) else { return };
        let application = &mut machine.applications[thread];
        let Some(current) = application.current.take() else { return };
        let returned = self.recorder.moment();
        self.totals.operations += 1;
        let is_interrupted = machine.interrupted.remove(&token) && *result == Err(Errno::INTR);
        self.totals.interrupted += u64::from(is_interrupted);
        if *result == Err(Errno::STALE) && application.uses_opening(&current.intent) {
            let what = format!("{:?} of a file that is open", current.intent);
            self.recorder.trouble(mount, &what, Errno::STALE);
        }
        if is_interrupted {
            // It may be in effect, now or later, or never.
            let begun = Begun { mount, invoked: current.invoked, returned: None };
            record(&mut self.recorder, begun, &current.intent, None);
        } else if application.is_private(&current.intent) {
            if let Err(errno) = result {
                self.recorder.trouble(mount, &format!("{:?}", current.intent), *errno);
            }
        } else {
            let begun = Begun { mount, invoked: current.invoked, returned: Some(returned) };
            record(&mut self.recorder, begun, &current.intent, Some(result));
        }
        application.end(&current, result, returned, &mut self.recorder);
        machine.is_dirty |= current.intent.is_change();
        let is_synced = matches!(current.intent, Intent::Sync(_)) && result.is_ok();
        if is_synced
            && self.scenario.crashes_after_syncs
            && !self.is_closing
            && self.random.random_ratio(1, 12)
        {
            // Before a message can arrive that leaves now.
            let down = self.scenario.term.mul_f64(self.random.random::<f64>());
            self.schedule(self.now, Event::Fault(Fault::ClientCrash { host, down }));
        }
        let think = self.scenario.think.mul_f64(2.0 * self.random.random::<f64>());
        self.note(|| format!("{mount} thread {thread} gets {result:?}"));
        self.schedule(self.now + think, Event::Application { host, mount, thread });
    }

    /// Carries out the requests of a client.
    fn drain_client(&mut self, host: usize) {
        let mount = self.hosts[host].mount;
        while let Some(effect) = self.hosts[host].client.as_mut().and_then(Client::take_effect) {
            self.digest.add_client(self.now, mount, &effect);
            match effect {
                ClientEffect::Reply { operation, result } => {
                    self.learn(host, operation, &result);
                    self.end(host, operation, &result);
                }
                ClientEffect::Call { call, header, payload, .. } => {
                    let bytes = [vec![header], payload].concat().concat().into();
                    self.send_request(host, call, bytes);
                }
                ClientEffect::Answer { callback, message } => {
                    self.send_answer(callback.0, message);
                }
                ClientEffect::Invalidate { notification, items } => {
                    let delay = Duration::from_micros(self.random.random_range(1..500));
                    let event = Event::Notified { host, mount, notification, items };
                    self.schedule(self.now + delay, event);
                }
                ClientEffect::Warn(text) => self.note(|| format!("{mount} warns: {text}")),
                ClientEffect::Lost(_) => {}
            }
        }
        let machine = &mut self.hosts[host];
        let Some(client) = &machine.client else { return };
        if client.locks_lost() > machine.locks_lost {
            machine.locks_lost = client.locks_lost();
            self.recorder.lose_locks(mount);
            // In this time no other client may have got one, whatever the drift of the clocks.
            if self.now < self.server_started + self.scenario.term / 2 {
                self.recorder.trouble(mount, "taking a lock again", Errno::NOLCK);
            }
        }
        if machine.is_dirty && client.is_clean() {
            machine.is_dirty = false;
            let at = self.recorder.moment();
            self.recorder.sync(mount, at);
        }
        let deadline = client.next_deadline().map(|local| machine.clock.when(local));
        if let Some(at) = deadline.map(|at| at.max(self.now))
            && machine.wake_at != Some(at)
        {
            machine.wake_at = Some(at);
            self.schedule(at, Event::ClientWake { host, mount });
        }
    }

    fn poll_server(&mut self) -> Result<(), Violation> {
        let local = self.server_clock.local(self.now);
        if let Some(server) = &mut self.server {
            let polled = server.poll(local);
            polled.map_err(|error| Violation::new("the store works", error.to_string()))?;
        }
        self.drain_server();
        Ok(())
    }

    /// Notes which clients have lost changes because the server could not apply a batch.
    fn note_failed_batches(&mut self) {
        let Some(server) = &self.server else { return };
        let mut failures = Vec::new();
        for (host, machine) in
            self.hosts.iter_mut().enumerate().filter(|(_, host)| host.client.is_some())
        {
            let failed = server.store().last_failure(host::client_id(machine.mount));
            if let Some(failed) = failed.filter(|failed| failed.number > machine.failed) {
                machine.failed = failed.number;
                failures.push((host, failed));
            }
        }
        for (host, failed) in failures {
            let at = self.recorder.moment();
            self.note(|| format!("batch {} of host {host} fails: {}", failed.number, failed.error));
            self.suspect(host, at);
        }
    }

    /// Carries out the requests of the server.
    fn drain_server(&mut self) {
        self.note_failed_batches();
        while let Some(effect) = self.server.as_mut().and_then(Server::take_effect) {
            self.digest.add_server(self.now, &effect);
            match effect {
                ServerEffect::Respond { call, header, payload } => {
                    let bytes = [vec![header], payload].concat().concat().into();
                    self.send_response(call.0, bytes);
                }
                ServerEffect::Call { callback, peer, message } => {
                    self.send_callback(callback, peer, message);
                }
            }
        }
        let deadline = self.server.as_ref().and_then(Server::next_deadline);
        if let Some(at) = deadline.map(|local| self.server_clock.when(local).max(self.now))
            && self.server_wake.is_none_or(|wake| wake > at)
        {
            self.server_wake = Some(at);
            self.schedule(at, Event::ServerWake { life: self.server_life });
        }
    }

    fn start_server(&mut self, grace: bool) {
        self.server_started = self.now;
        let settings =
            ServerSettings { term: self.scenario.term, grace, inos: 1 << 14, ..Default::default() };
        let store = std::mem::take(&mut self.store);
        let local = self.server_clock.local(self.now);
        self.server_life += 1;
        self.server_wake = None;
        self.server = Server::new(store, settings, local).ok();
        let at = self.recorder.moment();
        for host in &mut self.hosts {
            host.heard = (self.now, at);
        }
        self.note(|| "the server starts".to_owned());
        self.drain_server();
    }

    fn start_client(&mut self, host: usize) {
        self.mounts += 1;
        let mount = MountId(self.mounts);
        let (planted, now) = (self.planted, self.now);
        let threads = Some(self.scenario.threads).filter(|_| self.scenario.spectator != Some(host));
        self.hosts[host].mount(mount, threads, planted, self.scenario.is_harsh, now);
        self.hosts[host].heard = (now, self.recorder.moment());
        self.note(|| format!("host {host} has {mount}"));
        for thread in 0..self.hosts[host].applications.len() {
            self.schedule(now, Event::Application { host, mount, thread });
        }
        self.drain_client(host);
    }

    /// Writes down that a mount may have lost its last changes since some moment.
    fn suspect(&mut self, host: usize, since: Moment) {
        let mount = self.hosts[host].mount;
        self.recorder.lose(mount, since, None);
        self.fenced.push(mount);
        self.totals.fenced += 1;
        self.note(|| format!("{mount} may have lost changes"));
    }
}
