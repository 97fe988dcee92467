//! A server of the simplest kind.

use apus::Endpoint;
use std::thread::JoinHandle;

/// A server that answers each request with the same bytes, until its endpoint is shut down.
pub(crate) fn echo(server: Endpoint) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut served = 0;
        while let Ok(request) = server.recv_request() {
            served += 1;
            let payload = request.payload().clone();
            // The client may have gone.
            let _ = request.reply(payload);
        }
        served
    })
}
