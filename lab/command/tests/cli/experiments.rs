//! Experiments of `apus-lab bench` and `apus-lab lab handoff` with their real processes.
//!
//! The runs are far too short for meaningful figures. They show that the JSON satisfies its
//! contract.

use apus_bench::contest::CONTESTS;

use crate::contract::check;
use crate::harness::{run, text};

#[test]
fn every_bench_prints_one_object_as_promised() {
    for contest in CONTESTS {
        let name = contest.name;
        let output = run(["bench", name, "--seconds", "0.2", "--runs", "1", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        let json = check(name, &text(&output.stdout)).unwrap();
        assert_eq!(json["config"]["runs"], 1);
        assert_eq!(json["config"]["seconds"], 0.2);
        assert_eq!(text(&output.stderr), "", "no progress is printed without a terminal");
    }
}

/// Each worker and each client is a separate process; together they outnumber the cores.
#[test]
fn local_prints_one_object_as_promised() {
    // Long enough for each process to run, even if they share the cores with other programs.
    let words = "bench local --seconds 0.2 --runs 1 --workers 2 --clients 2 --json";
    let output = run(words.split(' '));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("local", &text(&output.stdout)).unwrap();
    for row in json["rows"].as_array().unwrap() {
        let list = |name: &str| row[name].as_array().cloned().unwrap_or_default();
        // A bare exchange has one client, and spins.
        let workers = if row["name"] == "bare" { &[][..] } else { &[1, 2][..] };
        assert!(list("workers").iter().map(|it| &it["n"]).eq(workers), "{row}");
        let clients = list("clients");
        assert!(clients.is_empty() || clients.len() == 2, "{row}");
        let shares = clients.iter().map(|it| it["least_by_most"].as_f64().unwrap());
        assert!(shares.into_iter().all(|share| share > 0.0 && share <= 1.0), "{row}");
    }
}

#[test]
fn endpoints_prints_one_object_as_promised() {
    let output = run("bench endpoints --count 5 --seconds 0.1 --runs 1 --json".split(' '));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("endpoints", &text(&output.stdout)).unwrap();
    let row = &json["rows"][0];
    for figure in ["create_us", "first_call_us", "later_call_us", "background_threads"] {
        assert!(row[figure].as_f64().unwrap() > 0.0, "{figure}: {row}");
    }
}

#[test]
fn endpoints_of_several_shards_are_measured() {
    let words = "bench endpoints --count 3 --shards 2 --seconds 0.1 --runs 1 --json";
    let output = run(words.split(' '));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("endpoints", &text(&output.stdout)).unwrap();
    let figure = |name: &str| json["rows"][0][name].as_f64().unwrap();
    assert_eq!(json["config"]["shards"], 2);
    assert_eq!(figure("background_threads"), 1.0);
    let (endpoint, shard) = (figure("kb_at_rest"), figure("kb_per_shard"));
    assert!((endpoint / shard - 2.0).abs() < 0.01, "{endpoint} {shard}");
}

#[test]
fn overload_prints_one_object_as_promised() {
    let words = "bench overload --loads 0.75,4 --seconds 0.5 --patience 2000 --runs 1 --json";
    let output = run(words.split(' '));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("overload", &text(&output.stdout)).unwrap();
    let row = |name: &str| {
        json["rows"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone()
    };
    for name in ["load=0.75", "load=4"] {
        let counters = [
            "wait_none",
            "wait_polled",
            "wait_slept",
            "handoffs",
            "spurious_wakeups",
            "quota_exhaustions",
            "feedback_stops",
        ];
        for counter in counters {
            assert!(row(name)["counters"][counter].as_u64().is_some(), "{counter}: {}", row(name));
        }
        assert_eq!(row(name)["counters"]["spurious_wakeups"], 0, "{}", row(name));
    }
    for name in ["tcp load=0.75", "tcp load=4"] {
        for figure in ["offered_krps", "goodput_krps", "late", "dropped", "application_share"] {
            assert!(row(name)[figure].as_f64().is_some(), "{figure}: {}", row(name));
        }
        assert_eq!(row(name)["refused"], 0, "TCP refuses nothing");
    }
    for name in ["load=0.75", "load=4", "tcp load=0.75", "tcp load=4"] {
        assert_eq!(row(name)["failed"], 0, "{}", row(name));
    }
    assert!(row("load=4")["offered_krps"].as_f64() > row("load=0.75")["offered_krps"].as_f64());
    for name in ["idle", "tcp idle"] {
        assert!(row(name)["wakeup_us"].as_f64().unwrap() > 0.0, "{name}");
        assert!(row(name)["idle_cpu_percent"].as_f64().is_some(), "{name}");
    }
}

#[test]
fn load_prints_one_object_as_promised() {
    let output = run("bench load --rate 1000 --seconds 0.1 --runs 1 --json".split(' '));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("load", &text(&output.stdout)).unwrap();
    assert_eq!(json["config"]["path"], "loopback");
    let apus = &json["rows"][0];
    for figure in
        ["resent_share", "capacity_resent_share", "needless_resends", "datagrams_overflowed"]
    {
        assert!(apus[figure].as_f64().is_some(), "{figure}: {apus}");
    }
    for side in ["client", "server"] {
        assert!(apus["counters"][side]["data_bytes"].as_u64() > Some(0), "{side}: {apus}");
    }
    assert!(json["rows"][1].get("resent_share").is_none(), "TCP does not count it");
}

#[test]
fn a_load_with_a_stalled_server_shows_the_recovery() {
    let words =
        "bench load --load 0.2 --stall 20ms --hold 2 --only tcp --seconds 0.4 --runs 1 --json";
    let output = run(words.split(' '));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(
        (&json["config"]["stall_ms"], &json["config"]["capacity_of"]),
        (&20.0.into(), &"tcp".into())
    );
    let row = &json["rows"][0];
    // On a busy machine recovery may not happen; the figures are then null.
    for figure in ["before_p50_us", "recovery_ms", "recovery_ms_max", "recovered_runs"] {
        assert!(row.get(figure).is_some(), "{figure}: {row}");
    }
    assert!(row["recovery_bound_ms"].as_f64() > Some(100.0), "{row}");
    assert_eq!(row["recovery_ms_runs"].as_array().unwrap().len(), 1, "{row}");
    assert_eq!(row["hold_by_second"][0].as_array().unwrap().len(), 2, "{row}");
    assert!(row["hold_worst_over_median"].as_f64().is_some(), "{row}");
}

#[test]
fn the_table_contains_the_selected_contenders() {
    let words = "bench rtt --seconds 0.2 --runs 1 --size 500 --only udp,tcp --poll block --seed 3";
    let output = run(words.split(' '));
    let table = text(&output.stdout);
    let config = "size 500, outstanding 1, seconds 0.2, runs 1, seed 3, poll block";
    assert!(table.contains(config), "{table}");
    let row = |name: &str| table.lines().any(|line| line.trim_start().starts_with(name));
    assert!(row("udp ") && row("tcp ") && !row("udp-connected"), "{table}");
}

/// Tests the check itself.
#[test]
fn a_broken_contract_is_detected() {
    let good = run(["bench", "rate", "--seconds", "0.2", "--runs", "1", "--json"]);
    let good = text(&good.stdout);
    check("rate", &good).unwrap();
    let broken = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        check("rate", &good.replace(from, to)).unwrap_err()
    };
    assert!(broken("\"krps\":", "\"kprs\":").contains("krps"));
    assert!(broken("\"name\": \"tcp\"", "\"name\": \"tpc\"").contains("`tcp`"));
    assert!(
        broken("\"name\": \"tcp-batched\",", "\"name\": \"tcp-batched\", \"x\": null,")
            .contains("x is null")
    );
    assert!(check("rtt", &good).unwrap_err().contains("another experiment"));
    assert!(check("rate", &(good.clone() + &good)).unwrap_err().contains("no JSON"));
}

/// The number of handoffs per message of apus is exact, however short the run
/// (docs/reference/papers.md, *Double handoff*).
#[test]
fn apus_hands_each_message_off_once() {
    let output = run("lab handoff --messages 500 --runs 1 --json".split(' '));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let json = check("lab handoff", &text(&output.stdout)).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 10);
    for row in rows {
        assert_eq!(row["messages"], 500, "{row}");
        let name = row["name"].as_str().unwrap();
        if !name.starts_with("publish-first") {
            assert_eq!(row["spurious_wakeups"], 0, "{row}");
        }
        if name.starts_with("apus receivers") {
            // A receiver that calls after its message has arrived needs no handoff.
            assert!(row["handoffs"].as_u64().unwrap() <= 500, "{row}");
        }
        if name == "apus self-polling" {
            // A handoff occurs only if the receiver was delayed and the background poller polled
            // for it. While it leads, the background poller may receive several messages, if the
            // receiver is delayed again before it waits.
            let count = |name: &str| row[name].as_u64().unwrap();
            assert!(count("handoffs") <= 500, "{row}");
            assert!(count("handoffs") == 0 || count("keeper_turns") > 0, "{row}");
        }
    }
}
