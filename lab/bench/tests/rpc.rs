//! The complete program, with short measurements.

use serde_json::Value;
use std::process::Command;

/// Runs the program and returns its JSON.
fn run(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_apus-bench-rpc"))
        .args(["--seconds", "0.02", "--runs", "1", "--json"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn all_contenders_are_measured_and_compared() {
    let result = run(&["--outstanding", "4"]);
    assert_eq!(result["experiment"], "rpc");
    let rows = result["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["call", "service", "tonic-apus", "tonic-http2", "tarpc"]);
    for row in rows {
        for figure in ["p50_us", "p99_us", "krps"] {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{row}");
        }
    }
    let ratios = result["ratios"].as_object().unwrap();
    for pair in ["service/call", "tonic-apus/tonic-http2", "service/tarpc"] {
        assert!(ratios.contains_key(&format!("p50 {pair}")), "{ratios:?}");
        assert!(ratios.contains_key(&format!("krps {pair}")), "{ratios:?}");
    }
}

#[test]
fn hedging_is_measured_and_no_server_executes_a_call_twice() {
    let result = run(&["--hedging"]);
    assert_eq!(result["experiment"], "rpc-hedging");
    for row in result["rows"].as_array().unwrap() {
        assert_eq!(row["executed_twice_by_one_server"], 0, "{row}");
        assert!(row["executions"].as_u64() >= row["calls"].as_u64(), "{row}");
    }
}

#[test]
fn wrong_arguments_are_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_apus-bench-rpc"))
        .args(["--outstanding", "0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--outstanding"));
}
