//! Situation: the local experiment. The runs are far too short for measurements; they show the
//! participating contenders, the content of a row, and that a contender that cannot carry a size
//! sits out.

use apus::PollMode;
use apus_bench::agent;
use apus_bench::local::{self, LocalOptions};
use apus_testbed::Error;
use apus_testbed::process::Spawner;
use serde_json::{Value, json};

const ALL: [&str; 8] = [
    "apus-local",
    "apus-local-pair",
    "bare",
    "unix",
    "unix-stream",
    "unix-seqpacket",
    "tcp",
    "apus-udp",
];

/// The contenders that carry no large messages.
const SHORT: [&str; 2] = ["bare", "unix-seqpacket"];

/// Runs in threads of this process, and returns the JSON output and the text output.
fn run(change: impl FnOnce(&mut LocalOptions)) -> Result<(Value, String), Error> {
    let mut options = LocalOptions::default();
    let repetition = &mut options.repetition;
    (repetition.seconds, repetition.runs, repetition.poll) = (0.01, 2, PollMode::Block);
    change(&mut options);
    let findings = local::run(&options, &Spawner::Threads(agent::run))?;
    let json = serde_json::from_str(&findings.outcome.json()).expect("one JSON object");
    Ok((json, findings.to_string()))
}

fn rows(json: &Value) -> &[Value] {
    json["rows"].as_array().unwrap()
}

fn names(json: &Value) -> Vec<&str> {
    rows(json).iter().map(|row| row["name"].as_str().unwrap()).collect()
}

/// Whether the figure is present and positive, between its minimum and maximum.
fn has(object: &Value, figure: &str) -> bool {
    let number = |suffix: &str| object[format!("{figure}{suffix}")].as_f64();
    let (Some(least), Some(median), Some(greatest)) = (number("_min"), number(""), number("_max"))
    else {
        assert!(object.get(figure).is_none(), "{figure} of {object}");
        return false;
    };
    assert!(0.0 < least && least <= median && median <= greatest, "{figure} of {object}");
    true
}

/// The values of `key` in a list of objects.
fn keys(list: &Value, key: &str) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|object| object[key].as_u64().unwrap()).collect()
}

#[test]
fn every_contender_has_each_figure_at_each_size_that_it_can_carry() {
    let (json, text) = run(|options| options.sizes = vec![100, 1, 400_000]).unwrap();
    assert_eq!(names(&json), ALL);
    for row in rows(&json) {
        let packets = SHORT.contains(&row["name"].as_str().unwrap());
        assert!(["p50_us", "p99_us", "krps"].iter().all(|figure| has(row, figure)), "{row}");
        assert_eq!(has(row, "gbps"), !packets, "{row}");
        let sizes = if packets { vec![100, 1] } else { vec![100, 1, 400_000] };
        assert_eq!(keys(&row["by_size"], "size"), sizes);
        for at_size in row["by_size"].as_array().unwrap() {
            assert!(["p50_us", "p99_us", "krps"].iter().all(|figure| has(at_size, figure)));
            assert_eq!(has(at_size, "gbps"), at_size["size"] == 400_000, "of large ones");
        }
        assert_eq!(row["by_size"][0]["p50_us"], row["p50_us"], "the first size is the row's");
    }
    for figure in ["p50", "krps", "gbps"] {
        for other in ALL.iter().skip(1) {
            let ratio = &json["ratios"][format!("{figure} apus-local/{other}")];
            let carried = figure != "gbps" || !SHORT.contains(other);
            assert_eq!(ratio["median"].is_number(), carried, "{figure} {other}: {ratio}");
        }
    }
    let notes = json["notes"].to_string();
    assert!(notes.contains("unix-seqpacket sits out: 400000 bytes do not fit"), "{notes}");
    let table = text.lines().filter(|line| line.trim_start().starts_with("400000 ")).count();
    assert_eq!(table, 4, "p50, p99, krps and gbps of that size:\n{text}");
}

