//! An echo server.

use apus::Endpoint;
use std::thread::JoinHandle;

/// Starts a thread that responds to each request with the same bytes until the endpoint is shut
/// down. Returns the number of requests.
pub(crate) fn echo(server: Endpoint) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut served = 0;
        while let Ok(request) = server.recv_request() {
            served += 1;
            let payload = request.payload().clone();
            // The client may have vanished.
            let _ = request.reply(payload);
        }
        served
    })
}
