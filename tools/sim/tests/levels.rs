//! Few levels of priority, with cutoffs that receivers learn.

use apus_sim::experiment::{Carrier, Experiment};
use apus_sim::preset;
use apus_sim::topology::Shape;
use apus_workload::Workload;

/// Returns p99 of the shorter half of the messages, in one rack at a load of 0.8.
fn p99(workload: u32, levels: u64) -> f64 {
    let experiment = preset::sigcomm18_experiment(Workload::published(workload), 0.8, 1);
    let mut experiment: Experiment = experiment.unwrap();
    experiment.fabric.topology.shape = Shape { racks: 1, hosts_per_rack: 16, spines: 0 };
    (experiment.messages, experiment.warm_up) = (30_000, 30_000);
    let learning = experiment.load_config.to_builder().num_priorities(levels);
    let learning = learning.cutoffs_interval_usecs(1).cutoffs_min_messages(1_000);
    experiment.carrier = Carrier::Apus(learning.build().unwrap());
    experiment.run(1.0, &mut |_| {}).slowdown.small_half_p99_max
}

/// PRIO-8: with one level for all unscheduled packets, W2 has 1.6 and W3 1.5 to 1.7 times the p99 of eight levels.
#[test]
fn short_messages_wait_with_two_levels_at_most_half_as_long_again_as_with_eight() {
    for workload in [2, 3] {
        let (two, eight) = (p99(workload, 2), p99(workload, 8));
        assert!(two <= 1.5 * eight, "W{workload}: {two:.2} with two levels, {eight:.2} with eight");
    }
}
