//! The works, by their names.

use compare_kit::{Wait, Work};

/// A work and the way to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Course {
    /// Name in results.
    pub(crate) name: &'static str,
    pub(crate) work: Work,
    pub(crate) wait: Wait,
}

/// Calls outstanding where a rate is measured.
const OUTSTANDING: usize = 64;

/// Outstanding long requests: one is in flight while another is being answered.
const LONG_OUTSTANDING: usize = 4;

const fn round_trips(name: &'static str, size: usize, wait: Wait) -> Course {
    Course { name, work: Work::RoundTrips { size }, wait }
}

/// All of them.
pub(crate) const COURSES: [Course; 8] = [
    round_trips("rtt-100", 100, Wait::Block),
    round_trips("rtt-1k", 1_000, Wait::Block),
    round_trips("rtt-10k", 10_000, Wait::Block),
    round_trips("rtt-100-spin", 100, Wait::Spin),
    round_trips("rtt-1k-spin", 1_000, Wait::Spin),
    round_trips("rtt-10k-spin", 10_000, Wait::Spin),
    Course {
        name: "rate-100",
        work: Work::Rate { size: 100, outstanding: OUTSTANDING },
        wait: Wait::Block,
    },
    Course {
        name: "throughput-500k",
        work: Work::Throughput { size: 500_000, outstanding: LONG_OUTSTANDING },
        wait: Wait::Block,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_how_a_process_waits() {
        for course in COURSES {
            assert_eq!(course.name.ends_with("-spin"), course.wait == Wait::Spin, "{course:?}");
        }
    }
}
