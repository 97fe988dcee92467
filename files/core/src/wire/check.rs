//! Checks of the contents of decoded messages.

use crate::wire::attributes::Time;
use crate::wire::callback::{Callback, CallbackResponse};
use crate::wire::limits::{
    MAX_CLIENT_NAME, MAX_ENTRIES, MAX_EXPORT_NAME, MAX_NODES, MAX_PATH_COMPONENTS, MAX_PAYLOAD,
    MAX_RANGES, MAX_RECORDS, MAX_TARGET, MAX_XATTR_NAME, MAX_XATTR_VALUE,
};
use crate::wire::record::{NewNode, Record};
use crate::wire::request::{Lock, Request, SessionRequest};
use crate::wire::response::{PathStep, Response};

/// Contents that no message can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lie {
    /// A list has more elements than [`limits`](crate::wire::limits) permit.
    #[error("a list is too long")]
    ListTooLong,
    /// A string has more bytes than [`limits`](crate::wire::limits) permit, or none, or a NUL.
    #[error("a name, target or value is impossible")]
    ImpossibleString,
    /// A range ends outside of the payload, or beyond the largest position.
    #[error("a range is impossible")]
    ImpossibleRange,
    /// A mode has more than twelve bits, or a time a billion nanoseconds.
    #[error("an attribute is impossible")]
    ImpossibleAttribute,
}

/// Largest position in a file. Source: Linux `loff_t` is signed.
const MAX_POSITION: u64 = i64::MAX as u64;

/// A message that can be checked.
pub trait Check {
    /// Checks a message with `payload` bytes of payload.
    ///
    /// # Errors
    ///
    /// Returns the impossible contents.
    fn check(&self, payload: usize) -> Result<(), Lie>;
}

fn short<T>(list: &[T], most: usize) -> Result<(), Lie> {
    if list.len() > most { Err(Lie::ListTooLong) } else { Ok(()) }
}

fn string(bytes: &[u8], most: usize) -> Result<(), Lie> {
    let possible = (1..=most).contains(&bytes.len()) && !bytes.contains(&0);
    if possible { Ok(()) } else { Err(Lie::ImpossibleString) }
}

fn position(offset: u64, length: u64) -> Result<(), Lie> {
    let end = offset.checked_add(length).filter(|end| *end <= MAX_POSITION);
    end.map(|_| ()).ok_or(Lie::ImpossibleRange)
}

fn mode(mode: u16) -> Result<(), Lie> {
    if mode <= 0o7777 { Ok(()) } else { Err(Lie::ImpossibleAttribute) }
}

fn time(time: Time) -> Result<(), Lie> {
    if time.nanoseconds < 1_000_000_000 { Ok(()) } else { Err(Lie::ImpossibleAttribute) }
}

impl Check for Request {
    fn check(&self, payload: usize) -> Result<(), Lie> {
        match self {
            Self::Hello(hello) => {
                if hello.name.len() > MAX_CLIENT_NAME || hello.export.len() > MAX_EXPORT_NAME {
                    Err(Lie::ImpossibleString)
                } else {
                    short(&hello.ranges, MAX_RANGES)
                }
            }
            Self::Of { request, .. } => request.check(payload),
        }
    }
}

impl Check for SessionRequest {
    fn check(&self, payload: usize) -> Result<(), Lie> {
        match self {
            Self::Reclaim { leases } => short(leases, MAX_NODES),
            Self::LookUp(look_up) => short(&look_up.path, MAX_PATH_COMPONENTS),
            Self::Read { ranges } => {
                short(ranges, MAX_NODES)?;
                let total: u64 = ranges.iter().map(|range| u64::from(range.length)).sum();
                if total > MAX_PAYLOAD as u64 {
                    return Err(Lie::ImpossibleRange);
                }
                ranges.iter().try_for_each(|range| position(range.offset, range.length.into()))
            }
            Self::Batch(batch) => {
                short(&batch.records, MAX_RECORDS)?;
                short(&batch.returns, MAX_NODES)?;
                batch.records.iter().try_for_each(|record| check_record(record, payload))
            }
            Self::Lease { wanted } => short(wanted, MAX_NODES),
            Self::Release { leases } => short(leases, MAX_NODES),
            Self::Lock(lock) | Self::TestLock(lock) => check_lock(lock),
            Self::GetXattr { name, .. } => string(name, MAX_XATTR_NAME),
            Self::Seek { offset, .. } => position(*offset, 0),
            Self::Renew
            | Self::Goodbye
            | Self::ListTree(_)
            | Self::CancelLock { .. }
            | Self::ListXattr { .. }
            | Self::StatFs
            | Self::Status => Ok(()),
        }
    }
}

fn check_lock(lock: &Lock) -> Result<(), Lie> {
    if lock.range.start <= lock.range.end { Ok(()) } else { Err(Lie::ImpossibleRange) }
}

