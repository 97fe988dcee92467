//! Access to memory that another process may change at any instant.
//!
//! This file has the raw accesses and offers safe calls on offsets. No reference to plain bytes of
//! the mapping ever exists, only to atomics; payload is copied in and out by address.
//!
//! # Invariants
//!
//! - **MAPPING-1** Every access is inside the mapping. This file asserts it, independent of earlier
//!   checks by the caller. The length is a multiple of 8, so a word that starts inside ends inside.
//! - **MAPPING-2** The mapping cannot become shorter: its file is sealed ([`super::segment`]), so
//!   no access ends in SIGBUS for that reason.
//! - **MAPPING-3** Every value that a decision depends on is read once, as an atomic. Only payload
//!   is copied as plain bytes, and no decision depends on payload before the fence behind the copy.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;

use crate::sync::{AtomicU32, AtomicU64};

/// Bytes of a cache line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// A reference to a shared mapping, which is unmapped with the last reference. Each reference holds
/// the address, so that an access to the memory touches no cache line but the reference's own.
#[derive(Clone)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    len: usize,
    _mapping: Arc<Mapping>,
}

/// The mapping to be unmapped.
struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: The mapping belongs to the process, not to a thread. All accesses go through atomics, or
// copy bytes that the ring protocol gives to one side at a time (`ring`).
unsafe impl Send for Memory {}
// SAFETY: As for `Send`.
unsafe impl Sync for Memory {}
// SAFETY: As for `Memory`; its only use is to unmap.
unsafe impl Send for Mapping {}
// SAFETY: As for `Send`.
unsafe impl Sync for Mapping {}

impl Memory {
    /// Maps `len` bytes of `file`, which must have been sealed against shrinking (MAPPING-2).
    ///
    /// # Errors
    ///
    /// Any error of mmap(2).
    pub(crate) fn map(file: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        assert!(len.is_multiple_of(8), "MAPPING-1: {len}");
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: A new mapping at an address of the kernel's choice touches no existing memory.
        let base = unsafe { rustix::mm::mmap(ptr::null_mut(), len, prot, flags, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { base, len, _mapping: Arc::new(Mapping { base, len }) })
    }

    /// Returns the address of `len` bytes at `offset`, inside the mapping (MAPPING-1).
    #[inline]
    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset <= self.len && len <= self.len - offset, "MAPPING-1");
        // SAFETY: `offset` is inside the mapping, which is one allocated object.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// Returns the address of `len` bytes, a power of two up to 8, at `offset`, a multiple of
    /// `len`.
    #[inline]
    fn at_aligned(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.is_multiple_of(len) && offset < self.len, "MAPPING-1");
        // SAFETY: As for `at`.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// Returns the eight bytes at `offset`, a multiple of 8.
    #[inline]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        let at = self.at_aligned(offset, 8);
        // SAFETY: The address is aligned, as mappings start at pages, and mapped for as long as
        // `self` lives. In this process, bytes that are used as a word are accessed only as
        // atomics.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    /// Returns the words at `offset`, a multiple of 8.
    #[inline]
    pub(crate) fn words<const N: usize>(&self, offset: usize) -> [&AtomicU64; N] {
        assert!(offset.is_multiple_of(8));
        let at = self.at(offset, 8 * N);
        // SAFETY: As for `word`; an atomic has the size and alignment of its value.
        let words = unsafe { &*at.cast::<[AtomicU64; N]>() };
        words.each_ref()
    }

    /// Returns the four bytes at `offset`, a multiple of 4.
    #[inline]
    pub(crate) fn half(&self, offset: usize) -> &AtomicU32 {
        let at = self.at_aligned(offset, 4);
        // SAFETY: As for `word`.
        unsafe { AtomicU32::from_ptr(at.cast()) }
    }

    /// Copies `bytes` to `offset`.
    #[inline]
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: `to` is valid for `bytes.len()` bytes. The source is a borrowed slice, which
        // cannot be part of the mapping: no slices of the mapping exist.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Returns a copy of the `len` bytes at `offset` in newly allocated memory: fewer steps than
    /// appending to memory that may have room.
    #[inline]
    pub(crate) fn read(&self, offset: usize, len: usize) -> Bytes {
        let from = self.at(offset, len);
        let mut copy = Box::<[u8]>::new_uninit_slice(len);
        // SAFETY: Both are valid for `len` bytes, and the new memory is not part of the mapping. A
        // concurrent write by the peer only changes the values of the copied bytes: any byte is a
        // valid `u8`.
        unsafe { ptr::copy_nonoverlapping(from, copy.as_mut_ptr().cast(), len) };
        // MAPPING-3, as in `append`.
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        // SAFETY: The copy has initialised all `len` bytes.
        Bytes::from(unsafe { copy.assume_init() })
    }

    /// Appends the `len` bytes at `offset` to `out`.
    #[inline]
    pub(crate) fn append(&self, offset: usize, len: usize, out: &mut BytesMut) {
        let from = self.at(offset, len);
        out.reserve(len);
        let room = out.spare_capacity_mut();
        assert!(room.len() >= len);
        // SAFETY: Both are valid for `len` bytes, and `out` is not part of the mapping. A
        // concurrent write by the peer only changes the values of the copied bytes: any byte is a
        // valid `u8`.
        unsafe { ptr::copy_nonoverlapping(from, room.as_mut_ptr().cast(), len) };
        // MAPPING-3: the compiler has to assume that the source changes here, so it cannot read it
        // again in place of the copy.
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        // SAFETY: The copy has initialised `len` more bytes.
        unsafe { out.advance_mut(len) };
    }

    /// Prefetches the cache line at `offset` for writing. A hint without effect on contents.
    #[inline]
    pub(crate) fn prefetch(&self, offset: usize) {
        let at = self.at(offset, 1);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: PREFETCHW changes no memory and raises no exception whatever the address, which
        // is inside the mapping.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags));
        }
    }

    /// Demotes the cache lines of `len` bytes at `offset` to a cache where other cores find them
    /// sooner. A hint.
    #[inline]
    pub(crate) fn demote(&self, offset: usize, len: usize) {
        let at = self.at(offset, len);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        for line in (0..len).step_by(LINE) {
            // SAFETY: CLDEMOTE changes no memory and raises no exception whatever the address,
            // which is inside the mapping; on processors without it, it is a no-op.
            unsafe {
                std::arch::asm!("cldemote [{}]", in(reg) at.wrapping_add(line), options(nostack, preserves_flags));
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = at;
    }

    /// Sleeps while the four bytes at `offset` are `value`, for up to `time`. May return early.
    pub(crate) fn futex_wait(&self, offset: usize, value: u32, time: Duration) {
        let time = futex::Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        // The call ends when the futex is woken, the word has changed, time is up, or a signal
        // arrives. The caller reads the word in every case.
        let _ = futex::wait(self.half(offset), futex::Flags::empty(), value, Some(&time));
    }

    /// Wakes all threads, of any process, that sleep on the four bytes at `offset`.
    pub(crate) fn futex_wake(&self, offset: usize) {
        let _ = futex::wake(self.half(offset), futex::Flags::empty(), i32::MAX as u32);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: This object owns the mapping, and no reference to it is left.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("len", &self.len).finish_non_exhaustive()
    }
}
