//! The mark that a fork erases: a page that the system wipes in a child, and a handler of
//! pthread_atfork(3).
//!
//! The page recognises every child, however it was made. The handler closes descriptors, and
//! erases the mark where the system wipes no page.

use crate::open_files;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// Bytes of the mapping: the system maps a page of any size.
const PAGE: usize = 4096;

/// The word with the number of this process's generation; 0 in a child, until it has one of its
/// own. Null until the first use. It is never unmapped.
static MARK: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

/// Whether the system does not wipe the mark, so that process ids are compared as well.
static BY_PID: AtomicBool = AtomicBool::new(false);

/// The newest generation of this process and its ancestors. A child has a copy.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Returns the generation of this process; 0 if it has none yet.
#[inline]
pub(crate) fn generation() -> u64 {
    match mark() {
        Some(mark) => mark.load(Ordering::Relaxed),
        None => 0,
    }
}

/// Returns the generation of this process, which gets one if it has none, and whether it must be
/// compared together with the process id.
pub(crate) fn begin_generation() -> (u64, bool) {
    let mark = mark().unwrap_or_else(map);
    let generation = match mark.load(Ordering::Acquire) {
        0 => {
            let fresh = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            let set = mark.compare_exchange(0, fresh, Ordering::AcqRel, Ordering::Acquire);
            set.map_or_else(|other| other, |_| fresh)
        }
        known => known,
    };
    (generation, BY_PID.load(Ordering::Relaxed))
}

#[inline]
fn mark() -> Option<&'static AtomicU64> {
    let mark = MARK.load(Ordering::Acquire);
    // SAFETY: The pointer is null, or from `map`, whose memory is aligned and lives as long as the
    // process, and is accessed as an atomic only.
    unsafe { mark.as_ref() }
}

/// Maps the mark, and installs the handler. Of several threads that do it at once, one counts.
#[cold]
fn map() -> &'static AtomicU64 {
    let fresh = wiped_page().unwrap_or_else(|| {
        BY_PID.store(true, Ordering::Relaxed);
        Box::leak(Box::new(AtomicU64::new(0)))
    });
    let before = ptr::null_mut();
    let set = MARK.compare_exchange(before, fresh, Ordering::AcqRel, Ordering::Acquire);
    if set.is_ok() {
        install();
    }
    // SAFETY: As in `mark`; it is not null any more.
    unsafe { &*set.map_or_else(|other| other, |_| ptr::from_mut(fresh)) }
}

/// Returns the first word of a page that is zero in a child. `None` if the system has no such
/// pages.
fn wiped_page() -> Option<&'static mut AtomicU64> {
    let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: A new mapping at an address of the kernel's choice touches no existing memory.
    let page = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), PAGE, prot, flags) }.ok()?;
    // SAFETY: The mapping is this function's own; the advice changes it in a child only.
    let wiped = unsafe { rustix::mm::madvise(page, PAGE, Advice::LinuxWipeOnFork) };
    if wiped.is_err() {
        // SAFETY: No reference to the mapping exists.
        let _ = unsafe { rustix::mm::munmap(page, PAGE) };
        return None;
    }
    // SAFETY: The page is aligned, zero, and stays mapped; zero is a valid `AtomicU64`.
    unsafe { page.cast::<AtomicU64>().as_mut() }
}

/// Installs the handler for children.
fn install() {
    // SAFETY: `in_child` calls only what may be called between fork and exec.
    // It fails for lack of memory: then descriptors stay open in children.
    let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// Runs in a child before fork(3) returns there. Calls only close(2), and touches only atomics.
unsafe extern "C" fn in_child() {
    if let Some(mark) = mark() {
        mark.store(0, Ordering::Release);
    }
    open_files::close_inherited();
}