fn check_record(record: &Record, payload: usize) -> Result<(), Lie> {
    match record {
        Record::Create { node, mode: bits, time: at, .. } => {
            mode(*bits)?;
            time(*at)?;
            match node {
                NewNode::Symlink { target } => string(target, MAX_TARGET),
                NewNode::File | NewNode::Directory | NewNode::Special { .. } => Ok(()),
            }
        }
        Record::Write { offset, data, time: at, .. } => {
            time(*at)?;
            position(*offset, data.length.into())?;
            let end = u64::from(data.start) + u64::from(data.length);
            if end > payload as u64 { Err(Lie::ImpossibleRange) } else { Ok(()) }
        }
        Record::SetAttributes { set, .. } => {
            set.mode.map_or(Ok(()), mode)?;
            set.size.map_or(Ok(()), |size| position(size, 0))?;
            [set.atime, set.mtime].into_iter().flatten().try_for_each(time)
        }
        Record::Allocate { offset, length, .. } => position(*offset, *length),
        Record::CopyRange { from_offset, to_offset, length, .. } => {
            position(*from_offset, *length)?;
            position(*to_offset, *length)
        }
        Record::SetXattr { name, value, .. } => {
            if value.len() > MAX_XATTR_VALUE {
                return Err(Lie::ImpossibleString);
            }
            string(name, MAX_XATTR_NAME)
        }
        Record::RemoveXattr { name, .. } => string(name, MAX_XATTR_NAME),
        Record::Link { .. }
        | Record::Unlink { .. }
        | Record::RemoveDirectory { .. }
        | Record::Rename { .. }
        | Record::Close { .. } => Ok(()),
    }
}

impl Check for Response {
    fn check(&self, payload: usize) -> Result<(), Lie> {
        match self {
            Self::Reclaimed(leases) => short(leases, MAX_NODES),
            Self::Found { steps, start } => {
                short(steps, MAX_PATH_COMPONENTS)?;
                check_attributes(&start.attributes)?;
                steps.iter().try_for_each(|step| match step {
                    PathStep::Found(entry) => check_attributes(&entry.attributes),
                    PathStep::Absent | PathStep::Failed(_) => Ok(()),
                })
            }
            Self::Listed(listings) => {
                let entries: usize = listings.iter().map(|listing| listing.entries.len() + 1).sum();
                if entries > MAX_ENTRIES {
                    return Err(Lie::ListTooLong);
                }
                listings.iter().try_for_each(|listing| check_attributes(&listing.attributes))?;
                let all = listings.iter().flat_map(|listing| &listing.entries);
                all.into_iter().try_for_each(|(_, entry)| check_attributes(&entry.attributes))
            }
            Self::ReadDone(ranges) => {
                short(ranges, MAX_NODES)?;
                let total: u64 = ranges.iter().map(|(length, _)| u64::from(*length)).sum();
                if total == payload as u64 { Ok(()) } else { Err(Lie::ImpossibleRange) }
            }
            Self::BatchDone(done) => {
                short(&done.changed, MAX_ENTRIES)?;
                done.changed.iter().try_for_each(|(_, attributes)| check_attributes(attributes))
            }
            Self::Leased { leases, lent } => {
                short(lent, MAX_NODES)?;
                short(leases, MAX_NODES)?;
                leases.iter().filter_map(|(_, has)| has.as_ref()).try_for_each(check_attributes)
            }
            Self::Welcome(welcome) => check_attributes(&welcome.root.attributes),
            Self::Xattr(value) => {
                if value.len() > MAX_XATTR_VALUE {
                    Err(Lie::ImpossibleString)
                } else {
                    Ok(())
                }
            }
            Self::Xattrs(names) => {
                short(names, MAX_ENTRIES)?;
                names.iter().try_for_each(|name| string(name, MAX_XATTR_NAME))
            }
            Self::Failed(_)
            | Self::Done
            | Self::Locked(_)
            | Self::Position(_)
            | Self::Space(_)
            | Self::Status(_) => Ok(()),
        }
    }
}

fn check_attributes(attributes: &crate::wire::Attributes) -> Result<(), Lie> {
    mode(attributes.mode)?;
    position(attributes.size, 0)?;
    let times =
        [Some(attributes.atime), Some(attributes.mtime), Some(attributes.ctime), attributes.btime];
    times.into_iter().flatten().try_for_each(time)
}

impl Check for Callback {
    fn check(&self, _: usize) -> Result<(), Lie> {
        match self {
            Self::Recall { nodes, .. } => short(nodes, MAX_NODES),
            Self::Fence { .. } => Ok(()),
        }
    }
}

impl Check for CallbackResponse {
    fn check(&self, _: usize) -> Result<(), Lie> {
        match self {
            Self::Recalled { open } => short(open, MAX_NODES),
            Self::UnknownSession | Self::Malformed => Ok(()),
        }
    }
}
