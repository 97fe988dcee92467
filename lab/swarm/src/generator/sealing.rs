//! Random meddling of a host on the path.

use super::random::SeededRng;
use crate::meddling::Meddling;

/// Percentage of runs in which the host leaves everything alone.
const ALONE_PERCENT: u32 = 20;

/// Generates what a host on the path does, each act in most runs, and in a third of them often.
pub(super) fn generate(rng: &mut SeededRng) -> Meddling {
    if rng.percent(ALONE_PERCENT) {
        return Meddling::default();
    }
    let most = if rng.percent(33) { 200 } else { 20 };
    let mut rate = || if rng.percent(70) { rng.scale(1, most) as u32 } else { 0 };
    Meddling {
        repeated: rate(),
        changed: rate(),
        shortened: rate(),
        misattributed: rate(),
        misdelivered: rate(),
        replayed: rate(),
        forged: rate(),
    }
}
