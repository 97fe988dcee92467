//! Handling of ACKs.
//!
//! Source: Linux, `tcp_ack`, in its order: count arrivals, estimate the marked fraction, detect
//! losses, set the window, restart the timer.

use super::Sender;
use crate::dctcp::config::Config;
use crate::dctcp::scoreboard::News;
use crate::dctcp::segment::Ack;
use apus_workload::time::Nanos;

impl Sender {
    /// Handles an ACK. One of bytes that were never sent is ignored.
    pub(in crate::dctcp) fn on_ack(&mut self, config: &Config, now: Nanos, ack: &Ack) {
        if ack.upto > self.next || (self.board.is_empty() && ack.sack.is_none()) {
            return;
        }
        let duplicate = self.note_duplicate(ack);
        let news = self.count(now, ack);
        if news.delivered > 0 {
            self.probe.cancel(); // Its purpose is fulfilled.
        }
        // An echo on data that acknowledges nothing new reports marks that were counted before.
        let echo = ack.echo && news.delivered > 0;
        self.fraction.on_ack(config, news.delivered, echo, self.una, self.next);
        self.probe_answered(ack, &news, duplicate);
        let findings = self.react(config, now, echo);
        self.set_window(&news, findings.lost);
        if news.advanced {
            self.rtt.progress();
            self.head_due = false;
            if !findings.waiting && !self.schedule_probe(config, now) {
                self.rearm(config, now); // Linux, `tcp_set_xmit_timer`.
            }
        }
    }

    /// Records the arrivals that the ACK reports.
    fn count(&mut self, now: Nanos, ack: &Ack) -> News {
        let mut news = News::default();
        let (rack, rtt) = (&mut self.rack, &self.rtt);
        if let Some(sack) = &ack.sack {
            let skip = usize::from(sack.duplicate);
            for block in sack.blocks.iter().skip(skip) {
                self.board.sack(block, &mut news, |segment| rack.arrived(segment, now, rtt));
            }
        }
        if ack.upto > self.una {
            self.board.acknowledge(ack.upto, &mut news, |segment| rack.arrived(segment, now, rtt));
            self.una = ack.upto;
        }
        rack.note(&news);
        if let Some(sent_at) = news.measure() {
            self.rtt.sample(now - sent_at);
        }
        news
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
    fn set_window(&mut self, news: &News, lost: u32) {
        if self.state.is_reducing() {
            let clean = news.advanced && lost == 0;
            self.window.reduce(news.delivered, self.board.in_flight(), clean);
        } else if self.may_grow(news) {
            self.window.grow(news.delivered);
        }
    }

    fn may_grow(&self, news: &News) -> bool {
        let forward = news.advanced || (self.rack.reordered() && news.sacked);
        let (size, slow) = (self.window.size(), self.window.in_slow_start());
        forward && self.usage.is_limiting(size, slow)
    }
}
