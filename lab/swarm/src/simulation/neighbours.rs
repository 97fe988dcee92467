//! Neighbours: the ends on the same host (shards of an endpoint, or processes) that publish their
//! state to each other (GRANT-17).

use std::rc::Rc;

use apus_hostgroup::Board;
use apus_proto::{Instant, Transport};
use apus_workload::time::Nanos;

/// An end's place among its neighbours.
#[derive(Clone, Debug)]
pub(super) struct Place {
    board: Rc<Board>,
    number: usize,
}

impl Place {
    /// Returns the places of `count` ends.
    pub(super) fn among(count: usize) -> Vec<Self> {
        let board = Rc::new(Board::new(count));
        (0..count).map(|number| Self { board: Rc::clone(&board), number }).collect()
    }

    /// Passes the published state of the others to the end's transport.
    pub(super) fn read(&self, transport: &mut Transport) {
        self.board.read(self.number, |others| transport.observe_neighbours(others));
    }

    /// Publishes the state of the end's transport.
    pub(super) fn write(&self, now: Nanos, transport: &mut Transport) {
        let now = Instant::from_nanos(now);
        self.board.publish(self.number, now, &transport.publish());
        self.board.exchange_lengths(self.number, now, transport);
    }
}
