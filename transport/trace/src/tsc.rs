//! The processor's time stamp counter.

/// Reads the counter. [`crate::clock`] determines whether it runs at the same rate on all cores and
/// at all times.
#[inline]
pub(crate) fn read() -> u64 {
    // SAFETY: The instruction reads a counter into registers and accesses no memory. Every x86-64
    // processor has it; a system that forbids it to programs (PR_SET_TSC) ends the program with a
    // signal, which breaks no invariant.
    unsafe { core::arch::x86_64::_rdtsc() }
}
