//! Which of a name's addresses is called?

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use apus::{Bytes, CallError, CallOptions, Endpoint, FailReason, Outcome, RpcError};

/// A service under all its addresses. `localhost` has two, for instance, and a service that listens
/// on one of them.
pub(super) struct Peer {
    endpoint: Endpoint,
    addresses: Vec<SocketAddr>,
    /// The one in use; the ones before it did not answer.
    current: usize,
    /// It is the right one, or the last one.
    settled: bool,
    timeout: Option<Duration>,
}

impl Peer {
    /// A service with at least one address.
    pub(super) fn new(
        endpoint: Endpoint,
        addresses: Vec<SocketAddr>,
        timeout: Option<Duration>,
    ) -> Self {
        assert!(!addresses.is_empty(), "a name without an address is not resolved");
        Self { endpoint, addresses, current: 0, settled: false, timeout }
    }

    /// The address in use.
    pub(super) fn address(&self) -> SocketAddr {
        self.addresses[self.current]
    }

    /// One call, and how long it took. The first one finds out which address answers.
    pub(super) fn call(&mut self, request: &Bytes) -> (Result<Bytes, CallError>, Duration) {
        loop {
            let options = self.timeout.map_or_else(CallOptions::new, |time| {
                // From now on, whatever earlier addresses took.
                CallOptions::new().timeout(time)
            });
            let began = Instant::now();
            let result = self.endpoint.call_with(self.address(), request.clone(), options);
            let time = began.elapsed();
            match &result {
                Err(error) if self.has_another() && nobody_there(error) => self.current += 1,
                _ => {
                    self.settled = true;
                    return (result, time);
                }
            }
        }
    }

    fn has_another(&self) -> bool {
        !self.settled && self.current + 1 < self.addresses.len()
    }
}

/// Whether the service may be at another address, and has not executed the request at this one.
fn nobody_there(error: &CallError) -> bool {
    let CallError::Failed(RpcError { reason, outcome: Outcome::NotExecuted }) = error else {
        return false;
    };
    matches!(
        reason,
        FailReason::PortClosed
            | FailReason::HostUnreachable
            | FailReason::NotPermitted
            | FailReason::PeerSilent { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Situation: a name has several addresses, and nobody listens at the first ones.
    #[test]
    fn the_address_that_answers_is_used() {
        let service = Endpoint::bind("127.0.0.1:0").unwrap();
        let there = service.local_addr();
        let echo = thread::spawn({
            let service = service.clone();
            move || {
                while let Ok(request) = service.recv_request() {
                    let payload = request.payload().clone();
                    request.reply(payload).unwrap();
                }
            }
        });
        let nobody = SocketAddr::new("::1".parse().unwrap(), there.port());
        let addresses = vec![nobody, nobody, there, nobody];
        let mut peer = Peer::new(Endpoint::client().unwrap(), addresses, None);
        let request = Bytes::from("hello");
        assert_eq!(peer.call(&request).0.unwrap(), request);
        assert_eq!(peer.address(), there);
        service.shutdown();
        echo.join().unwrap();
        peer.call(&request).0.unwrap_err();
        assert_eq!(peer.address(), there, "once it has been found it stays");
    }
}
