//! The contract of `--json`: required content of each experiment's object.

use serde_json::Value;

/// Required content of an experiment's object.
struct Contract {
    experiment: &'static str,
    /// Names of required rows. The object may have others.
    rows: &'static [&'static str],
    /// Fields of each of these rows.
    figures: &'static [&'static str],
    ratios: &'static [&'static str],
}

/// Fields of a transport under load, in the demo and on the cluster.
const SLOWDOWNS: &[&str] = &[
    "short_p50",
    "short_p99",
    "all_p50",
    "all_p99",
    "mean_by_bytes",
    "offered_load",
    "achieved_load",
    "messages",
    "errors",
    "by_size",
];

const CONTRACTS: [Contract; 19] = [
    Contract {
        experiment: "rtt",
        rows: &["apus", "udp", "udp-connected", "tcp"],
        figures: &["p50_us", "p99_us", "p999_us", "samples"],
        ratios: &["apus/udp", "apus/tcp"],
    },
    Contract {
        experiment: "throughput",
        rows: &["apus", "udp-gso", "tcp"],
        figures: &["gbps", "cpu_ns_per_kb"],
        ratios: &["apus/tcp", "apus/udp-gso"],
    },
    Contract {
        experiment: "rate",
        rows: &["apus", "tcp", "tcp-batched"],
        figures: &["krps", "p99_us"],
        ratios: &["apus/tcp", "apus/tcp-batched"],
    },
    Contract {
        experiment: "handoff",
        rows: &["self-polling", "receivers=1", "receivers=2", "receivers=3", "receivers=4"],
        figures: &["messages", "handoffs", "handoffs_per_message", "spurious_wakeups"],
        ratios: &[],
    },
    Contract {
        experiment: "local",
        rows: &["apus-local", "apus-local-pair", "unix", "unix-stream", "tcp", "apus-udp"],
        figures: &["p50_us", "p99_us", "krps", "gbps"],
        // `bare` and packets of a unix socket carry no large messages.
        ratios: &[
            "p50 apus-local/unix",
            "krps apus-local/unix",
            "gbps apus-local/unix",
            "p50 apus-local/bare",
            "krps apus-local/bare",
        ],
    },
    Contract {
        experiment: "endpoints",
        rows: &["apus"],
        figures: &[
            "create_us",
            "first_call_us",
            "later_call_us",
            "kb_created",
            "kb_at_rest",
            "kb_per_shard",
            "background_threads",
            "idle_cpu_percent",
            "server_bytes_per_peer",
        ],
        ratios: &[],
    },
    Contract {
        experiment: "overload",
        // Rows of TCP have no latency if TCP answers no request in time.
        rows: &["load=0.75", "load=4"],
        figures: &[
            "offered_krps",
            "goodput_krps",
            "p50_us",
            "p99_us",
            "refused",
            "failed",
            "late",
            "dropped",
            "application_share",
        ],
        ratios: &["4x/peak", "p99 4x/0.75x", "wakeup apus/tcp"],
    },
    Contract {
        experiment: "load",
        rows: &["apus", "tcp", "tcp-per-request"],
        figures: &[
            "capacity_krps",
            "completed",
            "completed_min",
            "short_p50",
            "short_p99",
            "short_p50_us",
            "short_p99_us",
            "own_load",
            "messages",
            "errors",
            "by_size",
        ],
        ratios: &[
            "short_p99 tcp/apus",
            "capacity apus/tcp",
            "short_p99 tcp-per-request/apus",
            "capacity apus/tcp-per-request",
        ],
    },
    Contract {
        experiment: "lab handoff",
        rows: &[
            "publish-first receivers=1",
            "publish-first receivers=2",
            "publish-first receivers=4",
            "enqueue-first receivers=1",
            "enqueue-first receivers=2",
            "enqueue-first receivers=4",
            "apus receivers=1",
            "apus receivers=2",
            "apus receivers=4",
            "apus self-polling",
        ],
        figures: &["messages", "handoffs", "handoffs_per_message", "spurious_wakeups"],
        ratios: &[],
    },
    Contract {
        experiment: "sim run",
        rows: &["apus", "dctcp"],
        figures: &[
            "small_half_p99_max",
            "mean_by_messages",
            "mean_by_bytes",
            "largest_bin_p99",
            "tor_host_queue_kb_mean",
            "tor_host_queue_kb_max",
            "achieved_load",
            "messages",
            "packets",
            "packets_per_second",
            "by_size",
        ],
        ratios: &[],
    },
    Contract {
        experiment: "cluster",
        rows: &["apus", "tcp"],
        figures: SLOWDOWNS,
        ratios: &["short_p99 tcp/apus", "short_p50 tcp/apus"],
    },
    Contract {
        experiment: "livelock",
        rows: &["interrupt", "poll-no-quota", "poll-quota", "poll-feedback", "apus"],
        figures: &["mlfrr_kpps", "peak_kpps", "at_max_kpps"],
        ratios: &[
            "interrupt@max/peak",
            "poll-no-quota@max/peak",
            "poll-quota@max/peak",
            "poll-feedback@max/peak",
            "apus@max/peak",
        ],
    },
    Contract {
        experiment: "lab contention",
        rows: &["global-lock", "fine-grained", "unix"],
        figures: &["one_kops", "most_kops", "scaling"],
        ratios: &["fine-grained/global-lock", "fine-grained/unix", "fine-grained@max/one"],
    },
    Contract {
        experiment: "small-writes",
        rows: &[
            "tcp whole",
            "tcp split",
            "tcp receive split",
            "tcp both split",
            "tcp split+nodelay",
            "tcp split+more",
            "tcp split+cork",
            "tcp split+quickack",
            "tcp gather",
            "apus whole",
            "apus split",
            "apus receive split",
            "apus both split",
        ],
        figures: &["ms_per_1000", "p50_us", "p99_us", "over_30_ms", "exchanges"],
        ratios: &["tcp split/whole", "tcp gather/whole", "apus split/whole", "p50 tcp split/whole"],
    },
    Contract {
        experiment: "hostile",
        rows: &["none", "malformed", "forged", "unknown"],
        // Rows without answered requests have no latencies.
        figures: &["offered_krps", "answered_share", "failed", "attack_kpps", "ns_per_packet"],
        ratios: &["ns_per_packet forged/malformed"],
    },
    Contract {
        experiment: "soak",
        rows: &["udp", "memory"],
        figures: &[
            "calls",
            "answered",
            "failed",
            "wrong_bytes",
            "never_ended",
            "executed_twice",
            "untrue",
            "faults",
            "seconds",
        ],
        ratios: &[],
    },
    Contract {
        experiment: "demo fabric",
        rows: &["apus", "tcp", "tcp-per-request"],
        figures: SLOWDOWNS,
        ratios: &[
            "short_p99 tcp/apus",
            "short_p50 tcp/apus",
            "short_p99 tcp-per-request/apus",
            "short_p50 tcp-per-request/apus",
        ],
    },
    Contract {
        experiment: "demo simulator",
        rows: &["apus", "dctcp"],
        figures: SLOWDOWNS,
        ratios: &["short_p99 dctcp/apus", "short_p50 dctcp/apus"],
    },
    Contract {
        experiment: "demo loopback",
        rows: LOOPBACK_ROWS,
        figures: LOOPBACK_FIGURES,
        ratios: LOOPBACK_RATIOS,
    },
];

