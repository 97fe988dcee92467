//! Properties that hold for arbitrary bytes read as a log.
//!
//! The fuzz target `fs_log` in `fuzz/` at the root of the repository calls this with new inputs,
//! the tests with stored and mutated inputs.

use std::hash::Hasher;

use bytes::Bytes;
use siphasher::sip::SipHasher13;

use super::frame::{self, Frame, Scanned};

/// Frames of one input at most: a search behind damage takes the square of their bytes.
const MAX_FRAMES: usize = 16;

/// Reads the bytes as a log. Then takes them as the headers of frames with the right checksums,
/// reads these as a log, and the same log with one damaged byte and cut off.
pub(crate) fn run(bytes: &[u8]) {
    if let Some(magic) = bytes.first_chunk() {
        let _ = scan(u64::from_le_bytes(*magic), bytes);
    }
    let Some((&[flags, low, high, mask], rest)) = bytes.split_first_chunk() else { return };
    // No input contains the magic number, as no client knows the magic number of an export.
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    let magic = hasher.finish();
    let is_durable = flags & 1 != 0;
    let (log, starts) = log(magic, is_durable, rest);
    let whole = scan(magic, &log);

    let at = usize::from(u16::from_le_bytes([low, high]));
    let cut = scan(magic, &log[..at.min(log.len())]);
    if let (Ok(whole), Ok(cut)) = (&whole, &cut) {
        let complete = whole.iter().take_while(|frame| frame.1 <= at).count();
        assert_eq!(cut[..], whole[..complete], "FRAME-1");
    }

    if at >= log.len() || mask == 0 {
        return;
    }
    let mut damaged = log.clone();
    damaged[at] ^= mask;
    let hit = starts.iter().filter(|start| **start <= at).count() - 1;
    match (&whole, scan(magic, &damaged)) {
        (Ok(whole), Ok(found)) => {
            assert_eq!(found[..], whole[..found.len()], "FRAME-1");
            assert!(found.len() <= hit, "FRAME-2");
            let is_followed = whole.len() > hit + 1;
            assert!(!(is_durable && is_followed), "FRAME-2");
        }
        (Ok(_), Err(position)) => assert!(starts.contains(&position), "FRAME-2"),
        (Err(_), _) => {}
    }
}

/// Returns a log whose frames have headers and payloads of any bytes, and where each frame starts.
fn log(magic: u64, is_durable: bool, mut rest: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let (mut log, mut starts) = (Vec::new(), Vec::new());
    while let Some((&[header, payload], bytes)) = rest.split_first_chunk()
        && starts.len() < MAX_FRAMES
    {
        let (header, bytes) = bytes.split_at(usize::from(header).min(bytes.len()));
        let (payload, bytes) = bytes.split_at(usize::from(payload).min(bytes.len()));
        let sequence = starts.len() as u64;
        starts.push(log.len());
        seal(&mut log, magic, (sequence, if is_durable { sequence } else { 0 }), header, payload);
        rest = bytes;
    }
    (log, starts)
}

/// Appends a frame, written as the head of `frame.rs` draws it.
fn seal(
    log: &mut Vec<u8>,
    magic: u64,
    (sequence, durable): (u64, u64),
    header: &[u8],
    payload: &[u8],
) {
    let mut checked = ((header.len() + payload.len()) as u32).to_le_bytes().to_vec();
    checked.extend((header.len() as u32).to_le_bytes());
    checked.extend(sequence.to_le_bytes());
    checked.extend(durable.to_le_bytes());
    checked.extend(header);
    checked.extend(payload);
    log.extend(magic.to_le_bytes());
    log.extend(crc32c::crc32c(&checked).to_le_bytes());
    log.extend(checked);
}

/// Reads a log and checks the result. Returns the frames, encoded again, and the end of each.
fn scan(magic: u64, bytes: &[u8]) -> Result<Vec<(Vec<u8>, usize)>, usize> {
    let Scanned { frames, end } = frame::scan(magic, &Bytes::copy_from_slice(bytes), 0)
        .inspect_err(|position| assert!(*position < bytes.len(), "FRAME-2"))?;
    assert!(end <= bytes.len(), "FRAME-1");
    let mut read = Vec::new();
    let mut length = 0;
    for (sequence, frame) in (0..).zip(&frames) {
        assert_eq!(frame.sequence, sequence, "FRAME-1");
        let again = encode(magic, frame);
        let twice = frame::scan(magic, &again.clone().into(), sequence).ok();
        let twice = twice.expect("FRAME-1: it was just encoded").frames;
        assert_eq!(
            twice.iter().map(|frame| encode(magic, frame)).collect::<Vec<_>>(),
            [&again[..]]
        );
        // Numbers of variable length may be longer than necessary in the bytes that were read.
        length = bytes_of(&bytes[length..], length);
        read.push((again, length));
    }
    assert_eq!(length, end, "FRAME-1");
    Ok(read)
}

/// Returns the end of the first frame in `bytes`, if it starts at `start`.
fn bytes_of(bytes: &[u8], start: usize) -> usize {
    let length = u32::from_le_bytes(bytes[12..16].try_into().expect("four"));
    start + 36 + length as usize
}

fn encode(magic: u64, frame: &Frame) -> Vec<u8> {
    let mut bytes =
        frame::encode(magic, frame.sequence, frame.durable, &frame.entry, &frame.payload);
    bytes.extend_from_slice(&frame.payload);
    bytes
}

#[cfg(test)]
mod tests {
    use crate::{mutate::mutate, replay::replay};

    #[test]
    fn stored_inputs_do_no_harm() {
        replay("fs_log", super::run);
    }

    #[test]
    fn mutated_inputs_do_no_harm() {
        mutate("fs_log", super::run);
    }
}
