//! May cores sleep so deeply that waking them takes longer than a message?

use std::fs::File;
use std::io::Write;

/// Keeps the cores from sleeping deeply while it lives: a program that is woken then begins at once, and not
/// after the tens of microseconds that a core, or a virtual machine's host, takes to come back.
///
/// What performance engineers switch off first on real hosts (tuned's `network-latency`). Good for every
/// transport alike. Needs privileges.
#[derive(Debug)]
pub struct Awake {
    /// The wish ends when this is closed.
    _wish: File,
}

/// Where Linux takes wishes: `Documentation/power/pm_qos_interface.rst`.
const WISHES: &str = "/dev/cpu_dma_latency";

impl Awake {
    /// From now on; `None` if the system does not allow it, or knows nothing of it.
    pub fn keep() -> Option<Self> {
        let mut wish = File::options().write(true).open(WISHES).ok()?;
        // Microseconds that waking up may take, as a C int.
        wish.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Self { _wish: wish })
    }
}