#[test]
fn a_result_says_what_was_asked_for() {
    let change = |options: &mut LocalOptions| {
        options.sizes = vec![7];
        options.outstanding = 3;
        options.only = vec!["tcp".to_owned(), "unix".to_owned()];
    };
    let (json, text) = run(change).unwrap();
    assert_eq!(json["experiment"], "local");
    assert_eq!(
        names(&json),
        ["unix", "unix-stream", "unix-seqpacket", "tcp"],
        "in the order of the rows"
    );
    let config = &json["config"];
    assert_eq!((&config["size"], &config["sizes"]), (&json!(7), &json!([7])));
    assert_eq!((&config["outstanding"], &config["large_outstanding"]), (&json!(3), &json!(3)));
    assert_eq!((&config["runs"], &config["poll"]), (&json!(2), &json!("block")));
    assert!(config["settings"]["unix-stream"].as_str().unwrap().contains("SOCK_STREAM"));
    assert!(config["settings"]["tcp"].as_str().unwrap().contains("TCP_NODELAY"));
    assert_eq!(json["ratios"], json!({}), "who is compared with the others takes no part");
    assert!(!has(&rows(&json)[0], "gbps") && !has(&rows(&json)[0], "kops"));
    assert!(!text.contains("by size"), "one size needs no table of its own:\n{text}");
}

/// A single run has one value per kind, so the better kind has the lower time and the higher rate.
#[test]
fn unix_is_the_better_kind_figure_by_figure() {
    let change = |options: &mut LocalOptions| {
        (options.repetition.runs, options.workers, options.clients) = (1, Some(1), Some(1));
        options.only = vec!["unix".to_owned()];
    };
    let (json, _) = run(change).unwrap();
    let [unix, stream, packets] = rows(&json) else { panic!("{json}") };
    let both = |figure: &str| {
        let [stream, packets] = [stream, packets].map(|row| row[figure].as_f64().unwrap());
        (stream.min(packets), stream.max(packets))
    };
    assert_eq!(unix["p50_us"], both("p50_us").0);
    assert_eq!(unix["p99_us"], both("p99_us").0);
    assert_eq!(unix["krps"], both("krps").1);
    assert_eq!(unix["kops"], both("kops").1);
    assert_eq!(unix["gbps"], stream["gbps"], "packets are not large");
    assert_eq!(unix["clients"], stream["clients"], "streams only");
    let notes = json["notes"].to_string();
    assert!(notes.contains("unix is the faster kind") && notes.contains("gbps of unix-stream"));
}

#[test]
fn workers_have_their_own_connections_and_clients_share_a_server() {
    let change = |options: &mut LocalOptions| {
        (options.workers, options.clients) = (Some(3), Some(3));
        options.sizes = vec![10];
    };
    let (json, text) = run(change).unwrap();
    for row in rows(&json) {
        if row["name"] == "bare" {
            assert!(row.get("workers").is_none() && row.get("clients").is_none(), "{row}");
            continue;
        }
        assert!(has(row, "kops"), "{row}");
        assert_eq!(keys(&row["workers"], "n"), [1, 2, 3]);
        let workers = row["workers"].as_array().unwrap();
        assert!(workers.iter().all(|it| has(it, "kops") && has(it, "krps")), "{row}");
        assert_eq!(workers[2]["kops"], row["kops"], "the largest number is the row's");
        let takes_clients =
            !["apus-local-pair", "unix-seqpacket"].contains(&row["name"].as_str().unwrap());
        assert_eq!(row.get("clients").is_some(), takes_clients, "{row}");
        if takes_clients {
            assert_eq!(keys(&row["clients"], "n"), [1, 2, 3]);
            for it in row["clients"].as_array().unwrap() {
                assert!(has(it, "krps") && has(it, "p99_us") && has(it, "least_by_most"), "{it}");
                assert!(it["least_by_most_max"].as_f64().unwrap() <= 1.0, "{it}");
            }
        }
    }
    assert!(json["ratios"]["kops apus-local/unix"]["median"].is_number());
    assert!(text.contains("workers, each in one task") && text.contains("clients of one server"));
}

#[test]
fn whom_no_size_fits_does_not_take_part() {
    let change = |options: &mut LocalOptions| {
        options.sizes = vec![30_000_000];
        options.only = vec!["unix-seqpacket".to_owned()];
    };
    let error = run(change).unwrap_err().to_string();
    assert!(
        error.starts_with("only: no contender is left to measure (unix-seqpacket sits out"),
        "{error}"
    );
}

#[test]
fn wrong_options_are_refused_before_anything_runs() {
    let error = run(|options| options.only = vec!["pipe".to_owned()]).unwrap_err().to_string();
    let takes_part = ALL.join(", ");
    assert_eq!(error, format!("only: `pipe` takes no part in it; these do: {takes_part}"));
    let error = run(|options| options.sizes = vec![0]).unwrap_err().to_string();
    assert_eq!(
        error,
        "size: a message has 1 to 64000000 bytes, as streams have no empty ones; try 100"
    );
}
