//! `apus-lab sim`: one simulation, sweeps split over many processes, and the swarm. The fabrics are
//! small, so that tests are fast.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::contract::check;
use crate::harness::{lab, object, run, text};

/// A sweep of eight points.
const SWEEP: &str = "sim run --topology 2x3x1 --workload w2,20000 --load 0.3,0.6 --messages 300 --warm-up 50 \
                     --transport apus,oracle --quiet --json";

/// Variables that a launcher may have set in the environment of this test.
const LAUNCHERS: [&str; 9] = [
    "SLURM_ARRAY_TASK_ID",
    "SLURM_ARRAY_TASK_MIN",
    "SLURM_ARRAY_TASK_STEP",
    "SLURM_ARRAY_TASK_COUNT",
    "JOB_COMPLETION_INDEX",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
];

/// Returns the sweep with further arguments, in an environment without a launcher.
fn sweep(folder: &Path, words: &str) -> Command {
    let mut command = lab();
    command.args(SWEEP.split_whitespace()).args(words.split_whitespace()).current_dir(folder);
    for name in LAUNCHERS {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn succeed(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// Merges the parts and asserts that the file equals a single process's file, byte by byte.
fn assert_whole(folder: &Path, parts: &[&str]) {
    succeed(sweep(folder, "--out whole.jsonl").spawn().unwrap());
    let merged = |files: &[&str], more: &[&str]| {
        let words = ["sim", "merge", "--json"].iter().chain(files).chain(more);
        lab().args(words).current_dir(folder).output().unwrap()
    };
    let output = merged(parts, &["--out", "merged.jsonl"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("whole.jsonl").lines().count(), 8);
    assert_eq!(read("merged.jsonl"), read("whole.jsonl"));
    assert_eq!(text(&output.stdout), text(&merged(&["whole.jsonl"], &[]).stdout));
}

/// Every second host runs a model of the Linux module.
#[test]
fn a_simulation_may_have_hosts_with_the_linux_module() {
    let words = "sim run --topology 1x4x0 --workload 20000 --load 0.5 --messages 300 --warm-up 50 \
                 --transport apus,dctcp,oracle --peer-model kernel --json";
    let output = run(words.split_whitespace());
    let json = check("sim run", &text(&output.stdout)).unwrap();
    assert_eq!(json["config"]["peer_model"], "kernel");
    assert_eq!(json["config"]["apus"]["profile"], "kernel");
    assert!(json["rows"][0]["messages"].as_u64().unwrap() > 100, "{json}");
}

#[test]
fn a_simulation_prints_one_object_as_promised() {
    let folder = tempfile::tempdir().unwrap();
    let words = "--out points.jsonl --html page.html --svg charts";
    let output = sweep(folder.path(), words).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(object(&output)["rows"].as_array().unwrap().len(), 8);
    assert!(fs::read_to_string(folder.path().join("page.html")).unwrap().contains("<svg "));
    assert!(fs::read_dir(folder.path().join("charts")).unwrap().count() > 8);

    let words = "sim run --topology 2x3x1 --workload 500 --load 0.5 --messages 3000 --transport \
                 apus,dctcp,sird,oracle --json";
    let output = run(words.split_whitespace());
    assert_eq!(text(&output.stderr), "", "no progress is printed without a terminal");
    let json = check("sim run", &text(&output.stdout)).unwrap();
    assert_eq!(json["rows"][0]["steady"], true);
    assert_eq!(json["config"]["topology"], "2x3x1");
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let figures = |words: &str| {
        let output =
            run(format!("sim run --topology 2x3x1 --messages 500 --json {words}").split(' '));
        let mut json = object(&output);
        for row in json["rows"].as_array_mut().unwrap() {
            row.as_object_mut().unwrap().retain(|name, _| !name.starts_with("packets_per_second"));
        }
        json["rows"].clone()
    };
    let one = figures("--workload w3 --runs 4 --jobs 1");
    assert_eq!(one, figures("--workload w3 --runs 4 --jobs 4"));
    assert_ne!(one, figures("--workload w3 --runs 4 --seed 2"));
}

/// The offered load exceeds the link rate, so no steady state exists.
#[test]
fn a_load_that_cannot_be_sustained_has_no_slowdowns() {
    let words = "sim run --topology 1x4x0 --workload 100000 --load 1 --param max_overcommit=1 --messages 3000 \
                 --warm-up 100";
    let output = run(words.split_whitespace().chain(["--json"]));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = object(&output);
    let row = &json["rows"][0];
    assert_eq!((&row["steady"], &row["mean_by_bytes"]), (&false.into(), &serde_json::Value::Null));
    assert!(row["achieved_load"].as_f64().unwrap() < 1.0);
    assert!(json["notes"][0].as_str().unwrap().contains("no steady state"));
    let table = text(&run(words.split_whitespace()).stdout);
    assert!(table.contains("no steady state") && !table.contains("slowdown by size"), "{table}");
}

#[test]
fn finished_points_are_read_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let first = sweep(folder.path(), "--out points.jsonl").output().unwrap();
    let second = sweep(folder.path(), "--out points.jsonl").output().unwrap();
    let timed = |output| object(output)["rows"][0].get("packets_per_second").is_some();
    assert_eq!((timed(&first), timed(&second)), (true, false), "nothing ran the second time");
    let other = sweep(folder.path(), "--out points.jsonl --switch-delay 251ns").output().unwrap();
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("another sweep"), "{}", text(&other.stderr));
}

#[test]
fn an_array_of_slurm_becomes_the_result_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let task = |id: u32| {
        sweep(folder.path(), "--out part-{shard}.jsonl")
            .env("SLURM_ARRAY_TASK_ID", id.to_string())
            .env("SLURM_ARRAY_TASK_MIN", "1")
            .env("SLURM_ARRAY_TASK_COUNT", "3")
            .spawn()
            .unwrap()
    };
    [task(1), task(2), task(3)].into_iter().for_each(succeed);
    assert_whole(folder.path(), &["part-2.jsonl", "part-0.jsonl", "part-1.jsonl"]);
}

#[test]
fn an_indexed_job_of_kubernetes_becomes_the_result_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let pod = |index: u32| {
        sweep(folder.path(), "--out part-{shard}.jsonl --shard auto/2")
            .env("JOB_COMPLETION_INDEX", index.to_string())
            .spawn()
            .unwrap()
    };
    [pod(0), pod(1)].into_iter().for_each(succeed);
    assert_whole(folder.path(), &["part-0.jsonl", "part-1.jsonl"]);
}

