//! Short files that all mounts write, read and cut.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use apus_fs_sim::checker::file;
use apus_fs_sim::history::{Event, FileAction, Happening, Moment};
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
        if !settings.atomic_reads {
            forget_reads_beside_changes(&mut history);
        }
        report.operations += history.len() as u64;
        match file::check(&name, &history) {
            Ok(true) => {}
            Ok(false) => report.undecided += 1,
            Err(violation) => report.violations.push(violation.to_string()),
        }
    }
    Ok(report)
}

/// Forgets the results of reads during which another worker changed the file.
fn forget_reads_beside_changes(history: &mut [Event<Happening<FileAction>>]) {
    let is_change = |action: &FileAction| {
        matches!(action, FileAction::Write { .. } | FileAction::Truncate { .. })
    };
    let changes: Vec<_> = history
        .iter()
        .filter(|event| matches!(&event.action, Happening::Action(action) if is_change(action)))
        .map(|event| (event.invoked, event.returned))
        .collect();
    for event in history {
        let Happening::Action(FileAction::Read { result, .. }) = &mut event.action else {
            continue;
        };
        let (began, ended) = (event.invoked, event.returned);
        let overlaps = |&(from, until): &(Moment, Option<Moment>)| {
            until.is_none_or(|until| until > began) && ended.is_none_or(|ended| from < ended)
        };
        if changes.iter().any(overlaps) {
            *result = None;
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use apus_fs_sim::history::MountId;

    fn event(from: u64, until: u64, action: FileAction) -> Event<Happening<FileAction>> {
        let action = Happening::Action(action);
        Event { mount: MountId(0), invoked: Moment(from), returned: Some(Moment(until)), action }
    }

    /// Writes `ab`, then reads bytes that no state of the file has, from `from` to `until`.
    fn is_accepted(from: u64, until: u64) -> bool {
        let write = FileAction::Write { offset: 0, data: "ab".into(), is_done: true };
        let result = Some(Bytes::from_static(b"a"));
        let read = FileAction::Read { offset: 0, length: 9, result };
        let mut history = vec![event(10, 20, write), event(from, until, read)];
        forget_reads_beside_changes(&mut history);
        history.sort_by_key(|event| event.invoked);
        file::check("register", &history).is_ok()
    }

    #[test]
    fn only_reads_beside_a_change_are_forgotten() {
        assert!(is_accepted(5, 11) && is_accepted(12, 15) && is_accepted(19, 30));
        assert!(!is_accepted(1, 9) && !is_accepted(21, 30));
    }
}
