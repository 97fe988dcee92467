//! Which hosts run the Linux module?

use super::dice::Dice;
use crate::check::scenario::Peers;
use crate::fabric::Settings;
use crate::message::HostId;

/// Fabrics of 100 in which some hosts do, if nothing else is said.
const MIXED: u32 = 10;

/// None, or some but not all.
pub(super) fn draw(dice: &mut Dice, fabric: &Settings, peers: Peers) -> Vec<HostId> {
    let drawn = dice.percent(MIXED);
    let mixed = match peers {
        Peers::Drawn => drawn,
        Peers::Apus => false,
        Peers::Kernel => true,
    };
    if !mixed {
        return Vec::new();
    }
    let hosts = fabric.topology.shape.hosts();
    // One of each kind at least.
    let apus = dice.within(0..hosts);
    let kernel = (apus + dice.within(1..hosts)) % hosts;
    let share = dice.within(10..=90);
    let mut runs_module = |host: HostId| {
        let drawn = dice.percent(share);
        host != apus && (host == kernel || drawn)
    };
    (0..hosts).filter(|host| runs_module(*host)).collect()
}
