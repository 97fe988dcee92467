//! Two hosts and a wire whose faults the test controls, packet by packet.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use apus_sim::dctcp::{Config, ConnectionInfo, DctcpHost, Segment};
use apus_sim::{Host, HostId, Message, Outcome, Packet};
use apus_workload::{Nanos, Rate};

/// Propagation from one host to the other.
pub(crate) const DELAY: Nanos = 20_000;

/// The host that usually sends.
pub(crate) const LEFT: HostId = 0;
/// The host that usually receives.
pub(crate) const RIGHT: HostId = 1;

/// Fate of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    Marked,
    /// Delivered with this delay.
    Late(Nanos),
    /// Delivered, and a second time with this delay.
    Twice(Nanos),
}

/// Decides the fate of each packet; called before it is transmitted.
pub(crate) type Judge = Box<dyn FnMut(&Packet, &Segment) -> Fate>;

/// Packets with their send times, delivered or not.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) at: Nanos,
    pub(crate) from: HostId,
    pub(crate) segment: Segment,
}

enum Event {
    Arrive(Packet, Segment),
    Free(HostId),
}

pub(crate) struct Wire {
    hosts: [DctcpHost; 2],
    rate: Rate,
    pub(crate) now: Nanos,
    busy_until: [Nanos; 2],
    /// Times and indices of events in `bodies`, in order of creation.
    events: BinaryHeap<Reverse<(Nanos, usize)>>,
    bodies: Vec<Option<Event>>,
    judge: Judge,
    pub(crate) told: Vec<(Nanos, HostId, Outcome)>,
    pub(crate) sent: Vec<Record>,
    numbers: u32,
}

impl Wire {
    pub(crate) fn new(
        config: Config,
        judge: impl FnMut(&Packet, &Segment) -> Fate + 'static,
    ) -> Self {
        Self {
            hosts: [LEFT, RIGHT].map(|id| DctcpHost::new(id, config)),
            rate: Rate::from_mbps(10_000).unwrap(),
            now: 0,
            busy_until: [0; 2],
            events: BinaryHeap::new(),
            bodies: Vec::new(),
            judge: Box::new(judge),
            told: Vec::new(),
            sent: Vec::new(),
            numbers: 0,
        }
    }

    /// Returns a wire that loses the n-th data segments of the left host, counted from 0,
    /// retransmissions included.
    pub(crate) fn losing(config: Config, which: &'static [usize]) -> Self {
        let mut count = 0;
        Self::new(config, move |packet, _| {
            if packet.from != LEFT || packet.payload == 0 {
                return Fate::Arrives;
            }
            count += 1;
            if which.contains(&(count - 1)) { Fate::Lost } else { Fate::Arrives }
        })
    }

    /// Submits a message now and returns its number.
    pub(crate) fn submit(&mut self, from: HostId, bytes: u32) -> u32 {
        let number = self.numbers;
        self.numbers += 1;
        let message = Message { number, from, to: 1 - from, bytes, at: self.now };
        self.hosts[from as usize].submit(self.now, &message);
        self.settle(from);
        number
    }

    pub(crate) fn info(&self, host: HostId) -> ConnectionInfo {
        self.hosts[host as usize].connection(1 - host).expect("they have talked")
    }

    fn put(&mut self, at: Nanos, event: Event) {
        self.events.push(Reverse((at, self.bodies.len())));
        self.bodies.push(Some(event));
    }

    fn settle(&mut self, id: HostId) {
        let host = &mut self.hosts[id as usize];
        while let Some(outcome) = host.poll_outcome() {
            self.told.push((self.now, id, outcome));
        }
        let (mut packet, mut segment) = (Packet::default(), Segment::default());
        if self.busy_until[id as usize] > self.now
            || !host.transmit(self.now, &mut packet, &mut segment)
        {
            return;
        }
        assert_eq!((packet.from, packet.to), (id, 1 - id));
        let sent = self.now + self.rate.time(u64::from(packet.wire_bytes));
        self.busy_until[id as usize] = sent;
        self.put(sent, Event::Free(id));
        self.sent.push(Record { at: self.now, from: id, segment: segment.clone() });
        let there = sent + DELAY;
        match (self.judge)(&packet, &segment) {
            Fate::Arrives => self.put(there, Event::Arrive(packet, segment)),
            Fate::Lost => {}
            Fate::Marked => {
                self.put(there, Event::Arrive(Packet { marked: true, ..packet }, segment));
            }
            Fate::Late(more) => self.put(there + more, Event::Arrive(packet, segment)),
            Fate::Twice(more) => {
                self.put(there, Event::Arrive(packet, segment.clone()));
                self.put(there + more, Event::Arrive(packet, segment));
            }
        }
    }

    /// Handles the next event, if it is before `until`.
    fn step(&mut self, until: Nanos) -> bool {
        let event = self.events.peek().map(|Reverse((at, _))| *at);
        let timer = self.hosts.iter().filter_map(Host::next_timeout).min();
        let Some(at) = event.into_iter().chain(timer).min().filter(|at| *at <= until) else {
            return false;
        };
        self.now = at.max(self.now);
        if event == Some(at) {
            let Reverse((_, place)) = self.events.pop().unwrap();
            match self.bodies[place].take().unwrap() {
                Event::Free(id) => self.settle(id),
                Event::Arrive(packet, segment) => {
                    self.hosts[packet.to as usize].receive(self.now, &packet, &segment);
                    self.settle(packet.to);
                }
            }
        } else {
            for id in [LEFT, RIGHT] {
                if self.hosts[id as usize].next_timeout().is_some_and(|due| due <= at) {
                    self.hosts[id as usize].handle_timeout(self.now);
                    self.settle(id);
                }
            }
        }
        true
    }

    /// Runs until no event is left.
    pub(crate) fn run(&mut self) {
        while self.step(Nanos::MAX) {}
    }

    /// Runs up to a time.
    pub(crate) fn run_until(&mut self, until: Nanos) {
        while self.step(until) {}
        self.now = until;
    }

    /// Returns when a message was delivered.
    pub(crate) fn delivered(&self, number: u32) -> Option<Nanos> {
        let is = |(_, _, outcome): &&_| *outcome == Outcome::Delivered(number);
        self.told.iter().find(is).map(|(at, _, _)| *at)
    }

    /// Returns when a message was reported to its sender as delivered.
    pub(crate) fn done(&self, number: u32) -> Option<Nanos> {
        let is = |(_, _, outcome): &&_| *outcome == Outcome::Done(number);
        self.told.iter().find(is).map(|(at, _, _)| *at)
    }

    /// Returns the data segments of the left host.
    pub(crate) fn data(&self) -> impl Iterator<Item = &Record> {
        self.sent.iter().filter(|record| record.from == LEFT && record.segment.len > 0)
    }
}
