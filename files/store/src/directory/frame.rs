//! Frames of the log.
//!
//! ```text
//!   0       8     12       16       20         28        36       36 + h
//!   ├───────┼─────┼────────┼────────┼──────────┼─────────┼────────┼─────────┤
//!   │ magic │ CRC │ length │ header │ sequence │ durable │ header │ payload │
//!   │       │     │ of all │ length │          │         │        │         │
//!   └───────┴─────┴────────┴────────┴──────────┴─────────┴────────┴─────────┘
//! ```
//!
//! The magic number depends on the export's secret: no client can write bytes that look like a
//! frame.
//!
//! # Invariants
//!
//! - **FRAME-1** A log that was cut anywhere, or whose last write was torn, is read up to the last
//!   frame that was made durable.
//! - **FRAME-2** Damage to a frame that was durable is noticed whenever a frame was written after
//!   it was.

use std::hash::Hasher;

use apus_fs_core::wire::{FailedBatch, Ino, Name, NodeKind, Record};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

use super::identity::Identity;

/// Bytes of a frame before its header.
const PREFIX: usize = 36;

/// Content of a frame.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FrameEntry {
    /// Nodes that were read from the directory, or ended, since the last frame.
    Observed(Vec<Observation>),
    /// Records of a batch, all or a part of them.
    Part(Part),
    /// The file system refused a record of an earlier frame, and no later record of its batch is
    /// applied. If the failure occurred in a replay, names of the later records may be in the
    /// directory.
    Stopped { sequence: u64, record: u32, in_replay: bool },
    /// Numbers below this one may have been given to clients.
    Reserved { up_to: u64 },
}

/// Something about nodes and clients that is no change of the directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Observation {
    /// A node was seen under a name.
    Present { ino: Ino, kind: NodeKind, identity: Identity, parent: Ino, name: Name },
    /// A name is not there any more.
    Absent { parent: Ino, name: Name },
    /// The backing file of a node that was created.
    Created { ino: Ino, identity: Identity },
    /// A node without a name was removed.
    Dropped { ino: Ino },
    /// A client will not return.
    Forgotten { client: [u8; 16] },
    /// All frames before this one were applied, while the export was mounted as `mount`.
    Applied { mount: Mount },
    /// A batch failed before it was logged.
    Refused { client: [u8; 16], number: u64 },
    /// Whether changes that a client has not sent yet are void.
    Fenced { client: [u8; 16], is_fenced: bool },
    /// A batch failed, and why.
    Failed { client: [u8; 16], failed: FailedBatch },
    /// Clients whose ranges all start below `first` have returned too late.
    ReturnsFrom { first: u64 },
}

/// One life of a mounted file system: as long as it lasts, no change is lost when the server's
/// process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mount {
    /// Random number of the machine's start; zeros if it is not known.
    pub(crate) boot: [u8; 16],
    /// The kernel's number of the mount.
    pub(crate) id: u64,
}

/// Consecutive records of a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) client: [u8; 16],
    pub(crate) number: u64,
    pub(crate) records: Vec<Record>,
    /// Position in the batch up to which it is applied afterwards; `None` if the batch is complete.
    pub(crate) next: Option<Position>,
}

/// A position in a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Records that are applied.
    pub(crate) record: u32,
    /// Bytes that the next record, which copies, has copied already.
    pub(crate) copied: u64,
}

/// Progress of a client's batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Number of the last batch.
    pub(crate) applied: u64,
    /// Position in the batch after that.
    pub(crate) position: Position,
}

/// A frame that was read.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) sequence: u64,
    /// All frames below this number were durable when this one was written.
    pub(crate) durable: u64,
    pub(crate) entry: FrameEntry,
    pub(crate) payload: Bytes,
}

/// Result of parsing at a possible start of a frame.
enum Found {
    Frame { frame: Frame, length: usize },
    Nothing,
}

/// Frames of a segment, and the end of the intact frames.
pub(crate) struct Scanned {
    pub(crate) frames: Vec<Frame>,
    pub(crate) end: usize,
}

/// Returns the magic number of an export's frames.
pub(crate) fn magic(secret: &[u8; 16]) -> u64 {
    let mut hasher = SipHasher13::new_with_key(secret);
    hasher.write(b"frame of the log");
    hasher.finish()
}

