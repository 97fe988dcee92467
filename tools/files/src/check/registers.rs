//! Short files that all mounts write, read and cut.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use apus_fs_sim::checker::file;
use apus_fs_sim::history::{Event, FileAction, Happening};
use bytes::Bytes;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::place::{CheckError, Places, Worker, doing};
use super::{CheckReport, CheckSettings};

/// Operations of all workers on one file. A search for an explanation of more takes long.
const PER_FILE: u64 = 60;
/// Positions that are written, and bytes of a write: they overlap.
const POSITIONS: u64 = 6;

pub(super) fn run(settings: &CheckSettings, places: &Places) -> Result<CheckReport, CheckError> {
    let mut report = CheckReport::default();
    for round in 0..settings.operations.div_ceil(PER_FILE) {
        let name = format!("register-{round}");
        let path = places.first().join(&name);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(doing("create", &path))?;
        let all = settings.mounts.len() * settings.workers;
        let each = PER_FILE.div_ceil(all.max(1) as u64);
        let histories = places.work(settings.workers, |worker| {
            let seed = settings.seed ^ (round << 16) ^ worker.index as u64;
            work(places, worker, &name, each, seed)
        })?;
        let mut history: Vec<_> = histories.into_iter().flatten().collect();
        history.sort_by_key(|event| event.invoked);
        report.operations += history.len() as u64;
        match file::check(&name, &history) {
            Ok(true) => {}
            Ok(false) => report.undecided += 1,
            Err(violation) => report.violations.push(violation.to_string()),
        }
    }
    Ok(report)
}

fn work(
    places: &Places,
    worker: &Worker,
    name: &str,
    operations: u64,
    seed: u64,
) -> Result<Vec<Event<Happening<FileAction>>>, CheckError> {
    let mut random = Pcg64::seed_from_u64(seed);
    let path = worker.directory.join(name);
    let open = || OpenOptions::new().read(true).write(true).open(&path);
    let mut file = open().map_err(doing("open", &path))?;
    let mut history = Vec::new();
    for step in 0..operations {
        if random.random_ratio(1, 8) {
            file = open().map_err(doing("open", &path))?;
        }
        let offset = random.random_range(0..POSITIONS);
        let invoked = places.moment();
        let action = match random.random_range(0..10) {
            0..4 => {
                let data = format!("{:02}{step:02}", worker.index).into_bytes();
                file.write_all_at(&data, offset).map_err(doing("write", &path))?;
                FileAction::Write { offset, data: data.into(), is_done: true }
            }
            4 => {
                file.set_len(offset).map_err(doing("truncate", &path))?;
                FileAction::Truncate { size: offset, is_done: true }
            }
            5 => {
                let size = file.metadata().map_err(doing("stat", &path))?.len();
                FileAction::Size { result: Some(size) }
            }
            _ => {
                // One read is one operation; a loop until the end of the file would be several.
                let mut bytes = vec![0; 4 * POSITIONS as usize];
                let read = file.read_at(&mut bytes, offset).map_err(doing("read", &path))?;
                bytes.truncate(read);
                let (length, result) = (4 * POSITIONS, Some(Bytes::from(bytes)));
                FileAction::Read { offset, length, result }
            }
        };
        let (mount, returned) = (worker.mount, Some(places.moment()));
        history.push(Event { mount, invoked, returned, action: Happening::Action(action) });
    }
    Ok(history)
}
