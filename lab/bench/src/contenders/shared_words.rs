//! Words in memory mapped by several processes: atomics, and waiting on one of them.
//!
//! # Invariants
//!
//! - **SHARED-1** Every access is an atomic inside the mapping; no reference to its plain bytes
//!   exists.
//! - **SHARED-2** The file never shrinks below the mapping: it is sealed at creation.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;

/// Seals that make the length of a file final.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A mapping of a sealed memory file.
pub struct SharedWords {
    base: NonNull<u8>,
    len: usize,
    file: OwnedFd,
}

// SAFETY: The mapping belongs to the process, not to a thread; SHARED-1.
unsafe impl Send for SharedWords {}
// SAFETY: As above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// Creates a file of `len` bytes, a multiple of 8, all zero, and maps it.
    ///
    /// # Errors
    ///
    /// The system has no memory or no descriptors left.
    pub fn create(name: &str, len: usize) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(name, flags)?;
        rustix::fs::ftruncate(&file, len as u64)?;
        rustix::fs::fcntl_add_seals(&file, SEALS)?;
        Self::map(file, len)
    }

    /// Maps the `len` bytes of a file that another process created.
    ///
    /// # Errors
    ///
    /// The system's, or the file is not such a file of this length.
    pub fn adopt(file: OwnedFd, len: usize) -> io::Result<Self> {
        let seals = rustix::fs::fcntl_get_seals(&file)?;
        let length = rustix::fs::fstat(&file)?.st_size;
        if !seals.contains(SEALS) || u64::try_from(length) != Ok(len as u64) {
            let problem = format!("not a sealed file of {len} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        Self::map(file, len)
    }

    fn map(file: OwnedFd, len: usize) -> io::Result<Self> {
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: A new mapping at an address chosen by the kernel replaces no other mapping.
        let base = unsafe { rustix::mm::mmap(ptr::null_mut(), len, prot, flags, &file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { base, len, file })
    }

    /// Returns the eight bytes at `offset`, a multiple of 8.
    ///
    /// # Panics
    ///
    /// They are not inside the memory, or `offset` is not a multiple of 8.
    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < self.len, "SHARED-1");
        // SAFETY: `offset` is inside the mapping.
        let at = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: Aligned, since mappings start at page boundaries, and mapped for the lifetime of
        // `self`; SHARED-1, SHARED-2.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    /// Returns the four bytes at `offset`, a multiple of 4.
    ///
    /// # Panics
    ///
    /// They are not inside the memory, or `offset` is not a multiple of 4.
    #[inline]
    pub fn half(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset < self.len, "SHARED-1");
        // SAFETY: `offset` is inside the mapping.
        let at = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: As for `word`.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }

    /// Returns the `count` words from `offset` on, a multiple of 8.
    ///
    /// # Panics
    ///
    /// They are not inside the memory, or `offset` is not a multiple of 8.
    #[inline]
    pub fn words(&self, offset: usize, count: usize) -> &[AtomicU64] {
        let end = count.checked_mul(8).and_then(|len| len.checked_add(offset));
        let inside = end.is_some_and(|end| end <= self.len);
        assert!(offset.is_multiple_of(8) && inside, "SHARED-1");
        // SAFETY: `offset` is inside the mapping, or at its end if `count` is 0.
        let at = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: As for `word`: aligned, and mapped in full for the lifetime of `self`; SHARED-1,
        // SHARED-2.
        unsafe { slice::from_raw_parts(at.cast(), count) }
    }

    /// Sleeps while the four bytes at `offset` are `value`; may return early.
    pub fn sleep(&self, offset: usize, value: u32) {
        // Every outcome (woken, changed, interrupted) makes the caller read the word again.
        let _ = futex::wait(self.half(offset), futex::Flags::empty(), value, None);
    }

    /// Wakes one thread, in any process, that sleeps on the four bytes at `offset`.
    pub fn wake_one(&self, offset: usize) {
        let _ = futex::wake(self.half(offset), futex::Flags::empty(), 1);
    }
}

impl AsFd for SharedWords {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: `self` created the mapping, and no reference into it outlives `self`.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn two_mappings_share_their_words() {
        let first = SharedWords::create("apus-test", 128).unwrap();
        let file = first.as_fd().try_clone_to_owned().unwrap();
        let second = SharedWords::adopt(file, 128).unwrap();
        first.words(64, 8)[7].store(7, Relaxed);
        assert_eq!(second.word(120).load(Relaxed), 7);
        assert!(second.words(128, 0).is_empty());
    }

    #[test]
    #[should_panic = "SHARED-1"]
    fn words_beyond_the_end_are_refused() {
        let memory = SharedWords::create("apus-test", 128).unwrap();
        let _ = memory.words(64, 9);
    }

    #[test]
    fn another_length_is_refused() {
        let memory = SharedWords::create("apus-test", 128).unwrap();
        let file = memory.as_fd().try_clone_to_owned().unwrap();
        assert!(SharedWords::adopt(file, 256).is_err());
    }
}
