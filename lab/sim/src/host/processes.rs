//! A host with several processes that run apus.
//!
//! Each process has an endpoint with its own port, and a message is between the same process of two
//! hosts. Outgoing packets wait in the queue of the interface, which is first in, first out. Either
//! the processes publish their state ([`Board`]), or each acts as if it were alone.

use std::collections::VecDeque;

use apus_hostgroup::Board;
use apus_proto::Instant;

use super::apus::{ApusHost, Shared};
use super::frame::Frame;
use super::interface::Host;
use crate::message::{HostId, Message, Outcome};
use crate::network::HostCounters;
use crate::packet::Packet;
use apus_workload::time::Nanos;

/// A host with several processes.
#[derive(Debug)]
pub struct ProcessesHost {
    processes: Vec<ApusHost>,
    /// Packets that wait in the queue of the interface.
    interface: VecDeque<(Packet, Frame)>,
    /// State that the processes publish to each other; `None` if they do not.
    board: Option<Board>,
}

impl ProcessesHost {
    /// Returns a host with `processes` processes. `seed` determines the identity of the first
    /// process, and the following seeds the identities of the others.
    ///
    /// # Panics
    ///
    /// `processes` is 0 or more than 256.
    #[must_use]
    pub fn new(id: HostId, shared: &Shared, seed: u64, processes: u32, publishes: bool) -> Self {
        assert!((1..=256).contains(&processes), "a host has 1 to 256 processes");
        let process = |number: u32| {
            let seed = seed.wrapping_add(u64::from(number));
            ApusHost::process(id, shared.clone(), seed, number as u8)
        };
        Self {
            processes: (0..processes).map(process).collect(),
            interface: VecDeque::new(),
            board: publishes.then(|| Board::new(processes as usize)),
        }
    }

    /// Runs `something` on a process, and passes the resulting packets to the interface.
    fn attend(&mut self, now: Nanos, number: usize, something: impl FnOnce(&mut ApusHost)) {
        let process = &mut self.processes[number];
        if let Some(board) = &self.board {
            board.read(number, |others| process.transport_mut().observe_neighbours(others));
        }
        something(process);
        let (mut packet, mut frame) = Default::default();
        while process.transmit(now, &mut packet, &mut frame) {
            self.interface.push_back((packet, std::mem::take(&mut frame)));
        }
        if let Some(board) = &self.board {
            let (now, transport) = (Instant::from_nanos(now), process.transport_mut());
            board.publish(number, now, &transport.publish());
            board.exchange_lengths(number, now, transport);
        }
    }

    /// Returns the process that a message belongs to.
    fn process_of(&self, message: u32) -> usize {
        message as usize % self.processes.len()
    }
}

impl Host for ProcessesHost {
    type Body = Frame;

    fn submit(&mut self, now: Nanos, message: &Message) {
        self.attend(now, self.process_of(message.number), |process| process.submit(now, message));
    }

    fn receive(&mut self, now: Nanos, packet: &Packet, frame: &Frame) {
        // A packet from a process is for the same process of another host.
        self.attend(now, usize::from(frame.process), |process| process.receive(now, packet, frame));
    }

    fn transmit(&mut self, _: Nanos, packet: &mut Packet, frame: &mut Frame) -> bool {
        let Some(next) = self.interface.pop_front() else { return false };
        (*packet, *frame) = next;
        true
    }

    fn next_timeout(&self) -> Option<Nanos> {
        self.processes.iter().filter_map(Host::next_timeout).min()
    }

    fn handle_timeout(&mut self, now: Nanos) {
        for number in 0..self.processes.len() {
            if self.processes[number].next_timeout().is_some_and(|at| at <= now) {
                self.attend(now, number, |process| process.handle_timeout(now));
            }
        }
    }

    fn poll_outcome(&mut self) -> Option<Outcome> {
        self.processes.iter_mut().find_map(Host::poll_outcome)
    }

    fn withholds(&self) -> bool {
        self.processes.iter().any(Host::withholds)
    }

    fn counters(&self) -> HostCounters {
        let all = self.processes.iter().map(Host::counters);
        all.fold(HostCounters::default(), std::ops::Add::add)
    }

    fn id(&self) -> HostId {
        self.processes[0].id()
    }
}
