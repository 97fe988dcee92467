//! Request to the system for fast wake-up of cores.

use std::fs::File;
use std::io::Write;

/// Prevents cores from entering deep sleep states until dropped. A woken program then runs at once,
/// without the tens of microseconds that a core, or the host of a virtual machine, needs to
/// resume.
///
/// Performance guides list this first for real hosts (tuned's `network-latency`). It helps every
/// transport equally and needs privileges.
#[derive(Debug)]
pub struct PmQosRequest {
    /// The request ends when this file is closed.
    _request: File,
}

/// Device for such requests on Linux: `Documentation/power/pm_qos_interface.rst`.
const DEVICE: &str = "/dev/cpu_dma_latency";

impl PmQosRequest {
    /// Requests the lowest wake-up latency from now on; `None` if the system refuses or lacks the
    /// interface.
    pub fn open() -> Option<Self> {
        let mut request = File::options().write(true).open(DEVICE).ok()?;
        // Wake-up latency in microseconds, as a C int.
        request.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Self { _request: request })
    }
}
