//! What goes wrong with packets?

use apus_proto::{Config, Profile};

use super::dice::Dice;
use apus_sim::fault::{Corruption, Settings};
use apus_workload::time::{MICROSECOND, MILLISECOND, SECOND};

/// None in every sixth run; otherwise each with its own chance.
pub(super) fn draw(dice: &mut Dice, config: &Config) -> Settings {
    let mut settings = Settings::default();
    if dice.percent(15) {
        return settings;
    }
    settings.reordered_by = dice.scale(MICROSECOND, MILLISECOND);
    if dice.percent(45) {
        settings.loss = dice.scale(1, 2_000) as u32;
    }
    if dice.percent(25) {
        // A tenth of all packets at most.
        settings.burst_length = dice.scale(2, 200) as u32;
        settings.burst = dice.scale(1, u64::from(1_000 / settings.burst_length)) as u32;
    }
    if dice.percent(40) {
        settings.duplication = dice.scale(1, 3_000) as u32;
    }
    if dice.percent(40) {
        settings.reordering = dice.scale(1, 5_000) as u32;
    }
    if dice.percent(20) {
        settings.spike = dice.scale(1, 50) as u32;
        settings.spike_of = dice.scale(10 * MICROSECOND, 20 * MILLISECOND);
    }
    // The kernel profile promises nothing about duplicates that come after everything is forgotten (AMO-7).
    if dice.percent(30) && config.profile() == Profile::Udp {
        settings.very_late = dice.scale(1, 500) as u32;
        settings.late_by = dice.scale(MILLISECOND, 600 * SECOND);
    }
    if dice.percent(15) {
        settings.corruption = dice.scale(1, 500) as u32;
        if dice.percent(30) {
            settings.corrupted = Corruption::Unnoticed;
        }
    }
    settings
}
