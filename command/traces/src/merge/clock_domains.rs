//! Clock domains: finds the traces that have the same clock.
//!
//! Processes of one host share their ticks. Their records are comparable to the nanosecond without
//! any packet. Two processes have the same clock if they agree on the host's boot time and on the
//! ticks at that time. Different hosts do not agree on both by chance; host names are ignored.

use apus_trace::Trace;
use apus_trace::clock::Calibration;

/// Tolerance for the boot time of one host in nanoseconds: each process reads one clock after the
/// other, and the kernel adjusts their rates.
const BOOT_TOLERANCE: u128 = 1_000_000;

/// Bound for the absolute value of times, 52 days in nanoseconds, so that sums of times from any
/// file cannot overflow.
pub(super) const MAX_TIME: i64 = 1 << 52;

/// All clocks, and the clock of each process.
#[derive(Debug)]
pub(super) struct ClockDomains {
    /// Index of each process's clock.
    of: Vec<usize>,
    all: Vec<Domain>,
}

/// A clock.
#[derive(Clone, Debug)]
struct Domain {
    /// The calibration over the longest time, which has the most precise rate.
    calibration: Calibration,
    /// Ticks at time 0.
    zero: u64,
}

impl ClockDomains {
    /// Finds the domains. Time 0 of each clock is its first record.
    pub(super) fn of(traces: &[(String, Trace)]) -> Self {
        let mut clock_domains = Self { of: Vec::new(), all: Vec::new() };
        for (_, trace) in traces {
            let calibration = trace.head.clock;
            let first =
                trace.threads.iter().filter_map(|t| t.records.first()).map(|r| r.ticks).min();
            let zero = first.unwrap_or(calibration.end.ticks);
            let same = |domain: &Domain| is_same(&domain.calibration, &calibration);
            let place = clock_domains.all.iter().position(same);
            let place = place.unwrap_or_else(|| {
                clock_domains.all.push(Domain { calibration, zero });
                clock_domains.all.len() - 1
            });
            let domain = &mut clock_domains.all[place];
            domain.zero = domain.zero.min(zero);
            if span(&calibration) > span(&domain.calibration) {
                domain.calibration = calibration;
            }
            clock_domains.of.push(place);
        }
        clock_domains
    }

    pub(super) const fn count(&self) -> usize {
        self.all.len()
    }

    pub(super) fn of_process(&self, process: usize) -> usize {
        self.of[process]
    }

    /// Returns the processes that use the clock.
    pub(super) fn processes(&self, domain: usize) -> impl Iterator<Item = usize> {
        (0..self.of.len()).filter(move |process| self.of[*process] == domain)
    }

    /// Converts ticks to nanoseconds since the clock's time 0.
    pub(super) fn local(&self, process: usize, ticks: u64) -> i64 {
        let Domain { calibration, zero } = &self.all[self.of[process]];
        let nanos =
            |ticks| i64::try_from(calibration.nanos(ticks)).unwrap_or(MAX_TIME).min(MAX_TIME);
        if ticks >= *zero { nanos(ticks - zero) } else { -nanos(zero - ticks) }
    }

    /// Returns the host's wall clock at time 0, in nanoseconds since 1970.
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
    // Extrapolate the earlier calibration to the later one.
    let (early, late) = if a.end.ticks <= b.end.ticks { (a, b) } else { (b, a) };
    let predicted = early.monotonic(late.end.ticks);
    let passed = u128::from(late.end.monotonic.saturating_sub(early.end.monotonic));
    // A rate measured over 20 ms is precise to 5 ppm.
    let tolerance = BOOT_TOLERANCE + passed / 10_000;
    a.source == b.source
        && u128::from(predicted.abs_diff(late.end.monotonic)) <= tolerance
        && u128::from(came_up(a).abs_diff(came_up(b))) <= BOOT_TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_trace::clock::{ClockReading, ClockSource};

    const SECOND: u64 = 1_000_000_000;

    /// A host booted at `up`, with 2 ticks per nanosecond and `firmware` nanoseconds of ticks
    /// before boot.
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
    fn hosts_with_other_boot_times_have_other_clocks() {
        let one = calibration(1_700_000_000 * SECOND, SECOND, 5 * SECOND, 6 * SECOND);
        let other = calibration(1_700_000_001 * SECOND, SECOND, 5 * SECOND, 6 * SECOND);
        assert!(!is_same(&one, &other), "another moment");
        let other = calibration(1_700_000_000 * SECOND, 2 * SECOND, 5 * SECOND, 6 * SECOND);
        assert!(!is_same(&one, &other), "another number of ticks at that moment");
        let other = Calibration { source: ClockSource::Monotonic, ..one };
        assert!(!is_same(&one, &other), "other ticks");
    }
}
