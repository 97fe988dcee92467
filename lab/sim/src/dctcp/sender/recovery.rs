//! Transitions between the states of the sending half.
//!
//! The states follow Linux (`tcp_fastretrans_alert`): open, reduction because of marks, repair of a
//! loss, repair after a timeout.

use super::half::Sender;
use super::state::{Findings, State, Undo};
use super::timer::Probe;
use crate::dctcp::config::Config;
use apus_workload::time::Nanos;

impl Sender {
    /// Reacts to arrivals, marked or not.
    pub(super) fn react(&mut self, config: &Config, now: Nanos, echo: bool) -> Findings {
        if echo {
            self.window.forget_undo();
        }
        self.leave_state();
        if self.undo.is_proven() {
            self.undo_recovery();
            self.state = State::Open;
        }
        if self.state == State::Open && self.board.sacked() == 0 && self.board.lost() == 0 {
            if echo {
                self.enter_reducing();
            }
            return Findings::default();
        }
        let (lost, again) = (self.board.lost(), self.board.again());
        let recovering = self.state.is_recovering();
        let wait = self.rack.detect(&mut self.board, &self.rtt, recovering, now);
        if let Some(wait) = wait {
            self.start_reordering_timer(config, now, wait);
        }
        let newly_lost = self.board.lost().saturating_sub(lost);
        let lost_again = self.board.again() < again;
        match self.state {
            State::Recovery(_) => {}
            State::Loss(_) if !lost_again => {}
            _ if self.board.lost() > 0 => self.enter_recovery(echo),
            State::Open if echo => self.enter_reducing(),
            _ => {}
        }
        Findings { lost: newly_lost, waiting: wait.is_some() }
    }

    /// Leaves a state whose position is acknowledged.
    fn leave_state(&mut self) {
        match self.state {
            State::Reducing(until) if self.una > until => {
                self.window.end_reduction();
                self.state = State::Open;
            }
            State::Recovery(until) if self.una >= until => {
                if self.undo.is_proven_at_the_end() {
                    self.undo_recovery();
                } else {
                    self.window.end_reduction();
                }
                self.end_repair();
            }
            State::Loss(until) if self.una >= until => {
                if self.undo.is_proven_at_the_end() {
                    self.undo_recovery();
                }
                self.end_repair();
            }
            _ => {}
        }
    }

    fn end_repair(&mut self) {
        self.rack.recovered();
        self.state = State::Open;
    }

    /// Undoes a recovery whose segments were only late. Source: Linux, `tcp_undo_cwnd_reduction`.
    fn undo_recovery(&mut self) {
        self.board.clear_losses();
        if self.window.undo() {
            self.counters.undone += 1;
        } else if matches!(self.state, State::Recovery(_)) {
            self.window.end_reduction();
        }
        self.undo = Undo::default();
    }

    /// Reacts to marks. Source: Linux, `tcp_enter_cwr`.
    pub(super) fn enter_reducing(&mut self) {
        self.counters.reductions += 1;
        self.undo = Undo::default();
        self.probe = Probe::default();
        self.window.reduce_by(self.fraction.alpha());
        self.state = State::Reducing(self.next);
    }

    /// Reacts to a loss. Source: Linux, `tcp_enter_recovery`.
    pub(super) fn enter_recovery(&mut self, echo: bool) {
        self.counters.recoveries += 1;
        self.probe = Probe::default();
        self.undo = Undo::begin(self.una, self.board.again());
        let until = match self.state {
            State::Reducing(until) => {
                self.window.halve_threshold();
                until
            }
            _ => {
                self.window.reduce_by_half(echo);
                self.next
            }
        };
        self.state = State::Recovery(until);
    }

    /// Reacts to a retransmission timeout. Source: Linux, `tcp_enter_loss`.
    pub(super) fn enter_loss(&mut self, now: Nanos) {
        self.counters.timeouts += 1;
        let anew = match self.state {
            State::Open => true,
            State::Reducing(until) | State::Recovery(until) | State::Loss(until) => {
                until <= self.una
            }
        };
        self.lose_all(now);
        if anew {
            self.window.reduce_by_half(false);
            self.undo = Undo::begin(self.una, self.board.again());
        }
        self.window.collapse(self.board.in_flight());
        self.state = State::Loss(self.next);
    }

    /// Marks all segments as lost, except for recent ones.
    fn lose_all(&mut self, now: Nanos) {
        let mut index = 0;
        while let Some(segment) = self.board.get(index).copied() {
            if index == 0 || !self.rack.is_recent(&segment, now) {
                self.board.lose(index);
            }
            index += 1;
        }
    }
}
