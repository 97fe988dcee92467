//! `apus-lab lab hostile`: an attacker alongside an honest client. The runs are short: they show
//! that attacks happen, and that the honest client is served.

use serde_json::Value;

use crate::contract::check;
use crate::harness::{lab, run, skip_reason, text};

/// Runs the lab, and returns its standard output; `None`, with a message, if no namespace is
/// available.
fn measure(words: &str) -> Option<String> {
    let output = run(format!("lab hostile --json --runs 1 {words}").split_whitespace());
    let stderr = text(&output.stderr);
    if let Some(reason) = skip_reason(&stderr) {
        eprintln!("SKIPPED: {reason}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    Some(text(&output.stdout))
}

/// Runs the lab, and checks its contract, which requires the floods.
fn hostile(words: &str) -> Option<Value> {
    Some(check("hostile", &measure(words)?).unwrap())
}

/// Returns a counter of the servers of a row.
fn count(row: &Value, name: &str) -> u64 {
    row["counters"][name].as_u64().unwrap_or_default()
}

/// Asserts that the attack of a row happened, and that calls were due meanwhile. The number of
/// answered calls depends on other load of the machine.
fn assert_attacked(row: &Value) {
    assert!(row["attack_kpps"].as_f64().unwrap() > 0.0, "{row}");
    assert!(row["offered_krps"].as_f64().unwrap() > 0.0, "{row}");
    assert!(row["counters"]["driver_packets_received"].as_u64().unwrap() > 0, "{row}");
}

#[test]
fn each_attack_takes_place_beside_honest_calls() {
    let attacks = "--attacks malformed,forged,unknown,claims";
    let Some(json) = hostile(&format!("--seconds 0.3 --load 0.02 {attacks}")) else { return };
    let rows = json["rows"].as_array().unwrap();
    let names: Vec<&Value> = rows.iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["none", "malformed", "forged", "unknown", "claims"]);
    rows[1..].iter().for_each(assert_attacked);
    let [none, malformed, forged, unknown, claims] = &rows[..] else { unreachable!() };
    assert_eq!(none["attack_kpps"], 0.0);
    assert!(none["p99_us"].as_f64().unwrap() > 0.0, "{none}");
    for row in [malformed, forged] {
        assert!(row["dropped"].as_u64().unwrap() > 0, "{row}");
    }
    // Unknown clients are offered sessions without creating state; the server requests the rest of
    // claimants' messages.
    assert!(count(unknown, "NeedAck sent") > 0, "{unknown}");
    assert!(count(claims, "Resend sent") > 0, "{claims}");
}

/// Attacks that keep messages alive: the receiver sends RESENDs for them, and long calls are
/// measured beside short ones.
#[test]
fn attacks_with_few_packets_are_measured_beside_long_calls() {
    let attacks = "--attacks announcements,grants,responses";
    let Some(json) = measure(&format!("--seconds 0.3 --load 0.02 {attacks}")) else { return };
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    for size in ["200 B", "1 MB", "2 MB"] {
        assert!(row(&format!("none {size}"))["p99_us"].as_f64().unwrap() > 0.0);
        for attack in ["announcements", "grants", "responses"] {
            let row = row(&format!("{attack} {size}"));
            assert_attacked(row);
            assert!(row["attack_mbps"].as_f64().unwrap() > 0.0, "{row}");
        }
        assert!(count(row(&format!("grants {size}")), "Grant sent") > 0);
    }
}

#[test]
fn a_sealed_server_drops_what_is_not_sealed_with_its_keys() {
    let Some(json) = hostile("--seconds 0.3 --load 0.02 --sealed") else { return };
    let rows = json["rows"].as_array().unwrap();
    let names: Vec<&Value> = rows.iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["none", "malformed", "forged", "unknown"], "claims take a key");
    rows[1..].iter().for_each(assert_attacked);
    assert_eq!(json["config"]["sealed"], true);
    assert!(count(&rows[1], "driver_seal_clear_packets") > 0, "{}", rows[1]);
    assert!(count(&rows[2], "driver_seal_forgeries") > 0, "{}", rows[2]);
}

/// Without the programs that create a namespace no attack runs.
#[test]
fn without_a_namespace_the_reason_is_said() {
    let mut command = lab();
    let output = command.args(["lab", "hostile"]).env("PATH", "/nowhere").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is not installed"), "{}", text(&output.stderr));
}
