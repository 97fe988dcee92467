//! `apus-lab bench cluster` on a fabric of this machine and on hosts reached by ssh.
//!
//! The runs are far too short for meaningful figures. They show that every run ends with its
//! result, that no process remains, and that failures are reported. Without permission for
//! namespaces, a test prints a message and passes.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use apus_testbed::repeat::ATTEMPTS;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::contract::check;
use crate::harness::{lab, object, skip_reason, text, with_fake};

/// Arguments of the shortest possible benchmark.
pub(crate) const TINY: &str =
    "--nodes 3 --link 20mbit --seconds 0.3 --runs 1 --transports apus,tcp";

/// Runs the benchmark. Returns `None`, with a message, if this machine does not allow a fabric. A
/// starved machine may lose requests; only losses in each of three runs indicate a fault of the
/// benchmark.
fn on_a_fabric(words: &str) -> Option<Output> {
    let run = || {
        let output = cluster(words).output().unwrap();
        allowed(&output).then_some(output)
    };
    let some_lost = |output: &Output| {
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let mut rows = json["rows"].as_array().into_iter().flatten();
        !words.contains("--kill-one") && rows.any(|row| row["errors"].as_u64() > Some(0))
    };
    let mut output = run()?;
    for _ in 1..3 {
        if !some_lost(&output) {
            break;
        }
        output = run()?;
    }
    Some(output)
}

/// Returns whether this machine allows a fabric, according to the output of a command.
fn allowed(output: &Output) -> bool {
    let stderr = text(&output.stderr);
    match skip_reason(&stderr) {
        Some(reason) => eprintln!("SKIPPED: {reason}"),
        None => return true,
    }
    false
}

fn cluster(words: &str) -> Command {
    let mut command = lab();
    command.args(["bench", "cluster"]).args(words.split_whitespace()).stdin(Stdio::null());
    command
}

/// Returns the row of a transport.
pub(crate) fn row<'a>(json: &'a Value, name: &str) -> &'a Value {
    let rows = json["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {json}"))
}

