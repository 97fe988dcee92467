//! Opens a directory, and brings it to the state that its log describes.
//!
//! Records are not applied one after the other: a name may have been used by several nodes, and a
//! crash of the machine leaves the effects of any of them. Instead, names are brought to their
//! final state at once (`journeys`, `discovery`, `arrange`). Only then contents and attributes are
//! written, in the order of the log, because those have the same result however often, and from
//! whatever point on, they are written.

use std::path::Path;

use apus_fs_core::wire::{Errno, FailedBatch, NodeKind, Record};
use bytes::Bytes;

use super::arrange::{Arrangement, Failure};
use super::discovery::Discovery;
use super::error::{OpenError, failed};
use super::files::Files;
use super::frame::{self, Frame, FrameEntry, Mount, Observation};
use super::identity::status_of;
use super::journeys::Journeys;
use super::log::{Log, WriteError};
use super::snapshot::{self, Knowledge};
use super::state::{StateFolder, segment_name};
use super::{Counters, DirectoryOptions, DirectoryStore};

/// State read from `.apus-fs`.
struct Stored {
    knowledge: Knowledge,
    frames: Vec<Frame>,
    log: Log,
    /// Frames from this number on may not have been applied, and no response depends on them.
    uncertain: u64,
}

/// Opens a directory.
pub(crate) fn open(
    directory: &Path,
    options: DirectoryOptions,
) -> Result<DirectoryStore, OpenError> {
    let state = StateFolder::open(directory)?;
    let secret = state.secret()?;
    let fail_point = options.fail_point.clone();
    let (caches, fail) = ((options.directories, options.files), options.fail_point);
    let mut files = Files::new(state, caches.0, caches.1, fail).map_err(|errno| {
        let error = std::io::Error::from_raw_os_error(errno.0.into());
        OpenError::Store(failed("read", directory)(error))
    })?;
    let mount = files.state.mount();
    let trusted = mount.filter(|_| !options.replays_all);
    loop {
        // An earlier attempt may have created nodes again.
        files.forget_all();
        let Stored { mut knowledge, frames, mut log, uncertain } =
            read(&files.state, secret, &fail_point)?;
        match replay(&mut files, &mut knowledge, &mut log, &frames, trusted) {
            Ok(()) => {
                let next_ino = knowledge.reserved;
                let mut store = DirectoryStore {
                    files,
                    knowledge,
                    log,
                    secret,
                    mount,
                    pending: Vec::new(),
                    appended: Vec::new(),
                    next_ino,
                    listing: None,
                    checkpoint_bytes: options.checkpoint_bytes,
                    is_broken: false,
                    counters: Counters::default(),
                    is_searched: false,
                };
                if !frames.is_empty() {
                    store.checkpoint()?;
                }
                return Ok(store);
            }
            // The crash happened before the server saw the record fail. It fails in the same way
            // now.
            Err(Failure::Record((index, record), errno))
                if frames[index].sequence >= uncertain && is_final(errno) =>
            {
                let (sequence, record) = (frames[index].sequence, record as u32);
                let stopped =
                    (FrameEntry::Stopped { sequence, record, in_replay: true }, Bytes::new());
                let mut entries = vec![stopped];
                if let FrameEntry::Part(part) = &frames[index].entry {
                    let failed = FailedBatch { number: part.number, record, error: errno };
                    let failed = Observation::Failed { client: part.client, failed };
                    entries.push((FrameEntry::Observed(vec![failed]), Bytes::new()));
                }
                log.write(&entries, true).map_err(|error| match error {
                    WriteError::Full => replay_error("note a record that fails", Errno::NOSPC),
                    WriteError::Broken(error) => error.into(),
                })?;
            }
            Err(Failure::Record((index, record), errno)) => {
                let FrameEntry::Part(part) = &frames[index].entry else { continue };
                return Err(replay_error(&format!("{:?}", part.records[record]), errno));
            }
            Err(Failure::Other(what, errno)) => return Err(replay_error(what, errno)),
        }
    }
}

fn replay_error(what: &str, errno: Errno) -> OpenError {
    OpenError::Replay { what: what.chars().take(200).collect(), errno }
}

/// Returns whether an error does not depend on the moment.
const fn is_final(errno: Errno) -> bool {
    !matches!(errno, Errno::NOSPC | Errno::IO | Errno::DQUOT)
}

