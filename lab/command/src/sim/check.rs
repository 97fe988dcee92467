//! `apus-lab sim check`: swarm testing of the protocol in simulated fabrics.

use std::num::NonZero;
use std::thread;
use std::time::Instant;

use apus_report::progress::Progress;
use apus_report::result::Outcome;
use apus_swarm::{PeerModel as Peers, SeedFailure, Swarm, SwarmSummary, ViolationKind};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Check the promises of the protocol under random faults (swarm testing)
///
/// Each seed draws parameters, a small fabric, a workload and faults: packets are lost, duplicated,
/// reordered, delayed or corrupted, and hosts are cut off, paused or killed. In some, a hostile
/// host forges packets, replays them, and floods the others. Checkers observe everything that
/// crosses the API and the wire. When the faults are over, every call must end, new calls must
/// succeed, and no state may be left.
///
/// A broken promise is printed with what was drawn, what was expected and seen, and what happened
/// before; the last line is the command that replays it. The same seed gives the same run on any
/// machine.
#[derive(Debug, Args)]
#[command(after_long_help = statuses_and_examples(), after_help = EXAMPLES)]
pub(crate) struct CheckArguments {
    /// Number of seeds: 1 to 1000000000
    #[arg(long, value_name = "NUMBER", default_value = "100",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    seeds: u64,
    /// First seed; the others follow it: 0 to 1000000000000000000
    #[arg(long, value_name = "SEED", default_value = "0",
          value_parser = clap::value_parser!(u64).range(0..=1_000_000_000_000_000_000))]
    from: u64,
    /// Number of seeds that run at the same time, each on its own thread [default: number of cores]
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<NonZero<usize>>,
    /// Implementation on the hosts: `apus` runs apus on all; `kernel` runs a model of the Linux
    /// module on some, and apus in the kernel profile on the others; `hostile` runs apus on all,
    /// and one host attacks the others; `sealed` runs apus on all and seals every packet, with a
    /// host on the path that repeats, changes, replays and forges; `divided` runs apus on all, and
    /// each host has an endpoint with shards, or several processes; `drawn` is `hostile`, `sealed`,
    /// `kernel` and `divided` for about a tenth of the seeds each, and `apus` for the rest
    #[arg(long, value_name = "MODEL", default_value = "drawn")]
    peer_model: PeerModel,
    /// Short for `--peer-model hostile`: one host attacks the others in every seed
    #[arg(long, conflicts_with = "peer_model")]
    hostile: bool,
    /// Short for `--peer-model sealed`: every packet is sealed, and a host is on the path
    #[arg(long, conflicts_with_all = ["peer_model", "hostile"])]
    sealed: bool,
    /// Check the file service in every seed as well: clients, a server and its store, with crashes
    /// and partitions of their own
    #[arg(long)]
    fs: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Conditions in every seed.
#[derive(Clone, Copy, Debug)]
struct Asked {
    peer_model: PeerModel,
    fs: bool,
}

/// The software on the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PeerModel {
    Drawn,
    Apus,
    Kernel,
    Hostile,
    Sealed,
    Divided,
}

impl PeerModel {
    const fn peers(self) -> Peers {
        match self {
            Self::Drawn => Peers::Random,
            Self::Apus => Peers::Apus,
            Self::Kernel => Peers::Kernel,
            Self::Hostile => Peers::Hostile,
            Self::Sealed => Peers::Sealed,
            Self::Divided => Peers::Divided,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Drawn => "drawn",
            Self::Apus => "apus",
            Self::Kernel => "kernel",
            Self::Hostile => "hostile",
            Self::Sealed => "sealed",
            Self::Divided => "divided",
        }
    }
}

const EXAMPLES: &str = "Examples:
  apus-lab sim check --seeds 1000
  apus-lab sim check --seeds 1 --from 42
  apus-lab sim check --seeds 200 --jobs 2 --json
  apus-lab sim check --seeds 500 --peer-model kernel
  apus-lab sim check --seeds 100 --hostile
  apus-lab sim check --seeds 100 --sealed
  apus-lab sim check --seeds 100 --peer-model divided
  apus-lab sim check --seeds 1000 --fs";

/// Returns the meanings of the exit statuses, and examples.
fn statuses_and_examples() -> String {
    let mut text =
        "Exit status:\n  0   no promise was broken\n  1   the check could not run\n  2   wrong \
                    arguments\n"
            .to_owned();
    for kind in ViolationKind::ALL {
        text += &format!("  {:<3} broken: {}: {}\n", kind.exit_status(), kind, kind.promise());
    }
    text += "If several promises were broken, the status is that of the first one in order of seeds.\n\n";
    text + EXAMPLES
}

