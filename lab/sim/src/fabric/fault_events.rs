//! Faults in a fabric.
//!
//! If faults are configured, all events pass through here before they are handled. Packets for a
//! paused host wait until it resumes; packets for a host that is down are dropped.

use super::event::FabricEvent;
use super::model::Fabric;
use super::packets::PacketIndex;
use crate::fault::{Counters, FaultInjector, HostState, Outages, PacketFate, Settings};
use crate::host::Host;
use crate::message::{HostId, Message, Outcome};
use apus_workload::time::Nanos;

impl<H: Host> Fabric<H> {
    /// Adds faults to the fabric. `seed` determines when they occur.
    #[must_use]
    pub fn with_faults(mut self, settings: Settings, outages: Outages, seed: u64) -> Self {
        let faults = FaultInjector::new(settings, outages, self.topology.shape.hosts(), seed);
        for (at, host) in faults.crashes() {
            self.events.schedule(at, FabricEvent::Crash(host));
        }
        for (at, host) in faults.returns() {
            self.events.schedule(at, FabricEvent::Return(host));
        }
        self.faults = Some(Box::new(faults));
        self
    }

    /// Stops new faults. Delayed packets still arrive late, and hosts that are paused or down
    /// return as scheduled.
    pub fn heal(&mut self) {
        let now = self.events.now();
        if let Some(faults) = &mut self.faults {
            faults.heal(now);
        }
    }

    /// Returns the counters of faults so far.
    pub fn faults(&self) -> Counters {
        self.faults.as_ref().map_or_else(Counters::default, |faults| faults.counters)
    }

    /// Handles an event, or replaces it by a fault.
    pub(super) fn handle_event_with_faults(
        &mut self,
        event: FabricEvent,
        report: &mut dyn FnMut(Nanos, Outcome),
    ) {
        match event {
            FabricEvent::Arrive(index) => self.arrive_with_faults(index, report),
            FabricEvent::Deliver(index) => self.deliver(index, report),
            FabricEvent::Crash(host) => self.crash(host),
            FabricEvent::Return(host) => self.resume_host(host, report),
            FabricEvent::Serve(host) | FabricEvent::Timer(host) => match self.state(host) {
                HostState::Up => self.handle_event(event, report),
                // The host is served, and its timer set, when it returns.
                HostState::Paused(_) | HostState::Down => {
                    self.stations[host as usize].timer = Nanos::MAX;
                }
            },
            FabricEvent::Enqueue(..) | FabricEvent::PortFree(_) | FabricEvent::Sample => {
                self.handle_event(event, report);
            }
        }
    }

    /// Returns whether a message from an application is lost or postponed because its host is not
    /// up.
    pub(super) fn holds_back(&mut self, message: &Message) -> bool {
        let state = self.state(message.from);
        if let (HostState::Paused(_), Some(faults)) = (state, &mut self.faults) {
            faults.held_messages.push(*message);
        }
        state != HostState::Up
    }

    fn state(&self, host: HostId) -> HostState {
        let now = self.events.now();
        self.faults.as_ref().map_or(HostState::Up, |faults| faults.state(host, now))
    }

    /// Handles a packet that has passed its last link.
    fn arrive_with_faults(&mut self, index: PacketIndex, report: &mut dyn FnMut(Nanos, Outcome)) {
        let now = self.events.now();
        let Some(faults) = &mut self.faults else { return };
        let packet = *self.packets.get(index);
        let PacketFate { lost, delay, copies, corrupted } =
            faults.fate(now, packet.from, packet.to);
        for late in copies.into_iter().flatten() {
            let original = self.packets.body(index).clone();
            let written = self.packets.insert(|copy, body| {
                (*copy, *body) = (packet, original);
                true
            });
            if let Some(copy) = written {
                self.events.schedule(now + late, FabricEvent::Deliver(copy));
            }
        }
        if lost {
            self.packets.remove(index);
            return;
        }
        if let Some(chance) = corrupted {
            H::corrupt(self.packets.body_mut(index), chance);
        }
        if delay > 0 {
            self.events.schedule(now + delay, FabricEvent::Deliver(index));
        } else {
            self.deliver(index, report);
        }
    }

    /// Delivers a packet, unless its host is paused or down.
    fn deliver(&mut self, index: PacketIndex, report: &mut dyn FnMut(Nanos, Outcome)) {
        let to = self.packets.get(index).to;
        let state = self.state(to);
        let Some(faults) = &mut self.faults else { return };
        match state {
            HostState::Up => self.arrive(index, report),
            HostState::Paused(until) => {
                faults.counters.at_paused_host += 1;
                self.events.schedule(until, FabricEvent::Deliver(index));
            }
            HostState::Down => {
                faults.counters.at_dead_host += 1;
                self.packets.remove(index);
            }
        }
    }

    /// Crashes a host. Requests that its applications would have submitted when it resumed are
    /// lost.
    fn crash(&mut self, host: HostId) {
        let now = self.events.now();
        if let Some(faults) = &mut self.faults {
            faults.held_messages.retain(|message| message.from != host);
        }
        self.stations[host as usize].host.crash(now);
    }

    /// Resumes a host that is no longer paused or down.
    fn resume_host(&mut self, host: HostId, report: &mut dyn FnMut(Nanos, Outcome)) {
        if self.state(host) != HostState::Up {
            return;
        }
        let now = self.events.now();
        let Some(faults) = &mut self.faults else { return };
        let (held, others) = faults.held_messages.iter().partition(|message| message.from == host);
        faults.held_messages = others;
        let held: Vec<Message> = held;
        for message in held {
            self.stations[host as usize].host.submit(now, &message);
        }
        self.serve_host(host, report);
    }
}
