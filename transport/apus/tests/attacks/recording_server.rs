//! A server that answers requests with themselves, and remembers them.

use crate::{SERVER, quiet};
use apus::{Endpoint, EndpointBuilder};
use std::thread::JoinHandle;

/// The server. It is shut down when it is dropped.
pub(crate) struct RecordingServer {
    pub(crate) endpoint: Endpoint,
    thread: Option<JoinHandle<Vec<Vec<u8>>>>,
}

impl RecordingServer {
    /// Starts a quiet one.
    pub(crate) fn start() -> Self {
        Self::start_with(quiet())
    }

    pub(crate) fn start_with(options: EndpointBuilder) -> Self {
        let endpoint = options.bind(SERVER).unwrap();
        let server = endpoint.clone();
        let thread = std::thread::spawn(move || {
            let mut executed = Vec::new();
            while let Ok(request) = server.recv_request() {
                let payload = request.payload().clone();
                executed.push(payload.to_vec());
                // The client may have ended.
                let _ = request.reply(payload);
            }
            executed
        });
        Self { endpoint, thread: Some(thread) }
    }

    /// The requests that were executed.
    pub(crate) fn stop(mut self) -> Vec<Vec<u8>> {
        self.endpoint.shutdown();
        self.thread.take().unwrap().join().unwrap()
    }
}

/// A failed assertion must not wait for the thread.
impl Drop for RecordingServer {
    fn drop(&mut self) {
        self.endpoint.shutdown();
    }
}
