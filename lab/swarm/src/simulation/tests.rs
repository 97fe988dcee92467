//! Limits of a run's waits.

use super::run::run_with;
use crate::call::{PlannedCall, ServerAction};
use crate::scenario::{PeerModel, Scenario};
use apus_proto::{Config, Profile};
use apus_sim::fabric::Settings;
use apus_sim::fault::{self, Outages};
use apus_sim::preset;
use apus_workload::time::{MICROSECOND, MILLISECOND};

/// Calls of a module wait for an abandoned call that holds all grants. (Seed 4100038 of
/// `--peer-model kernel`: 1,479 calls waited for hundreds of requests that were given up, and ended
/// one after another, but their RESENDs exceeded `MAX_PACKETS`.)
#[test]
fn resends_of_waiting_modules_do_not_end_a_run() {
    let mut scenario = Scenario::generate_with(1, PeerModel::Kernel);
    let call = |at, request, deadline| PlannedCall {
        from: 0,
        to: 1,
        at,
        request,
        response: 1,
        service: 0,
        answer: ServerAction::Reply,
        cancel: None,
        deadline,
        idempotent: false,
        repeats: None,
    };
    let given_up = call(0, 300_000, Some(50 * MICROSECOND));
    let waiting = [call(100 * MICROSECOND, 400_000, None); 20];
    scenario.calls = [&[given_up][..], &waiting].concat();
    scenario.config = Config::builder()
        .profile(Profile::Kernel)
        .max_overcommit(1)
        .grant_fifo_fraction(0)
        .resend_usecs(200_000)
        .resend_interval_usecs(200_000)
        .timeout_usecs(1_000_000)
        .build()
        .unwrap();
    scenario.fabric = Settings::new(preset::sigcomm18(), 1);
    scenario.fabric.topology.shape = "1x2x0".parse().unwrap();
    (scenario.packet_limit, scenario.kernel_hosts) = (8_972, vec![0]);
    (scenario.faults, scenario.outages) = (fault::Settings::default(), Outages::default());
    (scenario.sharing, scenario.processors) = (None, None);
    scenario.heal_at = MILLISECOND;
    let end = run_with(scenario, None, 1_000);
    assert_eq!(end.violation, None);
    assert!(end.packets > 3_000, "{} packets", end.packets);
}
