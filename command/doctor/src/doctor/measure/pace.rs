//! Speed of a core after idling, relative to its best.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use apus_measure::clock;

/// Idle time before each measurement.
const IDLE: Duration = Duration::from_millis(20);

/// Busy time until the core runs at its best speed. Chosen by us: several times the reaction time
/// of frequency governors.
const BUSY: Duration = Duration::from_millis(60);

/// Returns the speed of the first 0.1 ms after idling as a share of the best speed, 0 to 1.
pub(in crate::doctor) fn after_idling() -> f64 {
    let mut first: Vec<u64> = (0..5)
        .map(|_| {
            thread::sleep(IDLE);
            work()
        })
        .collect();
    first.sort_unstable();
    let until = clock::now() + clock::as_nanoseconds(BUSY);
    let mut best = u64::MAX;
    while clock::now() < until {
        best = best.min(work());
    }
    (best as f64 / first[first.len() / 2].max(1) as f64).min(1.0)
}

/// Returns the nanoseconds of a fixed amount of work: a chain of multiplications in registers.
fn work() -> u64 {
    let began = clock::now();
    let mut number = black_box(3_u64);
    for _ in 0..30_000 {
        number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    black_box(number);
    clock::now() - began
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_never_faster_than_at_its_best() {
        let pace = after_idling();
        assert!(pace > 0.0 && pace <= 1.0, "{pace}");
    }
}
