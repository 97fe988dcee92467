//! The stream of the sending half, and the choice of the next segment.

use std::collections::VecDeque;
use std::ops::Range;

use super::state::{State, Undo};
use super::timer::{Probe, Timer};
use crate::dctcp::config::Config;
use crate::dctcp::connection_info::Counters;
use crate::dctcp::fraction::Fraction;
use crate::dctcp::rack::Rack;
use crate::dctcp::rtt::Rtt;
use crate::dctcp::scoreboard::Scoreboard;
use crate::dctcp::segment::{End, Position, Segment};
use crate::dctcp::usage::{SendSnapshot, Usage};
use crate::dctcp::window::Window;
use apus_workload::time::Nanos;

/// The sending half of a connection.
#[derive(Debug)]
pub(in crate::dctcp) struct Sender {
    pub(super) una: Position,
    pub(super) next: Position,
    pub(super) end: Position,
    /// Ends of the messages that are not completely acknowledged, in order.
    pub(super) messages: VecDeque<End>,
    pub(super) board: Scoreboard,
    pub(in crate::dctcp) window: Window,
    pub(super) usage: Usage,
    pub(in crate::dctcp) fraction: Fraction,
    pub(in crate::dctcp) rtt: Rtt,
    pub(super) rack: Rack,
    pub(super) state: State,
    pub(super) undo: Undo,
    pub(super) probe: Probe,
    pub(super) timer: Option<Timer>,
    /// Whether a retransmission timeout requests the first segment, regardless of the window.
    pub(super) head_due: bool,
    /// Time of the last transmission.
    pub(super) sent_at: Nanos,
    pub(in crate::dctcp) counters: Counters,
}

impl Sender {
    pub(in crate::dctcp) fn new(config: &Config) -> Self {
        Self {
            una: 0,
            next: 0,
            end: 0,
            messages: VecDeque::new(),
            board: Scoreboard::default(),
            window: Window::new(config),
            usage: Usage::default(),
            fraction: Fraction::new(config),
            rtt: Rtt::default(),
            rack: Rack::default(),
            state: State::Open,
            undo: Undo::default(),
            probe: Probe::default(),
            timer: None,
            head_due: false,
            sent_at: 0,
            counters: Counters::default(),
        }
    }

    /// Appends a message to the stream.
    pub(in crate::dctcp) fn submit(&mut self, number: u32, bytes: u32) {
        self.end += u64::from(bytes);
        self.messages.push_back(End { at: self.end, number });
    }

    /// Returns the bytes that were submitted and are not acknowledged.
    pub(in crate::dctcp) const fn unacknowledged(&self) -> u64 {
        self.end - self.una
    }

    /// Returns whether a segment may be sent now.
    pub(in crate::dctcp) fn can_send(&self) -> bool {
        let waits = self.next < self.end || self.board.has_repair();
        self.head_due
            || self.probe.is_due()
            || (waits && self.board.in_flight() < self.window.size())
    }

    /// Writes the next segment, except for its acknowledgement, if one may be sent.
    pub(in crate::dctcp) fn transmit(
        &mut self,
        config: &Config,
        now: Nanos,
        segment: &mut Segment,
    ) -> bool {
        let possible = self.can_send();
        let range = self.choose(config, now);
        debug_assert_eq!(range.is_some(), possible, "SENDER-4");
        debug_assert_eq!(self.timer.is_some(), !self.board.is_empty(), "SENDER-3");
        let Some(range) = range else { return false };
        self.counters.segments += 1;
        self.sent_at = now;
        let out = self.board.len();
        let moment = SendSnapshot {
            now,
            una: self.una,
            next: self.next,
            out,
            full: self.board.in_flight() >= self.window.size(),
            size: self.window.size(),
            in_slow_start: self.window.in_slow_start(),
        };
        let unused = self.usage.on_sent(&moment);
        if config.slow_start_after_idle && unused >= self.rtt.timeout(config) {
            if self.state == State::Open {
                self.window.shrink_to_use(config, &self.usage);
            }
            self.usage.restart(now);
        }
        segment.start = range.start;
        segment.len = (range.end - range.start) as u32;
        segment.ends.clear();
        segment.ends.extend(self.ends_in(&range));
        true
    }

    fn choose(&mut self, config: &Config, now: Nanos) -> Option<Range<Position>> {
        if std::mem::take(&mut self.head_due)
            && let Some(head) = self.board.repair(now)
        {
            return Some(self.retransmit(config, now, head));
        }
        if self.probe.take_due() {
            return self.send_probe(config, now);
        }
        if self.board.in_flight() >= self.window.size() {
            return None;
        }
        if let Some(lost) = self.board.repair(now) {
            return Some(self.retransmit(config, now, lost));
        }
        let range = self.send_new(config, now)?;
        self.schedule_probe(config, now);
        Some(range)
    }

    /// Retransmits a lost segment.
    fn retransmit(
        &mut self,
        config: &Config,
        now: Nanos,
        range: Range<Position>,
    ) -> Range<Position> {
        self.counters.retransmissions += 1;
        self.undo.retransmitted();
        self.note_reduction();
        if range.start == self.una {
            self.rearm(config, now);
        }
        range
    }

    /// Sends the next segment of the stream with the largest possible length.
    pub(super) fn send_new(&mut self, config: &Config, now: Nanos) -> Option<Range<Position>> {
        let range = self.next..self.end.min(self.next + u64::from(config.mss));
        if range.is_empty() {
            return None;
        }
        let idle = now - self.sent_at;
        let timeout = self.rtt.timeout(config);
        let first = self.board.is_empty();
        if first && config.slow_start_after_idle && idle > timeout {
            self.window.restart(config, idle, timeout);
            self.usage.restart(now);
        }
        self.next = range.end;
        self.board.push(range.clone(), now);
        self.note_reduction();
        if first || self.probe_is_scheduled() {
            self.rearm(config, now);
        }
        Some(range)
    }

    fn note_reduction(&mut self) {
        if self.state.is_reducing() {
            self.window.note_sent();
        }
    }

    /// Returns the messages that end in a range of the stream.
    fn ends_in(&self, range: &Range<Position>) -> impl Iterator<Item = End> {
        let first = self.messages.partition_point(|end| end.at <= range.start);
        self.messages.range(first..).copied().take_while(|end| end.at <= range.end)
    }

    /// Returns the next message that is completely acknowledged.
    pub(in crate::dctcp) fn poll_done(&mut self) -> Option<u32> {
        let first = self.messages.front().filter(|end| end.at <= self.una)?;
        let number = first.number;
        self.messages.pop_front();
        Some(number)
    }
}
