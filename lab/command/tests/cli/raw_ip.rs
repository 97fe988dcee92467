//! apus over raw IP, as used with the kernel's Homa, in an experiment.

use crate::harness::{object, run, text};

/// Without raw sockets the experiment reports the missing capability.
#[test]
fn a_benchmark_measures_apus_over_raw_ip() {
    let output =
        run("bench rtt --driver raw --only apus --seconds 0.05 --runs 1 --json".split(' '));
    let stderr = text(&output.stderr);
    if !output.status.success() && stderr.contains("CAP_NET_RAW") {
        eprintln!("SKIPPED: {stderr}");
        return;
    }
    let result = object(&output);
    assert_eq!(result["config"]["driver"], "raw");
    assert!(result["rows"][0]["samples"].as_u64().unwrap() > 0, "{result}");
}
