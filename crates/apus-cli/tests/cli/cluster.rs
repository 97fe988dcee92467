//! Situation: somebody asks what short messages suffer when the network is busy: on this machine, and on
//! hosts that ssh reaches. These runs are far too short to measure anything; they show that everything comes to
//! its result, that nothing of it stays, and that what fails is said. A network of namespaces that this machine
//! does not allow is skipped, visibly.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::contract::check;
use crate::service::{apus, excuse, object, text, with_fake};

/// A benchmark that takes as little time as it can.
pub(crate) const TINY: &str =
    "--nodes 3 --link 20mbit --seconds 0.3 --runs 1 --transports apus,tcp";

/// Runs a command that succeeds wherever a fabric can be made; `None` where it cannot.
fn on_a_fabric(words: &str) -> Option<Output> {
    let output = cluster(words).output().unwrap();
    allowed(&output).then_some(output)
}

/// Whether this machine allows a fabric, from what a command has said.
fn allowed(output: &Output) -> bool {
    let said = text(&output.stderr);
    match excuse(&said) {
        Some(excuse) => eprintln!("SKIPPED: {excuse}"),
        None => return true,
    }
    false
}

fn cluster(words: &str) -> Command {
    let mut command = apus();
    command.args(["bench", "cluster"]).args(words.split_whitespace()).stdin(Stdio::null());
    command
}

/// The row of a transport.
pub(crate) fn row<'a>(json: &'a Value, name: &str) -> &'a Value {
    let rows = json["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {json}"))
}

fn notes(json: &Value) -> String {
    let notes = json["notes"].as_array().into_iter().flatten();
    notes.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
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
        // The switch has seen both: short messages of apus go before others, TCP knows no levels.
        let busy = |name: &str| {
            let levels = row(&json, name)["levels"].as_array().unwrap().clone();
            let packets = levels.iter().map(|level| level["packets"].as_u64().unwrap());
            packets
                .enumerate()
                .filter(|&(_, packets)| packets > 0)
                .map(|(level, _)| level)
                .collect::<Vec<_>>()
        };
        assert!(busy("apus").last().is_some_and(|&level| level > 4), "{:?}", busy("apus"));
        assert_eq!(busy("tcp"), [0]);
        assert_eq!(text(&output.stderr), "", "nobody watches, so there is no progress to show");
    }
}

#[test]
fn people_get_tables_and_files() {
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
    let said = text(&output.stdout);
    let parts = ["workload 500", "priorities 1", "tcp beside apus", "slowdown by size", "at best"];
    for part in parts.into_iter().chain(["tcp: one connection to each server, TCP_NODELAY, "]) {
        assert!(said.contains(part), "{said}");
    }
    let page = fs::read_to_string(html).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("apus bench cluster"), "{page}");
    assert!(fs::read_to_string(svg.join("slowdown-p99.svg")).unwrap().contains("<svg "));
    assert_eq!(fs::read_to_string(csv).unwrap().lines().count(), 1 + 3, "a line for each row");
    let sizes = fs::read_to_string(path("w2-sizes.csv")).unwrap();
    assert!(sizes.starts_with("transport,run,upto,"), "{sizes}");
}

/// A process, and when it began: numbers are used again.
pub(crate) type Known = BTreeMap<u32, String>;

/// Everything that a process has started, directly or not, and that still runs.
pub(crate) fn descendants(pid: u32) -> Known {
    let mut known = Known::new();
    let mut left = vec![pid];
    while let Some(parent) = left.pop() {
        let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
                known.extend(began(child).map(|began| (child, began)));
                left.push(child);
            }
        }
    }
    known
}

/// When a process began; `None` if there is none.
pub(crate) fn began(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    // A zombie has ended; who began it will see to it.
    (fields[0] != "Z").then(|| fields[19].to_owned())
}

pub(crate) fn is_agent(pid: &u32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|&byte| byte == 0).filter(|word| !word.is_empty()).collect();
    let program = words.first().is_some_and(|word| word.ends_with(b"/apus"));
    program && words.last() == Some(&&b"__agent"[..])
}

/// Waits for the agents of the first run, of which there are three, and kills one of them. Gives everything that
/// ran then; `None` if the benchmark has ended before.
fn kill_an_agent(child: &mut Child) -> Option<Known> {
    while child.try_wait().unwrap().is_none() {
        let all = descendants(child.id());
        let agents: Vec<u32> = all.keys().copied().filter(is_agent).collect();
        if let [_, _, last] = agents[..] {
            let pid = Pid::from_raw(i32::try_from(last).unwrap()).unwrap();
            // It may end by itself just now, but not before its run is over, which is what the test notices.
            let _ = kill_process(pid, Signal::KILL);
            return Some(all);
        }
        thread::yield_now();
    }
    None
}

