//! Request to the system that cores wake up fast.

use std::fs::File;
use std::io::Write;

/// Keeps cores out of deep sleep states until it is dropped. A woken program then runs immediately,
/// without the tens of microseconds that a core, or the host of a virtual machine, needs to resume.
///
/// Performance guides recommend this first for real hosts (tuned's `network-latency`). It helps
/// every transport equally and requires privileges.
#[derive(Debug)]
pub struct PmQosRequest {
    /// Closing this file ends the request.
    _request: File,
}

/// The kernel's interface for these requests: `Documentation/power/pm_qos_interface.rst`.
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
