//! The descriptors that a child of fork(2) closes.
//!
//! An inherited socket keeps its port and its name in use, and hides the end of its owner from the
//! peer at the other end of a pair. So the handler of a fork closes all of them. The table has no
//! lock, since the handler runs while other threads may be changing it.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Descriptors of one word.
const BITS: usize = u64::BITS as usize;

/// Words of the table: 2^20 descriptors, which is `fs.nr_open` of Linux. A descriptor with a higher
/// number stays open in children.
const WORDS: usize = (1 << 20) / BITS;

/// The descriptors to close in a child. Untouched pages of it take no memory.
static OPEN: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// Words that have been used: a child reads no others.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Closes all descriptors of the table, in a child.
pub(crate) fn close_inherited() {
    for (index, word) in OPEN[..USED.load(Ordering::Acquire)].iter().enumerate() {
        let mut bits = word.swap(0, Ordering::AcqRel);
        while bits != 0 {
            let bit = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            // SAFETY: The number was of an `OwnedFd` of the parent, which is not used or dropped in
            // this process (PROCESS-2). If it is not open here, close(2) fails.
            unsafe { libc::close((index * BITS + bit) as RawFd) };
        }
    }
}

/// Has `fd` closed in each child.
pub(crate) fn add(fd: RawFd) {
    if let Some((word, bit)) = place(fd) {
        USED.fetch_max(word + 1, Ordering::AcqRel);
        OPEN[word].fetch_or(bit, Ordering::AcqRel);
    }
}

/// Leaves `fd` alone in children, before it is closed here.
pub(crate) fn remove(fd: RawFd) {
    if let Some((word, bit)) = place(fd) {
        OPEN[word].fetch_and(!bit, Ordering::AcqRel);
    }
}

/// Returns the word and the bit of a descriptor.
fn place(fd: RawFd) -> Option<(usize, u64)> {
    let fd = usize::try_from(fd).ok()?;
    (fd / BITS < WORDS).then_some((fd / BITS, 1 << (fd % BITS)))
}
