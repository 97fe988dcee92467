//! Which traces have the same clock?
//!
//! Processes of one host count the same ticks: what one recorded can be laid beside what the other did to a nanosecond,
//! and no packet has to tell. Two processes have the same clock if by both of them the host came up at the same
//! moment, and their ticks were at the same number at that moment. Hosts do not do that by chance, whatever their
//! names are.

use apus_trace::Trace;
use apus_trace::clock::Calibration;

/// How well two processes of one host agree on when it came up: each reads one clock after the other, and the kernel
/// corrects their rates. Nanoseconds.
const AGREE: u128 = 1_000_000;

/// Times are kept this small, 52 days, whatever a file says, so that they can be added.
pub(super) const LARGEST: i64 = 1 << 52;

/// The clocks, and who has which.
#[derive(Debug)]
pub(super) struct Domains {
    /// The clock of each process, by its place.
    of: Vec<usize>,
    all: Vec<Domain>,
}

/// A clock.
#[derive(Clone, Debug)]
struct Domain {
    /// Of those that have it, the one that knows its rate best.
    calibration: Calibration,
    /// The ticks that are time 0.
    zero: u64,
}

impl Domains {
    /// Time 0 of each clock is its first record.
    pub(super) fn of(traces: &[(String, Trace)]) -> Self {
        let mut domains = Self { of: Vec::new(), all: Vec::new() };
        for (_, trace) in traces {
            let calibration = trace.head.clock;
            let first =
                trace.threads.iter().filter_map(|t| t.records.first()).map(|r| r.ticks).min();
            let zero = first.unwrap_or(calibration.end.ticks);
            let same = |domain: &Domain| is_same(&domain.calibration, &calibration);
            let place = domains.all.iter().position(same);
            let place = place.unwrap_or_else(|| {
                domains.all.push(Domain { calibration, zero });
                domains.all.len() - 1
            });
            let domain = &mut domains.all[place];
            domain.zero = domain.zero.min(zero);
            if span(&calibration) > span(&domain.calibration) {
                domain.calibration = calibration;
            }
            domains.of.push(place);
        }
        domains
    }

    pub(super) const fn count(&self) -> usize {
        self.all.len()
    }

    pub(super) fn of_process(&self, process: usize) -> usize {
        self.of[process]
    }

    /// The processes with that clock.
    pub(super) fn processes(&self, domain: usize) -> impl Iterator<Item = usize> {
        (0..self.of.len()).filter(move |process| self.of[*process] == domain)
    }

    /// Nanoseconds since the clock's time 0.
    pub(super) fn local(&self, process: usize, ticks: u64) -> i64 {
        let Domain { calibration, zero } = &self.all[self.of[process]];
        let nanos = |ticks| i64::try_from(calibration.nanos(ticks)).unwrap_or(LARGEST).min(LARGEST);
        if ticks >= *zero { nanos(ticks - zero) } else { -nanos(zero - ticks) }
    }

    /// Time 0 as the host's wall clock has it: nanoseconds since 1970.
    pub(super) fn realtime(&self, domain: usize) -> u64 {
        let Domain { calibration, zero } = &self.all[domain];
        calibration.realtime(*zero)
    }
}

const fn span(calibration: &Calibration) -> u64 {
    calibration.end.ticks.saturating_sub(calibration.start.ticks)
}

fn is_same(a: &Calibration, b: &Calibration) -> bool {
    let came_up = |it: &Calibration| it.end.realtime.wrapping_sub(it.end.monotonic);
    // Both clocks at the later of the two moments, as the one with the earlier one reckons.
    let (early, late) = if a.end.ticks <= b.end.ticks { (a, b) } else { (b, a) };
    let reckoned = early.monotonic(late.end.ticks);
    let passed = u128::from(late.end.monotonic.saturating_sub(early.end.monotonic));
    // What was found out in 20 ms is right to 5 millionths.
    let tolerance = AGREE + passed / 10_000;
    a.source == b.source
        && u128::from(reckoned.abs_diff(late.end.monotonic)) <= tolerance
        && u128::from(came_up(a).abs_diff(came_up(b))) <= AGREE
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_trace::clock::{ClockReading, ClockSource};

    const SECOND: u64 = 1_000_000_000;

    /// A host that came up at `up`, with 2 ticks in a nanosecond and `firmware` seconds of ticks before that.
    fn calibration(up: u64, firmware: u64, start: u64, end: u64) -> Calibration {
        let point = |monotonic| ClockReading {
            ticks: 2 * (monotonic + firmware),
            monotonic,
            realtime: up + monotonic,
        };
        Calibration { source: ClockSource::Tsc, start: point(start), end: point(end) }
    }

    #[test]
    fn processes_of_one_host_have_the_same_clock() {
        let one = calibration(1_700_000_000 * SECOND, SECOND, 5 * SECOND, 6 * SECOND);
        let later = calibration(1_700_000_000 * SECOND + 70_000, SECOND, 50 * SECOND, 51 * SECOND);
        assert!(is_same(&one, &later) && is_same(&later, &one));
    }

    #[test]
    fn hosts_that_came_up_at_other_times_have_others() {
        let one = calibration(1_700_000_000 * SECOND, SECOND, 5 * SECOND, 6 * SECOND);
        let other = calibration(1_700_000_001 * SECOND, SECOND, 5 * SECOND, 6 * SECOND);
        assert!(!is_same(&one, &other), "another moment");
        let other = calibration(1_700_000_000 * SECOND, 2 * SECOND, 5 * SECOND, 6 * SECOND);
        assert!(!is_same(&one, &other), "another number of ticks at that moment");
        let other = Calibration { source: ClockSource::Monotonic, ..one };
        assert!(!is_same(&one, &other), "other ticks");
    }
}
