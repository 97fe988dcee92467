//! The log: frames are appended to one segment, and made durable.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use apus_fs_core::store::StoreError;
use bytes::Bytes;
use rustix::fs::{Mode, OFlags};

use super::error::failed;
use super::fail_point::FailPoint;
use super::frame::{self, FrameEntry};
use super::state::{StateFolder, segment_name};

/// Buffers of one system call. Source: Linux `UIO_MAXIOV`.
const MAX_BUFFERS: usize = 1024;

/// Why frames were not written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// There is no space; the log is as it was.
    Full,
    /// The log cannot be relied on any more.
    Broken(StoreError),
}

/// The segment of the log that is written.
#[derive(Debug)]
pub(crate) struct Log {
    file: OwnedFd,
    path: PathBuf,
    magic: u64,
    /// Number of the segment's first frame.
    first: u64,
    /// Number of the next frame.
    next: u64,
    /// All frames below are durable.
    durable: u64,
    /// Bytes of the segment.
    end: u64,
    fail_point: FailPoint,
}

impl Log {
    /// Creates a segment durably.
    pub(crate) fn create(
        state: &StateFolder,
        magic: u64,
        first: u64,
        fail_point: FailPoint,
    ) -> Result<Self, StoreError> {
        let name = segment_name(first);
        let path = state.path.join(&name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&state.directory, &*name, flags | OFlags::NOFOLLOW, mode)
            .map_err(failed("create", &path))?;
        state.sync()?;
        Ok(Self { file, path, magic, first, next: first, durable: first, end: 0, fail_point })
    }

    /// Continues a segment that has frames from `first` to before `next` in its first `end` bytes;
    /// the rest is cut off.
    pub(crate) fn resume(
        state: &StateFolder,
        magic: u64,
        (first, next): (u64, u64),
        end: u64,
        fail_point: FailPoint,
    ) -> Result<Self, StoreError> {
        let name = segment_name(first);
        let path = state.path.join(&name);
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::openat(&state.directory, &*name, flags, Mode::empty())
            .map_err(failed("open", &path))?;
        // The frames read are about to be applied, so they must be durable first.
        rustix::fs::ftruncate(&file, end)
            .and_then(|()| rustix::fs::fdatasync(&file))
            .map_err(failed("truncate", &path))?;
        Ok(Self { file, path, magic, first, next, durable: next, end, fail_point })
    }

    /// Creates the next segment.
    pub(crate) fn succeed(&self, state: &StateFolder) -> Result<Self, StoreError> {
        Self::create(state, self.magic, self.next, self.fail_point.clone())
    }

    /// Returns the number of the segment's first frame.
    pub(crate) const fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of the next frame.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the bytes of the segment.
    pub(crate) const fn length(&self) -> u64 {
        self.end
    }

    /// Appends frames, and makes them durable on request.
    pub(crate) fn write(
        &mut self,
        entries: &[(FrameEntry, Bytes)],
        durably: bool,
    ) -> Result<(), WriteError> {
        let mut buffers = Vec::with_capacity(entries.len() * 2);
        for (sequence, (entry, payload)) in (self.next..).zip(entries) {
            let frame = frame::encode(self.magic, sequence, self.durable, entry, payload);
            buffers.extend([Bytes::from(frame), payload.clone()]);
        }
        if self.fail_point.is_due() {
            // A torn write.
            let total: usize = buffers.iter().map(Bytes::len).sum();
            let _ = self.write_buffers(&buffers, total / 2);
            FailPoint::crash();
        }
        let total = buffers.iter().map(Bytes::len).sum();
        let written = self.write_buffers(&buffers, total).and_then(|()| match durably {
            true => rustix::fs::fdatasync(&self.file).map_err(io::Error::from),
            false => Ok(()),
        });
        match written {
            Ok(()) => {
                self.end += total as u64;
                self.next += entries.len() as u64;
                if durably {
                    self.durable = self.next;
                }
                Ok(())
            }
            Err(error) if matches!(error.raw_os_error(), Some(28 | 122)) => {
                rustix::fs::ftruncate(&self.file, self.end)
                    .map_err(|error| WriteError::Broken(failed("truncate", &self.path)(error)))?;
                Err(WriteError::Full)
            }
            Err(error) => Err(WriteError::Broken(failed("write", &self.path)(error))),
        }
    }

    /// Writes the first `total` bytes of the buffers at the segment's end.
    fn write_buffers(&self, buffers: &[Bytes], total: usize) -> io::Result<()> {
        let (mut index, mut skip, mut done) = (0, 0, 0);
        while done < total {
            let mut room = total - done;
            let mut slices = Vec::new();
            for buffer in buffers[index..].iter().take(MAX_BUFFERS) {
                let from = if slices.is_empty() { skip } else { 0 };
                let slice = &buffer[from..];
                slices.push(IoSlice::new(&slice[..slice.len().min(room)]));
                room -= slice.len().min(room);
            }
            let mut written = rustix::io::pwritev(&self.file, &slices, self.end + done as u64)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            done += written;
            while index < buffers.len() && written >= buffers[index].len() - skip {
                written -= buffers[index].len() - skip;
                (index, skip) = (index + 1, 0);
            }
            skip += written;
        }
        Ok(())
    }
}