/// Runs it, kills one agent of the first run, and looks whether anything stays.
fn with_a_death(words: &str) -> Option<Output> {
    let mut child = cluster(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let known = kill_an_agent(&mut child);
    let output = child.wait_with_output().unwrap();
    if !allowed(&output) {
        return None;
    }
    let known = known.unwrap_or_else(|| panic!("{}", text(&output.stderr)));
    assert!(known.len() >= 3 + 4, "three agents, a switch and three hosts: {known:?}");
    for (pid, then) in known {
        assert_ne!(began(pid), Some(then), "{pid} still runs");
    }
    Some(output)
}

#[test]
fn a_node_that_dies_is_named_and_the_other_runs_are_kept() {
    let words = format!("{TINY} --workload 1000 --runs 2 --json");
    let Some(output) = with_a_death(&words.replacen("--runs 1 ", "", 1)) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("cluster", &text(&output.stdout)).unwrap();
    let notes = notes(&json);
    assert!(notes.contains("run 1 of apus failed: apus on h"), "{notes}");
    assert!(notes.contains("signal: 9 (SIGKILL)"), "{notes}");
    assert!(notes.contains("apus has the results of 1 runs instead of 2"), "{notes}");
}

#[test]
fn a_transport_without_a_result_is_a_failure_and_the_others_are_shown() {
    let words = format!("{TINY} --workload 1000 --json");
    let Some(output) = with_a_death(&words) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "no run of apus succeeded\n");
    let json = object(&output);
    assert_eq!(json["rows"].as_array().unwrap().len(), 1, "{json}");
    assert!(row(&json, "tcp")["short_p99"].is_number());
    let notes = notes(&json);
    assert!(notes.contains("apus has no result: none of its 1 runs succeeded"), "{notes}");
}

#[test]
fn nothing_at_all_is_a_failure_with_its_reason() {
    let words = format!("{TINY} --workload 1000 --json");
    let Some(output) = with_a_death(&words.replacen("apus,tcp", "apus", 1)) else { return };
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    assert!(said.contains("no run succeeded; run 1 of apus failed: apus on h"), "{said}");
}

#[test]
fn what_a_fabric_lacks_is_said_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1";
    let path = with_fake(folder.path(), "unshare", refusal);
    let output = cluster(TINY).env("PATH", path).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    assert!(said.contains("Operation not permitted") && said.contains("run it as root"), "{said}");
    let output = cluster(TINY).env("PATH", folder.path()).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    // Administrators' programs are found where they are when PATH does not name the place.
    assert!(said.contains("is not installed") && said.contains("apt install"), "{said}");
}

#[test]
fn a_file_of_sizes_that_is_none_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sizes.cdf");
    fs::write(&path, "100 0.5\n50 1\n").unwrap();
    let output = cluster(&format!("--workload {}", path.display())).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("'--workload'") && said.contains("line 2"), "{said}");
}

/// Stands in for ssh: runs what it is told here, as sshd would run it there. A host that is called `far` does not
/// answer.
pub(crate) const SSH: &str = "while [ \"$1\" != -- ]; do shift; done
[ \"$2\" = far ] && { echo 'ssh: connect to host far port 22: Connection refused' >&2; exit 255; }
shift 2
cd /
SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22' exec sh -c \"$*\"";

/// An experiment over ssh, in a folder in which `hosts` is the host file.
pub(crate) fn over_ssh(folder: &Path, experiment: &str, hosts: &str, words: &str) -> Output {
    over_this_ssh(folder, SSH, experiment, hosts, words)
}

/// The same with another stand-in for ssh.
pub(crate) fn over_this_ssh(
    folder: &Path,
    ssh: &str,
    experiment: &str,
    hosts: &str,
    words: &str,
) -> Output {
    fs::write(folder.join("hosts"), hosts).unwrap();
    apus()
        .args(["bench", experiment, "--launch", "ssh", "--hosts", "hosts"])
        .args(words.split_whitespace())
        .env("PATH", with_fake(folder, "ssh", ssh))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[test]
fn hosts_that_ssh_reaches_give_the_same_object() {
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
        assert!(row["idle"].is_number(), "each host tells how idle its cores are: {row}");
        assert_eq!(row.get("queue_max_kb"), None, "nobody knows their switch: {row}");
    }
    let config = &json["config"];
    assert_eq!((&config["nodes"], &config["launch"]), (&json!(3), &json!("ssh")));
    assert_eq!((config.get("buffer"), config.get("uplink")), (None, None));
    let command = config["command"][0].as_str().unwrap();
    assert!(command.ends_with(" --launch ssh --hosts hosts"), "{command}");
}

#[test]
fn hosts_that_cannot_take_part_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = |hosts: &str, words: &str| {
        let output = over_ssh(folder.path(), "cluster", hosts, &format!("--link 20mbit {words}"));
        (output.status.code(), text(&output.stderr))
    };
    let (code, problem) = said("a\nfar\n", "");
    assert_eq!(code, Some(1));
    assert!(problem.contains("far (line 2 of the host file): ssh: connect"), "{problem}");
    assert!(problem.contains("does sshd run there"), "{problem}");
    let (code, problem) = said("a\nb program=/no/such/apus\n", "");
    assert_eq!(code, Some(1));
    assert!(problem.contains("b (line 2") && problem.contains("say where it is with program="));
    let (code, problem) = said("a\nb\n", "--program /no/such/apus");
    assert_eq!(code, Some(1));
    assert!(problem.contains("a (line 1 of the host file)"), "{problem}");
    let (code, problem) = said("a\nb\n", "--nodes 3");
    assert_eq!(code, Some(2));
    assert!(problem.contains("there are 2 hosts, and 3 are asked for"), "{problem}");
    let (code, problem) = said("alone\n", "");
    assert_eq!(code, Some(2));
    assert!(problem.contains("a cluster has two at least"), "{problem}");
}