fn notes(json: &Value) -> String {
    let notes = json["notes"].as_array().into_iter().flatten();
    notes.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

#[test]
fn sealed_packets_are_a_transport_of_their_own() {
    let Some(output) = on_a_fabric(&format!("{TINY} --workload 1000 --load 0.3 --sealed --json"))
    else {
        return;
    };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("cluster", &text(&output.stdout)).unwrap();
    let sealed = row(&json, "apus-sealed");
    assert_eq!(sealed["errors"], 0, "{json}");
    assert!(sealed["short_p99"].is_number(), "{json}");
    assert!(json["ratios"]["short_p99 apus-sealed/apus"]["median"].is_number(), "{json}");
}

#[test]
fn a_fabric_gives_one_object_as_promised() {
    for workload in ["1000", "w1"] {
        let words = format!("{TINY} --workload {workload} --json");
        let Some(output) = on_a_fabric(&words) else { return };
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let json = check("cluster", &text(&output.stdout)).unwrap();
        assert_eq!(row(&json, "apus")["errors"], 0, "{json}");
        assert_eq!(row(&json, "apus")["offered_load"], 0.8);
        let config = &json["config"];
        assert_eq!((&config["nodes"], &config["link_mbps"]), (&json!(3), &json!(20.0)));
        assert_eq!((&config["buffer"], &config["loss"]), (&json!(1_000_000), &json!(0.0)));
        let command = config["command"][0].as_str().unwrap();
        assert!(command.contains(" --link 20mbit ") && command.ends_with("--launch local"));
        // The switch has counted both: short messages of apus have higher priorities, TCP uses only
        // the lowest. A starved machine cannot observe the switch in such a short run; the row then
        // has no levels.
        let busy = |name: &str| {
            let levels = row(&json, name).get("levels")?.as_array().unwrap().clone();
            let packets = levels.iter().map(|level| level["packets"].as_u64().unwrap());
            let used = packets.enumerate().filter(|&(_, packets)| packets > 0);
            Some(used.map(|(level, _)| level).collect::<Vec<_>>())
        };
        if let Some(levels) = busy("apus") {
            assert!(levels.last().is_some_and(|&level| level > 4), "{levels:?}");
        }
        assert!(busy("tcp").is_none_or(|levels| levels == [0]), "{json}");
        assert_eq!(text(&output.stderr), "", "no progress is printed without a terminal");
    }
}

#[test]
fn the_kill_of_a_process_is_no_failure_of_the_others() {
    let words = "--nodes 2 --processes 2 --link 20mbit --seconds 3 --runs 1 --workload 1000 --load 0.3 \
                 --transports apus --kill-one --json";
    let Some(output) = on_a_fabric(words) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = object(&output);
    assert_eq!(json["config"]["kill_one"], true);
    assert!(json["config"]["command"][0].as_str().unwrap().contains(" --kill-one "), "{json}");
    for name in ["apus", "apus-apart"] {
        let row = row(&json, name);
        // A starved machine may also lose calls among the surviving hosts, so their losses are not
        // checked.
        let count =
            |figure: &str| row[figure].as_u64().unwrap_or_else(|| panic!("{figure}: {row}"));
        assert!(count("calls_to_killed") > 0 && count("calls_from_killed") > 0, "{row}");
        assert!(count("calls_to_killed_lost") < count("calls_to_killed"), "{row}");
        for prefix in ["", "host_"] {
            for period in ["before_kill", "second_after_kill", "later"] {
                assert!(row[format!("{prefix}short_p99_{period}")].as_f64() > Some(0.0), "{row}");
                assert!(row[format!("{prefix}short_messages")][period].as_u64() > Some(0), "{row}");
            }
        }
        let ratio = &json["ratios"][format!("short_p99 later/before_kill {name}")];
        assert!(ratio["median"].as_f64() > Some(0.0), "{json}");
        // The killed process has no result, but no phase counts as lost.
        assert!(row["phases"]["lost"].as_u64().is_none_or(|lost| lost == 0), "{row}");
    }
}

#[test]
fn the_benchmark_prints_tables_and_writes_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (html, svg, csv) = (path("page.html"), path("charts"), path("w2.csv"));
    let words = format!(
        "{TINY} --workload 500 --transports apus,apus+tcp --param num_priorities=1 --html {} --svg {} --csv {}",
        html.display(),
        svg.display(),
        csv.display()
    );
    let words = words.replacen("--transports apus,tcp ", "", 1);
    let Some(output) = on_a_fabric(&words) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let parts = ["workload 500", "priorities 1", "tcp beside apus", "slowdown by size", "at best"];
    for part in parts.into_iter().chain(["tcp: one connection to each server, TCP_NODELAY, "]) {
        assert!(stdout.contains(part), "{stdout}");
    }
    let page = fs::read_to_string(html).unwrap();
    assert!(
        page.starts_with("<!doctype html>") && page.contains("apus-lab bench cluster"),
        "{page}"
    );
    assert!(fs::read_to_string(svg.join("slowdown-p99.svg")).unwrap().contains("<svg "));
    assert_eq!(fs::read_to_string(csv).unwrap().lines().count(), 1 + 3, "a line for each row");
    let sizes = fs::read_to_string(path("w2-sizes.csv")).unwrap();
    assert!(sizes.starts_with("transport,run,upto,"), "{sizes}");
}

/// Processes with their start times, since ids are reused.
pub(crate) type Processes = BTreeMap<u32, String>;

/// Returns all running descendants of a process.
pub(crate) fn descendants(pid: u32) -> Processes {
    let mut found = Processes::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
                found.extend(start_time(child).map(|time| (child, time)));
                parents.push(child);
            }
        }
    }
    found
}

/// Returns the start time of a process; `None` if it is not running.
pub(crate) fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // A zombie has ended and only waits for its parent.
    (fields[0] != "Z").then(|| fields[19].to_owned())
}

pub(crate) fn is_agent(pid: &u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|&byte| byte == 0).filter(|word| !word.is_empty()).collect();
    let program = words.first().is_some_and(|word| word.ends_with(b"/apus-lab"));
    program && words.last() == Some(&&b"__agent"[..])
}

