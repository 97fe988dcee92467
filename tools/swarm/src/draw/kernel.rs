//! Which hosts run the Linux module?

use super::dice::Dice;
use crate::call::Call;
use crate::scenario::Peers;
use apus_sim::fabric::Settings;
use apus_sim::message::HostId;
use apus_workload::time::{MILLISECOND, Nanos};

/// Fabrics of 100 in which some hosts do, if nothing else is said.
const MIXED: u32 = 10;

/// How long applications wait for calls between two modules: as long as a module waits for a silent server (row T-4).
const PATIENCE: Nanos = 100 * MILLISECOND;

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

/// Applications give calls between two modules up after a while; calls with a host that runs apus at one end stay as
/// they are.
///
/// Each module asks for every silent call every 5 ms, whatever the link bears (rows T-3, T-5), before it sends data
/// (row P-24), and each question about a response that has not left is answered with BUSY, which counts as life (rows
/// P-13, P-21). With more calls than questions fit on the link in 5 ms nothing else is ever sent again, and nobody gives
/// up. apus waits the longer, the more there is ([`patient`](super::config::patient)); what two modules do to each
/// other it cannot help, and nothing is promised about it. (Found by seed 393: 1 Gbit/s, 27,000 calls.)
pub(super) fn bound(calls: &mut [Call], modules: &[HostId]) {
    let runs_module = |host: &HostId| modules.contains(host);
    for call in calls.iter_mut().filter(|call| runs_module(&call.from) && runs_module(&call.to)) {
        call.deadline = Some(call.deadline.map_or(PATIENCE, |deadline| deadline.min(PATIENCE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    #[test]
    fn only_calls_between_modules_are_bound() {
        let (mut bound, mut free) = (0, 0);
        for seed in 0..20 {
            let scenario = Scenario::draw_with(seed, Peers::Kernel);
            for call in &scenario.calls {
                let ends = [call.from, call.to].map(|host| scenario.kernel_hosts.contains(&host));
                match call.deadline {
                    Some(deadline) if ends == [true; 2] => bound += u32::from(deadline <= PATIENCE),
                    None if ends == [true; 2] => panic!("call {call:?} has no deadline"),
                    _ => free += u32::from(call.deadline.is_none()),
                }
            }
        }
        assert!(bound > 0 && free > 0, "{bound} {free}");
    }
}
