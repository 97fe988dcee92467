//! Random packet faults.

use apus_proto::{Config, Profile};

use super::random::SeededRng;
use apus_sim::fault::{Corruption, Settings};
use apus_workload::time::{MICROSECOND, MILLISECOND, SECOND};

/// Generates faults, each with its own probability; 15 % of the runs have no faults.
pub(super) fn generate(rng: &mut SeededRng, config: &Config) -> Settings {
    let mut settings = Settings::default();
    if rng.percent(15) {
        return settings;
    }
    settings.reordered_by = rng.scale(MICROSECOND, MILLISECOND);
    if rng.percent(45) {
        settings.loss = rng.scale(1, 2_000) as u32;
    }
    if rng.percent(25) {
        // At most a tenth of all packets.
        settings.burst_length = rng.scale(2, 200) as u32;
        settings.burst = rng.scale(1, u64::from(1_000 / settings.burst_length)) as u32;
    }
    if rng.percent(40) {
        settings.duplication = rng.scale(1, 3_000) as u32;
    }
    if rng.percent(40) {
        settings.reordering = rng.scale(1, 5_000) as u32;
    }
    if rng.percent(20) {
        settings.spike = rng.scale(1, 50) as u32;
        settings.spike_of = rng.scale(10 * MICROSECOND, 20 * MILLISECOND);
    }
    // The kernel profile does not cover duplicates that arrive after all state is gone (AMO-7).
    if rng.percent(30) && config.profile() == Profile::Udp {
        settings.very_late = rng.scale(1, 500) as u32;
        settings.late_by = rng.scale(MILLISECOND, 600 * SECOND);
    }
    if rng.percent(15) {
        settings.corruption = rng.scale(1, 500) as u32;
        if rng.percent(30) {
            settings.corrupted = Corruption::Unnoticed;
        }
    }
    settings
}
