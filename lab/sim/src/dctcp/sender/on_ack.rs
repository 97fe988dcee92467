//! Handling of ACKs.
//!
//! Source: Linux, `tcp_ack`, in its order: count arrivals, estimate the marked fraction, detect
//! losses, set the window, restart the timer.

use super::half::Sender;
use crate::dctcp::config::Config;
use crate::dctcp::scoreboard::NewlyAcked;
use crate::dctcp::segment::Ack;
use apus_workload::time::Nanos;

impl Sender {
    /// Handles an ACK. An ACK for bytes that were never sent is ignored.
    pub(in crate::dctcp) fn on_ack(&mut self, config: &Config, now: Nanos, ack: &Ack) {
        if ack.upto > self.next || (self.board.is_empty() && ack.sack.is_none()) {
            return;
        }
        let duplicate = self.note_duplicate(ack);
        let newly_acked = self.count(now, ack);
        if newly_acked.delivered > 0 {
            self.probe.cancel(); // Its purpose is fulfilled.
        }
        // An echo in an ACK without newly delivered segments reports marks that were already
        // counted.
        let echo = ack.echo && newly_acked.delivered > 0;
        self.fraction.on_ack(config, newly_acked.delivered, echo, self.una, self.next);
        self.probe_answered(ack, &newly_acked, duplicate);
        let findings = self.react(config, now, echo);
        self.set_window(&newly_acked, findings.lost);
        if newly_acked.advanced {
            self.rtt.progress();
            self.head_due = false;
            if !findings.waiting && !self.schedule_probe(config, now) {
                self.rearm(config, now); // Linux, `tcp_set_xmit_timer`.
            }
        }
    }

    /// Records the arrivals that the ACK reports.
    fn count(&mut self, now: Nanos, ack: &Ack) -> NewlyAcked {
        let mut newly_acked = NewlyAcked::default();
        let (rack, rtt) = (&mut self.rack, &self.rtt);
        if let Some(sack) = &ack.sack {
            let skip = usize::from(sack.duplicate);
            for block in sack.blocks.iter().skip(skip) {
                self.board.sack(block, &mut newly_acked, |segment| rack.arrived(segment, now, rtt));
            }
        }
        if ack.upto > self.una {
            self.board
                .acknowledge(ack.upto, &mut newly_acked, |segment| rack.arrived(segment, now, rtt));
            self.una = ack.upto;
        }
        rack.note(&newly_acked);
        if let Some(sent_at) = newly_acked.measure() {
            self.rtt.sample(now - sent_at);
        }
        newly_acked
    }

    /// Records a duplicate segment and returns its end.
    fn note_duplicate(&mut self, ack: &Ack) -> Option<u64> {
        let sack = ack.sack.as_ref().filter(|sack| sack.duplicate)?;
        let end = sack.blocks.first()?.end;
        self.counters.duplicates += 1;
        self.undo.duplicate(end);
        if !self.probe.repeated_what_ends_at(end) {
            self.rack.duplicate(self.una.max(ack.upto), self.next);
        }
        Some(end)
    }

    /// Adapts the window. Source: Linux, `tcp_cong_control`.
    fn set_window(&mut self, newly_acked: &NewlyAcked, lost: u32) {
        if self.state.is_reducing() {
            let clean = newly_acked.advanced && lost == 0;
            self.window.reduce(newly_acked.delivered, self.board.in_flight(), clean);
        } else if self.may_grow(newly_acked) {
            self.window.grow(newly_acked.delivered);
        }
    }

    fn may_grow(&self, newly_acked: &NewlyAcked) -> bool {
        let forward = newly_acked.advanced || (self.rack.reordered() && newly_acked.sacked);
        let (size, slow) = (self.window.size(), self.window.in_slow_start());
        forward && self.usage.is_limiting(size, slow)
    }
}