/// Reads snapshot and log.
fn read(
    state: &StateFolder,
    secret: [u8; 16],
    fail_point: &super::FailPoint,
) -> Result<Stored, OpenError> {
    let (knowledge, next) = snapshot::read(state, secret)?;
    let magic = frame::magic(&secret);
    // An older segment is the rest of a checkpoint that was interrupted.
    let Some(first) = state.segments()?.last().copied() else {
        let log = Log::create(state, magic, next, fail_point.clone())?;
        return Ok(Stored { knowledge, frames: Vec::new(), log, uncertain: next });
    };
    let name = segment_name(first);
    let bytes = Bytes::from(state.read(&name)?.unwrap_or_default());
    let damaged = |position: usize| OpenError::Damaged {
        path: state.path.join(&name).display().to_string(),
        position: position as u64,
    };
    if first > next {
        return Err(damaged(0));
    }
    let scanned = frame::scan(magic, &bytes, first).map_err(damaged)?;
    let mut frames = scanned.frames;
    let end = first + frames.len() as u64;
    frames.retain(|frame| frame.sequence >= next);
    // The snapshot may be newer than the log, whose content is then obsolete.
    let log = match frames.is_empty() {
        true => Log::create(state, magic, next, fail_point.clone())?,
        false => Log::resume(state, magic, (first, end), scanned.end as u64, fail_point.clone())?,
    };
    let part = frames.iter().rev().find(|frame| matches!(frame.entry, FrameEntry::Part(_)));
    let uncertain = part.map_or(next, |part| part.durable);
    Ok(Stored { knowledge, frames, log, uncertain })
}

/// Brings the directory to the state that the frames describe.
fn replay(
    files: &mut Files,
    knowledge: &mut Knowledge,
    log: &mut Log,
    frames: &[Frame],
    mount: Option<Mount>,
) -> Result<(), Failure> {
    let is_applied = |frame: &Frame| {
        match &frame.entry {
        FrameEntry::Observed(observations) => observations.iter().any(|observation| {
            matches!(observation, Observation::Applied { mount: then } if mount == Some(*then))
        }),
        _ => false,
    }
    };
    let applied = frames.iter().rposition(is_applied).map_or(0, |index| index + 1);
    Journeys::run_all(knowledge, &frames[..applied]);
    replay_frames(files, knowledge, log, &frames[applied..]).map_err(|failure| match failure {
        Failure::Record((frame, record), errno) => {
            Failure::Record((frame + applied, record), errno)
        }
        other => other,
    })
}

/// Brings the directory from a state in which any records may be applied to the state that the
/// frames describe.
fn replay_frames(
    files: &mut Files,
    knowledge: &mut Knowledge,
    log: &mut Log,
    frames: &[Frame],
) -> Result<(), Failure> {
    let mut journeys = Journeys::run_all(knowledge, frames);
    let table = &mut knowledge.table;
    let discovery = Discovery::run(files, table, &mut journeys)
        .map_err(|errno| Failure::Other("find nodes", errno))?;
    let journeys = &journeys;
    Arrangement { files, table, log, journeys, frames }.run(&discovery)?;
    for index in &journeys.records {
        let frame = &frames[index.0];
        let FrameEntry::Part(part) = &frame.entry else { continue };
        let record = &part.records[index.1];
        match replay_data(files, knowledge, record, &frame.payload) {
            // The node was removed later; or the attribute, when this was applied for the first
            // time.
            Ok(()) | Err(Errno::STALE) => {}
            Err(Errno::NODATA) if matches!(record, Record::RemoveXattr { .. }) => {}
            Err(errno) => return Err(Failure::Record(*index, errno)),
        }
    }
    Ok(())
}

/// Writes contents and attributes of a record.
fn replay_data(
    files: &mut Files,
    knowledge: &Knowledge,
    record: &Record,
    payload: &Bytes,
) -> Result<(), Errno> {
    let table = &knowledge.table;
    let Record::Create { ino, .. } = record else {
        return files.perform_data(table, record, payload);
    };
    let Some(node) = table.node(*ino) else { return Ok(()) };
    if node.kind == NodeKind::File {
        files.truncate(table, *ino, 0)?;
    }
    let file = files.reach(table, *ino)?;
    let status = status_of(&file)?;
    files.dress_again(&file, &status, record)
}
