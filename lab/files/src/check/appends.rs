//! Appends of all mounts to one file.

use std::fs::{self, OpenOptions};
use std::io::Write;

use apus_fs_sim::checker::append::{self, Append};
use bytes::Bytes;

use super::place::{CheckError, Places, doing};
use super::{CheckReport, CheckSettings};

/// Appends to one file.
const PER_FILE: u64 = 2_000;

pub(super) fn run(settings: &CheckSettings, places: &Places) -> Result<CheckReport, CheckError> {
    let mut report = CheckReport::default();
    let workers = (settings.mounts.len() * settings.workers).max(1) as u64;
    for round in 0..settings.operations.div_ceil(PER_FILE) {
        let name = format!("appends-{round}");
        let path = places.first().join(&name);
        fs::write(&path, b"").map_err(doing("create", &path))?;
        let each = PER_FILE.min(settings.operations).div_ceil(workers);
        let appends = places.work(settings.workers, |worker| {
            let path = worker.directory.join(&name);
            let mut file =
                OpenOptions::new().append(true).open(&path).map_err(doing("open", &path))?;
            let mut appends = Vec::new();
            for step in 0..each {
                // Of different lengths, so that a wrong position shows.
                let padding = "x".repeat((step % 50) as usize);
                let data = format!("<{}:{step}:{padding}>", worker.index);
                file.write_all(data.as_bytes()).map_err(doing("append to", &path))?;
                // Threads of one mount are in no order with each other: each is a mount to the
                // checker.
                let mount = apus_fs_sim::history::MountId(worker.index as u32);
                appends.push(Append { mount, data: Bytes::from(data), is_owed: true });
            }
            Ok(appends)
        })?;
        let appends: Vec<_> = appends.into_iter().flatten().collect();
        report.operations += appends.len() as u64;
        for mount in &settings.mounts {
            let directory = places.first().file_name().unwrap_or_default();
            let path = mount.join(directory).join(&name);
            let contents = fs::read(&path).map_err(doing("read", &path))?;
            if let Err(violation) = append::check(&contents, &appends) {
                report.violations.push(format!("{}: {violation}", mount.display()));
            }
        }
    }
    Ok(report)
}