/// Kills an agent of each of these attempts at a run, counted from 0. An attempt has three agents;
/// the search for the best times has two. Returns all processes that ran then.
fn kill_agents(child: &mut Child, attempts: Range<usize>) -> Processes {
    let mut all = Processes::new();
    let (mut known, mut attempt) = (Vec::new(), 0);
    while attempt < attempts.end && child.try_wait().unwrap().is_none() {
        let running = descendants(child.id());
        let agents: Vec<u32> = running.keys().copied().filter(is_agent).collect();
        if agents.len() == 3 && agents != known {
            if attempts.contains(&attempt) {
                let pid = Pid::from_raw(i32::try_from(agents[2]).unwrap()).unwrap();
                // The agent may just have ended on its own after its run; the test then detects
                // that no run failed.
                let _ = kill_process(pid, Signal::KILL);
                all.extend(running);
            }
            (known, attempt) = (agents, attempt + 1);
        }
        thread::yield_now();
    }
    all
}

/// Runs the benchmark, kills agents of some attempts, and asserts that no process remains. Returns
/// `None`, with a message, if this machine does not allow a fabric.
fn with_killed_agents(words: &str, attempts: Range<usize>) -> Option<Output> {
    let mut child = cluster(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running = kill_agents(&mut child, attempts);
    let output = child.wait_with_output().unwrap();
    if !allowed(&output) {
        return None;
    }
    let count = running.len();
    assert!(count >= 3 + 4, "three agents, a switch and three hosts: {}", text(&output.stderr));
    for (pid, time) in running {
        assert_ne!(start_time(pid), Some(time), "{pid} still runs");
    }
    Some(output)
}

#[test]
fn a_run_whose_node_was_killed_is_repeated() {
    let words = format!("{TINY} --workload 1000 --json");
    let Some(output) = with_killed_agents(&words, 0..1) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("cluster", &text(&output.stdout)).unwrap();
    let notes = notes(&json);
    assert!(notes.contains("apus, run 1: repeated"), "{notes}");
    assert!(notes.contains(": apus on h") || notes.contains("because apus on h"), "{notes}");
    assert!(notes.contains("signal: 9 (SIGKILL)"), "{notes}");
    assert!(row(&json, "apus")["phases"]["repeated"].as_u64() >= Some(1), "{json}");
    assert_eq!((&json["phases"]["measured"], &json["phases"]["lost"]), (&json!(4), &json!(0)));
}

#[test]
fn what_cannot_be_had_is_said_in_its_row_and_the_rest_is_kept() {
    let words = format!("{TINY} --workload 1000 --json").replace("apus,tcp", "apus,tcp,tcp-pool");
    let Some(output) = with_killed_agents(&words, 1..1 + ATTEMPTS) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "no run of tcp succeeded\n");
    let json = object(&output);
    let why = row(&json, "tcp")["missing"].as_str().unwrap();
    assert!(why.starts_with("tcp on h") && why.contains("SIGKILL"), "{why}");
    assert_eq!(
        (&row(&json, "tcp")["phases"]["lost"], &json["phases"]["lost"]),
        (&json!(1), &json!(1))
    );
    assert!(row(&json, "apus")["short_p99"].is_number(), "{json}");
    assert!(json["ratios"]["short_p99 tcp-pool/apus"]["median"].is_number(), "{json}");
    let notes = notes(&json);
    assert!(notes.contains("tcp, run 1: no result after 3 attempts: tcp on h"), "{notes}");
}

#[test]
fn without_apus_the_question_is_not_answered_and_the_others_are_printed() {
    let words = format!("{TINY} --workload 1000 --json");
    let Some(output) = with_killed_agents(&words, 0..ATTEMPTS) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "no run of apus succeeded\n");
    let json = object(&output);
    assert!(row(&json, "tcp")["short_p99"].is_number());
    let notes = notes(&json);
    assert!(notes.contains("apus has no result: none of its 1 runs succeeded"), "{notes}");
}

#[test]
fn a_benchmark_without_any_result_fails_with_the_reason() {
    let words = format!("{TINY} --workload 1000 --json").replacen("apus,tcp", "apus", 1);
    let Some(output) = with_killed_agents(&words, 0..ATTEMPTS) else { return };
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    assert!(stderr.contains("no run succeeded; apus on h"), "{stderr}");
}