/// Returns the path of a program, if it is installed.
fn installed(name: &str) -> Option<PathBuf> {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", name]).output().ok()?;
    let path = text(&found.stdout).trim().to_owned();
    (found.status.success() && !path.is_empty()).then(|| path.into())
}

/// Without an MPI launcher the test itself starts the processes, with a launcher's environment.
#[test]
fn ranks_of_mpi_become_the_result_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!("{SWEEP} --out part-{{shard}}.jsonl");
    if let Some(launcher) = installed("mpirun") {
        let output = Command::new(launcher)
            .args(["-n", "2", env!("CARGO_BIN_EXE_apus-lab")])
            .args(words.split_whitespace())
            // Open MPI needs these to run as root and on few cores; other launchers ignore them.
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    } else {
        eprintln!(
            "SKIPPED: mpirun is missing; processes in its environment take the place of its ranks"
        );
        let rank = |rank: u32| {
            sweep(folder.path(), "--out part-{shard}.jsonl")
                .env("OMPI_COMM_WORLD_RANK", rank.to_string())
                .env("OMPI_COMM_WORLD_SIZE", "2")
                .spawn()
                .unwrap()
        };
        [rank(0), rank(1)].into_iter().for_each(succeed);
    }
    assert_whole(folder.path(), &["part-0.jsonl", "part-1.jsonl"]);
}

/// Without GNU parallel a shell runs the jobs.
#[test]
fn jobs_of_gnu_parallel_become_the_result_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let job =
        format!("{} {SWEEP} --shard {{}}/3 --out part-{{}}.jsonl", env!("CARGO_BIN_EXE_apus-lab"));
    // Another program of this name does not support `:::`.
    let gnu = installed("parallel").filter(|path| {
        let version = Command::new(path).arg("--version").output();
        version.is_ok_and(|output| text(&output.stdout).starts_with("GNU parallel"))
    });
    let mut command = if let Some(parallel) = gnu {
        let mut command = Command::new(parallel);
        command.args(["--will-cite", "--jobs", "2", &job, ":::", "0", "1", "2"]);
        command
    } else {
        eprintln!("SKIPPED: GNU parallel is missing; a shell takes its place");
        let all: Vec<String> = (0..3).map(|i| job.replace("{}", &i.to_string())).collect();
        let mut command = Command::new("sh");
        command.args(["-ec", &all.join("\n")]);
        command
    };
    let output = command.current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_whole(folder.path(), &["part-0.jsonl", "part-1.jsonl", "part-2.jsonl"]);
}

#[test]
fn a_swarm_prints_one_object_as_promised() {
    let output = run(["sim", "check", "--seeds", "1", "--from", "4", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let object = object(&output);
    assert_eq!(object["experiment"], "sim check");
    assert_eq!((&object["seeds"], &object["violations"]), (&1.into(), &0.into()));
    for name in ["packets", "rpcs"] {
        assert!(object[name].as_u64().is_some_and(|count| count > 0), "{name}: {object}");
    }
    assert_eq!(object["found"].as_array().map(Vec::len), Some(0));
}
