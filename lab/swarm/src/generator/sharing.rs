//! Random sharing of datagrams.

use super::random::SeededRng;
use crate::scenario::Sharing;
use apus_sim::fabric::Settings;

/// Percentage of fabrics whose packets may share datagrams.
const SHARING_PERCENT: u32 = 60;

/// Generates, for most fabrics, how packets share datagrams; in some fabrics, some hosts do not
/// report their room.
pub(super) fn generate(rng: &mut SeededRng, fabric: &Settings) -> Option<Sharing> {
    if !rng.percent(SHARING_PERCENT) {
        return None;
    }
    let hosts = fabric.topology.shape.hosts();
    let older = if rng.percent(25) { rng.within(10..=60) } else { 0 };
    Some(Sharing {
        bursts: rng.scale(2, 64) as u32,
        receive_buffer: rng.scale(200_000, 8_000_000),
        older_hosts: (0..hosts).filter(|_| rng.percent(older)).collect(),
    })
}
