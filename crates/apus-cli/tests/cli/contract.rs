//! What does the JSON of an experiment have to hold?

use serde_json::Value;

/// What is promised about an experiment.
struct Promise {
    experiment: &'static str,
    /// Names of its rows. Further rows are welcome.
    rows: &'static [&'static str],
    /// Fields of each row.
    figures: &'static [&'static str],
    ratios: &'static [&'static str],
}

/// Fields of a transport under load, be it in the demo or on the cluster.
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

const PROMISES: [Promise; 13] = [
    Promise {
        experiment: "rtt",
        rows: &["apus", "udp", "udp-connected", "tcp"],
        figures: &["p50_us", "p99_us", "p999_us", "samples"],
        ratios: &["apus/udp", "apus/tcp"],
    },
    Promise {
        experiment: "throughput",
        rows: &["apus", "udp-gso", "tcp"],
        figures: &["gbps", "cpu_ns_per_kb"],
        ratios: &["apus/tcp", "apus/udp-gso"],
    },
    Promise {
        experiment: "rate",
        rows: &["apus", "tcp", "tcp-batched"],
        figures: &["krps", "p99_us"],
        ratios: &["apus/tcp", "apus/tcp-batched"],
    },
    Promise {
        experiment: "handoff",
        rows: &["self-polling", "receivers=1", "receivers=2", "receivers=3", "receivers=4"],
        figures: &["messages", "handoffs", "handoffs_per_message", "spurious_wakeups"],
        ratios: &[],
    },
    Promise {
        experiment: "local",
        rows: &["apus-local", "apus-local-pair", "unix", "unix-stream", "tcp", "apus-udp"],
        figures: &["p50_us", "p99_us", "krps", "gbps"],
        ratios: &["p50 apus-local/unix", "krps apus-local/unix", "gbps apus-local/unix"],
    },
    Promise {
        experiment: "overload",
        // Those of TCP have no latency where it answers nothing in time.
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
    Promise {
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
    Promise {
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
    Promise {
        experiment: "cluster",
        rows: &["apus", "tcp"],
        figures: SLOWDOWNS,
        ratios: &["short_p99 tcp/apus", "short_p50 tcp/apus"],
    },
    Promise {
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
    Promise {
        experiment: "lab contention",
        rows: &["global-lock", "fine-grained", "unix"],
        figures: &["one_kops", "most_kops", "scaling"],
        ratios: &["fine-grained/global-lock", "fine-grained/unix", "fine-grained@max/one"],
    },
    Promise {
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
    Promise {
        experiment: "demo",
        rows: &["apus", "tcp", "tcp-per-request"],
        figures: SLOWDOWNS,
        ratios: &[
            "short_p99 tcp/apus",
            "short_p50 tcp/apus",
            "short_p99 tcp-per-request/apus",
            "short_p50 tcp-per-request/apus",
        ],
    },
];

/// Whether the text is one JSON object that keeps what is promised about the experiment; if not, why.
pub(crate) fn check(experiment: &str, text: &str) -> Result<Value, String> {
    let json: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    let promise = PROMISES.iter().find(|promise| promise.experiment == experiment);
    let promise = promise.ok_or_else(|| format!("nothing is promised about {experiment}"))?;
    if json["experiment"] != experiment {
        return Err(format!("another experiment: {}", json["experiment"]));
    }
    head(&json, experiment)?;
    for name in promise.rows {
        let rows = json["rows"].as_array().ok_or("no rows")?;
        let row = rows.iter().find(|row| row["name"] == *name);
        let row = row.ok_or_else(|| format!("no row `{name}`"))?;
        promise.figures.iter().try_for_each(|figure| number(row, figure))?;
    }
    for ratio in promise.ratios {
        let found = &json["ratios"][ratio];
        ["median", "min", "max"].iter().try_for_each(|part| number(found, part))?;
    }
    let rows = json["rows"].as_array().into_iter().flatten();
    let promised = rows.filter(|row| promise.rows.iter().any(|name| row["name"] == *name));
    if let Some(path) = promised.into_iter().find_map(hole) {
        return Err(format!("rows{path} is null: something was not finite"));
    }
    Ok(json)
}

/// What every experiment says about itself.
fn head(json: &Value, experiment: &str) -> Result<(), String> {
    for name in ["version", "commit"] {
        json[name].as_str().ok_or_else(|| format!("no {name}"))?;
    }
    number(&json["machine"], "cpus")?;
    let config: &[&str] = match experiment {
        // What is simulated lasts as long as its messages take.
        "sim run" => &["messages", "runs", "seed"],
        // One request after the other: nothing is drawn.
        "lab handoff" => &["messages", "runs"],
        _ => &["seconds", "runs", "seed"],
    };
    config.iter().try_for_each(|name| number(&json["config"], name))
}

/// Whether there is a number of that name that makes sense, or a list of groups with such numbers.
fn number(object: &Value, name: &str) -> Result<(), String> {
    let value = &object[name];
    if let Some(groups) = value.as_array().filter(|groups| !groups.is_empty()) {
        let numbers = ["upto", "count", "p50", "p99"];
        let each = groups.iter().flat_map(|group| numbers.map(|name| number(group, name)));
        return each.collect();
    }
    let good = value.as_f64().is_some_and(|number| number.is_finite() && number >= 0.0);
    if good { Ok(()) } else { Err(format!("{name} is {value} in {object}")) }
}

/// Where a null is, which is what JSON makes of infinity.
fn hole(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Array(values) => values
            .iter()
            .enumerate()
            .find_map(|(index, value)| Some(format!("[{index}]{}", hole(value)?))),
        Value::Object(map) => {
            map.iter().find_map(|(name, value)| Some(format!(".{name}{}", hole(value)?)))
        }
        _ => None,
    }
}
