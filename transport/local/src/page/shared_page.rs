//! The page: a sealed memory file, and its mapping.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::memory::Memory;
use crate::memory::segment::{create_sealed, is_sealed};
use crate::sync::AtomicU64;

/// Memory that several processes map.
pub struct SharedPage {
    file: OwnedFd,
    memory: Memory,
    len: usize,
}

impl SharedPage {
    /// Creates `len` bytes, all 0.
    ///
    /// # Errors
    ///
    /// Any error of memfd_create(2), ftruncate(2), fcntl(2) and mmap(2).
    ///
    /// # Panics
    ///
    /// `len` is no multiple of 8.
    pub fn create(len: usize) -> std::io::Result<Self> {
        Self::map(create_sealed("apus-page", len)?, len)
    }

    /// Takes over a file that another process has created. `None` if it is no sealed memory file of
    /// `len` bytes: access to it could end this process.
    pub(super) fn adopt(file: OwnedFd, len: usize) -> Option<Self> {
        let is_safe = is_sealed(&file, len).unwrap_or(false);
        is_safe.then(|| Self::map(file, len).ok()).flatten()
    }

    fn map(file: OwnedFd, len: usize) -> std::io::Result<Self> {
        let memory = Memory::map(file.as_fd(), len)?;
        Ok(Self { file, memory, len })
    }

    /// Returns the eight bytes at `offset`.
    ///
    /// # Panics
    ///
    /// `offset` is no multiple of 8, or behind the end.
    #[must_use]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        self.memory.word(offset)
    }

    /// Returns the number of bytes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a page is never empty")]
    pub const fn len(&self) -> usize {
        self.len
    }
}

impl AsFd for SharedPage {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl std::fmt::Debug for SharedPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedPage").field("len", &self.len).finish_non_exhaustive()
    }
}
