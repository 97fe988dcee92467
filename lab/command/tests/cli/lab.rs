//! `apus-lab lab`: known failures of network software and their remedies.
//!
//! The runs are far too short for meaningful figures. They show that every experiment ends with its
//! result, and that packets really cross the router. If this machine does not allow an experiment,
//! a test prints a message and passes.

use std::fs;
use std::process::{Output, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::cluster::{descendants, is_agent, start_time};
use crate::contract::check;
use crate::harness::{lab, object, run, skip_reason, text};

/// Arguments of the shortest run, at rates that every machine sustains.
const TINY: &str = "--rates 2,5 --seconds 0.05 --runs 1";

/// Runs the experiment. Returns `None`, with a message, if this machine does not allow it.
fn livelock(words: &str) -> Option<Output> {
    let mut command = lab();
    command.args(["lab", "livelock"]).args(words.split_whitespace()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let stderr = text(&output.stderr);
    if let Some(reason) = skip_reason(&stderr) {
        eprintln!("SKIPPED: {reason}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    Some(output)
}

#[test]
fn the_livelock_experiment_gives_one_object_as_promised() {
    let modes = "interrupt,poll-no-quota,poll-quota,poll-feedback,apus";
    let Some(output) = livelock(&format!("{TINY} --modes {modes} --json")) else { return };
    let json = check("livelock", &text(&output.stdout)).unwrap();
    for row in json["rows"].as_array().unwrap() {
        let curve = row["curve"].as_array().unwrap();
        assert_eq!(curve.len(), 2, "{row}");
        for point in curve {
            for field in ["offered_kpps", "forwarded_kpps", "user_share"] {
                assert!(point[field].as_f64().is_some(), "{field}: {point}");
            }
            assert_accounted(row, point);
        }
    }
}

/// Asserts that every received packet was sent, or dropped for a counted reason.
fn assert_accounted(row: &Value, point: &Value) {
    let count = |name: &str| point["counters"][name].as_u64().expect("a counter");
    let dropped = ["malformed", "checksum", "expired", "no_route", "refused", "not_sent"];
    let full = ["ip_queue_full", "output_queue_full", "filter_queue_full"];
    let known: u64 = dropped.iter().chain(&full).map(|name| count(name)).sum();
    let received = count("received");
    assert!(received > 0 && received <= point["packets"].as_u64().unwrap(), "{row}");
    assert!(count("sent") + known <= received, "{row}");
    assert_eq!(["malformed", "checksum", "expired", "no_route"].map(count), [0; 4], "{row}");
}

#[test]
fn trains_a_monitor_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let (html, svg) = (folder.path().join("page.html"), folder.path().join("svg"));
    let words = format!(
        "{TINY} --modes share=50,apus --filter without --train 100 --monitor --html {} --svg {}",
        html.display(),
        svg.display()
    );
    let Some(output) = livelock(&words) else { return };
    let stdout = text(&output.stdout);
    for expected in ["share=50: ", "apus: ", "The monitor saw", "mlfrr kpps", "offered"] {
        assert!(stdout.contains(expected), "{expected}: {stdout}");
    }
    let page = fs::read_to_string(html).unwrap();
    assert!(page.contains("<svg") && page.contains("<li>share=50: "), "{page}");
    for name in ["livelock.svg", "livelock-share.svg", "livelock-left.svg"] {
        assert!(svg.join(name).exists(), "{name}");
    }
}

#[test]
fn json_is_the_only_output() {
    let Some(output) = livelock(&format!("{TINY} --modes apus --filter with --json")) else {
        return;
    };
    let json = object(&output);
    assert_eq!(json["rows"][0]["name"], "apus+filter");
}

#[test]
fn the_contention_experiment_gives_one_object_as_promised() {
    let words = "lab contention --workers 2 --seconds 0.1 --runs 2 --json";
    let output = run(words.split(' '));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("lab contention", &text(&output.stdout)).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).expect(name);
    for tasks in ["", " threads"] {
        for contender in ["global-lock", "fine-grained", "unix"] {
            let row = row(&format!("{contender}{tasks}"));
            for (n, point) in (1..=2).zip(row["workers"].as_array().unwrap()) {
                assert_eq!(point["n"], n, "{row}");
                assert!(point["kops"].as_f64().unwrap() > 0.0, "{row}");
                // The waiting times of the kernel's locks cannot be measured.
                assert_eq!(point["wait_ns"].as_f64().is_some(), contender != "unix", "{row}");
            }
            let model = row.get("model");
            assert_eq!(model.is_some(), contender != "unix", "{row}");
            let Some(model) = model else { continue };
            assert!(model["kind"].as_str().unwrap().contains("not measured"), "{model}");
            let last = model["points"].as_array().unwrap().last().unwrap();
            assert!(last["n"].as_u64().unwrap() >= 96 && last["kops"].as_f64().unwrap() > 0.0);
        }
        assert!(json["ratios"][format!("fine-grained/global-lock{tasks}")]["median"].is_number());
    }
    assert_eq!(row("published: FreeBSD, one list lock (1 and 96)")["most_kops"], 1693.6);
    assert_eq!(json["comparisons"].as_array().unwrap().len(), 4, "two and one, of both kinds");
}

#[test]
fn contention_prints_tables_and_writes_pages() {
    let folder = tempfile::tempdir().unwrap();
    let (html, svg) = (folder.path().join("page.html"), folder.path().join("svg"));
    let output = lab()
        .args("lab contention --workers 1 --as threads --seconds 0.02 --runs 1 --html".split(' '))
        .arg(&html)
        .arg("--svg")
        .arg(&svg)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    for expected in [
        "thousands of operations per second, by the number of threads",
        "a model, not measured",
        "published: FreeBSD",
        "unix, threads: ",
        "one run shows no difference",
    ] {
        assert!(stdout.contains(expected), "{expected}: {stdout}");
    }
    let page = fs::read_to_string(html).unwrap();
    assert!(page.contains("<svg") && page.contains("<li>unix, threads: "), "{page}");
    assert!(svg.join("contention-threads.svg").exists());
}

/// Arguments of a run with few exchanges, so that even exchanges that wait for a timer end soon.
const FEW: &str = "lab small-writes --exchanges 10 --seconds 0.1 --runs 2 --poll block";

#[test]
fn the_small_writes_experiment_explains_every_variant_from_its_packets() {
    let output = run(format!("{FEW} --json").split(' '));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("small-writes", &text(&output.stdout)).unwrap();
    let notes = json["notes"].to_string();
    assert!(notes.contains("times are per thousand exchanges"), "{notes}");
    let rows = json["rows"].as_array().unwrap();
    let explained =
        |name: &str| &rows.iter().find(|row| row["name"] == name).expect(name)["explanation"];
    if explained("tcp whole")["from"] != "packets" {
        eprintln!("SKIPPED: {notes}");
        assert!(notes.contains("could not be captured"), "the reason is a note");
        return;
    }
    // On a busy machine some exchanges are repeated or split, but not half of them.
    let command = |name: &str| explained(name)["command_packets"].as_f64().unwrap().round();
    for whole in
        ["tcp whole", "tcp receive split", "tcp split+more", "tcp split+cork", "tcp gather"]
    {
        assert_eq!(command(whole), 1.0, "{}", explained(whole));
    }
    for split in ["tcp split", "tcp both split", "tcp split+nodelay", "tcp split+quickack"] {
        assert_eq!(command(split), 2.0, "{}", explained(split));
    }
    for apus in ["apus whole", "apus split", "apus receive split", "apus both split"] {
        assert_eq!(command(apus), 1.0, "{}", explained(apus));
        assert_eq!(explained(apus)["nagle"], false);
    }
    for held in ["tcp split", "tcp both split"] {
        let explained = explained(held);
        assert_eq!(explained["nagle"], true, "{explained}");
        let words = explained["words"].as_str().unwrap();
        assert!(words.contains("Nagle's algorithm holds a small segment"), "{words}");
        assert!(explained["first_to_ack_us"].as_f64().unwrap() > 0.0, "{explained}");
    }
    assert_eq!(rows.last().unwrap()["name"], "published 2008: tcp both split");
}

#[test]
fn small_writes_prints_tables_and_explanations_and_writes_charts() {
    let folder = tempfile::tempdir().unwrap();
    let (html, svg) = (folder.path().join("page.html"), folder.path().join("svg"));
    let output = lab()
        .args(FEW.split(' '))
        .args(["--only", "tcp whole,tcp gather,apus split", "--html"])
        .arg(&html)
        .arg("--svg")
        .arg(&svg)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    for expected in ["ms per 1000", "tcp gather/whole", "published 2008: tcp whole"] {
        assert!(stdout.contains(expected), "{expected}: {stdout}");
    }
    assert!(!stdout.contains("tcp split"), "{stdout}");
    let page = fs::read_to_string(html).unwrap();
    assert!(page.contains("<svg") && page.contains("<li>tcp gather (one sendmsg"), "{page}");
    assert!(svg.join("small-writes.svg").exists());
    if stdout.contains("could not be captured") {
        eprintln!("SKIPPED: {stdout}");
        return;
    }
    assert!(stdout.contains("leave in one segment"), "{stdout}");
    assert!(svg.join("small-writes-cures.svg").exists());
}

/// Without the programs that create a namespace the packets cannot be captured.
#[test]
fn without_packets_small_writes_are_explained_by_counters_of_the_kernel() {
    let output = lab()
        .args(FEW.split(' '))
        .args(["--only", "tcp whole,tcp split", "--json"])
        .env("PATH", "/nowhere")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let json = object(&output);
    let notes = json["notes"].to_string();
    assert!(
        notes.contains("the packets could not be captured: ") && notes.contains("nsenter"),
        "{notes}"
    );
    for row in json["rows"].as_array().unwrap().iter().filter(|row| row["published"] != true) {
        let explanation = &row["explanation"];
        assert_eq!(explanation["from"], "counters", "{row}");
        let words = explanation["words"].as_str().unwrap();
        assert!(words.contains("packets were not captured"), "{words}");
        assert_eq!(words.contains("the kernel counted"), explanation["packets"].is_number());
    }
}

/// The killed worker may hold the lock that the other worker waits for.
#[test]
fn a_killed_worker_is_reported_the_other_one_ends_and_both_are_measured_again() {
    let words = "lab contention --workers 2 --as processes --seconds 1 --runs 1 --json";
    let mut command = lab();
    command.args(words.split(' ')).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running = loop {
        assert!(child.try_wait().unwrap().is_none(), "it ended before two workers were seen");
        let all = descendants(child.id());
        let agents: Vec<u32> = all.keys().copied().filter(is_agent).collect();
        if let [_, last] = agents[..] {
            let pid = Pid::from_raw(i32::try_from(last).unwrap()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
            break all;
        }
        thread::yield_now();
    };
    let output = child.wait_with_output().unwrap();
    let json = object(&output);
    let notes = json["notes"].to_string();
    assert!(notes.contains(" processes, run 1: repeated") && notes.contains(" worker "), "{notes}");
    assert!(notes.contains("signal: 9 (SIGKILL)"), "{notes}");
    assert_eq!((&json["phases"]["measured"], &json["phases"]["lost"]), (&json!(6), &json!(0)));
    for (pid, time) in running {
        assert_ne!(start_time(pid), Some(time), "{pid} still runs");
    }
}
