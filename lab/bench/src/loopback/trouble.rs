//! Notes about runs with problems.

use super::sides::GRACE;

/// Below this share of completed due requests, a contender did not keep up: its queue grew
/// throughout the load. Chosen by us: far less than a hundredth is outstanding at the end.
const KEPT_UP: f64 = 0.97;

/// Returns a sentence about the runs of contender `name` if `errors` requests were refused or not
/// answered, or if `kept_up`, the completed share of due requests in its worst run, is too low.
pub(crate) fn trouble(name: &str, errors: u64, kept_up: f64) -> Option<String> {
    if errors > 0 {
        let grace = GRACE.as_secs();
        Some(format!(
            "{errors} requests of {name} were refused, or not answered within {grace} s of the load's end"
        ))
    } else if kept_up < KEPT_UP {
        Some(format!(
            "{name} completed only {:.0} % of what was due in one run: its queue grew, and its \
             slowdown depends on how long the run was",
            kept_up * 100.0
        ))
    } else {
        None
    }
}
