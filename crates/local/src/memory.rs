//! How is memory touched that another process may change at any instant?
//!
//! The file with the raw accesses. It offers safe calls on offsets. No reference to plain bytes of the
//! mapping ever exists, only to atomics; bytes are copied in and out by address.
//!
//! # Invariants
//!
//! - **S1** Every access lies inside of the mapping: asserted here, whatever the caller has checked before. Its length
//!   is a multiple of 8, so a word that begins inside ends inside.
//! - **S2** The mapping cannot become shorter than it is: its file is sealed ([`super::segment`]), so no
//!   access ends in SIGBUS for that reason.
//! - **S3** What is decided on is read as an atomic, once. Only payload is copied as plain bytes, and
//!   nothing is decided on payload before the fence behind the copy.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;

use crate::sync::{AtomicU32, AtomicU64};

/// Bytes of a cache line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// A reference to a shared mapping, which ends with the last one. The address is in each of them: a look at the
/// memory goes through no other line than the one that the reference is in.
#[derive(Clone)]
pub(crate) struct Memory {
    base: NonNull<u8>,
    len: usize,
    _mapping: Arc<Mapping>,
}

/// What is to be unmapped.
struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: The mapping belongs to the process and not to a thread; all accesses go through atomics, or copy
// bytes that the rings' protocol gives to one side at a time (`ring`).
unsafe impl Send for Memory {}
// SAFETY: As above.
unsafe impl Sync for Memory {}
// SAFETY: As above; nothing but the end is done through it.
unsafe impl Send for Mapping {}
// SAFETY: As above.
unsafe impl Sync for Mapping {}

impl Memory {
    /// Maps `len` bytes of `file`, which must have been sealed against shrinking (S2).
    ///
    /// # Errors
    ///
    /// The system's.
    pub(crate) fn map(file: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        assert!(len.is_multiple_of(8), "S1: {len}");
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: A new mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { rustix::mm::mmap(ptr::null_mut(), len, prot, flags, file, 0)? };
        let base = NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)?;
        Ok(Self { base, len, _mapping: Arc::new(Mapping { base, len }) })
    }

    /// The address of `len` bytes at `offset`; S1.
    #[inline]
    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset <= self.len && len <= self.len - offset, "S1");
        // SAFETY: `offset` lies inside of the mapping, which is one allocated object.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// As `at`, for a few bytes at a multiple of their number, a power of two up to 8.
    #[inline]
    fn at_aligned(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.is_multiple_of(len) && offset < self.len, "S1");
        // SAFETY: As for `at`.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// The eight bytes at `offset`, a multiple of 8.
    #[inline]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        let at = self.at_aligned(offset, 8);
        // SAFETY: Aligned, as mappings begin at pages; mapped for as long as `self` lives; nobody in this
        // process makes anything but atomics of these bytes while it is used as a word.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    /// The words at `offset`, a multiple of 8.
    #[inline]
    pub(crate) fn words<const N: usize>(&self, offset: usize) -> [&AtomicU64; N] {
        assert!(offset.is_multiple_of(8));
        let at = self.at(offset, 8 * N);
        // SAFETY: As for `word`, and atomics have the size of what they hold.
        let words = unsafe { &*at.cast::<[AtomicU64; N]>() };
        words.each_ref()
    }

    /// The four bytes at `offset`, a multiple of 4.
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
        // SAFETY: `to` is valid for as many bytes. The source is a borrowed slice and never part of the
        // mapping, of which no slices exist.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Copies `len` bytes at `offset` behind what is in `out`.
    #[inline]
    pub(crate) fn append(&self, offset: usize, len: usize, out: &mut BytesMut) {
        let from = self.at(offset, len);
        out.reserve(len);
        let room = out.spare_capacity_mut();
        assert!(room.len() >= len);
        // SAFETY: Both are valid for `len` bytes, and `out` is not part of the mapping. A peer that writes
        // meanwhile changes which bytes are copied, and nothing else: any byte is a valid `u8`.
        unsafe { ptr::copy_nonoverlapping(from, room.as_mut_ptr().cast(), len) };
        // S3: the compiler has to suppose that the source changes here, so it cannot read it again in place
        // of the copy.
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        // SAFETY: `len` more bytes were initialised right now.
        unsafe { out.advance_mut(len) };
    }

    /// Fetches the cache line at `offset`, which is going to be written: a hint. It changes nothing.
    #[inline]
    pub(crate) fn fetch(&self, offset: usize) {
        let at = self.at(offset, 1);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: As for `offer`.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags));
        }
    }

    /// Lets the cache lines of `len` bytes at `offset` go to where other cores find them sooner: a hint.
    #[inline]
    pub(crate) fn offer(&self, offset: usize, len: usize) {
        let at = self.at(offset, len);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        for line in (0..len).step_by(LINE) {
            // SAFETY: CLDEMOTE changes no memory and raises no exception whatever the address, which lies inside
            // of the mapping; processors that do not know it do nothing.
            unsafe {
                std::arch::asm!("cldemote [{}]", in(reg) at.wrapping_add(line), options(nostack, preserves_flags));
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = at;
    }

    /// Sleeps while the four bytes at `offset` are `value`, but no longer than `time`. May return early.
    pub(crate) fn sleep(&self, offset: usize, value: u32, time: Duration) {
        let time = futex::Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        // It ends when it is woken, when the word has changed, when time is up, or by a signal: the caller
        // looks at the word in any case.
        let _ = futex::wait(self.half(offset), futex::Flags::empty(), value, Some(&time));
    }

    /// Ends the sleep of all who sleep on the four bytes at `offset`, in whatever process.
    pub(crate) fn rouse(&self, offset: usize) {
        let _ = futex::wake(self.half(offset), futex::Flags::empty(), i32::MAX as u32);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: The mapping is ours, and nobody refers to it any more.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("len", &self.len).finish_non_exhaustive()
    }
}