/// Rows of the demo over loopback, as its result or in addition to it.
const LOOPBACK_ROWS: &[&str] = &["apus", "tcp"];
const LOOPBACK_FIGURES: &[&str] = &["p50_us", "p99_us", "krps"];
const LOOPBACK_RATIOS: &[&str] = &["p50_us apus/tcp", "krps apus/tcp"];

/// Parses the text and checks that it is one JSON object that satisfies the experiment's contract.
///
/// # Errors
///
/// The text violates the contract; the message contains the reason.
pub(crate) fn check(experiment: &str, text: &str) -> Result<Value, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    // The demo has a contract for each path.
    let name = match json["path"].as_str() {
        Some(path) if experiment == "demo" => format!("demo {path}"),
        _ => experiment.to_owned(),
    };
    let contract = CONTRACTS.iter().find(|contract| contract.experiment == name);
    let contract = contract.ok_or_else(|| format!("{experiment} has no contract"))?;
    if json["experiment"] != experiment {
        return Err(format!("another experiment: {}", json["experiment"]));
    }
    check_head(&json, experiment)?;
    check_figures(&json, contract.rows, contract.figures, contract.ratios)?;
    if experiment == "demo" && json["path"] != "fabric" {
        check_figures(&json["loopback"], LOOPBACK_ROWS, LOOPBACK_FIGURES, LOOPBACK_RATIOS)?;
    }
    let rows = json["rows"].as_array().into_iter().flatten();
    let required = rows.filter(|row| contract.rows.iter().any(|name| row["name"] == *name));
    if let Some(path) = required.into_iter().find_map(null_path) {
        return Err(format!("rows{path} is null: a number was not finite"));
    }
    Ok(json)
}

/// Checks that an object has these figures in each of these rows, and these ratios.
fn check_figures(
    object: &Value,
    rows: &[&str],
    figures: &[&str],
    ratios: &[&str],
) -> Result<(), String> {
    for name in rows {
        let rows = object["rows"].as_array().ok_or("no rows")?;
        let row = rows.iter().find(|row| row["name"] == *name);
        let row = row.ok_or_else(|| format!("no row `{name}`"))?;
        figures.iter().try_for_each(|figure| check_number(row, figure))?;
    }
    for ratio in ratios {
        let found = &object["ratios"][ratio];
        ["median", "min", "max"].iter().try_for_each(|part| check_number(found, part))?;
    }
    Ok(())
}

/// Checks the fields common to every experiment.
fn check_head(json: &Value, experiment: &str) -> Result<(), String> {
    for name in ["version", "commit"] {
        json[name].as_str().ok_or_else(|| format!("no {name}"))?;
    }
    check_number(&json["machine"], "cpus")?;
    let config: &[&str] = match experiment {
        // A simulation ends with its messages.
        "sim run" => &["messages", "runs", "seed"],
        // It sends requests in sequence and uses no randomness.
        "lab handoff" => &["messages", "runs"],
        _ => &["seconds", "runs", "seed"],
    };
    config.iter().try_for_each(|name| check_number(&json["config"], name))
}

/// Checks that `name` is a finite number that is not negative, or a list of groups with such
/// numbers.
fn check_number(object: &Value, name: &str) -> Result<(), String> {
    let value = &object[name];
    if let Some(groups) = value.as_array().filter(|groups| !groups.is_empty()) {
        let numbers = ["upto", "count", "p50", "p99"];
        let each = groups.iter().flat_map(|group| numbers.map(|name| check_number(group, name)));
        return each.collect();
    }
    let good = value.as_f64().is_some_and(|number| number.is_finite() && number >= 0.0);
    if good { Ok(()) } else { Err(format!("{name} is {value} in {object}")) }
}

/// Returns the path of a null in `value`; infinity becomes null in JSON.
fn null_path(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Array(values) => values
            .iter()
            .enumerate()
            .find_map(|(index, value)| Some(format!("[{index}]{}", null_path(value)?))),
        Value::Object(map) => {
            map.iter().find_map(|(name, value)| Some(format!(".{name}{}", null_path(value)?)))
        }
        _ => None,
    }
}
