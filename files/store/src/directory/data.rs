//! Applies changes of contents and attributes to the directory, and reads both.

use std::os::fd::OwnedFd;

use apus_fs_core::wire::{AllocateMode, Data, Errno, Ino, Record, SeekTarget, SetAttributes};
use bytes::Bytes;
use rustix::fs::{AtFlags, FallocateFlags, SeekFrom, XattrFlags};

use super::attributes::{set_owner, times};
use super::files::{Files, mode_of, proc_path};
use super::identity::{errno, status_of};
use super::table::Table;

impl Files {
    /// Carries out a record that changes no names.
    pub(crate) fn perform_data(
        &mut self,
        table: &Table,
        record: &Record,
        payload: &Bytes,
    ) -> Result<(), Errno> {
        match record {
            Record::Write { file, offset, data, time } => {
                let bytes = part(payload, *data)?;
                let file = self.contents(table, file.ino, true)?;
                self.fail_point.pass();
                write_all(&file, bytes, *offset)?;
                self.fail_point.pass();
                rustix::fs::futimens(&file, &times(None, Some(*time))).map_err(errno)
            }
            Record::SetAttributes { node, set } => self.set_attributes(table, node.ino, set),
            Record::Allocate { file, mode, offset, length } => {
                let file = self.contents(table, file.ino, true)?;
                self.fail_point.pass();
                allocate(&file, *mode, *offset, *length)
            }
            Record::SetXattr { node, name, value } => {
                let file = self.reach(table, node.ino)?;
                self.fail_point.pass();
                rustix::fs::setxattr(proc_path(&file), &name[..], value, XattrFlags::empty())
                    .map_err(errno)
            }
            Record::RemoveXattr { node, name } => {
                let file = self.reach(table, node.ino)?;
                self.fail_point.pass();
                rustix::fs::removexattr(proc_path(&file), &name[..]).map_err(errno)
            }
            Record::Create { .. }
            | Record::Link { .. }
            | Record::Unlink { .. }
            | Record::RemoveDirectory { .. }
            | Record::Rename { .. }
            | Record::CopyRange { .. }
            | Record::Close { .. } => Ok(()),
        }
    }

    /// Size first, because it needs permission; then the owner, which clears bits of the mode;
    /// times last, because all else changes them.
    fn set_attributes(
        &mut self,
        table: &Table,
        ino: Ino,
        set: &SetAttributes,
    ) -> Result<(), Errno> {
        if let Some(size) = set.size {
            self.truncate(table, ino, size)?;
        }
        let file = self.reach(table, ino)?;
        if self.sets_owners && (set.uid.is_some() || set.gid.is_some()) {
            self.fail_point.pass();
            set_owner(&file, set.uid, set.gid)?;
        }
        if let Some(mode) = set.mode {
            self.fail_point.pass();
            rustix::fs::chmod(proc_path(&file), mode_of(mode)).map_err(errno)?;
        }
        if set.atime.is_some() || set.mtime.is_some() {
            self.fail_point.pass();
            let times = times(set.atime, set.mtime);
            rustix::fs::utimensat(&file, "", &times, AtFlags::EMPTY_PATH).map_err(errno)?;
        }
        Ok(())
    }

    /// Sets the length of a file.
    pub(crate) fn truncate(&mut self, table: &Table, ino: Ino, size: u64) -> Result<(), Errno> {
        let file = self.contents(table, ino, true)?;
        self.fail_point.pass();
        rustix::fs::ftruncate(&file, size).map_err(errno)
    }

    /// Reads bytes of a file; fewer only at its end.
    pub(crate) fn read(
        &mut self,
        table: &Table,
        ino: Ino,
        offset: u64,
        length: u64,
    ) -> Result<Bytes, Errno> {
        let file = self.contents(table, ino, false)?;
        // The allocation is bounded by the size of the file.
        let size = status_of(&file)?.attributes.size;
        let length = length.min(size.saturating_sub(offset)) as usize;
        let mut bytes = vec![0; length];
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            match rustix::io::pread(&file, &mut bytes[done..], at).map_err(errno)? {
                0 => break,
                read => done += read,
            }
        }
        bytes.truncate(done);
        Ok(bytes.into())
    }

    /// Finds the next data or hole of a file.
    pub(crate) fn seek(
        &mut self,
        table: &Table,
        ino: Ino,
        offset: u64,
        target: SeekTarget,
    ) -> Result<u64, Errno> {
        let file = self.contents(table, ino, false)?;
        let from = match target {
            SeekTarget::Data => SeekFrom::Data(offset),
            SeekTarget::Hole => SeekFrom::Hole(offset),
        };
        rustix::fs::seek(&file, from).map_err(errno)
    }

    /// Returns the value of an extended attribute.
    pub(crate) fn xattr(&mut self, table: &Table, ino: Ino, name: &[u8]) -> Result<Bytes, Errno> {
        let file = self.reach(table, ino)?;
        let mut value = vec![0; apus_fs_core::wire::limits::MAX_XATTR_VALUE];
        let length = rustix::fs::getxattr(proc_path(&file), name, &mut value[..]).map_err(errno)?;
        value.truncate(length);
        Ok(value.into())
    }

    /// Returns the names of all extended attributes.
    pub(crate) fn xattrs(&mut self, table: &Table, ino: Ino) -> Result<Vec<Bytes>, Errno> {
        let file = self.reach(table, ino)?;
        // Source: Linux XATTR_LIST_MAX.
        let mut list = vec![0_u8; 65_536];
        let length = rustix::fs::listxattr(proc_path(&file), &mut list[..]).map_err(errno)?;
        let names = list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.map(Bytes::copy_from_slice).collect())
    }
}

/// Returns the bytes of a payload that a record refers to.
fn part(payload: &Bytes, data: Data) -> Result<&[u8], Errno> {
    let start = data.start as usize;
    let end = start.checked_add(data.length as usize).ok_or(Errno::INVAL)?;
    payload.get(start..end).ok_or(Errno::INVAL)
}

fn write_all(file: &OwnedFd, mut bytes: &[u8], mut offset: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(file, bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => {
                bytes = &bytes[written..];
                offset += written as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(errno(error)),
        }
    }
    Ok(())
}

fn allocate(file: &OwnedFd, mode: AllocateMode, offset: u64, length: u64) -> Result<(), Errno> {
    let flags = match mode {
        AllocateMode::Extend => FallocateFlags::empty(),
        AllocateMode::KeepSize => FallocateFlags::KEEP_SIZE,
        AllocateMode::PunchHole => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        AllocateMode::Zero => FallocateFlags::ZERO_RANGE,
        AllocateMode::ZeroKeepSize => FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE,
    };
    let done = rustix::fs::fallocate(file, flags, offset, length).map_err(errno);
    if done != Err(Errno::OPNOTSUPP) || !flags.contains(FallocateFlags::ZERO_RANGE) {
        return done;
    }
    // tmpfs cannot zero a range, but can free it, and a freed range reads as zeros.
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, hole, offset, length).map_err(errno)?;
    let end = offset.checked_add(length).ok_or(Errno::INVAL)?;
    if mode == AllocateMode::Zero && status_of(file)?.attributes.size < end {
        rustix::fs::ftruncate(file, end).map_err(errno)?;
    }
    Ok(())
}
