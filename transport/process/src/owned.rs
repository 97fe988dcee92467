//! A value that is dropped by its own process only.

use crate::owner::{ForeignProcess, Owner};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value of one process. A child of that process does not drop it: its threads, its locks and
/// its shared resources are the parent's. The child keeps the memory of its copy.
///
/// It can be read in a child: a caller that would take a lock or reach a resource checks first.
#[derive(Debug)]
pub struct Owned<T> {
    value: ManuallyDrop<T>,
    owner: Owner,
}

impl<T> Owned<T> {
    /// Returns a value of the calling process.
    pub fn new(value: T) -> Self {
        Self { value: ManuallyDrop::new(value), owner: Owner::current() }
    }

    /// Returns the process that the value belongs to.
    #[inline]
    pub const fn owner(&self) -> Owner {
        self.owner
    }

    /// Returns the value if it belongs to the calling process.
    ///
    /// # Errors
    ///
    /// [`ForeignProcess`]
    #[inline]
    pub fn own(&self) -> Result<&T, ForeignProcess> {
        self.owner.check().map(|()| &*self.value)
    }
}

impl<T> Deref for Owned<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Owned<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: Taken once, here.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        if !self.owner.is_current() {
            keep(value);
        }
    }
}

/// Values of other processes that this process would have dropped. A list, so that checkers of
/// memory find them in use.
static KEPT: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// An entry of the list.
#[repr(C)]
struct Kept<T> {
    next: *mut (),
    _value: ManuallyDrop<T>,
}

/// Keeps a value for as long as the process lives, without dropping it.
#[cold]
fn keep<T>(value: T) {
    let kept = Kept { next: KEPT.load(Ordering::Relaxed), _value: ManuallyDrop::new(value) };
    let kept = Box::leak(Box::new(kept));
    while let Err(first) = KEPT.compare_exchange_weak(
        kept.next,
        ptr::from_mut(kept).cast(),
        Ordering::Release,
        Ordering::Relaxed,
    ) {
        kept.next = first;
    }
}
