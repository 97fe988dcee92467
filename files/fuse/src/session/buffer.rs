//! The memory that a request is read into.

use super::settings::SessionSettings;

/// Room for everything of a WRITE but its data; the kernel demands 4 KiB at least.
const HEADERS: usize = 4096;

/// Memory for one request. A thread that reads needs one; it is used again for each request.
#[derive(Debug)]
pub struct RequestBuffer {
    bytes: Box<[u8]>,
}

impl RequestBuffer {
    /// Allocates memory for the longest request that `settings` allow.
    #[must_use]
    pub fn new(settings: &SessionSettings) -> Self {
        let length = settings.checked_max_write() as usize + HEADERS;
        Self { bytes: vec![0; length].into_boxed_slice() }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
