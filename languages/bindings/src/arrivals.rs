//! Messages of one kind for an event loop, announced by a descriptor.

use crate::alert::Alert;
use apus::Closed;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Waits for one message.
pub(crate) type Receive<T> = Pin<Box<dyn Future<Output = Result<T, Closed>> + Send>>;

/// A source of messages: completions or requests.
pub(crate) trait Source: Send + Sync {
    /// The message.
    type Message;

    /// Returns a future that waits for one message.
    fn receive(&self) -> Receive<Self::Message>;

    /// Takes a message if one is available.
    fn try_receive(&self) -> Result<Option<Self::Message>, Closed>;
}

/// Messages of one kind, announced by an [`Alert`].
///
/// The alert is the waker of a future that waits for the next message; the engine's thread raises
/// it. While the caller leaves messages, no future waits and the alert stays raised, so a batch of
/// any size costs one write and one read.
pub(crate) struct Arrivals<S: Source> {
    source: S,
    alert: Arc<Alert>,
    waker: Waker,
    /// Waits for the next message; `None` while the alert is raised because messages may be left.
    next: Mutex<Option<Receive<S::Message>>>,
}

impl<S: Source> Arrivals<S> {
    /// # Errors
    ///
    /// The system grants no descriptor.
    pub(crate) fn new(source: S) -> io::Result<Self> {
        let alert = Arc::new(Alert::raised()?);
        let waker = Waker::from(alert.clone());
        Ok(Self { source, alert, waker, next: Mutex::new(None) })
    }

    /// Appends up to `limit` available messages. Returns their number.
    ///
    /// # Errors
    ///
    /// [`Closed`]: the endpoint is closed and no message is left.
    pub(crate) fn take(&self, into: &mut Vec<S::Message>, limit: usize) -> Result<usize, Closed> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.alert.lower();
        let mut count = 0;
        let closed = loop {
            if count == limit {
                break None;
            }
            if let Some(mut receive) = next.take() {
                match receive.as_mut().poll(&mut Context::from_waker(&self.waker)) {
                    Poll::Ready(Ok(message)) => into.push(message),
                    Poll::Ready(Err(closed)) => break Some(closed),
                    Poll::Pending => {
                        *next = Some(receive);
                        return Ok(count);
                    }
                }
                count += 1;
            } else {
                match self.source.try_receive() {
                    Ok(Some(message)) => into.push(message),
                    Ok(None) => {
                        *next = Some(self.source.receive());
                        continue;
                    }
                    Err(closed) => break Some(closed),
                }
                count += 1;
            }
        };
        // More messages may be available, or the next call returns the error.
        self.alert.raise();
        match closed {
            Some(closed) if count == 0 => Err(closed),
            _ => Ok(count),
        }
    }

    /// Waits until messages may be available, but not beyond `until`.
    pub(crate) fn wait(&self, until: Option<Instant>) {
        self.alert.wait(until);
    }

    /// Returns the descriptor that is readable while messages may be available.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.alert.as_fd()
    }
}
