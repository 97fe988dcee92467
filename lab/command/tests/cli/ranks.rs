//! `apus-lab bench cluster --launch env`, started on each host by a launcher. The first process
//! runs the benchmark and prints its result; the others take part without output.

use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

use crate::cluster::row;
use crate::contract::check;
use crate::harness::{lab, text};

/// Variables possibly set by a launcher in the environment of this test.
const LAUNCHERS: [&str; 10] = [
    "APUS_RANK",
    "APUS_NODES",
    "APUS_COORDINATOR",
    "APUS_TOKEN",
    "SLURM_PROCID",
    "JOB_COMPLETION_INDEX",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_NAMESPACE",
    "SLURM_JOB_ID",
];

/// A job of several processes on this host.
struct Job {
    size: u32,
    port: u16,
}

impl Job {
    fn new(size: u32) -> Self {
        // The port was free just now, and no other process has its number.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { size, port }
    }

    /// Starts one process of the job, as a launcher would.
    fn rank(&self, rank: u32, words: &str) -> Child {
        let mut command = without_launcher(words);
        command
            .env("APUS_RANK", rank.to_string())
            .env("APUS_NODES", self.size.to_string())
            .env("APUS_COORDINATOR", format!("127.0.0.1:{}", self.port))
            .env("APUS_TOKEN", format!("test of port {}", self.port))
            .env("APUS_BIND", format!("127.0.0.{}", rank + 1))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    }
}

fn without_launcher(words: &str) -> Command {
    let mut command = lab();
    command.args(["bench", "cluster", "--launch", "env"]).args(words.split_whitespace());
    for name in LAUNCHERS {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// Returns exit status, standard output and standard error.
fn end(output: &Output) -> (Option<i32>, String, String) {
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn ranks_measure_together_and_the_first_one_prints() {
    let job = Job::new(3);
    let words = "--link 20mbit --seconds 0.3 --runs 1 --workload 1000 --load 0.3 --json \
                 --transports apus,tcp,apus+tcp";
    let ranks: Vec<Child> = (0..3).rev().map(|rank| job.rank(rank, words)).collect();
    let mut ends = ranks.into_iter().map(|child| end(&child.wait_with_output().unwrap()));
    let (others, first) = (ends.by_ref().take(2).collect::<Vec<_>>(), ends.next().unwrap());
    for other in others {
        assert_eq!(other, (Some(0), String::new(), String::new()));
    }
    assert_eq!((first.0, first.2.as_str()), (Some(0), ""));
    let json = check("cluster", &first.1).unwrap();
    assert_eq!(json["config"]["launch"], "env");
    for name in ["apus", "tcp", "apus beside tcp", "tcp beside apus"] {
        assert_eq!(row(&json, name)["errors"], 0, "{json}");
    }
}

#[test]
fn without_a_launcher_the_error_names_the_variables_to_set() {
    let error = |variables: &[(&str, &str)]| {
        let mut command = without_launcher("--link 20mbit");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let (code, stdout, stderr) = end(&output);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
        assert!(stderr.contains("'--launch env'"), "{stderr}");
        stderr
    };
    assert!(error(&[]).contains("set APUS_RANK and APUS_NODES"));
    assert!(error(&[("APUS_RANK", "0")]).contains("set APUS_NODES"));
    assert!(error(&[("APUS_RANK", "0"), ("APUS_NODES", "2")]).contains("set APUS_TOKEN"));
    assert!(
        error(&[("APUS_RANK", "0"), ("APUS_NODES", "1"), ("APUS_TOKEN", "x")])
            .contains("two at least")
    );
}

#[test]
fn a_rank_reports_wrong_arguments_by_itself() {
    let job = Job::new(2);
    let (code, stdout, stderr) =
        end(&job.rank(1, "--link 20mbit --load 7").wait_with_output().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("'--load'"), "before it contacts the others: {stderr}");
}
