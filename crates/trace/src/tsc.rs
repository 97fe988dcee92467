//! What does the processor's time stamp counter say?

/// The counter. Whether it counts at the same rate on all cores and at all times is for [`crate::clock`] to know.
#[inline]
pub(crate) fn read() -> u64 {
    // SAFETY: the instruction reads a counter into registers and touches no memory. Every x86-64 processor has it; a
    // system that forbids it to programs (PR_SET_TSC) ends the program with a signal, which breaks no invariant.
    unsafe { core::arch::x86_64::_rdtsc() }
}
