//! How a blocking endpoint is opened.

use super::endpoint_builder::EndpointBuilder;
use super::options::Ports;
use crate::endpoint::Endpoint;
use crate::engine::shard::DriverSetup;
use crate::error::BindError;
use apus_driver::Driver;
use std::fmt::Debug;
use std::net::ToSocketAddrs;

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
    /// [`BindError`]: the address cannot be resolved or bound, or the system refuses a resource.
    pub fn bind(address: impl ToSocketAddrs + Debug) -> Result<Self, BindError> {
        Self::builder().bind(address)
    }

    /// Opens a UDP socket at a free port and starts an endpoint that does not serve requests.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the socket cannot be opened, or the system refuses a resource.
    pub fn client() -> Result<Self, BindError> {
        Self::builder().client()
    }
}

impl EndpointBuilder {
    /// Opens a socket at `address` (UDP, or raw IP with [`EndpointBuilder::raw`]) and starts the
    /// endpoint. Port 0 selects a free port. If `address` resolves to several addresses, the first
    /// that can be bound is used.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the address cannot be resolved or bound, or the system refuses a resource.
    pub fn bind(self, address: impl ToSocketAddrs + Debug) -> Result<Endpoint, BindError> {
        let opened = self.options.open(&address)?;
        self.start(opened, Ports::Shared)
    }

    /// Opens a socket at a free port, on all addresses of the host (over raw IP: all addresses of
    /// one IP protocol), and starts an endpoint that does not serve requests.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the socket cannot be opened, or the system refuses a resource.
    pub fn client(self) -> Result<Endpoint, BindError> {
        let opened = self.options.open_any()?;
        self.serve(false).start(opened, Ports::Own)
    }

    /// Starts the endpoint on `driver` instead of a UDP or raw IP socket. The shared-memory path is
    /// not available: it is bound to UDP addresses.
    ///
    /// In the kernel profile the caller must set [`EndpointBuilder::first_id`] such that no other
    /// endpoint of the host uses the same ids.
    ///
    /// # Errors
    ///
    /// [`BindError::Start`]: the system refuses a thread, a descriptor or a random seed.
    pub fn with_driver(self, driver: Box<dyn Driver>) -> Result<Endpoint, BindError> {
        let opened = self.options.on_driver(driver)?;
        self.start(opened, Ports::Own)
    }

    fn start(&self, opened: Vec<DriverSetup>, ports: Ports) -> Result<Endpoint, BindError> {
        let shards = self.options.start(opened, ports)?;
        Ok(Endpoint::new(shards, self.options.is_observable()))
    }
}