#[test]
fn what_a_fabric_lacks_is_reported_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1";
    let path = with_fake(folder.path(), "unshare", refusal);
    let output = cluster(TINY).env("PATH", path).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    assert!(
        stderr.contains("Operation not permitted") && stderr.contains("run it as root"),
        "{stderr}"
    );
    let output = cluster(TINY).env("PATH", folder.path()).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    // Programs in `/sbin` are found even if PATH does not contain it.
    assert!(stderr.contains("is not installed") && stderr.contains("apt install"), "{stderr}");
}

#[test]
fn a_wrong_file_of_sizes_is_refused_with_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sizes.cdf");
    fs::write(&path, "100 0.5\n50 1\n").unwrap();
    let output = cluster(&format!("--workload {}", path.display())).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("'--workload'") && stderr.contains("line 2"), "{stderr}");
}

/// A script in place of ssh: runs the command on this host, as sshd would on another host. A host
/// named `far` does not answer.
pub(crate) const SSH: &str = "while [ \"$1\" != -- ]; do shift; done
[ \"$2\" = far ] && { echo 'ssh: connect to host far port 22: Connection refused' >&2; exit 255; }
shift 2
cd /
SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' exec sh -c \"$*\"";

/// Runs an experiment over ssh in `folder`, with `hosts` as the host file.
pub(crate) fn over_ssh(folder: &Path, experiment: &str, hosts: &str, words: &str) -> Output {
    over_this_ssh(folder, SSH, experiment, hosts, words)
}

/// Runs an experiment as [`over_ssh`] does, with another script in place of ssh.
pub(crate) fn over_this_ssh(
    folder: &Path,
    ssh: &str,
    experiment: &str,
    hosts: &str,
    words: &str,
) -> Output {
    fs::write(folder.join("hosts"), hosts).unwrap();
    lab()
        .args(["bench", experiment, "--launch", "ssh", "--hosts", "hosts"])
        .args(words.split_whitespace())
        .env("PATH", with_fake(folder, "ssh", ssh))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn hosts_reached_by_ssh_give_the_same_object() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = "a bind=127.0.0.1\nb bind=127.0.0.2  # the second\nc bind=127.0.0.3\n";
    let words = "--link 20mbit --seconds 0.3 --runs 1 --workload 1000 --load 0.3 --json \
                 --transports apus,tcp,apus+tcp";
    let output = over_ssh(folder.path(), "cluster", hosts, words);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("cluster", &text(&output.stdout)).unwrap();
    for name in ["apus", "tcp", "apus beside tcp", "tcp beside apus"] {
        let row = row(&json, name);
        assert_eq!(row["errors"], 0, "{row}");
        assert!(row["idle"].is_number(), "each host reports how idle its cores are: {row}");
        assert_eq!(
            row.get("queue_max_kb"),
            None,
            "the counters of their switch are unknown: {row}"
        );
    }
    let config = &json["config"];
    assert_eq!((&config["nodes"], &config["launch"]), (&json!(3), &json!("ssh")));
    assert_eq!((config.get("buffer"), config.get("uplink")), (None, None));
    let command = config["command"][0].as_str().unwrap();
    assert!(command.ends_with(" --launch ssh --hosts hosts"), "{command}");
}

#[test]
fn unusable_hosts_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let result = |hosts: &str, words: &str| {
        let output = over_ssh(folder.path(), "cluster", hosts, &format!("--link 20mbit {words}"));
        (output.status.code(), text(&output.stderr))
    };
    let (code, problem) = result("a\nfar\n", "");
    assert_eq!(code, Some(1));
    assert!(problem.contains("far (line 2 of the host file): ssh: connect"), "{problem}");
    assert!(problem.contains("does sshd run there"), "{problem}");
    let (code, problem) = result("a\nb program=/no/such/apus\n", "");
    assert_eq!(code, Some(1));
    assert!(problem.contains("b (line 2") && problem.contains("set program=PATH"));
    let (code, problem) = result("a\nb\n", "--program /no/such/apus");
    assert_eq!(code, Some(1));
    assert!(problem.contains("a (line 1 of the host file)"), "{problem}");
    let (code, problem) = result("a\nb\n", "--nodes 3");
    assert_eq!(code, Some(2));
    assert!(problem.contains("there are 2 hosts, and 3 are requested"), "{problem}");
    let (code, problem) = result("alone\n", "");
    assert_eq!(code, Some(2));
    assert!(problem.contains("a cluster has two at least"), "{problem}");
}
