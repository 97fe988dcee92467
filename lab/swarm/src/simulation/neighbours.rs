//! What an end knows of the others on its host: shards of an endpoint, or processes, that publish what they do (GRANT-17).

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

    /// Has the end's transport learn what the others have published.
    pub(super) fn read(&self, transport: &mut Transport) {
        self.board.read(self.number, |others| transport.observe_neighbours(others));
    }

    /// Has the end's transport publish what it does.
    pub(super) fn write(&self, now: Nanos, transport: &mut Transport) {
        let now = Instant::from_nanos(now);
        self.board.publish(self.number, now, &transport.publish());
        self.board.exchange_lengths(self.number, now, transport);
    }
}
