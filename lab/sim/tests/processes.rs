//! Hosts with several processes.

use apus_sim::experiment::{Carrier, Experiment, ExperimentReport};
use apus_sim::preset;
use apus_workload::Workload;

/// W4 at 80 % on a small rack, without sender-informed grants.
fn run(processes: u32, carrier: fn(apus_proto::Config) -> Carrier) -> ExperimentReport {
    run_with(0, processes, carrier)
}

fn run_with(
    informed_incoming: u64,
    processes: u32,
    carrier: fn(apus_proto::Config) -> Carrier,
) -> ExperimentReport {
    let mut experiment: Experiment =
        preset::sigcomm18_experiment(Workload::published(4), 0.8, 1).unwrap();
    experiment.fabric.topology.shape = "1x6x0".parse().unwrap();
    (experiment.messages, experiment.warm_up) = (1_500, 1_000);
    experiment.processes = Some(processes);
    let config = experiment.load_config.to_builder().informed_incoming(informed_incoming);
    experiment.carrier = carrier(config.build().unwrap());
    let report = experiment.run(1.0, &mut |_| {});
    assert_eq!(report.failed, 0);
    report
}

fn mean_queue(report: &ExperimentReport) -> f64 {
    report.counters.tor_to_host.mean
}

#[test]
fn processes_that_share_state_keep_the_queue_as_short_as_one_process() {
    let [one, together, apart] =
        [run(1, Carrier::Apus), run(4, Carrier::Apus), run(4, Carrier::Apart)]
            .map(|r| mean_queue(&r));
    assert!(together < 1.5 * one, "{together} bytes with four processes, {one} with one");
    assert!(
        apart > 2.0 * together,
        "{apart} bytes if they know nothing of each other, {together} otherwise"
    );
}

/// GRANT-17, SEND-12: the result for a process without neighbours is unchanged.
#[test]
fn one_process_has_no_neighbours() {
    assert_eq!(run(1, Carrier::Apus), run(1, Carrier::Apart));
}

/// SEND-13. (Packets waiting in the queue of the interface were counted as in flight: links of
/// receivers idled, and carried 0.60 instead of 0.77.)
#[test]
fn packets_in_the_interface_queue_take_no_room_from_others() {
    let [homa, informed] = [0, 18_000].map(|bytes| run_with(bytes, 1, Carrier::Apus));
    let [homa, informed] = [homa, informed].map(|report| report.achieved_load());
    assert!(informed > 0.98 * homa, "{informed} of the links with informed grants, {homa} without");
}
