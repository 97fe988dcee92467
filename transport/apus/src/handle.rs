//! The handle that blocking and async endpoints share: everything that does not wait.

use crate::call::CallId;
use crate::cork::Cork;
use crate::engine::shards::Shards;
use crate::error::Closed;
#[cfg(feature = "introspection")]
use crate::introspection;
use crate::submission::cancel;
use apus_observe::Metrics;
use apus_proto::RpcInfo;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Operations that every endpoint offers without waiting: cancel calls, report counters, shut down.
///
/// The blocking [`Endpoint`](crate::Endpoint) and the async
/// [`tokio::Endpoint`](crate::tokio::Endpoint) dereference to a handle, so that these methods are
/// called on the endpoint itself. Code that serves both kinds, such as an exporter of counters,
/// takes an `&EndpointHandle` or a clone of it:
///
/// ```
/// use apus::{Endpoint, EndpointHandle};
///
/// fn report(endpoint: &EndpointHandle) -> String {
///     format!("{} has {} RPCs", endpoint.local_addr(), endpoint.info().len())
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::client()?;
/// assert!(report(&endpoint).ends_with("has 0 RPCs"));
/// # Ok(())
/// # }
/// ```
///
/// A clone keeps the endpoint open: it is shut down when the last endpoint or handle is dropped.
#[derive(Clone)]
pub struct EndpointHandle {
    pub(crate) shards: Arc<Shards>,
    _lifetime: Arc<Lifetime>,
}

/// Shuts the endpoint down when the last handle is dropped.
struct Lifetime {
    #[cfg(feature = "introspection")]
    _registration: Option<apus_observe::introspection::Registration>,
    shards: Arc<Shards>,
}

impl EndpointHandle {
    pub(crate) fn new(shards: Shards, observable: bool) -> Self {
        #[cfg(not(feature = "introspection"))]
        let _ = observable;
        let shards = Arc::new(shards);
        let lifetime = Lifetime {
            #[cfg(feature = "introspection")]
            _registration: observable.then(|| introspection::register(&shards)).flatten(),
            shards: shards.clone(),
        };
        Self { shards, _lifetime: Arc::new(lifetime) }
    }

    /// Returns the address of the socket. The IP address is unspecified (`0.0.0.0` or `[::]`) if
    /// the socket is bound to all addresses of the host.
    ///
    /// A client with several [shards](crate::EndpointBuilder::shards) has a socket at a separate
    /// address for each; this is the first address.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shards.main().local_addr()
    }

    /// Checks that the caller is in the process that opened the endpoint. In a child of a fork
    /// every operation fails with this error or does nothing, and dropping the endpoint changes
    /// nothing for the parent.
    ///
    /// # Errors
    ///
    /// [`Closed::Forked`]
    #[inline]
    pub fn check_process(&self) -> Result<(), Closed> {
        Ok(self.shards.check_process()?)
    }

    /// Returns the number of [shards](crate::EndpointBuilder::shards), at least 1.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.count()
    }

    /// Returns whether the endpoint's packets are sealed ([`security`](crate::security)).
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.shards.main().sealing().is_sealed()
    }

    /// Returns the last handshake failure with `peer`, if a handshake has failed within the last
    /// seconds: the cause of calls that end with
    /// [`FailureKind::Untrusted`](crate::FailureKind::Untrusted).
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn handshake_failure(&self, peer: SocketAddr) -> Option<crate::security::HandshakeError> {
        self.shards.all().find_map(|shard| shard.sealing().failure(peer))
    }

    /// Cancels a call that was sent with `send`; its completion will not be received. The server
    /// may have executed the request.
    ///
    /// Returns `false` if the call has ended already. Its completion is then received as usual.
    pub fn cancel(&self, call: CallId) -> bool {
        self.shards.get(call.shard).is_some_and(|shard| cancel(&mut shard.lock(), call))
    }

    /// Holds back the messages of this endpoint so that they leave together: when a thread or task
    /// waits for something, when 32 messages are held back, or when the cork is dropped. If the
    /// application does not wait for some milliseconds, the background poller sends them.
    ///
    /// A cork suits threads that handle many small messages in a row: their packets leave in one
    /// system call. A thread that computes for long between two messages should not hold one.
    /// Batches for a peer of this host (`send_many`, `reply_many`) leave at once.
    ///
    /// With several [shards](crate::EndpointBuilder::shards) a cork holds back the messages of the
    /// calling thread's shard.
    pub fn cork(&self) -> Cork<'_> {
        Cork::hold(self.shards.opened_homes())
    }

    /// Shuts the endpoint down: outstanding calls fail, requests are refused, and every method that
    /// waits returns [`Closed`]. Has no effect if the endpoint is closed already.
    pub fn shutdown(&self) {
        if self.check_process().is_ok() {
            self.shards.main().lock().close(Closed::ShutDown);
        }
    }

    /// Returns the [timeout](crate::EndpointBuilder::call_timeout) of calls without a deadline;
    /// [`Duration::MAX`] if there is none.
    #[must_use]
    pub fn call_timeout(&self) -> Duration {
        self.shards.main().call_timeout()
    }

    /// Returns whether the endpoint is closed: it was shut down, or its driver failed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shards.main().lock().is_closed()
    }

    /// Freezes the [time trace](crate::trace) of this process and requests the same of all peers
    /// that have a session or share memory with the endpoint.
    ///
    /// Returns the number of requests to freeze that were sent. A peer that is reached over the
    /// network and through shared memory gets two. Peers comply if they are
    /// [configured to](crate::trace::FreezeTriggers::obey_peers), and do not acknowledge. A request
    /// may be lost; repeating it is harmless.
    pub fn freeze_peers(&self) -> usize {
        self.shards.all().map(|shard| shard.lock().freeze_peers()).sum()
    }

    /// Returns whether calls to peers on this host can go through shared memory: it is
    /// [enabled](crate::EndpointBuilder::local) and the system has granted the resources.
    #[must_use]
    pub fn has_local_path(&self) -> bool {
        self.shards.main().has_local_path()
    }

    /// Returns the state of every live RPC over the network, as client and as server.
    #[must_use]
    pub fn info(&self) -> Vec<RpcInfo> {
        self.shards.all().flat_map(|shard| shard.lock().transport().info()).collect()
    }

    /// Returns the current value of every counter; the sum of all shards.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        let mut all = self.shards.all().map(|shard| shard.metrics());
        let mut sum = all.next().unwrap_or_default();
        all.for_each(|metrics| sum.add(&metrics));
        sum
    }

    /// Returns the current value of every counter, for each
    /// [shard](crate::EndpointBuilder::shards).
    ///
    /// A serving endpoint with several shards has the same number of additional shards for the
    /// calls that it makes; they follow at the end, and are missing until it makes its first call.
    #[must_use]
    pub fn shard_metrics(&self) -> Vec<Metrics> {
        self.shards.all().map(|shard| shard.metrics()).collect()
    }
}

impl std::fmt::Debug for EndpointHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndpointHandle")
            .field("local_addr", &self.local_addr())
            .finish_non_exhaustive()
    }
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        self.shards.end();
    }
}
