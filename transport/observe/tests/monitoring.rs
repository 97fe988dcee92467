//! The Grafana dashboard and the alert rules in `packaging` name only exported metrics.
//!
//! `promtool` checks the rules, and the expressions of the dashboard, where it is installed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// A file in `packaging`; `None` if this is not the repository.
fn packaging(name: &str) -> Option<(PathBuf, String)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    if !path.exists() {
        eprintln!("SKIPPED: no {}: this is not the repository", path.display());
        return None;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    Some((path, text))
}

/// Names of metrics in a text: words with the prefix of one of ours.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let ours = |word: &&str| {
        word.starts_with("apus_")
            || word.starts_with("rpc_client_")
            || word.starts_with("rpc_server_")
    };
    words.filter(ours).map(str::to_owned).collect()
}

/// Names of exported values, for a process without any.
fn exported() -> BTreeSet<String> {
    let text = apus_observe::prometheus::text(Vec::new(), true);
    let mut names = BTreeSet::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        if (words.next(), words.next()) != (Some("#"), Some("TYPE")) {
            continue;
        }
        let (name, kind) = (words.next().unwrap(), words.next().unwrap());
        let suffixes: &[&str] = match kind {
            "counter" => &["_total"],
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        names.extend(suffixes.iter().map(|suffix| format!("{name}{suffix}")));
    }
    assert!(names.len() > 100, "{names:?}");
    names
}

#[test]
fn counters_whose_names_begin_like_those_of_opentelemetry_are_exported_as_counters() {
    let exported = exported();
    assert!(
        exported.contains("apus_rpc_timeouts_total")
            && exported.contains("apus_rpc_restarts_total")
    );
    assert!(exported.contains("rpc_client_call_duration_seconds_count"));
}

#[test]
fn dashboard_and_rules_name_only_what_is_exported() {
    let exported = exported();
    for name in ["grafana/apus.json", "prometheus/apus.rules.yml"] {
        let Some((_, text)) = packaging(name) else { return };
        // Comments name files and fields.
        let lines = text.lines().filter(|line| !line.trim_start().starts_with(['#', 'd']));
        let text: Vec<&str> = lines.collect();
        let named = metrics_in(&text.join("\n"));
        assert!(named.len() >= 8, "{name}: {named:?}");
        let unknown: Vec<_> = named.difference(&exported).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
}

/// Runs promtool; returns `false` if it is not installed.
fn promtool(arguments: &[&str]) -> bool {
    match Command::new("promtool").args(arguments).output() {
        Ok(output) => {
            let text = [&output.stdout[..], &output.stderr[..]].concat();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
            true
        }
        Err(_) => {
            eprintln!("SKIPPED: promtool is not installed");
            false
        }
    }
}

#[test]
fn promtool_accepts_the_rules_and_the_expressions_of_the_dashboard() {
    let Some((rules, _)) = packaging("prometheus/apus.rules.yml") else { return };
    let Some((tests, _)) = packaging("prometheus/apus.rules.test.yml") else { return };
    if !promtool(&["check", "rules", rules.to_str().unwrap()]) {
        return;
    }
    promtool(&["test", "rules", tests.to_str().unwrap()]);
    let Some((_, dashboard)) = packaging("grafana/apus.json") else { return };
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let mut expressions = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap();
            let expression = expression.replace("$__rate_interval", "5m").replace('$', "");
            let record = format!("dashboard:{}", expressions.len());
            expressions.push(serde_json::json!({ "record": record, "expr": expression }));
        }
    }
    assert!(expressions.len() > 12);
    let groups = serde_json::json!({ "groups": [{ "name": "dashboard", "rules": expressions }] });
    let path = std::env::temp_dir().join(format!("apus-dashboard-{}.yml", std::process::id()));
    std::fs::write(&path, groups.to_string()).unwrap();
    promtool(&["check", "rules", path.to_str().unwrap()]);
    std::fs::remove_file(path).unwrap();
}
