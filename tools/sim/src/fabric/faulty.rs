//! Faults in a fabric.
//!
//! If faults are configured, all events pass through here before they are handled. Packets for a
//! paused host wait until it resumes; packets for a host that is down are dropped.

use super::{Event, Fabric};
use crate::fault::{Counters, Lot, Outages, Settings, State, Trouble};
use crate::host::Host;
use crate::message::{HostId, Message, Outcome};
use apus_workload::time::Nanos;

use super::packets::Place;

impl<H: Host> Fabric<H> {
    /// Adds faults to the fabric. `seed` determines when they occur.
    #[must_use]
    pub fn with_faults(mut self, settings: Settings, outages: Outages, seed: u64) -> Self {
        let trouble = Trouble::new(settings, outages, self.topology.shape.hosts(), seed);
        for (at, host) in trouble.crashes() {
            self.events.put(at, Event::Crash(host));
        }
        for (at, host) in trouble.returns() {
            self.events.put(at, Event::Return(host));
        }
        self.trouble = Some(Box::new(trouble));
        self
    }

    /// Stops new faults. Delayed packets still arrive late, and hosts that are paused or down
    /// return when they were going to.
    pub fn heal(&mut self) {
        let now = self.events.now();
        if let Some(trouble) = &mut self.trouble {
            trouble.heal(now);
        }
    }

    /// Returns the counters of faults so far.
    pub fn faults(&self) -> Counters {
        self.trouble.as_ref().map_or_else(Counters::default, |trouble| trouble.counters)
    }

    /// Handles an event, or replaces it by a fault.
    pub(super) fn happen_in_trouble(&mut self, event: Event, tell: &mut dyn FnMut(Nanos, Outcome)) {
        match event {
            Event::Arrive(place) => self.arrive_in_trouble(place, tell),
            Event::Deliver(place) => self.deliver(place, tell),
            Event::Crash(host) => self.crash(host),
            Event::Return(host) => self.come_back(host, tell),
            Event::Attend(host) | Event::Timer(host) => match self.state(host) {
                State::Up => self.happen(event, tell),
                // The host is served when it returns, and gets its timer then.
                State::Paused(_) | State::Down => self.stations[host as usize].timer = Nanos::MAX,
            },
            Event::Enqueue(..) | Event::PortFree(_) | Event::Sample => self.happen(event, tell),
        }
    }

    /// Returns whether a message from an application is lost or postponed because its host is not
    /// up.
    pub(super) fn keeps_back(&mut self, message: &Message) -> bool {
        let state = self.state(message.from);
        if let (State::Paused(_), Some(trouble)) = (state, &mut self.trouble) {
            trouble.held.push(*message);
        }
        state != State::Up
    }

    fn state(&self, host: HostId) -> State {
        let now = self.events.now();
        self.trouble.as_ref().map_or(State::Up, |trouble| trouble.state(host, now))
    }

    /// Handles a packet that has passed its last link.
    fn arrive_in_trouble(&mut self, place: Place, tell: &mut dyn FnMut(Nanos, Outcome)) {
        let now = self.events.now();
        let Some(trouble) = &mut self.trouble else { return };
        let packet = *self.packets.get(place);
        let Lot { lost, delay, copies, corrupted } = trouble.lot(now, packet.from, packet.to);
        for late in copies.into_iter().flatten() {
            let original = self.packets.body(place).clone();
            let written = self.packets.insert(|copy, body| {
                (*copy, *body) = (packet, original);
                true
            });
            if let Some(copy) = written {
                self.events.put(now + late, Event::Deliver(copy));
            }
        }
        if lost {
            self.packets.remove(place);
            return;
        }
        if let Some(chance) = corrupted {
            H::corrupt(self.packets.body_mut(place), chance);
        }
        if delay > 0 {
            self.events.put(now + delay, Event::Deliver(place));
        } else {
            self.deliver(place, tell);
        }
    }

    /// Delivers a packet, unless its host is paused or down.
    fn deliver(&mut self, place: Place, tell: &mut dyn FnMut(Nanos, Outcome)) {
        let to = self.packets.get(place).to;
        let state = self.state(to);
        let Some(trouble) = &mut self.trouble else { return };
        match state {
            State::Up => self.arrive(place, tell),
            State::Paused(until) => {
                trouble.counters.at_paused_host += 1;
                self.events.put(until, Event::Deliver(place));
            }
            State::Down => {
                trouble.counters.at_dead_host += 1;
                self.packets.remove(place);
            }
        }
    }

    /// Crashes a host. Requests that its applications were to submit when it resumed are lost.
    fn crash(&mut self, host: HostId) {
        let now = self.events.now();
        if let Some(trouble) = &mut self.trouble {
            trouble.held.retain(|message| message.from != host);
        }
        self.stations[host as usize].host.crash(now);
    }

    /// Resumes a host that is no longer paused or down.
    fn come_back(&mut self, host: HostId, tell: &mut dyn FnMut(Nanos, Outcome)) {
        if self.state(host) != State::Up {
            return;
        }
        let now = self.events.now();
        let Some(trouble) = &mut self.trouble else { return };
        let (held, others) = trouble.held.iter().partition(|message| message.from == host);
        trouble.held = others;
        let held: Vec<Message> = held;
        for message in held {
            self.stations[host as usize].host.submit(now, &message);
        }
        self.settle(host, tell);
    }
}
