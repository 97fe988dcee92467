//! `apus-lab bench sweep` on the loopback interface, with a script in place of ssh. The runs are
//! far too short for meaningful figures.

use std::fs;

use serde_json::{Value, json};

use crate::cluster::{SSH, over_ssh, over_this_ssh, row};
use crate::harness::{object, text};

const HOSTS: &str = "a bind=127.0.0.1\nb bind=127.0.0.2\n";

const TINY: &str = "--link 20mbit --seconds 0.2 --runs 1 --workload 1000 --transports apus,tcp";

fn names(json: &Value) -> Vec<&str> {
    let rows = json["rows"].as_array().unwrap();
    rows.iter().map(|row| row["name"].as_str().unwrap()).collect()
}

#[test]
fn each_value_has_a_row_and_nothing_is_measured_twice() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!(
        "{TINY} --param load=0.2,0.3 --param max_overcommit=1,8 --param client_max=100 --out sweep.jsonl \
         --csv sweep.csv --html sweep.html --svg charts --json"
    );
    let output = over_ssh(folder.path(), "sweep", HOSTS, &words);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let json = object(&output);
    let expected = [
        "apus load=0.2",
        "tcp load=0.2",
        "apus load=0.3",
        "tcp load=0.3",
        "apus max_overcommit=1",
        "tcp max_overcommit=1",
        "apus max_overcommit=8",
        "tcp max_overcommit=8",
    ];
    assert_eq!((json["experiment"].as_str(), names(&json)), (Some("sweep"), expected.to_vec()));
    assert_eq!(row(&json, "apus load=0.3")["offered_load"], 0.3);
    assert_eq!(row(&json, "apus load=0.3")["errors"], 0);
    let config = &json["config"];
    assert_eq!(config["sweep"]["load"], json!({"values": ["0.2", "0.3"], "otherwise": "0.8"}));
    assert_eq!((&config["client_max"], config.get("load")), (&json!(100), None));
    assert!(json["ratios"]["short_p99 tcp/apus max_overcommit=8"]["median"].is_number());
    let [one, other] = [1, 8].map(|value| {
        let mut row = row(&json, &format!("tcp max_overcommit={value}")).clone();
        row.as_object_mut().unwrap().remove("name");
        row
    });
    assert_eq!(one, other, "measured once");
    let notes = json["notes"].to_string();
    assert!(notes.contains("tcp was measured once: max_overcommit is a parameter of apus"));
    // The base of the slowdowns, two loads, two values of max_overcommit.
    let lines = || fs::read_to_string(folder.path().join("sweep.jsonl")).unwrap();
    let kept = lines();
    assert_eq!(kept.lines().count(), 1 + 2 + 2, "{kept}");
    let csv = fs::read_to_string(folder.path().join("sweep.csv")).unwrap();
    assert!(csv.starts_with("parameter,value,transport,run,"), "{csv}");
    assert!(fs::read_to_string(folder.path().join("sweep.html")).unwrap().contains("<svg "));
    assert!(folder.path().join("charts/max-overcommit-short-p99.svg").exists());

    // A second run finds every point in the file.
    let again = object(&over_ssh(folder.path(), "sweep", HOSTS, &words));
    assert_eq!((again["rows"].clone(), lines()), (json["rows"].clone(), kept.clone()));
    // With half of the file, the rest is measured again.
    let half: Vec<&str> = kept.lines().take(3).collect();
    fs::write(folder.path().join("sweep.jsonl"), half.join("\n") + "\n").unwrap();
    let again = object(&over_ssh(folder.path(), "sweep", HOSTS, &words));
    assert_eq!(row(&again, "apus load=0.2"), row(&json, "apus load=0.2"));
    assert_eq!(lines().lines().count(), 5);
    // Another sweep refuses the file.
    let other = words.replacen("load=0.2,0.3", "load=0.2,0.4", 1);
    let output = over_ssh(folder.path(), "sweep", HOSTS, &other);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("'--out'") && stderr.contains("another sweep"), "{stderr}");
}

#[test]
fn processes_and_receive_batches_can_be_varied() {
    let folder = tempfile::tempdir().unwrap();
    let words = format!(
        "{TINY} --load 0.3 --param processes=1,2 --param receive_batch=1,32 --out sweep.jsonl --json"
    );
    let output = over_ssh(folder.path(), "sweep", HOSTS, &words);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let json = object(&output);
    for name in ["apus processes=2", "tcp processes=2", "apus receive_batch=1"] {
        let row = row(&json, name);
        assert_eq!(row["errors"], 0, "{row}");
        assert!(row["messages"].as_u64().unwrap() > 100, "{row}");
    }
    // The base of the slowdowns and three kinds of runs: processes=1 and receive_batch=32 are the
    // defaults, and thus use the same runs.
    let kept = fs::read_to_string(folder.path().join("sweep.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 1 + 3, "{kept}");
    assert_eq!(json["config"]["sweep"]["receive_batch"]["otherwise"], "32");
}

#[test]
fn a_link_without_a_result_does_not_affect_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sweep.jsonl");
    // ssh fails once the base and the runs of one link are saved.
    let failing = format!(
        "[ -e '{0}' ] && [ $(wc -l < '{0}') -ge 2 ] && {{ echo 'ssh: no route' >&2; exit 255; }}\n{SSH}",
        out.display()
    );
    let words = TINY.replacen("--link 20mbit ", "--param link=20mbit,40mbit --link 20mbit ", 1);
    let words = words.replacen("apus,tcp", "apus", 1);
    let words = format!("{words} --load 0.3 --json --out {}", out.display());
    let output = over_this_ssh(folder.path(), &failing, "sweep", HOSTS, &words);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("no run of apus link=40mbit succeeded"), "{stderr}");
    let json = object(&output);
    assert_eq!(names(&json), ["apus link=20mbit", "apus link=40mbit"]);
    let why = row(&json, "apus link=40mbit")["missing"].as_str().unwrap();
    assert_eq!(why, "the best times are not known");
    assert_eq!(row(&json, "apus link=20mbit")["errors"], 0);
    let notes = json["notes"].to_string();
    assert!(
        notes.contains("link=40mbit: nothing was measured, because") && notes.contains("no route")
    );
}
