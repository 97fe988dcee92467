//! Random meddling of a host on the path.

use super::random::SeededRng;
use crate::meddling::Meddling;

/// Percentage of runs without interference by the host.
const ALONE_PERCENT: u32 = 20;

/// Generates the actions of a host on the path: each action occurs in most runs, and in a third of
/// them often.
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