/// Runs the seeds and prints their findings.
///
/// # Errors
///
/// [`Failure::Found`] if a promise was broken.
pub(crate) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    let CheckArguments { seeds, from, jobs, peer_model, hostile, sealed, fs, json } = *arguments;
    let peer_model = match (hostile, sealed) {
        (true, _) => PeerModel::Hostile,
        (_, true) => PeerModel::Sealed,
        _ => peer_model,
    };
    let asked = Asked { peer_model, fs };
    let cores = thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let jobs = jobs.unwrap_or(cores);
    let swarm = Swarm { seeds: from..from + seeds, peers: peer_model.peers(), files: fs, jobs };
    let began = Instant::now();
    let progress = Progress::of(usize::try_from(seeds).unwrap_or(usize::MAX));
    let (mut packets, mut found) = (0, 0);
    let summary = swarm.run(|_, result| {
        packets += result.totals.packets;
        found += u32::from(result.failure.is_some());
        progress.step(&format!("{packets} packets, {found} violations"));
    });
    drop(progress);
    if json {
        output::line(&json_text(&summary, from, jobs.get(), asked))?;
    } else {
        output::write(text(&summary, began.elapsed().as_secs_f64(), asked))?;
    }
    match summary.failures.first() {
        Some(first) => {
            // Printed as the last line of the terminal, also with `--json`.
            let last = replay(first, asked);
            if json {
                output::note(&last);
            } else {
                output::line(&last)?;
            }
            Err(Failure::Found(first.violation.kind.exit_status()))
        }
        None => Ok(()),
    }
}

/// Returns the replay command of a finding.
fn replay(finding: &SeedFailure, asked: Asked) -> String {
    let files = if asked.fs { " --fs" } else { "" };
    let peers = match asked.peer_model {
        PeerModel::Drawn => String::new(),
        other => format!(" --peer-model {}", other.name()),
    };
    format!("apus-lab sim check --seeds 1 --from {}{peers}{files}", finding.seed)
}

/// Returns the findings and the totals as text.
fn text(summary: &SwarmSummary, seconds: f64, asked: Asked) -> String {
    let mut text = String::new();
    for finding in &summary.failures {
        text += &format!("{finding}  replay     {}\n\n", replay(finding, asked));
    }
    let tally = &summary.totals;
    let files = match asked.fs {
        true => format!("{} operations on files, ", tally.file_operations),
        false => String::new(),
    };
    text + &format!(
        "{} seeds, {} packets, {} RPCs, {files}{} violations, {seconds:.1} s\n",
        summary.seeds,
        tally.packets,
        tally.rpcs,
        summary.failures.len()
    )
}

/// Returns the findings and the totals as JSON.
fn json_text(summary: &SwarmSummary, from: u64, jobs: usize, asked: Asked) -> String {
    let mut config = Map::new();
    config.insert("seeds".to_owned(), json!(summary.seeds));
    config.insert("from".to_owned(), json!(from));
    config.insert("jobs".to_owned(), json!(jobs));
    config.insert("peer_model".to_owned(), json!(asked.peer_model.name()));
    config.insert("fs".to_owned(), json!(asked.fs));
    let outcome = Outcome::new("sim check", config);
    let mut object: Value =
        serde_json::from_str(&outcome.json()).expect("an outcome is a JSON object");
    let faults = &summary.totals.faults;
    object["seeds"] = json!(summary.seeds);
    object["violations"] = json!(summary.failures.len());
    object["packets"] = json!(summary.totals.packets);
    object["datagrams"] = json!(summary.totals.datagrams);
    object["hostile_packets"] = json!(summary.totals.hostile_packets);
    object["rpcs"] = json!(summary.totals.rpcs);
    object["socket_overflows"] = json!(summary.totals.socket_overflows);
    object["file_operations"] = json!(summary.totals.file_operations);
    object["faults"] = json!({
        "lost": faults.lost,
        "lost_in_bursts": faults.lost_in_bursts,
        "duplicated": faults.duplicated,
        "reordered": faults.reordered,
        "held_up": faults.held_up,
        "very_late": faults.very_late,
        "caught": faults.caught,
        "corrupted": faults.corrupted,
        "cut_off": faults.cut_off,
        "at_dead_host": faults.at_dead_host,
        "at_paused_host": faults.at_paused_host,
    });
    object["found"] = summary.failures.iter().map(|finding| found(finding, asked)).collect();
    serde_json::to_string_pretty(&object).expect("maps with text keys")
}

fn found(finding: &SeedFailure, asked: Asked) -> Value {
    let violation = &finding.violation;
    json!({
        "seed": finding.seed,
        "kind": violation.kind.name(),
        "exit_status": violation.kind.exit_status(),
        "expected": violation.expected,
        "seen": violation.observed,
        "calls": violation.calls,
        "at_ns": finding.at,
        "drawn": finding.scenario.lines().map(str::trim).collect::<Vec<_>>(),
        "trace": finding.trace,
        "replay": replay(finding, asked),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_explains_every_status() {
        let text = statuses_and_examples();
        for kind in ViolationKind::ALL {
            assert!(
                text.contains(&format!("  {:<3} broken: {kind}", kind.exit_status())),
                "{text}"
            );
        }
    }

    #[test]
    fn the_json_contains_what_the_contract_names() {
        let jobs = NonZero::<usize>::MIN;
        let swarm = Swarm { seeds: 0..0, peers: Peers::Random, files: true, jobs };
        let asked = Asked { peer_model: PeerModel::Drawn, fs: true };
        let json: Value =
            serde_json::from_str(&json_text(&swarm.run(|_, _| {}), 7, 1, asked)).unwrap();
        for name in ["seeds", "violations", "packets", "rpcs", "file_operations"] {
            assert_eq!(json[name], 0, "{name}");
        }
        assert_eq!(json["experiment"], "sim check");
        assert_eq!(json["config"]["from"], 7);
    }
}
