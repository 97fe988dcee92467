//! What a child of a fork finds. A program of one thread, which forks for each check.

use apus_process::{Descriptor, ForeignProcess, Owned, Owner, PerProcess};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, TryLockError};

fn main() {
    an_owner_is_foreign_in_every_descendant();
    a_raw_clone_is_recognised();
    a_descriptor_is_closed_in_a_child_and_only_once();
    the_end_of_a_process_is_seen_although_its_child_lives();
    a_value_is_dropped_by_its_own_process_only();
    a_static_starts_anew();
    println!("6 checks passed");
}

/// Runs `check` in a child that is made by `fork`, and asserts that it holds there.
fn in_child_of(fork: impl FnOnce() -> libc::pid_t, check: impl FnOnce() -> bool) {
    let child = fork();
    assert!(child >= 0, "fork fails");
    if child == 0 {
        let status = i32::from(!check());
        // SAFETY: Ends this process without running the code of the parent's exit.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the check fails in the child");
}

fn in_child(check: impl FnOnce() -> bool) {
    // SAFETY: This program has one thread.
    in_child_of(|| unsafe { libc::fork() }, check);
}

/// PROCESS-1.
fn an_owner_is_foreign_in_every_descendant() {
    let owner = Owner::current();
    assert_eq!((owner, owner.check()), (Owner::current(), Ok(())));
    in_child(|| {
        let foreign =
            owner.check() == Err(ForeignProcess { pid: std::os::unix::process::parent_id() });
        let own = Owner::current();
        in_child(|| !owner.is_current() && !own.is_current() && Owner::current() != own);
        foreign && own.is_current() && own != owner
    });
    assert!(owner.is_current());
}

/// A fork that runs no handlers, as by `_Fork` or in a sandbox.
fn a_raw_clone_is_recognised() {
    let owner = Owner::current();
    // SAFETY: Without a stack and flags the system call is a fork; this program has one thread.
    let fork =
        || unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t };
    in_child_of(fork, || !owner.is_current() && Owner::current().is_current());
}

fn is_open(fd: i32) -> bool {
    // SAFETY: The call has no memory of this program as an argument.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

/// PROCESS-2.
fn a_descriptor_is_closed_in_a_child_and_only_once() {
    let descriptor = Descriptor::new(File::open("/dev/null").unwrap());
    let (fd, closed) = (descriptor.as_raw_fd(), Descriptor::new(File::open("/dev/null").unwrap()));
    let number = closed.as_raw_fd();
    drop(closed);
    // No descriptor of this crate any more.
    let other = File::open("/dev/null").unwrap();
    assert_eq!(other.as_raw_fd(), number);
    let mut descriptor = Some(descriptor);
    in_child(|| {
        let was_closed = !is_open(fd) && is_open(number);
        let reused = File::open("/dev/null").unwrap();
        drop(descriptor.take());
        was_closed && reused.as_raw_fd() == fd && is_open(fd)
    });
    assert!(descriptor.is_some() && is_open(fd));
}

fn the_end_of_a_process_is_seen_although_its_child_lives() {
    let (mut here, there) = UnixStream::pair().unwrap();
    let (mut wait, mut release) = UnixStream::pair().unwrap();
    in_child(|| {
        let there = Descriptor::new(there);
        // SAFETY: This program has one thread.
        if unsafe { libc::fork() } == 0 {
            // Lives until the first process has seen the end of the second one.
            let _ = wait.read(&mut [0]);
            // SAFETY: Ends this process without running the code of the parent's exit.
            unsafe { libc::_exit(0) };
        }
        std::mem::forget(there);
        true
    });
    // This process has dropped its copy of `there` together with the closure.
    assert_eq!(here.read(&mut [0]).unwrap(), 0, "the end of file");
    release.write_all(&[1]).unwrap();
}

fn a_value_is_dropped_by_its_own_process_only() {
    struct Sends(UnixStream);
    impl Drop for Sends {
        fn drop(&mut self) {
            self.0.write_all(b"x").unwrap();
        }
    }
    let (mut here, there) = UnixStream::pair().unwrap();
    let mut value = Some(Owned::new(Sends(there)));
    in_child(|| value.take().is_some_and(|value| value.own().is_err()));
    drop(value);
    let mut bytes = Vec::new();
    here.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"x", "dropped here, once");
}

fn a_static_starts_anew() {
    static NUMBERS: PerProcess<Mutex<Vec<u32>>> = PerProcess::new(Mutex::default);
    let mut locked = NUMBERS.get().lock().unwrap();
    locked.push(7);
    assert!(matches!(NUMBERS.get().try_lock(), Err(TryLockError::WouldBlock)));
    in_child(|| NUMBERS.get().try_lock().is_ok_and(|numbers| numbers.is_empty()));
    drop(locked);
    assert_eq!(*NUMBERS.get().lock().unwrap(), [7]);
}
