//! Values that belong to the process that created them.

use crate::errors;
use apus_bindings::{Failure, Status};
use pyo3::prelude::*;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of forks between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Records that this process is the child of a fork.
#[pyfunction(name = "_forked")]
pub(crate) fn forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// A value of one process. A child of that process cannot use it, and leaks it instead of freeing
/// it: a thread that does not exist in the child may hold its locks (PY-3).
pub(crate) struct Owned<T> {
    value: ManuallyDrop<T>,
    generation: u32,
}

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        let generation = GENERATION.load(Ordering::Relaxed);
        Self { value: ManuallyDrop::new(value), generation }
    }

    fn is_ours(&self) -> bool {
        self.generation == GENERATION.load(Ordering::Relaxed)
    }

    /// Returns the value.
    ///
    /// # Errors
    ///
    /// The value belongs to the parent process.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        if self.is_ours() {
            return Ok(&self.value);
        }
        let text = "the endpoint belongs to the parent process: open one in this process";
        Err(errors::raise(py, &Failure::new(Status::Closed, text)))
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.is_ours() {
            drop_value(&mut self.value);
        }
    }
}

/// The only unsafe code of this file.
#[allow(unsafe_code)]
fn drop_value<T>(value: &mut ManuallyDrop<T>) {
    // SAFETY: called once, when the owner is dropped; the value is unreachable afterwards.
    unsafe { ManuallyDrop::drop(value) };
}
