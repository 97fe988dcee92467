//! Notifications from any thread.

use std::sync::Arc;

use rustix::io::Errno;

use super::device::Device;
use super::error::NotifyError;
use crate::codec::Notification;

/// Sends notifications. Cheap to clone; usable in any thread.
///
/// A notification about data or names may wait in the kernel for pages and directories that are
/// locked by operations in progress, that is, for replies. **A thread that sends such replies must
/// not send notifications**: it would wait for itself. [`Notification::IncEpoch`] and
/// [`Notification::Resend`] do not wait.
#[derive(Clone, Debug)]
pub struct Notifier {
    device: Arc<Device>,
}

impl Notifier {
    pub(crate) fn new(device: Arc<Device>) -> Self {
        Self { device }
    }

    /// Sends a notification. Returns whether the kernel had the node or name cached; if not, the
    /// notification has no effect.
    ///
    /// # Errors
    ///
    /// [`NotifyError`].
    pub fn send(&self, notification: &Notification<'_>) -> Result<bool, NotifyError> {
        let message = notification.encode().map_err(NotifyError::Encode)?;
        match self.device.write(&message) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(Errno::INVAL | Errno::NOSYS) => Err(NotifyError::Unsupported),
            Err(error) => Err(NotifyError::Refused(error)),
        }
    }
}
