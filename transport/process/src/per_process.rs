//! A static that starts anew in a child.

use crate::owner::Owner;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The value of a static, for each process: the first use in a child makes another one. A thread
/// that does not exist in the child may hold a lock of the parent's value.
#[derive(Debug)]
pub struct PerProcess<T: 'static> {
    /// Null until the first use. Never freed once it was seen by other threads.
    value: AtomicPtr<ValueOfProcess<T>>,
    make: fn() -> T,
}

#[derive(Debug)]
struct ValueOfProcess<T> {
    owner: Owner,
    value: T,
}

impl<T: Sync> PerProcess<T> {
    /// Returns a static whose values are made by `make`.
    pub const fn new(make: fn() -> T) -> Self {
        Self { value: AtomicPtr::new(ptr::null_mut()), make }
    }

    /// Returns the value of the calling process.
    pub fn get(&self) -> &T {
        loop {
            let known = self.value.load(Ordering::Acquire);
            // SAFETY: The pointer is null, or of a leaked box that is only read.
            if let Some(known) = unsafe { known.as_ref() }
                && known.owner.is_current()
            {
                return &known.value;
            }
            let value = ValueOfProcess { owner: Owner::current(), value: (self.make)() };
            let fresh = Box::into_raw(Box::new(value));
            let set =
                self.value.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire);
            if set.is_err() {
                // SAFETY: No other thread has seen it.
                drop(unsafe { Box::from_raw(fresh) });
            }
        }
    }
}
