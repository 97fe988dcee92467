//! Handling of timers of the sending half.
//!
//! One timer runs while any segment is unacknowledged. It is usually the *tail loss probe*: after
//! two round-trip times a segment is sent whose ACK reveals the missing data (RFC 8985 section 7).
//! It is the *retransmission timeout* after an unsuccessful probe or during a repair (RFC 6298),
//! and the *reordering timer* while overtaken segments may still arrive (RFC 8985 section 6.2 step
//! 5).

use std::ops::Range;

use super::half::Sender;
use super::state::State;
use super::timer::{Kind, Probe, Timer};
use crate::dctcp::config::Config;
use crate::dctcp::scoreboard::NewlyAcked;
use crate::dctcp::segment::{Ack, Position};
use apus_workload::time::Nanos;

impl Sender {
    /// Returns when the timer expires.
    pub(in crate::dctcp) fn deadline(&self) -> Option<Nanos> {
        self.timer.map(|timer| timer.at)
    }

    /// Returns whether the timer is for a probe.
    pub(super) fn probe_is_scheduled(&self) -> bool {
        self.timer.is_some_and(|timer| timer.kind == Kind::Probe)
    }

    /// Handles the timer if it has expired.
    pub(in crate::dctcp) fn on_timer(&mut self, config: &Config, now: Nanos) {
        let Some(timer) = self.timer.filter(|timer| timer.at <= now) else { return };
        match timer.kind {
            Kind::Probe => self.on_probe_timer(config, now),
            Kind::Timeout => self.on_timeout(config, now),
            Kind::Reordering => self.on_reordering_timer(config, now),
        }
    }

    /// Starts the retransmission timeout. If it replaces another timer, it counts from the
    /// transmission of the first segment. Source: Linux, `tcp_rearm_rto`.
    pub(super) fn rearm(&mut self, config: &Config, now: Nanos) {
        let Some(first) = self.board.first() else {
            self.timer = None;
            return;
        };
        let timeout = self.rtt.timeout(config);
        let other = self.timer.is_some_and(|timer| timer.kind != Kind::Timeout);
        let at = if other { (first.at + timeout).max(now + 1) } else { now + timeout };
        self.timer = Some(Timer { kind: Kind::Timeout, at });
    }

    /// Starts the probe's timer, unless a repair is in progress. Source: Linux,
    /// `tcp_schedule_loss_probe`.
    pub(super) fn schedule_probe(&mut self, config: &Config, now: Nanos) -> bool {
        let quiet = matches!(self.state, State::Open | State::Reducing(_));
        let Some(first) = self.board.first().filter(|_| quiet) else { return false };
        // The ACK of a single segment may be delayed.
        let more = if self.board.len() == 1 { config.min_rto } else { config.timer_floor };
        let probe = now + 2 * self.rtt.smoothed() + more;
        let timeout = first.at + self.rtt.timeout(config);
        let at = if timeout > now { probe.min(timeout) } else { probe };
        self.timer = Some(Timer { kind: Kind::Probe, at });
        true
    }

    /// Starts the reordering timer for overtaken segments.
    pub(super) fn start_reordering_timer(&mut self, config: &Config, now: Nanos, wait: Nanos) {
        let at = now + wait + config.timer_floor;
        self.timer = Some(Timer { kind: Kind::Reordering, at });
    }

    /// Requests a probe. Source: Linux, `tcp_send_loss_probe`.
    fn on_probe_timer(&mut self, config: &Config, now: Nanos) {
        if self.probe.high.is_none() {
            self.probe.due = true;
            self.timer = None; // The timeout starts with the probe, not with the probed segments.
        }
        self.rearm(config, now);
    }

    /// Sends the probe: new data, or else the last segment once more.
    pub(super) fn send_probe(&mut self, config: &Config, now: Nanos) -> Option<Range<Position>> {
        let new = self.send_new(config, now);
        self.probe.repeated = new.is_none();
        let range = new.or_else(|| self.board.probe(now))?;
        self.probe.high = Some(self.next);
        self.counters.probes += 1;
        Some(range)
    }

    /// Checks whether the probe was answered, and whether it has repaired an otherwise undetected
    /// loss. Source: Linux, `tcp_process_tlp_ack`; RFC 8985 section 7.4.
    pub(super) fn probe_answered(
        &mut self,
        ack: &Ack,
        newly_acked: &NewlyAcked,
        duplicate: Option<Position>,
    ) {
        let Some(high) = self.probe.high.filter(|high| ack.upto >= *high) else { return };
        if !self.probe.repeated || duplicate.is_some() {
            self.probe.high = None; // New data, or a duplicate: there was no loss.
        } else if ack.upto > high {
            self.probe.high = None;
            if self.state == State::Open {
                self.enter_reducing();
                self.window.end_reduction();
                self.state = State::Open;
            }
        } else if !newly_acked.advanced && !newly_acked.sacked {
            self.probe.high = None; // A plain duplicate ACK: there was no loss.
        }
    }

    /// Handles a retransmission timeout. Source: RFC 6298 section 5; Linux, `tcp_retransmit_timer`.
    fn on_timeout(&mut self, config: &Config, now: Nanos) {
        self.probe = Probe::default();
        self.enter_loss(now);
        self.head_due = true;
        self.rtt.back_off();
        self.rearm(config, now);
    }

    /// Handles the reordering timer. Source: Linux, `tcp_rack_reo_timeout`.
    fn on_reordering_timer(&mut self, config: &Config, now: Nanos) {
        let lost = self.board.lost();
        let recovering = self.state.is_recovering();
        let wait = self.rack.redetect(&mut self.board, &self.rtt, recovering, now);
        if self.board.has_repair() {
            if !matches!(self.state, State::Recovery(_)) {
                self.enter_recovery(false);
            }
            let newly = self.board.lost().saturating_sub(lost);
            self.window.reduce(1, self.board.in_flight(), newly == 0);
        }
        self.rearm(config, now);
        if let Some(wait) = wait {
            self.start_reordering_timer(config, now, wait);
        }
    }
}
