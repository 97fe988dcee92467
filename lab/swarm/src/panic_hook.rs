//! Panic hook: records the location of panics instead of printing them.
//!
//! A panic during a seed is a violation with a location. While a swarm runs, a hook that records
//! the location replaces the usual panic hook.

use std::any::Any;
use std::cell::RefCell;
use std::panic;
use std::sync::{Mutex, PoisonError};
use std::thread;

thread_local! {
    /// Location of this thread's last panic.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Number of running swarms of this process, and the replaced hook.
static HOOK: Mutex<(usize, Option<Hook>)> = Mutex::new((0, None));

type Hook = Box<dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync>;

/// Suppresses the output of panics during its lifetime.
pub(super) struct PanicSilencer;

impl PanicSilencer {
    pub(super) fn begin() -> Self {
        let mut hook = HOOK.lock().unwrap_or_else(PoisonError::into_inner);
        hook.0 += 1;
        if hook.0 == 1 {
            hook.1 = Some(panic::take_hook());
            panic::set_hook(Box::new(|info| {
                let place = info.location().map(|place| format!(" ({place})")).unwrap_or_default();
                PLACE.with_borrow_mut(|last| *last = place);
            }));
        }
        Self
    }
}

impl Drop for PanicSilencer {
    fn drop(&mut self) {
        if thread::panicking() {
            // The hook cannot be changed during a panic.
            return;
        }
        let mut hook = HOOK.lock().unwrap_or_else(PoisonError::into_inner);
        hook.0 -= 1;
        if hook.0 == 0
            && let Some(before) = hook.1.take()
        {
            panic::set_hook(before);
        }
    }
}

/// Returns the message of this thread's last panic, with its location as ` (FILE:LINE:COLUMN)`.
pub(super) fn describe(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    let location = PLACE.with_borrow_mut(std::mem::take);
    format!("{}{location}", text.unwrap_or("no message"))
}
