//! The server's view: its clients, and the waits between them.

use std::net::SocketAddr;
use std::time::Duration;

use apus::{BindError, CallError, CallOptions, Endpoint};
use apus_fs_core::wire::{
    Failure, FileSystemStatus, Hello, Message, Request, Response, SessionRequest, WireError,
    WireVersion, frame,
};
use bytes::Bytes;

/// Name of the requesting client, which is left out of its own responses.
const NAME: &[u8] = b"apus fs status";

/// Why the state of a server is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The system grants no socket.
    #[error("call {server}: {source}")]
    Bind {
        /// The server.
        server: SocketAddr,
        /// The cause.
        source: BindError,
    },
    /// The server did not respond.
    #[error("call {server}: {source}")]
    Call {
        /// The server.
        server: SocketAddr,
        /// The cause.
        source: CallError,
    },
    /// It is no server of files, or another version.
    #[error("{server} does not serve files: {source}")]
    Wire {
        /// The server.
        server: SocketAddr,
        /// The error in its response.
        source: WireError,
    },
    /// The server refuses.
    #[error("{server}: {source}")]
    Refused {
        /// The server.
        server: SocketAddr,
        /// Why.
        source: Failure,
    },
    /// The server's response belongs to another request.
    #[error("{server} has sent a response to another request")]
    Unexpected {
        /// The server.
        server: SocketAddr,
    },
    /// The system grants no random number.
    #[error("draw a random number: {source}")]
    Random {
        /// The system's error.
        source: std::io::Error,
    },
}

/// Queries a server for the state of one export (an empty name selects the unnamed export), with a
/// session that ends afterwards.
///
/// # Errors
///
/// [`AskError`]: `server` has not answered within `timeout`, or is not a file server.
pub fn ask(
    server: SocketAddr,
    export: &str,
    timeout: Duration,
) -> Result<FileSystemStatus, AskError> {
    let mut client = [0; 16];
    getrandom::fill(&mut client)
        .map_err(|error| AskError::Random { source: std::io::Error::other(error) })?;
    let endpoint = Endpoint::client().map_err(|source| AskError::Bind { server, source })?;
    let asker = Asker { endpoint, server, timeout };
    let hello = Request::Hello(Hello {
        oldest: WireVersion::OLDEST,
        newest: WireVersion::CURRENT,
        client,
        name: Bytes::from_static(NAME),
        session: None,
        ranges: Vec::new(),
        read_only: true,
        export: Bytes::copy_from_slice(export.as_bytes()),
        greeting: 0,
    });
    let Response::Welcome(welcome) = asker.call(&hello)? else {
        return Err(AskError::Unexpected { server });
    };
    let of = |request| Request::Of { session: welcome.session, request };
    let status = asker.call(&of(SessionRequest::Status));
    // If it is lost, the session ends with its term.
    let _ = asker.call(&of(SessionRequest::Goodbye));
    match status? {
        Response::Status(mut status) => {
            status.clients.retain(|(name, ..)| name != NAME);
            Ok(status)
        }
        _ => Err(AskError::Unexpected { server }),
    }
}

struct Asker {
    endpoint: Endpoint,
    server: SocketAddr,
    timeout: Duration,
}

impl Asker {
    fn call(&self, request: &impl Message) -> Result<Response, AskError> {
        let server = self.server;
        let options = CallOptions::new().timeout(self.timeout).idempotent(true);
        let response = self.endpoint.call_with(server, frame::encode(request), options);
        let response = response.map_err(|source| AskError::Call { server, source })?;
        let decoded = frame::decode::<Response>(response);
        match decoded.map_err(|source| AskError::Wire { server, source })?.message {
            Response::Failed(source) => Err(AskError::Refused { server, source }),
            response => Ok(response),
        }
    }
}
