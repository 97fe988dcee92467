//! Where did a seed panic, and how is it kept from saying so to everybody?
//!
//! A panic inside a seed is a finding, with the place where it happened: the hook that prints panics is put
//! aside while a swarm runs, and another one notes the place.

use std::cell::RefCell;
use std::panic;
use std::sync::{Mutex, PoisonError};
use std::thread;

thread_local! {
    /// Where this thread has panicked last.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Swarms of this process that run now, and the hook that they have put aside.
static HOOK: Mutex<(usize, Option<Hook>)> = Mutex::new((0, None));

type Hook = Box<dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync>;

/// As long as it lives, panics print nothing.
pub(super) struct Quiet;

impl Quiet {
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

impl Drop for Quiet {
    fn drop(&mut self) {
        if thread::panicking() {
            // No hook can be set now.
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

/// Where this thread has panicked last, as ` (FILE:LINE:COLUMN)`; empty if nobody noted it.
pub(super) fn place() -> String {
    PLACE.with_borrow_mut(std::mem::take)
}