/// Encodes the part of a frame before the payload. All frames below `durable` are durable.
pub(crate) fn encode(
    magic: u64,
    sequence: u64,
    durable: u64,
    entry: &FrameEntry,
    payload: &[u8],
) -> Vec<u8> {
    let mut frame = postcard::to_extend(entry, vec![0; PREFIX]).expect("vectors grow");
    let header = frame.len() - PREFIX;
    frame[..8].copy_from_slice(&magic.to_le_bytes());
    frame[12..16].copy_from_slice(&((header + payload.len()) as u32).to_le_bytes());
    frame[16..20].copy_from_slice(&(header as u32).to_le_bytes());
    frame[20..28].copy_from_slice(&sequence.to_le_bytes());
    frame[28..36].copy_from_slice(&durable.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&frame[12..]), payload);
    frame[8..12].copy_from_slice(&crc.to_le_bytes());
    frame
}

fn decode(magic: u64, bytes: &Bytes, at: usize) -> Found {
    let Some(prefix) = bytes.get(at..at + PREFIX) else { return Found::Nothing };
    let word = |from: usize| u32::from_le_bytes(prefix[from..from + 4].try_into().expect("four"));
    let long = |from: usize| u64::from_le_bytes(prefix[from..from + 8].try_into().expect("eight"));
    let (length, header) = (word(12) as usize, word(16) as usize);
    if long(0) != magic || header > length {
        return Found::Nothing;
    }
    let end = at + PREFIX + length;
    if bytes.get(at + 12..end).map(crc32c::crc32c) != Some(word(8)) {
        return Found::Nothing;
    }
    let body = bytes.slice(at + PREFIX..end);
    let Ok(entry) = postcard::from_bytes(&body[..header]) else { return Found::Nothing };
    let frame =
        Frame { sequence: long(20), durable: long(28), entry, payload: body.slice(header..) };
    Found::Frame { frame, length: PREFIX + length }
}

/// Reads the frames of a segment whose first frame has the number `next`.
///
/// # Errors
///
/// The position of a damaged frame that had been durable.
pub(crate) fn scan(magic: u64, bytes: &Bytes, mut next: u64) -> Result<Scanned, usize> {
    let (mut frames, mut end) = (Vec::new(), 0);
    while let Found::Frame { frame, length } = decode(magic, bytes, end) {
        if frame.sequence != next {
            return Err(end);
        }
        frames.push(frame);
        (next, end) = (next + 1, end + length);
    }
    // The remaining bytes may be the rest of a torn write: in that case, no frame was written after
    // it had become durable.
    let pattern = magic.to_le_bytes();
    for at in end..bytes.len().saturating_sub(PREFIX - 1) {
        if bytes[at] == pattern[0]
            && bytes[at..].starts_with(&pattern)
            && let Found::Frame { frame, .. } = decode(magic, bytes, at)
            && frame.durable > next
        {
            return Err(end);
        }
    }
    Ok(Scanned { frames, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: u64 = 0x0123_4567_89ab_cdef;

    fn log() -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for sequence in 5..9 {
            let entry = FrameEntry::Reserved { up_to: sequence };
            bytes.extend(encode(MAGIC, sequence, sequence, &entry, b"payload"));
            bytes.extend(b"payload");
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    /// FRAME-1.
    #[test]
    fn a_log_that_was_cut_is_read_up_to_there() {
        let (bytes, ends) = log();
        for cut in 0..=bytes.len() {
            let scanned = scan(MAGIC, &Bytes::copy_from_slice(&bytes[..cut]), 5).unwrap();
            let complete = ends.iter().filter(|end| **end <= cut).count() - 1;
            assert_eq!((scanned.frames.len(), scanned.end), (complete, ends[complete]));
            assert!(scanned.frames.iter().all(|frame| &frame.payload[..] == b"payload"));
        }
    }

    /// FRAME-2: every bit of a frame matters; damage to the last one is no different from a torn
    /// write.
    #[test]
    fn damage_is_noticed() {
        let (bytes, ends) = log();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let index = ends.iter().filter(|end| **end <= at).count() - 1;
            match scan(MAGIC, &Bytes::from(damaged), 5) {
                Err(position) => assert_eq!((position, index < 3), (ends[index], true)),
                Ok(scanned) => assert_eq!((scanned.frames.len(), index), (3, 3)),
            }
        }
    }
}
