//! Effects: actions that a server requests from its caller.

use std::net::SocketAddr;

use bytes::Bytes;

/// Names a request that waits for its response. Chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallToken(pub u64);

/// Names a callback that waits for its response. Chosen by the server core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallbackToken(pub u64);

/// An action that a [`Server`](super::Server) requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEffect {
    /// Responds to a request.
    Respond {
        /// The request.
        call: CallToken,
        /// Prefix and header of the response, from [`frame::encode`](crate::wire::frame::encode).
        header: Bytes,
        /// Bytes of files that follow.
        payload: Vec<Bytes>,
    },
    /// Call a client, and pass the outcome to
    /// [`Server::handle_callback_response`](super::Server::handle_callback_response).
    Call {
        /// Names the callback.
        callback: CallbackToken,
        /// Where the client is.
        peer: SocketAddr,
        /// The message.
        message: Bytes,
    },
}
