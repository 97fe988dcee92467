//! A counter that is read and written under a lock.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use rustix::fs::{FlockOperation, fcntl_lock, flock};

use super::place::{CheckError, Places, doing};
use super::{CheckReport, CheckSettings};

/// Steps of a counter are this many times more expensive than other operations.
const COST: u64 = 10;

pub(super) fn run(settings: &CheckSettings, places: &Places) -> Result<CheckReport, CheckError> {
    let mut report = CheckReport::default();
    // Locks of fcntl belong to the process, so each mount has one worker then; locks of flock
    // belong to the opening.
    for (name, by_flock, workers) in [("flock", true, settings.workers), ("fcntl", false, 1)] {
        if !by_flock && settings.mounts.len() > 1 {
            continue;
        }
        let path = places.first().join(name);
        fs::write(&path, 0_u64.to_le_bytes()).map_err(doing("create", &path))?;
        let all = (settings.mounts.len() * workers).max(1) as u64;
        let each = (settings.operations / COST).div_ceil(all);
        places.work(workers, |worker| {
            let path = worker.directory.join(name);
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(&path)
                .map_err(doing("open", &path))?;
            for _ in 0..each {
                let set = |operation| {
                    if by_flock { flock(&file, operation) } else { fcntl_lock(&file, operation) }
                };
                set(FlockOperation::LockExclusive)
                    .map_err(|error| doing("lock", &path)(error.into()))?;
                let mut bytes = [0; 8];
                file.read_exact_at(&mut bytes, 0).map_err(doing("read", &path))?;
                let next = u64::from_le_bytes(bytes) + 1;
                file.write_all_at(&next.to_le_bytes(), 0).map_err(doing("write", &path))?;
                set(FlockOperation::Unlock)
                    .map_err(|error| doing("unlock", &path)(error.into()))?;
            }
            Ok(())
        })?;
        let bytes = fs::read(&path).map_err(doing("read", &path))?;
        let counted = bytes.try_into().map_or(0, u64::from_le_bytes);
        report.operations += each * all;
        if counted != each * all {
            report.violations.push(format!(
                "locks exclude: {} steps under {name} left a counter at {counted}",
                each * all
            ));
        }
    }
    Ok(report)
}
