//! Time slices: makes the scheduler run a loop of this crate sooner when it wakes up while other
//! threads are busy.
//!
//! A mount and a server work for waiting programs, in pieces of some 10 to 100 µs, and the programs
//! compete with them for processors. Since Linux 6.12, a thread may request short slices: it runs
//! sooner and more often, for the same share of the processor, without reducing the share of other
//! threads. Earlier kernels ignore the request. A negative niceness or a real-time priority needs
//! root and takes processor time from the programs that are served; `sched_yield` gives the slice
//! away even if no thread waits for this loop.

#![expect(
    unsafe_code,
    reason = "sched_getattr and sched_setattr, for which the C library has no functions"
)]

use std::io;
use std::time::Duration;

/// The slice. Source: the shortest one that Linux grants; `__setparam_fair` in its
/// `kernel/sched/syscalls.c`.
const SLICE: Duration = Duration::from_micros(100);

/// Gives the calling thread short slices; threads that it starts inherit them. Its policy and its
/// niceness stay as they are.
///
/// # Errors
///
/// The system refuses, as a sandbox may: the thread then has the slices that it had.
pub(crate) fn shorten() -> io::Result<()> {
    let mut attributes = read()?;
    let is_fair =
        [libc::SCHED_OTHER, libc::SCHED_BATCH].contains(&(attributes.sched_policy as i32));
    if !is_fair {
        // The thread has a deadline or a real-time priority, which its owner has chosen.
        return Ok(());
    }
    attributes.sched_runtime = SLICE.as_nanos() as u64;
    // SAFETY: the kernel reads `size` bytes of the structure, which is that long and initialised,
    // and keeps no reference to it.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the calling thread's attributes.
fn read() -> io::Result<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>() as u32;
    let mut attributes = libc::sched_attr {
        size,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel writes at most `size` bytes, which is the length of the structure, and any
    // bits are valid numbers.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if result == 0 { Ok(attributes) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this kernel supports slices per thread, as Linux 6.12 does.
    fn has_slices() -> bool {
        let system = rustix::system::uname();
        let release = system.release().to_string_lossy().into_owned();
        let mut numbers = release.split(|byte: char| !byte.is_ascii_digit());
        let mut next = || numbers.next().and_then(|number| number.parse::<u32>().ok());
        (next(), next()) >= (Some(6), Some(12))
    }

    #[test]
    fn a_thread_gets_short_slices_and_keeps_everything_else() {
        let before = read().unwrap();
        shorten().unwrap();
        let after = read().unwrap();
        let others = |it: &libc::sched_attr| (it.sched_policy, it.sched_nice, it.sched_priority);
        assert_eq!(others(&before), others(&after));
        let expected = if has_slices() { 100_000 } else { before.sched_runtime };
        assert_eq!(after.sched_runtime, expected);
        let inherited = std::thread::spawn(|| read().unwrap().sched_runtime).join().unwrap();
        assert_eq!(inherited, expected);
    }
}
