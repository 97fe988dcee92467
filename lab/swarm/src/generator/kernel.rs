//! Random selection of hosts that run the Linux module.

use super::random::SeededRng;
use crate::call::PlannedCall;
use crate::scenario::PeerModel;
use apus_sim::fabric::Settings;
use apus_sim::message::HostId;
use apus_workload::time::{MILLISECOND, Nanos};

/// Percentage of fabrics with such hosts, by default.
const MIXED_PERCENT: u32 = 10;

/// Deadline of calls between two modules: the timeout of a module for a silent server (HM
/// `homa_timer.c` `homa_timer_check_rpc`).
const CALL_DEADLINE: Nanos = 100 * MILLISECOND;

/// Selects no host, or some but not all.
pub(super) fn generate(rng: &mut SeededRng, fabric: &Settings, peers: PeerModel) -> Vec<HostId> {
    let drawn = rng.percent(MIXED_PERCENT);
    let mixed = match peers {
        PeerModel::Random => drawn,
        PeerModel::Apus | PeerModel::Divided | PeerModel::Hostile | PeerModel::Sealed => false,
        PeerModel::Kernel => true,
    };
    if !mixed {
        return Vec::new();
    }
    let hosts = fabric.topology.shape.hosts();
    // At least one of each kind.
    let apus = rng.within(0..hosts);
    let kernel = (apus + rng.within(1..hosts)) % hosts;
    let share = rng.within(10..=90);
    let mut runs_module = |host: HostId| {
        let drawn = rng.percent(share);
        host != apus && (host == kernel || drawn)
    };
    (0..hosts).filter(|host| runs_module(*host)).collect()
}

/// Limits the deadlines of calls between two modules. Calls with a host that runs apus are
/// unchanged.
///
/// A module sends a RESEND for every silent call every 5 ms, regardless of the link's load (HM
/// `homa_timer.c` `homa_timer_check_rpc`), before it sends data (HM `homa_outgoing.c`
/// `__homa_xmit_control`), and answers each RESEND for a response that is not sent yet with BUSY,
/// which counts as activity (HM `homa_incoming.c` `homa_resend_pkt` and `homa_dispatch_pkts`). With
/// more calls than RESENDs fit on the link in 5 ms, only these packets are ever sent, and no call
/// times out. apus waits longer for more calls
/// ([`with_longer_intervals`](super::config::with_longer_intervals)). It cannot influence two
/// modules, and makes no promise about them. (Found by seed 393: 1 Gbit/s, 27,000 calls.)
pub(super) fn limit_deadlines(calls: &mut [PlannedCall], modules: &[HostId]) {
    let runs_module = |host: &HostId| modules.contains(host);
    for call in calls.iter_mut().filter(|call| runs_module(&call.from) && runs_module(&call.to)) {
        call.deadline =
            Some(call.deadline.map_or(CALL_DEADLINE, |deadline| deadline.min(CALL_DEADLINE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    #[test]
    fn only_calls_between_modules_get_deadlines() {
        let (mut bound, mut free) = (0, 0);
        for seed in 0..20 {
            let scenario = Scenario::generate_with(seed, PeerModel::Kernel);
            for call in &scenario.calls {
                let ends = [call.from, call.to].map(|host| scenario.kernel_hosts.contains(&host));
                match call.deadline {
                    Some(deadline) if ends == [true; 2] => {
                        bound += u32::from(deadline <= CALL_DEADLINE);
                    }
                    None if ends == [true; 2] => panic!("call {call:?} has no deadline"),
                    _ => free += u32::from(call.deadline.is_none()),
                }
            }
        }
        assert!(bound > 0 && free > 0, "{bound} {free}");
    }
}
