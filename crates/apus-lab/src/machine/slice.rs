//! slice
#![allow(unsafe_code, missing_docs)]
#[repr(C)]
struct Attr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}
pub(crate) fn set(nanos: u64) -> bool {
    let a = Attr {
        size: 48,
        policy: 0,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime: nanos,
        deadline: 0,
        period: 0,
    };
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &a as *const Attr, 0) == 0 }
}
