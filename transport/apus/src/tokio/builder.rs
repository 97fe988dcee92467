//! How an async endpoint is opened.

use super::Endpoint;
use crate::builder::Ports;
use crate::engine::runners::asynchronous;
use crate::engine::shard::{DriverSetup, Shard};
use crate::engine::shards::Runner;
use crate::engine::waiting::readable;
use crate::error::BindError;
use apus_driver::Driver;
use apus_process::Descriptor;
use rustix::event::{EventfdFlags, eventfd};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{ToSocketAddrs, lookup_host};
use tokio::runtime::Handle;

/// Options for a new [`Endpoint`]; every option has a default. [`Endpoint::builder`] returns one.
///
/// [`Engine`](crate::Engine) has no effect on an async endpoint: a task of the runtime runs its
/// loop. [`PollMode`](crate::PollMode) sets for how long this task polls the network, in turns with
/// the other tasks of the runtime, before it sleeps.
pub type EndpointBuilder = crate::EndpointBuilder<Endpoint>;

impl Endpoint {
    /// Returns a builder with the default options.
    pub fn builder() -> EndpointBuilder {
        EndpointBuilder::new()
    }

    /// Opens a UDP socket at `address` and starts an endpoint that serves requests. Port 0 selects
    /// a free port. If `address` resolves to several addresses, the first that can be bound is
    /// used.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the address cannot be resolved or bound, the system refuses a resource, or the
    /// caller is outside of a tokio runtime with IO and time enabled.
    pub async fn bind(address: impl ToSocketAddrs + Debug) -> Result<Self, BindError> {
        Self::builder().bind(address).await
    }

    /// Opens a UDP socket at a free port and starts an endpoint that does not serve requests.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the socket cannot be opened, the system refuses a resource, or the caller is
    /// outside of a tokio runtime with IO and time enabled.
    pub async fn client() -> Result<Self, BindError> {
        Self::builder().client().await
    }
}

impl EndpointBuilder {
    /// Opens a socket at `address` (UDP, or raw IP with [`EndpointBuilder::raw`]) and starts the
    /// endpoint. Port 0 selects a free port. If `address` resolves to several addresses, the first
    /// that can be bound is used.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the address cannot be resolved or bound, the system refuses a resource, or the
    /// caller is outside of a tokio runtime with IO and time enabled.
    pub async fn bind(self, address: impl ToSocketAddrs + Debug) -> Result<Endpoint, BindError> {
        let runtime = runtime()?;
        let text = format!("{address:?}");
        let found = lookup_host(address).await.map(Iterator::collect);
        let opened = self.options.open_first(&text, found)?;
        self.start(opened, Ports::Shared, runtime)
    }

    /// Opens a socket at a free port, on all addresses of the host (over raw IP: all addresses of
    /// one IP protocol), and starts an endpoint that does not serve requests.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the socket cannot be opened, the system refuses a resource, or the caller is
    /// outside of a tokio runtime with IO and time enabled.
    pub async fn client(self) -> Result<Endpoint, BindError> {
        let runtime = runtime()?;
        let opened = self.options.open_any()?;
        self.serve(false).start(opened, Ports::Own, runtime)
    }

    /// Starts the endpoint on `driver` instead of a UDP or raw IP socket. The shared-memory path is
    /// not available: it is bound to UDP addresses.
    ///
    /// In the kernel profile the caller must set [`EndpointBuilder::first_id`] such that no other
    /// endpoint of the host uses the same ids.
    ///
    /// # Errors
    ///
    /// [`BindError::Start`]: the system refuses a descriptor or a random seed.
    /// [`BindError::Runtime`]: the caller is outside of a tokio runtime with IO and time enabled.
    pub async fn with_driver(self, driver: Box<dyn Driver>) -> Result<Endpoint, BindError> {
        let runtime = runtime()?;
        let opened = self.options.on_driver(driver)?;
        self.start(opened, Ports::Own, runtime)
    }

    fn start(
        &self,
        opened: Vec<DriverSetup>,
        ports: Ports,
        runtime: Handle,
    ) -> Result<Endpoint, BindError> {
        let run = move |shard: &Arc<Shard>, _| {
            // Callers are opened by any thread that calls.
            let _inside = runtime.enter();
            asynchronous::start(shard).map(|()| Runner::Task)
        };
        let shards = self.options.start_with(opened, ports, run)?;
        Ok(Endpoint::new(shards, self.options.is_observable()))
    }
}

/// Returns the caller's runtime.
///
/// # Errors
///
/// [`BindError::Runtime`]: there is none, or it has IO or time disabled.
fn runtime() -> Result<Handle, BindError> {
    let unusable = |reason: &str| BindError::Runtime { reason: reason.to_owned() };
    let runtime =
        Handle::try_current().map_err(|_| unusable("the caller is outside of a tokio runtime"))?;
    let probe = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| unusable(&format!("eventfd: {error}")))?;
    // Rationale: tokio has no question for it; it panics, and prints that.
    let serves = catch_unwind(AssertUnwindSafe(|| {
        drop(tokio::time::sleep(Duration::ZERO));
        readable(Descriptor::new(probe)).is_ok()
    }));
    match serves {
        Ok(true) => Ok(runtime),
        Ok(false) => Err(unusable("the runtime takes no descriptor")),
        Err(_) => Err(unusable("the runtime has IO or time disabled: build it with `enable_all`")),
    }
}
