//! Measures SIRD with one of its parts disabled at a time, in the set-up of SIGCOMM 2018.
//!
//! `cargo run --release -p apus-sim --example sird_parts -- WORKLOAD LOAD MESSAGES SEED`, for
//! example `w4 0.8 60000 1`. The measured messages follow a warm-up of the same number.

use std::env::args;
use std::error::Error;

use apus_sim::experiment::{Carrier, Experiment};
use apus_sim::preset;
use apus_sim::sird::Config;
use apus_workload::Workload;

type Part = (&'static str, fn(&mut Config));

/// The runs: each deviates from the paper in one part.
const PARTS: [Part; 8] = [
    ("as published", |_| {}),
    ("a BDP of each message unscheduled", |config| config.unscheduled_limit = u64::MAX),
    ("credit is not paced", |config| config.pace_percent = 0),
    ("global limit 3 BDP", |config| config.global_limit = 3 * config.bdp),
    ("global limit 7 BDP", |config| config.global_limit = 7 * config.bdp),
    ("senders say nothing", |config| config.sender_threshold = u64::MAX),
    ("no pace, 7 BDP", |config| (config.pace_percent, config.global_limit) = (0, 7 * config.bdp)),
    ("unscheduled, no pace, 7 BDP", |config| {
        *config = Config {
            unscheduled_limit: u64::MAX,
            pace_percent: 0,
            global_limit: 7 * config.bdp,
            ..*config
        };
    }),
];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = args().skip(1).collect();
    let [workload, load, messages, seed] = &words[..] else {
        return Err("write WORKLOAD LOAD MESSAGES SEED, like w4 0.8 60000 1".into());
    };
    let workload: Workload = workload.parse()?;
    let base = preset::sigcomm18_experiment(workload, load.parse()?, seed.parse()?)?;
    let messages = messages.parse()?;
    let published = Config::new(&base.fabric.topology, base.packets);
    let allowed = Experiment { messages, warm_up: messages, ..base.clone() }.allowed_growth();
    println!(
        "queue mean, longest (KB); p99 of the small half; mean by bytes; p99 of medium; links busy"
    );
    for (name, change) in PARTS {
        let mut config = published;
        change(&mut config);
        let mut experiment = Experiment { messages, warm_up: messages, ..base.clone() };
        experiment.fabric.mark_at = Some(config.marking_threshold);
        experiment.fabric.only_core_marks = true;
        experiment.carrier = Carrier::Sird(config);
        let report = experiment.run(allowed, &mut |_| {});
        let (queue, slowdown) = (report.counters.tor_to_host, &report.slowdown);
        println!(
            "{name}: {:.2} {:.1}; {:.2}; {:.2}; {:.2}; {:.3}{}",
            queue.mean / 1e3,
            queue.max as f64 / 1e3,
            slowdown.small_half_p99_max,
            slowdown.mean_by_bytes,
            slowdown.medium.p99,
            report.achieved_load(),
            if report.is_steady() { "" } else { " (not steady)" },
        );
    }
    Ok(())
}
