//! What counts, and what is warm-up?

use crate::contender::{Plan, Side};
use apus_report::stats::Latencies;
use apus_testbed::clock;

/// Counts one side's messages in the time that counts.
///
/// # Invariants
///
/// - **T1** Time that counts begins and ends with the completion of a message, and what is complete when
///   it begins is not counted: `messages / elapsed` is a rate without an edge.
/// - **T2** What completes after the end changes nothing.
/// - **T3** A client is not done before one message was counted, however slow the machine is. So is there
///   time that counts wherever there is a message.
pub struct Meter {
    /// When the warm-up is over.
    warm: u64,
    /// When what counts is over.
    ends: u64,
    /// When the client is done.
    over: u64,
    counted: Option<Counted>,
    latencies: Latencies,
}

/// What has been counted so far.
struct Counted {
    /// When counting began, and the processor time then.
    began: (u64, u64),
    /// When the last message was counted, and the processor time once counting is over.
    last: u64,
    cpu: Option<u64>,
    messages: u64,
    bytes: u64,
}

impl Meter {
    /// Warm-up begins now.
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

    /// At `now`, messages with that many bytes of payload together were completed.
    #[inline]
    pub fn count(&mut self, now: u64, messages: u64, bytes: u64) {
        if now < self.warm {
            return;
        }
        let Some(counted) = &mut self.counted else {
            let began = (now, clock::cpu_time());
            self.counted = Some(Counted { began, last: now, cpu: None, messages: 0, bytes: 0 });
            return;
        };
        // One look at the clock may be for several messages: these belong to what counting begins with.
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

    /// A reply came after that many nanoseconds. Call it before [`Meter::count`] for the same message.
    #[inline]
    pub fn latency(&mut self, nanoseconds: u64) {
        if let Some(Counted { cpu: None, .. }) = self.counted {
            self.latencies.record(nanoseconds);
        }
    }

    /// Whether the client is done.
    #[inline]
    #[must_use]
    pub const fn is_over(&self, now: u64) -> bool {
        now >= self.over && matches!(self.counted, Some(Counted { cpu: Some(_), .. }))
    }

    /// What was counted.
    #[must_use]
    pub fn finish(self) -> Side {
        let latency = self.latencies.percentiles();
        let Some(Counted { began, last, cpu, messages, bytes }) = self.counted else {
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

    /// Warm until 10 ns, counts until 110 ns.
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
        };
        Meter::start_at(0, &plan)
    }

    #[test]
    fn the_rate_has_no_edge() {
        let mut meter = meter();
        for now in (5..200).step_by(10) {
            meter.latency(now);
            meter.count(now, 1, 7);
        }
        let side = meter.finish();
        // Counting begins at 15 and ends at 115: ten messages in 100 ns.
        assert_eq!((side.messages, side.bytes, side.elapsed), (10, 70, 100));
        assert_eq!(side.latency.samples, 10);
    }

    #[test]
    fn warm_up_alone_is_nothing() {
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
    fn what_came_with_the_first_message_is_not_counted() {
        let mut meter = meter();
        // The machine slept: the first look sees more than one message, and is late.
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
    fn clients_go_on_until_servers_are_done() {
        let mut meter = meter();
        let over = 110 + clock::as_nanoseconds(Plan::TAIL);
        meter.count(20, 1, 1);
        assert!(!meter.is_over(over), "nothing has been counted");
        meter.count(111, 1, 1);
        assert!(!meter.is_over(111));
        assert!(meter.is_over(over));
    }
}
