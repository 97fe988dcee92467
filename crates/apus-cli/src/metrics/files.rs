//! How are counters kept, and held against later ones?

use std::fs;
use std::path::Path;

use apus::snapshot::Snapshot;

use super::change::Change;
use crate::failure::Failure;

/// Writes the counters of some processes into a file.
pub(super) fn write(path: &Path, snapshots: &[Snapshot]) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(snapshots).expect("maps with text keys");
    let wrong = |error| Failure::of(&format!("write {}", path.display()), &error);
    fs::write(path, text + "\n").map_err(wrong)
}

/// Reads such a file.
pub(super) fn read(path: &Path) -> Result<Vec<Snapshot>, Failure> {
    let wrong = |problem: String| Failure::Argument { argument: "--diff".to_owned(), problem };
    let text =
        fs::read_to_string(path).map_err(|error| wrong(format!("{}: {error}", path.display())))?;
    serde_json::from_str(&text).map_err(|error| {
        let hint = "`apus metrics --save FILE` writes one";
        wrong(format!("{} holds no counters of apus ({error}); {hint}", path.display()))
    })
}

/// What has changed, process by process. Those that are in one only have no change; if there is only one in each, they
/// are held against each other in any case: a server before and after a restart, say.
pub(super) fn changes(before: &[Snapshot], now: &[Snapshot]) -> Result<Vec<Change>, Failure> {
    let pairs: Vec<(&Snapshot, &Snapshot)> = match (before, now) {
        ([before], [now]) => vec![(before, now)],
        _ => {
            let earlier = |now: &Snapshot| before.iter().find(|before| before.pid == now.pid);
            now.iter().filter_map(|now| Some((earlier(now)?, now))).collect()
        }
    };
    let changes: Vec<_> =
        pairs.into_iter().filter_map(|(before, now)| Change::between(before, now)).collect();
    if changes.is_empty() {
        let problem = "no process with endpoints is in both";
        return Err(Failure::Work(format!("nothing to compare: {problem}")));
    }
    Ok(changes)
}
