//! Watching the client of a request.

use crate::engine::state::ClientState;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Tells whether the client of a request still waits: see [`Request::watch_client`].
///
/// As a future it is ready when the client has gone, and never after the request was answered.
///
/// [`Request::watch_client`]: crate::Request::watch_client
#[derive(Debug)]
#[must_use = "it only tells"]
pub struct ClientWatch(Arc<ClientState>);

impl ClientWatch {
    pub(crate) const fn new(state: Arc<ClientState>) -> Self {
        Self(state)
    }

    /// Returns the watch of a client that has gone, as far as this process can tell.
    pub(crate) fn gone() -> Self {
        Self(ClientState::gone())
    }

    /// Returns whether the client does not wait for the reply any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.is_gone()
    }
}

impl Future for ClientWatch {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_gone(cx)
    }
}
