//! Measurement of one side: separates the warm-up from the measured period.

use crate::clock;
use crate::plan::{Plan, Side};
use apus_report::stats::Latencies;

/// Counts one side's messages during the measurement.
///
/// # Invariants
///
/// - **METER-1**: The measurement starts and ends with the completion of a message, and messages
///   complete at its start are not counted: `messages / elapsed` is a rate without edge effects.
/// - **METER-2**: Completions after the end have no effect.
/// - **METER-3**: A client does not end before one message was counted, however slow the machine
///   is. A side with messages therefore always has measured time.
pub struct Meter {
    /// End of the warm-up.
    warm: u64,
    /// End of the measurement.
    ends: u64,
    /// End of the client.
    over: u64,
    counted: Option<Counts>,
    latencies: Latencies,
}

/// Counts so far.
struct Counts {
    /// Time and processor time at the start of the measurement.
    began: (u64, u64),
    /// Time of the last counted message, and processor time at the end of the measurement.
    last: u64,
    cpu: Option<u64>,
    messages: u64,
    bytes: u64,
}

impl Meter {
    /// Starts the warm-up.
    #[must_use]
    pub fn start(plan: &Plan) -> Self {
        Self::start_at(clock::now(), plan)
    }

    fn start_at(now: u64, plan: &Plan) -> Self {
        let warm = now + clock::as_nanoseconds(plan.warmup);
        let ends = warm + clock::as_nanoseconds(plan.measure);
        let over = ends + clock::as_nanoseconds(Plan::TAIL);
        Self { warm, ends, over, counted: None, latencies: Latencies::new() }
    }

    /// Records that `messages` messages with `bytes` bytes of payload in total were completed at
    /// `now`.
    #[inline]
    pub fn count(&mut self, now: u64, messages: u64, bytes: u64) {
        if now < self.warm {
            return;
        }
        let Some(counted) = &mut self.counted else {
            let began = (now, clock::cpu_time());
            self.counted = Some(Counts { began, last: now, cpu: None, messages: 0, bytes: 0 });
            return;
        };
        // Several messages may share one clock reading: these belong to the start.
        if counted.cpu.is_some() || now == counted.began.0 {
            return;
        }
        counted.messages += messages;
        counted.bytes += bytes;
        counted.last = now;
        if now >= self.ends {
            counted.cpu = Some(clock::cpu_time());
        }
    }

    /// Records the latency of a reply. To be called before [`Meter::count`] for the same message.
    #[inline]
    pub fn latency(&mut self, nanoseconds: u64) {
        if let Some(Counts { cpu: None, .. }) = self.counted {
            self.latencies.record(nanoseconds);
        }
    }

    /// Returns whether the client may end.
    #[inline]
    #[must_use]
    pub const fn is_over(&self, now: u64) -> bool {
        now >= self.over && matches!(self.counted, Some(Counts { cpu: Some(_), .. }))
    }

    /// Returns the measurements.
    #[must_use]
    pub fn finish(self) -> Side {
        let latency = self.latencies.percentiles();
        let Some(Counts { began, last, cpu, messages, bytes }) = self.counted else {
            return Side::default();
        };
        let cpu = cpu.unwrap_or_else(clock::cpu_time) - began.1;
        let elapsed = last - began.0;
        Side { messages, bytes, elapsed, cpu, latency, ..Side::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus::PollMode;
    use std::time::Duration;

    /// Returns a meter with warm-up until 10 ns and a measurement until 110 ns.
    fn meter() -> Meter {
        let plan = Plan {
            size: 1,
            outstanding: 1,
            poll: PollMode::Spin,
            settings: apus::Settings::default(),
            warmup: Duration::from_nanos(10),
            measure: Duration::from_nanos(100),
            seed: 1,
            raw: false,
            keys: None,
        };
        Meter::start_at(0, &plan)
    }

    #[test]
    fn the_rate_has_no_edge_effects() {
        let mut meter = meter();
        for now in (5..200).step_by(10) {
            meter.latency(now);
            meter.count(now, 1, 7);
        }
        let side = meter.finish();
        // The measurement starts at 15 and ends at 115: ten messages in 100 ns.
        assert_eq!((side.messages, side.bytes, side.elapsed), (10, 70, 100));
        assert_eq!(side.latency.samples, 10);
    }

    #[test]
    fn warm_up_alone_counts_nothing() {
        let mut meter = meter();
        meter.latency(5);
        meter.count(5, 1, 1);
        let side = meter.finish();
        assert_eq!((side.messages, side.elapsed, side.latency.samples), (0, 0, 0));
    }

    #[test]
    fn a_side_that_ends_early_counts_up_to_its_last_message() {
        let mut meter = meter();
        for now in [20, 30, 50] {
            meter.count(now, 1, 1);
        }
        let side = meter.finish();
        assert_eq!((side.messages, side.elapsed), (2, 30));
    }

    #[test]
    fn messages_that_come_with_the_first_one_are_not_counted() {
        let mut meter = meter();
        // The machine slept: the first poll returns several messages, and late.
        let over = 120 + clock::as_nanoseconds(Plan::TAIL);
        for _ in 0..4 {
            meter.count(120, 1, 7);
        }
        assert!(!meter.is_over(over), "no time has been counted");
        meter.count(150, 1, 7);
        assert!(meter.is_over(over));
        let side = meter.finish();
        assert_eq!((side.messages, side.bytes, side.elapsed), (1, 7, 30));
    }

    #[test]
    fn clients_continue_until_servers_are_done() {
        let mut meter = meter();
        let over = 110 + clock::as_nanoseconds(Plan::TAIL);
        meter.count(20, 1, 1);
        assert!(!meter.is_over(over), "nothing has been counted");
        meter.count(111, 1, 1);
        assert!(!meter.is_over(111));
        assert!(meter.is_over(over));
    }
}
