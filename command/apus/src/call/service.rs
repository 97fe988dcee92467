//! The called service, with all addresses of its name.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use apus::{Bytes, CallError, CallOptions, Endpoint, Execution, FailureKind, RpcError};

use super::advice::Circumstances;
use super::route::{Permission, Route};

/// A service with all addresses of its name. `localhost`, for instance, has an IPv4 and an IPv6
/// address, and the service may listen on only one of them.
pub(super) struct Service {
    endpoint: Endpoint,
    permission: Permission,
    addresses: Vec<SocketAddr>,
    /// Index of the address in use. The service was unreachable at the addresses before it.
    current: usize,
    /// Whether the address in use is final: a call has reached it, or no other remains.
    settled: bool,
    timeout: Option<Duration>,
}

impl Service {
    /// Returns a service not yet reached by any call.
    ///
    /// # Panics
    ///
    /// If `addresses` is empty.
    pub(super) fn new(
        endpoint: Endpoint,
        permission: Permission,
        addresses: Vec<SocketAddr>,
        timeout: Option<Duration>,
    ) -> Self {
        assert!(!addresses.is_empty(), "a resolved name has an address");
        Self { endpoint, permission, addresses, current: 0, settled: false, timeout }
    }

    /// Returns the address in use.
    pub(super) fn address(&self) -> SocketAddr {
        self.addresses[self.current]
    }

    /// Returns the facts about a call that took `waited`. Those that only a failure needs are read
    /// if it `has_failed`.
    pub(super) fn circumstances(&self, waited: Duration, has_failed: bool) -> Circumstances {
        let mut facts = Circumstances { waited, ..Circumstances::default() };
        if has_failed {
            let engine = self.endpoint.metrics().engine;
            facts.is_alive = engine.packets_arrived > 0 || engine.local_calls > 0;
            facts.handshake = self.endpoint.handshake_failure(self.address());
        }
        facts
    }

    /// Returns the route of the calls so far.
    pub(super) fn route(&self) -> Route {
        Route::new(&self.permission, self.address(), self.endpoint.metrics().engine.local_calls)
    }

    /// Makes one call and measures its time. The first call tries the addresses in order until one
    /// is reachable.
    pub(super) fn call(&mut self, request: &Bytes) -> (Result<Bytes, CallError>, Duration) {
        loop {
            // Each address gets the full time.
            let options = self
                .timeout
                .map_or_else(CallOptions::new, |timeout| CallOptions::new().timeout(timeout));
            let began = Instant::now();
            let result = self.endpoint.call_with(self.address(), request.clone(), options);
            let time = began.elapsed();
            match &result {
                Err(error) if self.has_another() && is_unreachable(error) => self.current += 1,
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

/// Returns whether no service was reached, so that the request can be sent to another address
/// without executing it twice.
fn is_unreachable(error: &CallError) -> bool {
    let CallError::Failed(RpcError { kind, execution: Execution::NotExecuted }) = error else {
        return false;
    };
    matches!(
        kind,
        FailureKind::PortClosed
            | FailureKind::HostUnreachable
            | FailureKind::NotPermitted
            | FailureKind::PeerSilent { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use apus_command_line::driver::Driver;
    use std::thread;

    /// A name has four addresses, and the service listens only on the third.
    #[test]
    fn calls_go_to_the_first_reachable_address() {
        let echo = Endpoint::bind("127.0.0.1:0").unwrap();
        let reachable = echo.local_addr();
        let thread = thread::spawn({
            let echo = echo.clone();
            move || {
                while let Ok(request) = echo.recv_request() {
                    let payload = request.payload().clone();
                    request.reply(payload).unwrap();
                }
            }
        });
        let closed = SocketAddr::new("::1".parse().unwrap(), reachable.port());
        let addresses = vec![closed, closed, reachable, closed];
        let settings = apus::Settings::default();
        let permission = Permission::new(Driver::Udp, Path::Auto, &settings, true);
        let client = Endpoint::client().unwrap();
        let mut service = Service::new(client, permission, addresses, None);
        let request = Bytes::from("hello");
        assert_eq!(service.call(&request).0.unwrap(), request);
        assert_eq!(service.address(), reachable);
        echo.shutdown();
        thread.join().unwrap();
        service.call(&request).0.unwrap_err();
        assert_eq!(service.address(), reachable, "a reached address stays in use");
    }
}
