//! Scenario: a user measures apus in a fabric where half of the hosts run the Linux module.

use apus_proto::Profile;
use apus_sim::experiment::Carrier;
use apus_sim::host::Answer;
use apus_sim::preset;
use apus_sim::{Experiment, ExperimentReport};
use apus_workload::Workload;

/// Messages of a few packets between the hosts of one rack.
fn experiment() -> Experiment {
    let workload: Workload = "20000".parse().unwrap();
    let mut experiment = preset::sigcomm18_experiment(workload, 0.5, 3).unwrap();
    experiment.fabric.topology.shape = "1x4x0".parse().unwrap();
    (experiment.messages, experiment.warm_up) = (400, 100);
    experiment
}

fn mixed(answer: Answer) -> Experiment {
    let mut experiment = experiment();
    let config = experiment.load_config.to_builder().profile(Profile::Kernel);
    experiment.carrier = Carrier::Mixed(config.build().unwrap());
    experiment.answer = answer;
    experiment
}

fn run(experiment: &Experiment) -> ExperimentReport {
    experiment.run(experiment.allowed_growth(), &mut |_| {})
}

#[test]
fn apus_and_modules_carry_the_messages_together() {
    for answer in [Answer::Nothing, Answer::Echo] {
        let experiment = mixed(answer);
        let report = run(&experiment);
        assert_eq!(report.failed, 0);
        assert!(report.messages > 200, "{}", report.messages);
        assert_eq!(report, run(&experiment), "a pure function of the experiment");
    }
}

/// The module gives a message 40,000 unscheduled bytes and the paper's apus 9,328, in the first
/// packet's `incoming`: the reports of a fabric with and without modules must differ.
#[test]
fn modules_make_a_difference() {
    let alone = run(&experiment());
    let mixed = run(&mixed(Answer::Nothing));
    assert_ne!(alone.slowdown, mixed.slowdown);
    assert!(mixed.packets > 0 && alone.failed == 0);
}
